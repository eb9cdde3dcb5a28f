"""Growing arrays, pools of texts, and the flat dictionary against a Python dict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.encoding.flat_dictionary import (
    FlatDictionary,
    Growable,
    TextPool,
    _hash_bytes,
    are_slots,
)
from matchmill.encoding.texts import strings_to_texts

pytestmark = pytest.mark.kernels


def test_growable() -> None:
    g = Growable(np.int32)
    for n in range(300):
        g = g.extended([n])
    assert g.array.tolist() == list(range(300))
    g = g.padded(305, -1)
    assert g.array[300:].tolist() == [-1] * 5
    assert g.padded(3, 0).n == 305


def test_an_addition_that_is_given_up_leaves_nothing() -> None:
    before = Growable(np.int32, np.zeros(100, np.int32), 2)
    given_up = before.extended([7, 8, 9])
    after = before.extended([1])
    assert given_up.data is after.data is before.data
    assert before.array.tolist() == [0, 0]
    assert after.array.tolist() == [0, 0, 1]


@pytest.mark.parametrize("n_more", [3, 11, 3000])
def test_slots_of_an_addition_that_is_given_up_are_free_again(n_more: int) -> None:
    flat = FlatDictionary().with_new(strings_to_texts([f"id {n}" for n in range(20)]))
    slots = flat.slots.copy()
    for n in range(50):
        more = flat.with_new(strings_to_texts([f"{n}: {k}" for k in range(n_more)]))
        flat.without_new(more)
        np.testing.assert_array_equal(flat.slots, slots)


@given(st.lists(st.lists(st.text(max_size=6), max_size=40), max_size=6))
def test_dictionary_numbers_texts_in_order_of_arrival(groups: list[list[str]]) -> None:
    flat, known = FlatDictionary(), dict[str, int]()
    for group in groups:
        texts = strings_to_texts(group)
        assert flat.lookup(texts).tolist() == [known.get(t, -1) for t in group]
        new = [t for t in dict.fromkeys(group) if t not in known]
        flat = flat.with_new(strings_to_texts(new))
        for text in new:
            known[text] = len(known)
    assert len(flat) == len(known)
    everything = strings_to_texts(list(known))
    assert flat.lookup(everything).tolist() == list(range(len(known)))
    assert [flat.pool[n] for n in range(len(flat))] == list(known)
    rebuilt = FlatDictionary(TextPool(flat.pool.texts))
    assert rebuilt.lookup(everything).tolist() == list(range(len(known)))


def test_colliding_keys_stay_apart() -> None:
    texts = [str(n) for n in range(3000)]
    flat = FlatDictionary().with_new(strings_to_texts(texts))
    assert flat.lookup(strings_to_texts(texts)).tolist() == list(range(3000))
    assert flat.lookup(strings_to_texts(["x", "3000", ""])).tolist() == [-1, -1, -1]


@pytest.mark.kernels
def test_texts_that_share_a_slot_in_one_dictionary_do_not_in_another() -> None:
    """Who has found such texts for one key gains nothing: the next dictionary has another one."""

    def slots_of(flat: FlatDictionary, texts: list[str]) -> list[int]:
        one = (strings_to_texts([text]) for text in texts)
        key = flat.slots[-1]
        return [_hash_bytes(t.data, 0, t.offsets[1], key) & 1023 for t in one]

    first, second = FlatDictionary(), FlatDictionary()
    assert first.slots[-1] != second.slots[-1]
    texts = [f"user {n}" for n in range(4000)]
    at = slots_of(first, texts)
    common = max(set(at), key=at.count)
    shared = [text for text, slot in zip(texts, at, strict=True) if slot == common]
    shared += [text for text, slot in zip(texts, at, strict=True) if slot == common ^ 1]
    assert len(shared) > 8
    assert len(set(slots_of(first, shared))) == 2
    assert len(set(slots_of(second, shared))) > 0.7 * len(shared)


def test_what_can_be_slots() -> None:
    slots = FlatDictionary().with_new(strings_to_texts(["a", "b"])).slots
    assert are_slots(slots, 2, look=True)
    assert not are_slots(slots, 1, look=True)
    assert are_slots(slots, 1, look=False)
    assert not are_slots(slots, len(slots) - 1, look=False)  # no slot would be free
    assert not are_slots(slots[:-1], 2, look=False)
    slots[-1] = 7
    assert not are_slots(slots, 2, look=False)
