"""The clauses of `pst_bloom` and `pst_hash`, each in one piece of memory that is read to check it.

    block        id (low half, high half), n_checked, n_access + 4 * n_records, predicate, …
    predicate    dimension, low, high                 if it is one interval
                 -1 - dimension, n, low, high, …      if it is several
    narrow       blocks of 32-bit words, for clauses all of whose bounds are small or MAX_KEY
    wide         blocks of 64-bit words, for all others
    place        2 * first word in narrow, or 2 * first word in wide + 1
    table        the place of each id

The first n_checked predicates, most selective first, are those that a candidate is checked for; the
n_access access predicates follow, which hold whenever it is a candidate (PS-Tree, sections 5.3 and
6.3). n_records is for `pst_hash`: in how many of its records the clause is.

    {2: = 9, 0: 5 … 7, 4: 1 or 3} with id 6, ranked in this order, one access predicate, narrow:
    6 0  2  1    0 5 7    -5 2 1 1 3 3    2 9 9    (and one word more, as 16 is a power of two)

Ten predicates of one interval are two or three cache lines in narrow. An event's keys are kept in
both widths: in 32 bits a large key is the largest one, which no bound but MAX_KEY reaches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.errors import LimitError
from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import int64, kernel
from matchmill.papers.common.id_table import (
    IdTable,
    new_id_table,
    put_id,
    remove_id,
    table_with_room,
)
from matchmill.papers.common.pools import (
    Spans,
    give_span,
    new_spans,
    span_capacity,
    spans_with_room,
    take_span,
)
from matchmill.papers.ps_tree.cuts import MAX_KEY

__all__ = [
    "HEADER",
    "TOP",
    "Clauses",
    "add_records",
    "block_holds",
    "block_id",
    "block_words",
    "bring_block",
    "check_places",
    "clauses_with_room",
    "give_block",
    "is_narrow",
    "n_access_of",
    "new_clauses",
    "next_predicate",
    "write_block",
]

TOP = (1 << 31) - 1  # the largest 32-bit key
HEADER = 4
_MOST_ACCESS = 3  # access predicates: two bits
_LINES = 3
_HALF = 0xFFFF_FFFF
_MOST_WORDS = 1 << 30  # places are 32-bit numbers


class Clauses(NamedTuple):
    """Clauses in blocks of words."""

    narrow: Spans  # int32
    wide: Spans  # int64
    table: IdTable


def new_clauses() -> Clauses:
    """Make room for no clauses yet."""
    return Clauses(new_spans(np.int32), new_spans(), new_id_table())


def clauses_with_room(clauses: Clauses, n_clauses: int, n_narrow: int, n_wide: int) -> Clauses:
    """Return the same clauses with room for more, given the words of their blocks."""
    more = Clauses(
        spans_with_room(clauses.narrow, n_narrow),
        spans_with_room(clauses.wide, n_wide),
        table_with_room(clauses.table, n_clauses),
    )
    if max(len(more.narrow.cells), len(more.wide.cells)) > _MOST_WORDS:
        raise LimitError(
            "this index has no place for so many predicates: its clauses may take "
            f"{_MOST_WORDS} words; divide them among several engines"
        )
    return more


@kernel
def is_narrow(low: int, high: int) -> bool:
    """Tell whether bounds fit into 32 bits."""
    return low < TOP and (high < TOP or high == MAX_KEY)


@kernel
def block_words(table: ConjunctionTable, i: int) -> tuple[int, bool]:
    """How many words the block of a clause has, and whether they are narrow."""
    n = HEADER
    narrow = True
    for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
        first, end = int(table.interval_offsets[p]), int(table.interval_offsets[p + 1])
        n += 3 if end - first == 1 else 2 + 2 * (end - first)
        for k in range(first, end):
            narrow = narrow and is_narrow(table.lows[k], table.highs[k])
    return span_capacity(n), narrow


@kernel
def write_block(
    clauses: Clauses,
    table: ConjunctionTable,
    i: int,
    order: np.ndarray,
    n_access: int,
    n_records: int,
) -> int:
    """Store a clause and return its place.

    `order` ranks all predicates of the table, clause by clause; the first `n_access` are left out
    of what is checked. There must be room.
    """
    tail = n_access + (_MOST_ACCESS + 1) * n_records
    n_words, narrow = block_words(table, i)
    if narrow:
        start = take_span(clauses.narrow, n_words)
        _write(clauses.narrow.cells, start, table, i, order, n_access)
        clauses.narrow.cells[start + 3] = tail
    else:
        start = take_span(clauses.wide, n_words)
        _write(clauses.wide.cells, start, table, i, order, n_access)
        clauses.wide.cells[start + 3] = tail
    place = 2 * start if narrow else 2 * start + 1
    put_id(clauses.table, table.clause_ids[i], place)
    return place


@kernel
def _write(
    words: np.ndarray,
    start: int,
    table: ConjunctionTable,
    i: int,
    order: np.ndarray,
    n_access: int,
) -> None:
    lows, highs = table.lows, table.highs
    first = int(table.clause_offsets[i])
    n = int(table.clause_offsets[i + 1]) - first
    clause_id = int64(table.clause_ids[i])
    largest = TOP if words.itemsize == 4 else MAX_KEY
    words[start] = ((clause_id & _HALF) ^ 0x8000_0000) - 0x8000_0000
    words[start + 1] = clause_id >> 32
    words[start + 2] = n - n_access
    at = start + HEADER
    for j in range(n):
        p = order[first + (j + n_access) % n]
        a, b = int(table.interval_offsets[p]), int(table.interval_offsets[p + 1])
        if b - a == 1:
            words[at] = table.dimensions[p]
            at += 1
        else:
            words[at] = -1 - table.dimensions[p]
            words[at + 1] = b - a
            at += 2
        for k in range(a, b):
            words[at] = lows[k]
            words[at + 1] = min(highs[k], largest)
            at += 2


@kernel
def n_access_of(words: np.ndarray, start: int) -> int:
    """Return how many access predicates the clause in a block has."""
    return int(words[start + 3] & _MOST_ACCESS)


@kernel
def add_records(clauses: Clauses, place: int, n: int) -> int:
    """Note that a clause is in n more records; returns in how many it is now."""
    at = (place >> 1) + 3
    if place & 1:
        clauses.wide.cells[at] += (_MOST_ACCESS + 1) * n
        return int(clauses.wide.cells[at] >> 2)
    clauses.narrow.cells[at] += (_MOST_ACCESS + 1) * n
    return int(clauses.narrow.cells[at] >> 2)


@kernel
def block_id(words: np.ndarray, start: int) -> int:
    """Return the id of the clause in a block."""
    return int((int64(words[start + 1]) << 32) | (int64(words[start]) & _HALF))


@kernel
def bring_block(clauses: Clauses, place: int) -> None:
    """Prefetch a clause before it is checked: three cache lines are ten predicates."""
    start = place >> 1
    if place & 1:
        for line in range(_LINES):
            prefetch(clauses.wide.cells, start + 8 * line)
    else:
        for line in range(_LINES):
            prefetch(clauses.narrow.cells, start + 16 * line)


@kernel
def block_holds(words: np.ndarray, start: int, keys: np.ndarray) -> bool:
    """Whether the predicates that are to be checked hold; keys are as wide as words."""
    at = start + HEADER
    for _ in range(words[start + 2]):
        dimension = words[at]
        if dimension >= 0:
            key = keys[dimension]
            if key < words[at + 1] or key > words[at + 2]:
                return False
            at += 3
        else:
            key = keys[-1 - dimension]
            end = at + 2 + 2 * words[at + 1]
            at += 2
            inside = False
            while at < end:
                if words[at] <= key <= words[at + 1]:
                    inside = True
                at += 2
            if not inside:
                return False
    return True


@kernel
def check_places(
    clauses: Clauses,
    places: np.ndarray,
    n: int,
    keys: np.ndarray,
    narrow_keys: np.ndarray,
    out: np.ndarray,
    n_found: int,
) -> int:
    """Write the ids of those among n places whose clauses hold behind `n_found` others.

    What does not fit into `out` is counted all the same.
    """
    narrow, wide = clauses.narrow.cells, clauses.wide.cells
    for k in range(n):
        start = places[k] >> 1
        if places[k] & 1:
            if not block_holds(wide, start, keys):
                continue
            found = block_id(wide, start)
        else:
            if not block_holds(narrow, start, narrow_keys):
                continue
            found = block_id(narrow, start)
        if n_found < len(out):
            out[n_found] = found
        n_found += 1
    return n_found


@kernel
def next_predicate(words: np.ndarray, at: int) -> tuple[int, int, int]:
    """Of the predicate at `at`: dimension, its first interval, the first word after it."""
    if words[at] >= 0:
        return int(words[at]), at + 1, at + 3
    return -1 - int(words[at]), at + 2, at + 2 + 2 * int(words[at + 1])


@kernel
def give_block(clauses: Clauses, place: int) -> None:
    """Forget a clause."""
    start = place >> 1
    if place & 1:
        words = clauses.wide.cells
        remove_id(clauses.table, block_id(words, start))
        give_span(clauses.wide, start, _n_words(words, start))
    else:
        narrow = clauses.narrow.cells
        remove_id(clauses.table, block_id(narrow, start))
        give_span(clauses.narrow, start, _n_words(narrow, start))


@kernel
def _n_words(words: np.ndarray, start: int) -> int:
    at = start + HEADER
    for _ in range(words[start + 2] + n_access_of(words, start)):
        _, _, at = next_predicate(words, at)
    return at - start
