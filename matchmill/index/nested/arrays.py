"""The arrays of the index of nested clauses, which matching reads.

A nested clause is a tree of `and` and `or` over conditions, its *leaves*. They are kept in the
order of the text, each with two jumps: which leaf decides next if this one is false, or true.

    a = 1 and (b = 2 or c > 3)

    leaf         0: a = 1      1: b = 2     2: c > 3
    join         0             0            1          where a leaf meets those before it: at the
                                                       `and` on top (0), at the `or` in it (1)
    if false     REJECT        2            REJECT
    if true      1             ACCEPT       ACCEPT

An event walks from leaf to leaf until the clause is decided. It never looks at what cannot change
the outcome. Even joins are `and`, odd ones are `or`; the leaf with the lowest join inside of a
part is where the part divides. So the joins alone are the tree (`conjunction_table.py`).

    clause i     leaves starts[i] … starts[i + 1]
    leaf k       leaves[k] = place << 34 | n_intervals << 2 | quantifier,
                             jump if false << 32 | jump if true,
                             low, high                          of one interval, else
                             first, 0                           more[first], more[first + 1], … are
                                                                lows and highs, ascending
    jump         REJECT, ACCEPT, or 2 + the number of a leaf
    place        of a dimension among those that leaves have: dimensions[place], ascending

Which clauses an event has to walk: those that it *wakes*. A clause is woken by its access leaves.
Without one of them it cannot hold: all alternatives of the part that is least often true, each by
its least likely condition. They are clauses of ordinary indexes, together with the conditions that
go with them: hull clause h wakes clause owners[h]. Here it is `b = 2 and a = 1` and
`c > 3 and a = 1`, or `a = 1` alone if that is rare. Clauses that would wake for nearly every
event are in `always`.

Equal leaves have one *condition*: conditions[k] is its number, and leaf condition_leaves[…] has it,
too. An event that wakes many clauses evaluates all conditions first. 64 events are taken at once
where that is quicker: a condition becomes a word with a bit per event, and a clause is evaluated in
words.

    steps        per leaf: condition, if false, if true       the same jumps, for such events
    shapes       per clause: FLAT_AND (an `and` of `or` of leaves), FLAT_OR (the reverse), or DEEP.
                 Flat ones are evaluated without any branch, which is quicker than jumps
    few          all clauses as `fresh_scan.py` has them, if they have few leaves; else nothing. One
                 event is then matched by a scan, as a kernel takes one array more quickly
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = [
    "ACCEPT",
    "DEEP",
    "FIRST_LEAF",
    "FLAT_AND",
    "FLAT_OR",
    "REJECT",
    "NestedArrays",
    "Scratch",
    "Walk",
    "new_scratch",
    "walk_of",
]

REJECT, ACCEPT, FIRST_LEAF = 0, 1, 2
FLAT_AND, FLAT_OR, DEEP = 0, 1, 2  # the join of the outer parts of a flat clause


class NestedArrays(NamedTuple):
    """All arrays of the clauses, as they are saved."""

    clause_ids: np.ndarray  # int64
    starts: np.ndarray  # int64
    leaves: np.ndarray  # int64, four per leaf
    more: np.ndarray  # int64
    joins: np.ndarray  # uint8 per leaf
    conditions: np.ndarray  # int32 per leaf
    condition_leaves: np.ndarray  # int32 per condition
    dimensions: np.ndarray  # int32
    always: np.ndarray  # int32
    owners: np.ndarray  # int32 per hull clause
    shapes: np.ndarray  # uint8 per clause
    few: np.ndarray  # int64


class Walk(NamedTuple):
    """What an event needs to walk clauses."""

    clause_ids: np.ndarray
    starts: np.ndarray
    leaves: np.ndarray
    more: np.ndarray
    places: np.ndarray  # int32: dimension → place, or -1
    always: np.ndarray
    owners: np.ndarray
    steps: np.ndarray  # int32, three per leaf
    condition_leaves: np.ndarray
    conditions: np.ndarray
    joins: np.ndarray
    shapes: np.ndarray


class Scratch(NamedTuple):
    """What one thread needs; between events it is at rest."""

    last: np.ndarray  # int32 per place: the last pair of the event there, -1 at rest
    earlier: np.ndarray  # int32 per pair: the one before it on its dimension
    places: np.ndarray  # int32 per pair
    keys: np.ndarray  # int64 per pair
    woken: np.ndarray  # int64 per clause: the event that woke it last
    truths: np.ndarray  # uint8 per condition
    clock: np.ndarray  # int64: the number of the event, and how many clauses were walked


def walk_of(arrays: NestedArrays) -> Walk:
    """Return what an event needs to walk clauses."""
    places = np.full(int(arrays.dimensions.max(initial=-1)) + 1, -1, np.int32)
    places[arrays.dimensions] = np.arange(len(arrays.dimensions))
    jumps = arrays.leaves[:, 1]
    steps = np.column_stack((arrays.conditions, jumps >> 32, jumps & 0xFFFFFFFF)).astype(np.int32)
    return Walk(
        arrays.clause_ids,
        arrays.starts,
        arrays.leaves,
        arrays.more,
        places,
        arrays.always,
        arrays.owners,
        steps,
        arrays.condition_leaves,
        arrays.conditions,
        arrays.joins,
        arrays.shapes,
    )


def new_scratch(arrays: NestedArrays, n_pairs: int) -> Scratch:
    """Return scratch at rest, with room for events of so many pairs."""
    return Scratch(
        np.full(len(arrays.dimensions), -1, np.int32),
        np.empty(n_pairs, np.int32),
        np.empty(n_pairs, np.int32),
        np.empty(n_pairs, np.int64),
        np.zeros(len(arrays.clause_ids), np.int64),
        np.empty(len(arrays.condition_leaves), np.uint8),
        np.zeros(2, np.int64),
    )
