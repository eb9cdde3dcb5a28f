"""Growing arrays, pools of texts, and the flat dictionary against a Python dict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.encoding.flat_dictionary import FlatDictionary, Growable, TextPool
from matchmill.encoding.texts import strings_to_texts

pytestmark = pytest.mark.kernels


def test_growable() -> None:
    g = Growable(np.int32)
    for n in range(300):
        g.extend([n])
    assert g.array.tolist() == list(range(300))
    g.pad(305, -1)
    assert g.array[300:].tolist() == [-1] * 5
    g.pad(3, 0)
    assert g.n == 305


@given(st.lists(st.lists(st.text(max_size=6), max_size=40), max_size=6))
def test_dictionary_numbers_texts_in_order_of_arrival(groups: list[list[str]]) -> None:
    flat, known = FlatDictionary(), dict[str, int]()
    for group in groups:
        texts = strings_to_texts(group)
        assert flat.lookup(texts).tolist() == [known.get(t, -1) for t in group]
        new = [t for t in dict.fromkeys(group) if t not in known]
        flat.add_new(strings_to_texts(new))
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
    flat = FlatDictionary()
    flat.add_new(strings_to_texts(texts))
    assert flat.lookup(strings_to_texts(texts)).tolist() == list(range(3000))
    assert flat.lookup(strings_to_texts(["x", "3000", ""])).tolist() == [-1, -1, -1]
