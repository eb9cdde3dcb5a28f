"""A clause as it lies in a leaf: 32-bit words, one test after the other.

    record    slot, words in all, words up to which tests are made, tests …
    SMALL     dimension and kind, low | high << 16                      one interval below 2**15
    MASK      dimension and kind, base, 64 bits (low word first)        keys base … base + 63
    LIST      dimension and kind, n, n times low and high in two words  any intervals

The first word of a test is dimension << 2 | kind. Points come first, then ranges, masks and lists:
what is most likely to fail, and cheapest, is asked first. Tests that the way to the leaf has
answered already (the paper's subsumed predicates, section 5) stand behind the others and are not
made; they are kept because a clause may move.
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.kernels.jit import int64, kernel

__all__ = [
    "CHECKED",
    "LIST",
    "MASK",
    "SLOT",
    "SMALL",
    "TESTS",
    "TOTAL",
    "find_test",
    "hull",
    "mark_subsumed",
    "record_words",
    "test_words",
    "wide",
    "write_record",
]

SLOT, TOTAL, CHECKED, TESTS = range(4)
SMALL, MASK, LIST = range(3)
_SMALL_LIMIT = (1 << 15) - 1
_WORD = (1 << 32) - 1


@kernel
def _low_word(value: int) -> int:
    """Return the lower 32 bits as a signed number."""
    word = value & _WORD
    return word - (1 << 32) if word >> 31 else word


@kernel
def wide(words: np.ndarray, p: int) -> int:
    """Return the 64 bits of two words."""
    return int((int64(words[p + 1]) << 32) | (int64(words[p]) & _WORD))


@kernel
def test_words(words: np.ndarray, p: int) -> int:
    """Return how many words a test takes."""
    kind = words[p] & 3
    if kind == SMALL:
        return 2
    return 4 if kind == MASK else 2 + 4 * words[p + 1]


@kernel
def hull(words: np.ndarray, p: int) -> tuple[int, int]:
    """Return the least and the largest key that a test lets pass (Table 1).

    0 … 0 if there is none.
    """
    kind = words[p] & 3
    if kind == SMALL:
        return int64(words[p + 1] & 0xFFFF), int64(words[p + 1] >> 16)
    if kind == MASK:
        bits = wide(words, p + 2)
        top = 63
        while not (bits >> top) & 1:
            top -= 1
        return int64(words[p + 1]), int64(words[p + 1]) + top
    n = words[p + 1]
    if n == 0:
        return int64(0), int64(0)
    return wide(words, p + 2), wide(words, p + 4 * n)


@kernel
def find_test(words: np.ndarray, record: int, dimension: int) -> int:
    """Where the test on a dimension is; the clause must have one."""
    p = record + TESTS
    while words[p] >> 2 != dimension:
        p += test_words(words, p)
    return p


@kernel
def _is_interval(words: np.ndarray, p: int) -> bool:
    """Tell whether the keys that pass a test are one interval."""
    kind = words[p] & 3
    if kind == SMALL:
        return True
    if kind == LIST:
        return bool(words[p + 1] == 1)
    bits = wide(words, p + 2)
    return bool((bits & (bits + 1)) == 0)  # ones without a hole; the lowest bit is always one


@kernel
def mark_subsumed(words: np.ndarray, record: int, dimension: int, low: int, high: int) -> None:
    """Move the test on a dimension behind those that are made, if it asks for low … high."""
    p = find_test(words, record, dimension)
    first, last = hull(words, p)
    end = record + words[record + CHECKED]
    if first != low or last != high or p >= end or not _is_interval(words, p):
        return
    n = test_words(words, p)
    for _ in range(n):  # to the end of the tests that are made, word by word
        word = words[p]
        for q in range(p, end - 1):
            words[q] = words[q + 1]
        words[end - 1] = word
    words[record + CHECKED] -= n


@kernel
def _kind(table: ConjunctionTable, p: int) -> int:
    first, last = table.interval_offsets[p], table.interval_offsets[p + 1] - 1
    if last < first:
        return LIST
    low, high = table.lows[first], table.highs[last]
    if first == last and high <= _SMALL_LIMIT:
        return SMALL
    return MASK if high - low < 64 and low < 1 << 31 else LIST


@kernel
def record_words(table: ConjunctionTable, i: int) -> int:
    """Return how many words the record of a clause takes."""
    words = TESTS
    for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
        kind = _kind(table, p)
        n = table.interval_offsets[p + 1] - table.interval_offsets[p]
        words += 2 if kind == SMALL else (4 if kind == MASK else 2 + 4 * n)
    return words


@kernel
def write_record(table: ConjunctionTable, i: int, slot: int, out: np.ndarray, start: int) -> int:
    """Write clause i of a table; returns where it ends."""
    p = start + TESTS
    for turn in range(4):  # points, ranges, masks, lists
        for k in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
            first, last = table.interval_offsets[k], table.interval_offsets[k + 1]
            kind = _kind(table, k)
            is_point = kind == SMALL and table.lows[first] == table.highs[first]
            if turn != (0 if is_point else kind + 1):
                continue
            out[p] = table.dimensions[k] << 2 | kind
            if kind == SMALL:
                out[p + 1] = table.lows[first] | table.highs[first] << 16
                p += 2
            elif kind == MASK:
                base = table.lows[first]
                bits = int64(0)
                for j in range(first, last):
                    for key in range(table.lows[j] - base, table.highs[j] - base + 1):
                        bits |= int64(1) << key
                out[p + 1] = base
                out[p + 2] = _low_word(bits)
                out[p + 3] = bits >> 32
                p += 4
            else:
                out[p + 1] = last - first
                p += 2
                for j in range(first, last):
                    out[p] = _low_word(table.lows[j])
                    out[p + 1] = table.lows[j] >> 32
                    out[p + 2] = _low_word(table.highs[j])
                    out[p + 3] = table.highs[j] >> 32
                    p += 4
    out[start + SLOT] = slot
    out[start + TOTAL] = p - start
    out[start + CHECKED] = p - start
    return p
