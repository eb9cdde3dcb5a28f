"""The operators of OpIndex: which list an interval of keys belongs to, and how it stands there.

    EQUAL      one key                                   value: the key
    AT_MOST    from the floor of the dimension on        value: its last key
    AT_LEAST   up to the ceiling of the dimension        value: its first key
    BETWEEN    any other interval                        value: its first key, high: its last

A predicate is a set of intervals that do not meet, and a key lies in one of them at most. So each
interval becomes an entry of its own and the predicate is still counted once: `in` is several
entries of EQUAL, as in the paper (section 4.2), and `!=` one of AT_MOST and one of AT_LEAST. (The
paper makes two predicates of an interval. One entry that holds both ends needs one count instead
of two, and intervals that are nested, such as prefixes, can be climbed:
`prefix_trie.py`.)

A dimension has no first and last key of its own: its floor is where most of its intervals begin,
its ceiling where most of them end. Both are settled by the first predicates on it and then stay.

A predicate that accepts absence holds until a key speaks against it. Its entries are the keys that
it does not hold for, and they forbid the clause.

A text operator is none of these on its own: prefixes and suffixes are intervals, and patterns are
flags (EQUAL) that `encoding/text_patterns.py` sets for all patterns of an attribute at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ABSENT_KEY, ConjunctionTable
from matchmill.encoding.dimensions import LAST_KEYS, OBJECT_KEY, START_KEYS
from matchmill.papers.common.clause_intervals import MAX_KEY, ClauseIntervals, complement

__all__ = [
    "AT_LEAST",
    "AT_MOST",
    "BETWEEN",
    "EQUAL",
    "FINAL_KEYS",
    "FIRST_KEYS",
    "OPERATORS",
    "UNSETTLED",
    "Bounds",
    "Filed",
    "accepts_absence",
    "bounds_with",
    "classify",
    "filed_intervals",
    "new_bounds",
]

OPERATORS = EQUAL, AT_MOST, AT_LEAST, BETWEEN = range(4)

UNSETTLED = -1
_SAMPLE = 1 << 20  # intervals that are enough to settle bounds by
# Where all values, or all of an ordered type, begin and end.
FIRST_KEYS = np.array([ABSENT_KEY + 1, *(key for key in START_KEYS if key > OBJECT_KEY)])
FINAL_KEYS = np.array([*(key for key in LAST_KEYS if key > OBJECT_KEY), MAX_KEY])


class Bounds(NamedTuple):
    """Floor and ceiling of each dimension, or -1 where they are not settled."""

    floors: np.ndarray  # int64
    ceilings: np.ndarray  # int64


def new_bounds() -> Bounds:
    """Make bounds for no dimension."""
    return Bounds(np.empty(0, np.int64), np.empty(0, np.int64))


class Filed(NamedTuple):
    """Intervals that are to be entries; `rows` are positions of predicates."""

    rows: np.ndarray
    dimensions: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    forbids: np.ndarray  # bool


def accepts_absence(table: ConjunctionTable) -> np.ndarray:
    """Of each predicate."""
    return np.asarray(table.lows[table.interval_offsets[:-1]] == ABSENT_KEY)


def filed_intervals(table: ConjunctionTable) -> Filed:
    """Return the intervals of all predicates; of those that accept absence, the complement."""
    counts = np.diff(table.interval_offsets)
    rows = np.repeat(np.arange(table.n_predicates), counts)
    against = accepts_absence(table)
    everything = ClauseIntervals(rows, table.dimensions[rows], table.lows, table.highs)
    if not against.any():
        return Filed(*everything, np.zeros(len(rows), bool))
    is_against = against[rows]
    positive = everything.take(~is_against)
    negative = complement(everything.take(is_against))
    forbids = np.arange(len(positive.rows) + len(negative.rows)) >= len(positive.rows)
    return Filed(
        np.concatenate((positive.rows, negative.rows)),
        np.concatenate((positive.dimensions, negative.dimensions)),
        np.concatenate((positive.lows, negative.lows)),
        np.concatenate((positive.highs, negative.highs)),
        forbids,
    )


def bounds_with(bounds: Bounds, n_dimensions: int, filed: Filed) -> Bounds:
    """Settle what these intervals allow to settle."""
    ranges = np.flatnonzero(filed.lows < filed.highs)
    ranges = ranges[:: len(ranges) // _SAMPLE + 1]
    dimensions = filed.dimensions[ranges]
    return Bounds(
        _settled(bounds.floors, n_dimensions, dimensions, filed.lows[ranges], FIRST_KEYS),
        _settled(bounds.ceilings, n_dimensions, dimensions, filed.highs[ranges], FINAL_KEYS),
    )


def _settled(
    known: np.ndarray, n_dimensions: int, dimensions: np.ndarray, keys: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    out = known
    if n_dimensions > len(known):
        out = np.concatenate((known, np.full(n_dimensions - len(known), UNSETTLED)))
    is_open = out[dimensions] == UNSETTLED
    if not is_open.any():
        return out
    dimensions, keys = dimensions[is_open], keys[is_open]
    order = np.lexsort((keys, dimensions))
    dimensions, keys = dimensions[order], keys[order]
    starts = np.flatnonzero(
        np.concatenate(([True], (np.diff(dimensions) != 0) | (np.diff(keys) != 0)))
    )
    counts = np.diff(np.append(starts, len(keys)))
    dimensions, keys = dimensions[starts], keys[starts]
    # A key tells little that stands alone, or that another one equals in number; the first or last
    # key of a type of values does all the same.
    is_end = np.isin(keys, ends)
    scores = 2 * counts + is_end
    order = np.lexsort((scores, dimensions))
    dimensions, keys, is_end, scores = (a[order] for a in (dimensions, keys, is_end, scores))
    is_best = np.append(np.diff(dimensions) != 0, True)
    is_equalled = np.zeros(len(keys), bool)
    is_equalled[1:] = (np.diff(dimensions) == 0) & (np.diff(scores) == 0)
    tells = is_best & (is_end | ((scores > 2) & ~is_equalled))
    if not tells.any():
        return out
    out = out.copy()
    out[dimensions[tells]] = keys[tells]
    return out


def classify(filed: Filed, bounds: Bounds) -> np.ndarray:
    """Return the operator of each interval."""
    operators = np.full(len(filed.rows), BETWEEN, np.int8)
    operators[filed.highs == bounds.ceilings[filed.dimensions]] = AT_LEAST
    operators[filed.lows == bounds.floors[filed.dimensions]] = AT_MOST
    operators[filed.lows == filed.highs] = EQUAL
    return operators
