"""Words that pack several fields: what is packed is read again, and nothing overlaps."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchmill.index.mill import words as w
from matchmill.kernels.jit import int64, uint64

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("seed", range(20))
def test_headers_of_blocks(seed: int) -> None:
    rng = Random(seed)
    n_entries, n_tests = rng.choice([1, 7, w.MOST_ENTRIES]), rng.choice([0, 1, 5, 65_535])
    n_inline, kind = rng.choice([0, 3, w.MOST_INLINE_WORDS]), rng.randrange(3)
    uses_dictionary, follows = rng.random() < 0.5, rng.random() < 0.5
    words = np.zeros(10, np.uint64)
    words[4] = w.block_header(n_entries, uses_dictionary, n_tests, kind, n_inline, follows)
    block = w.block_at(words, int64(4))
    assert block[:6] == (follows, uses_dictionary, kind, n_entries, n_tests, n_inline)
    assert block.masks_at == 5
    assert block.tests_at == 4 * (5 + (n_entries if uses_dictionary else 0))
    n_halves = -(-n_entries * n_tests // 2) + n_entries  # pieces of 32 bits
    assert block.inline_at == block.tests_at // 4 + -(-n_halves // 2)
    assert block.end == block.inline_at + n_entries * n_inline


@pytest.mark.parametrize("n_tests", range(1, 65))
def test_dictionaries_are_blocks_without_entries(n_tests: int) -> None:
    words = np.zeros(3, np.uint64)
    words[2] = w.block_header(0, True, n_tests, 0, 0, True)
    block = w.block_at(words, int64(2))
    assert (block.n_entries, block.n_tests, block.tests_at) == (0, n_tests, 12)
    assert block.end == 3 + -(-n_tests // 4)


def test_places_of_slots() -> None:
    for start, length in ((1, 1), (1 << 38, 5), (77, w.MOST_SLOT_WORDS)):
        place = w.slot_place(int64(start), int64(length))
        assert (w.slot_start(place), w.slot_length(place)) == (start, length)
    assert w.slot_length(w.slot_place(int64(3), int64(1 << 30))) == w.MOST_SLOT_WORDS


def test_inline_tests() -> None:
    for column in (0, 1, 32_767, 65_534):
        test = uint64(w.inline_test(column, uint64(w.interval_payload(5, (1 << 24) - 1))))
        assert (w.column_of(test), w.low_of(test), w.high_of(test)) == (column, 5, (1 << 24) - 1)
        for more in (0, 1):
            for excludes in (0, 1):
                payload = uint64(w.points_payload(more, excludes))
                for i, code in enumerate((0, 32_767, 12)):
                    payload |= uint64(w.point_payload(code, i))
                test = uint64(w.inline_test(column, payload))
                assert w.column_of(test) == column
                assert (w.has_more(test), w.is_exception(test)) == (more, excludes)
                assert [w.point_of(test, i) for i in range(3)] == [0, 32_767, 12]
    payload = uint64(w.general_payload((1 << 24) - 1)) | uint64((1 << 24) - 1)
    test = uint64(w.inline_test(w.GENERAL, payload))
    following = uint64(w.general_intervals(1 << 38, (1 << 24) - 1))
    assert w.general_test(test, following) == ((1 << 24) - 1, 1 << 38, (1 << 24) - 1)
    assert [int(w.general_bit(code)) for code in (0, 23, 24, 50)] == [0, 23, 0, 2]


def test_shapes_of_entries() -> None:
    shape = w.shape_of(2, w.MOST_INLINE_WORDS, 70_000, 65_535)
    assert (w.shape_kind(shape), w.shape_inline(shape)) == (2, w.MOST_INLINE_WORDS)
    assert (w.shape_tests(shape), w.shape_first_test(shape)) == (70_000, 65_535)
    assert shape & w.DICTIONARY_SHAPE == 0
    using = w.shape_with_dictionary(shape, 64)
    assert using & w.DICTIONARY_SHAPE
    assert (w.shape_kind(using), w.shape_inline(using)) == (2, w.MOST_INLINE_WORDS)
    assert (w.shape_tests(using), w.shape_first_test(using)) == (64, 0)


def test_nodes_levels_and_facts() -> None:
    node = w.node_of(20, 1 << 30)
    assert (w.node_level(node), w.node_position(node)) == (20, 1 << 30)
    level = w.level_word(int64(1 << 40), int64(5))
    assert (w.level_start(level), w.level_number(level)) == (1 << 40, 5)
    assert w.slot_on_level(level, int64(100)) == (1 << 40) + 3
    chances = np.array([0.25, 0.5], np.float32).view(np.int32).astype(np.int64)
    facts = w.fact_of(chances, np.array([0, 20]), np.array([65_535, -1]))
    assert [int(w.fact_shared(fact)) for fact in facts] == [65_536, 0]
    assert [int(w.fact_inline(fact)) for fact in facts] == [0, 20]
    assert facts[0] < facts[1]  # ordered by chance
