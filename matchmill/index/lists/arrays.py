"""The arrays of the index of lists, which matching reads.

A *thing* is whatever can hold for an event; all things are in one space of numbers:

    codes       of dimension d: first_code[d] … first_code[d + 1], the spaces between its edges
    ranges      further things, each a range of codes of one dimension. above[above_offsets[c]] …
                are those that code c is in

An event holds a thing as many times as distinct codes of it are in the thing. A *test* compares
the sums of such counts:

    some key is in the set      counts of some things  >  counts of what is taken away from them
    no key is                   the same, and this must not be so

    x in ('a', 'c')      codes of a and c
    x > 5                one range
    x != 'a'             the range of all texts, taken away the code of a: "some other text" is
                         that there are more texts than a's

A clause is filed under all things of one of its predicates, the least likely one that has to have
some key: its *access*. Under a thing there are *blocks*:

    blocks      of thing t: slot_offsets[t] … slot_offsets[t + 1]; slot n_things is visited for
                every event
    entries     of block b: block_offsets[b] … block_offsets[b + 1]
    block_signatures[b]   which word says what holds for the event: of dimension d
                3 d         a bit for each of its codes (the number of the thing modulo 64)
                3 d + 1     a bit for each of its ranges
                3 d + 2     for both
                ALWAYS      a word of ones
                DIRECT      nothing is left to test: entry_records has row << 1 | several
    entry_masks     bits of the things of the second least likely predicate: without any of them
                the entry is left
    entry_records   where the record of the entry begins in `records`:
                row << 1 | several, n_tests, test, test, …
                test    n_things << 2 | has_taken_away << 1 | is_none, [n_taken_away],
                        things …, things taken away …

`several` says that the clause is filed under several things that may hold for one event. Only such
clauses can be found twice, and are stamped when they are found. Example: one clause
`tags contains any ('a', 'b') and kind = 'k'` with the codes a = 1, b = 3, k = 6, filed under tags:

    slot 1      block (3 · kind: codes), entry (mask 1 << 6, record 0)
    slot 3      block (3 · kind: codes), entry (mask 1 << 6, record 4)
    records     [row << 1 | 1, 1 test, 1 thing << 2, 6,   the same again]

Of a dimension with one value, the first code includes absence: it holds at rest. It is taken back
when an event has another key.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["ALWAYS", "DIRECT", "ONE", "SEVERAL", "UNUSED", "ListArrays", "Scratch", "new_scratch"]

ALWAYS, DIRECT = -1, -2
UNUSED, ONE, SEVERAL = 0, 1, 2  # kinds of dimensions


class ListArrays(NamedTuple):
    """All arrays of an index, as they are saved."""

    clause_ids: np.ndarray  # int64: of each row
    kinds: np.ndarray  # uint8 per dimension
    edge_offsets: np.ndarray  # int64, one more than there are dimensions
    edges: np.ndarray  # int64
    above_offsets: np.ndarray  # int64, one more than there are codes
    above: np.ndarray  # int32
    absent: np.ndarray  # int32: dimensions with one value, whose absence has entries
    slot_offsets: np.ndarray  # int64, two more than there are things
    block_offsets: np.ndarray  # int64
    block_signatures: np.ndarray  # int32
    entry_masks: np.ndarray  # uint64
    entry_records: np.ndarray  # int64
    records: np.ndarray  # int32

    @property
    def n_things(self) -> int:
        """The number of things."""
        return len(self.slot_offsets) - 2


class Scratch(NamedTuple):
    """What one thread needs to match; between events it is at rest."""

    counts: np.ndarray  # int32 per thing
    signature_words: np.ndarray  # uint64: three per dimension
    rest: np.ndarray  # uint64: the signatures of an empty event
    is_absent: np.ndarray  # uint8 per dimension: whether it has one value, and the event none
    held: np.ndarray  # int32: things that hold for the event, and further slots to visit
    found_at: np.ndarray  # int64 per row: the number of the event that found it last
    clock: np.ndarray  # int64: the number of the event, and how many entries were looked at
    kept: np.ndarray  # int64: records of a block that are still to be tested
    dimensions: np.ndarray  # int32: of a single event
    keys: np.ndarray  # int64: of a single event


def new_scratch(arrays: ListArrays, n_pairs: int) -> Scratch:
    """Return scratch at rest, with room for a single event of so many pairs."""
    counts = np.zeros(arrays.n_things, np.int32)
    rest = np.zeros(3 * len(arrays.kinds), np.uint64)
    for d in np.flatnonzero(arrays.kinds == ONE).tolist():
        code = int(arrays.edge_offsets[d]) + d
        above = arrays.above[arrays.above_offsets[code] : arrays.above_offsets[code + 1]]
        counts[code] = 1
        counts[above] = 1
        own = np.uint64(1) << np.uint64(code & 63)
        others = np.bitwise_or.reduce(np.uint64(1) << (above & 63).astype(np.uint64))
        rest[3 * d : 3 * d + 3] = own, others, own | others
    return Scratch(
        counts,
        rest.copy(),
        rest,
        (arrays.kinds == ONE).astype(np.uint8),
        np.empty(arrays.n_things + 1, np.int32),
        np.zeros(len(arrays.clause_ids), np.int64),
        np.zeros(2, np.int64),
        np.empty(int(np.diff(arrays.block_offsets).max(initial=0)), np.int64),
        np.empty(n_pairs, np.int32),
        np.empty(n_pairs, np.int64),
    )
