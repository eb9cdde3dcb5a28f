"""Predicates whose constants have labels become intervals of keys, in a ConjunctionTable.

    slots of constants ─► labels ─► labels of each predicate, sorted ─► intervals
                                    those of joined predicates, united ─► intervals

The regions of the line of values begin at `starts` and end before `lasts` of the next one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.bulk.predicates import (
    ABSENT,
    ABSENT_OR_LIST,
    AFTER,
    BEFORE,
    FALSE,
    FIXED,
    HIGH_SIDE,
    IS_JOINED,
    IS_WIDE,
    LOW_SIDE,
    NOT_POINTS,
    NOT_RANGE,
    POINTS,
    PRESENT,
    RANGE,
    REGION,
)
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.dimensions import FALSE_KEY, LAST_KEYS, LIST_KEY, START_KEYS, TRUE_KEY
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import int64, kernel
from matchmill.kernels.sorting import sort_by_key, sort_rows
from matchmill.kernels.threads import on_ranges, split_weights
from matchmill.language.values import Region

__all__ = ["Columns", "resolved"]

_STRING = int(Region.STRING)
_PRESENT_KEY, _LAST_KEY = START_KEYS[Region.BOOLEAN], LAST_KEYS[Region.END]


class Columns(NamedTuple):
    """What was gathered of all rows so far."""

    names: np.ndarray  # slots of names, int32
    what: np.ndarray  # int16
    n_codes: np.ndarray  # int32
    codes: np.ndarray  # int32
    clause_sizes: np.ndarray  # int32
    refs: np.ndarray  # int32


class _United(NamedTuple):
    """The intervals of predicates that others are joined to."""

    places: np.ndarray  # of each predicate: where its intervals begin
    lows: np.ndarray
    highs: np.ndarray


def resolved(
    columns: Columns,
    number_labels: np.ndarray,
    string_labels: np.ndarray,
    name_dimensions: np.ndarray,
    clause_ids: np.ndarray,
) -> ConjunctionTable:
    """Return the clauses; all labels are known."""
    code_offsets, clause_offsets = offsets_of(columns.n_codes), offsets_of(columns.clause_sizes)
    labels = np.empty(len(columns.codes), np.int64)
    sizes = np.empty(len(columns.what), np.int64)
    starts, lasts = np.array(START_KEYS, np.int64), np.array(LAST_KEYS, np.int64)

    def label(first: int, last: int) -> None:
        _label_codes(
            columns, code_offsets, number_labels, string_labels, first, last, labels, sizes
        )

    on_ranges(label, split_weights(code_offsets + np.arange(len(code_offsets))))
    none = np.empty(0, np.int64)
    united = _United(none, none, none)
    if (columns.what & IS_JOINED).any():
        places = offsets_of(sizes)
        n_intervals = int(places[-1])
        united = _United(places, np.empty(n_intervals, np.int64), np.empty(n_intervals, np.int64))
        _unite(columns, code_offsets, labels, starts, lasts, places, sizes, *united[1:])
    interval_ends = offsets_of(sizes[columns.refs])[clause_offsets]
    n_predicates, n_intervals = int(clause_offsets[-1]), int(interval_ends[-1])
    table = ConjunctionTable(
        clause_ids,
        clause_offsets,
        np.empty(n_predicates, np.int32),
        np.zeros(n_predicates + 1, np.int64),
        np.empty(n_intervals, np.int64),
        np.empty(n_intervals, np.int64),
    )

    def resolve(first: int, last: int) -> None:
        _resolve(
            columns,
            name_dimensions,
            clause_offsets,
            code_offsets,
            labels,
            sizes,
            starts,
            lasts,
            united,
            first,
            last,
            int(interval_ends[first]),
            table,
        )

    on_ranges(resolve, split_weights(interval_ends))
    return table


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _label_codes(
    columns: Columns,
    code_offsets: np.ndarray,
    number_labels: np.ndarray,
    string_labels: np.ndarray,
    first: int,
    last: int,
    out_labels: np.ndarray,
    out_sizes: np.ndarray,
) -> None:
    """Write the labels of the constants of some predicates, those of lists sorted and distinct.

    Also how many intervals each predicate has.
    """
    what, codes = columns.what, columns.codes
    scratch = np.empty(64, np.int64)
    for p in range(first, last):
        kind = what[p] & 7
        out_sizes[p] = 1
        if kind == FIXED:
            out_sizes[p] = 1 + ((what[p] >> REGION) & 15 == ABSENT_OR_LIST)
            continue
        start, stop = code_offsets[p], code_offsets[p + 1]
        if (what[p] >> REGION) & 15 == _STRING:
            for k in range(start, stop):
                out_labels[k] = string_labels[codes[k]]
        else:
            for k in range(start, stop):
                out_labels[k] = number_labels[codes[k]]
        if kind == NOT_RANGE:
            out_sizes[p] = 2
        elif kind != RANGE:
            if stop - start > len(scratch):
                scratch = np.empty(2 * (stop - start), np.int64)
            sort_rows(out_labels, scratch, start, stop)
            n = int64(0)
            for k in range(start, stop):
                if k == start or out_labels[k] != out_labels[start + n - 1]:
                    out_labels[start + n] = out_labels[k]
                    n += 1
            out_sizes[p] = n + (kind == NOT_POINTS)


@kernel
def _write(
    what: int,
    labels: np.ndarray,
    start: int,
    n_codes: int,
    size: int,
    starts: np.ndarray,
    lasts: np.ndarray,
    at: int,
    out_lows: np.ndarray,
    out_highs: np.ndarray,
) -> None:
    """Write the intervals of a predicate."""
    kind = what & 7
    region = (what >> REGION) & 15
    if kind == FIXED:
        if region == ABSENT:
            out_lows[at], out_highs[at] = 0, 0
        elif region == ABSENT_OR_LIST:
            out_lows[at], out_highs[at] = 0, 0
            out_lows[at + 1], out_highs[at + 1] = LIST_KEY, LIST_KEY
        elif region == PRESENT:
            out_lows[at], out_highs[at] = _PRESENT_KEY, _LAST_KEY
        else:
            key = FALSE_KEY if region == FALSE else TRUE_KEY
            out_lows[at], out_highs[at] = key, key
        return
    floor, ceiling = starts[region], lasts[region + 1]
    if what & IS_WIDE:
        floor, ceiling = int64(0), int64(_LAST_KEY)
    if kind == POINTS:
        for k in range(size):
            out_lows[at + k], out_highs[at + k] = labels[start + k], labels[start + k]
        return
    if kind == NOT_POINTS:
        for k in range(size):
            out_lows[at + k] = labels[start + k - 1] + 1 if k > 0 else floor
            out_highs[at + k] = labels[start + k] - 1 if k + 1 < size else ceiling
        return
    low_side, high_side = (what >> LOW_SIDE) & 3, (what >> HIGH_SIDE) & 3
    low, high = labels[start], labels[start + n_codes - 1]
    if kind == RANGE:
        out_lows[at] = low + (low_side == AFTER) if low_side else floor
        out_highs[at] = high - (high_side == BEFORE) if high_side else ceiling
    else:
        out_lows[at], out_highs[at] = floor, low - (low_side == BEFORE)
        out_lows[at + 1], out_highs[at + 1] = high + (high_side == AFTER), ceiling


@kernel
def _unite(
    columns: Columns,
    code_offsets: np.ndarray,
    labels: np.ndarray,
    starts: np.ndarray,
    lasts: np.ndarray,
    places: np.ndarray,
    sizes: np.ndarray,
    out_lows: np.ndarray,
    out_highs: np.ndarray,
) -> None:
    """Write the intervals of predicates that others are joined to, from the place of the first on.

    Also how many intervals they are; those that are joined have none.
    """
    what, n_codes = columns.what, columns.n_codes
    p = int64(0)
    lows, highs = np.empty(64, np.int64), np.empty(64, np.int64)
    while p < len(what):
        stop = p + 1
        while stop < len(what) and what[stop] & IS_JOINED:
            stop += 1
        if stop > p + 1:
            size = places[stop] - places[p]
            if 2 * size > len(lows):
                lows, highs = np.empty(4 * size, np.int64), np.empty(4 * size, np.int64)
            at = int64(0)
            for q in range(p, stop):
                _write(
                    int64(what[q]),
                    labels,
                    code_offsets[q],
                    int64(n_codes[q]),
                    sizes[q],
                    starts,
                    lasts,
                    at,
                    lows,
                    highs,
                )
                at += sizes[q]
                sizes[q] = 0
            sort_by_key(lows, highs, size)
            out = places[p]
            out_lows[out], out_highs[out] = lows[0], highs[0]
            for k in range(1, size):
                if lows[k] <= out_highs[out] + 1:
                    out_highs[out] = max(out_highs[out], highs[k])
                else:
                    out += 1
                    out_lows[out], out_highs[out] = lows[k], highs[k]
            sizes[p] = out + 1 - places[p]
        p = stop


@kernel
def _resolve(
    columns: Columns,
    name_dimensions: np.ndarray,
    clause_offsets: np.ndarray,
    code_offsets: np.ndarray,
    labels: np.ndarray,
    sizes: np.ndarray,
    starts: np.ndarray,
    lasts: np.ndarray,
    united: _United,
    first: int,
    last: int,
    at: int,
    out: ConjunctionTable,
) -> None:
    """Write the predicates of some clauses, in the order of their dimensions, and intervals.

    `at` is where the intervals of the first of these clauses begin.
    """
    names, what, n_codes, refs = columns.names, columns.what, columns.n_codes, columns.refs
    dimensions, lows, highs = out.dimensions, out.lows, out.highs
    interval_offsets = out.interval_offsets
    order = np.empty(64, np.int64)
    for c in range(first, last):
        start, stop = clause_offsets[c], clause_offsets[c + 1]
        for r in range(start, stop):
            p = int64(refs[r])
            j = r - start
            while j > 0 and name_dimensions[names[order[j - 1]]] > name_dimensions[names[p]]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = p
        for r in range(start, stop):
            p = order[r - start]
            dimensions[r] = name_dimensions[names[p]]
            if p + 1 < len(what) and what[p + 1] & IS_JOINED:
                place = united.places[p]
                for k in range(sizes[p]):
                    lows[at + k], highs[at + k] = united.lows[place + k], united.highs[place + k]
                at += sizes[p]
                interval_offsets[r + 1] = at
                continue
            _write(
                int64(what[p]),
                labels,
                code_offsets[p],
                int64(n_codes[p]),
                sizes[p],
                starts,
                lasts,
                at,
                lows,
                highs,
            )
            at += sizes[p]
            interval_offsets[r + 1] = at
