"""Build the index of lists (`arrays.py` shows it).

    distinct predicates     things, and things taken away, of each     `decomposed`
    clauses                 access and signature: the least likely     `_choose`
    entries                 one per thing of the access, sorted by slot and signature
    records                 in the order of entries

An interval of few codes is these codes. A wider one is a range of its own, if its dimension has no
more than 64 of them; else it is a few nodes of a binary tree over the codes. Wide intervals with
narrow gaps between them (`x != 'a'`) are the range from the first to the last, without the gaps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import NONE, ONE_KEY, ConjunctionTable
from matchmill.index.base import Statistics
from matchmill.index.lists.arrays import ALWAYS, DIRECT, ONE, SEVERAL, ListArrays
from matchmill.index.predicate_codes import Dictionary, build_dictionary
from matchmill.index.selectivity import code_masses
from matchmill.kernels.csr import offsets_of, take_ranges
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["build_arrays"]

_NARROW = 4  # codes
_MOST_RANGES = 64  # of one dimension; each costs something whenever one of its codes occurs
_FEW_WORDS = 256  # of all copies of the record of a clause: more are written once


class Decomposed(NamedTuple):
    """The things of each distinct predicate."""

    offsets: np.ndarray  # int64
    things: np.ndarray  # int32
    taken_offsets: np.ndarray  # int64
    taken: np.ndarray  # int32: things taken away
    first_codes: np.ndarray  # int32: of all ranges, in order; their things begin after the codes
    last_codes: np.ndarray  # int32


def build_arrays(table: ConjunctionTable, statistics: Statistics | None) -> ListArrays:
    """Return the arrays of an index of all clauses of a table."""
    dictionary = build_dictionary(table)
    n_dimensions = dictionary.n_dimensions
    kinds = np.zeros(n_dimensions, np.uint8)
    kinds[table.dimensions] = np.where(table.all_quantifiers() == ONE_KEY, ONE, SEVERAL)
    n_codes = int(dictionary.edge_offsets[-1]) + n_dimensions
    parts = _decomposed(dictionary, n_codes)
    chances = _chances(dictionary, parts, statistics, kinds, n_codes)
    above_offsets, above = _above(parts, n_codes)
    chosen = _Chosen(np.full(table.n_clauses, -1, np.int64), np.full(table.n_clauses, -1, np.int64))
    costs = np.append(0.0, np.cumsum(chances[parts.things]))[parts.offsets]
    costs = np.diff(costs) + 1e-6 * np.diff(parts.offsets)
    _choose(table, dictionary.ids, costs, table.all_quantifiers(), chosen)
    slots, signatures, masks, rows = _entries(table, dictionary, parts, chosen, kinds, n_codes)
    n_things = n_codes + len(parts.first_codes)
    order = np.lexsort((rows, signatures, slots))
    slots, signatures, rows = slots[order], signatures[order], rows[order]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = (slots[1:] != slots[:-1]) | (signatures[1:] != signatures[:-1])
    blocks = np.flatnonzero(is_first)
    entry_records, records = _records(table, dictionary, parts, chosen, kinds, rows, signatures)
    return ListArrays(
        table.clause_ids,
        kinds,
        dictionary.edge_offsets,
        dictionary.edges,
        above_offsets,
        above,
        _absent(kinds, dictionary.edge_offsets, above_offsets, above, slots),
        np.searchsorted(slots[blocks], np.arange(n_things + 2)),
        np.append(blocks, len(rows)),
        signatures[blocks].astype(np.int32),
        masks[order],
        entry_records,
        records,
    )


def _absent(
    kinds: np.ndarray,
    edge_offsets: np.ndarray,
    above_offsets: np.ndarray,
    above: np.ndarray,
    slots: np.ndarray,
) -> np.ndarray:
    """Return the dimensions with one value whose absence has entries."""
    used = np.unique(slots)
    dimensions = np.flatnonzero(kinds == ONE)
    codes = edge_offsets[dimensions] + dimensions
    has_entries = np.isin(codes, used)
    offsets, positions = take_ranges(above_offsets, codes)
    found = offsets_of(np.isin(above[positions], used))[offsets]
    has_entries |= found[1:] > found[:-1]
    return dimensions[has_entries].astype(np.int32)


# -- things ---------------------------------------------------------------------------------------


def _decomposed(dictionary: Dictionary, n_codes: int) -> Decomposed:
    """Return the things of all distinct predicates."""
    n_distinct = dictionary.n_distinct
    counts = np.zeros((n_distinct, 2), np.int64)
    dimensions = dictionary.dimensions.astype(np.int64)
    widths = np.diff(dictionary.edge_offsets) + 1
    has_tree = np.zeros(dictionary.n_dimensions, np.bool_)
    none = np.empty(0, np.int64)
    runs = _wide_runs(dictionary)
    firsts = dictionary.edge_offsets[:-1] + np.arange(len(has_tree))
    owners = np.searchsorted(firsts, np.unique(runs) >> 32, side="right") - 1
    has_tree[np.bincount(owners, minlength=len(has_tree)) > _MOST_RANGES] = True
    _decompose(dictionary, dimensions, widths, has_tree, counts, none, none, none, none)
    offsets, taken_offsets = offsets_of(counts[:, 0]), offsets_of(counts[:, 1])
    lows, highs = np.empty((2, int(offsets[-1])), np.int64)
    taken_lows, taken_highs = np.empty((2, int(taken_offsets[-1])), np.int64)
    counts[:, 0], counts[:, 1] = offsets[:-1], taken_offsets[:-1]
    _decompose(
        dictionary, dimensions, widths, has_tree, counts, lows, highs, taken_lows, taken_highs
    )
    # Everything is an interval of codes now: of one code, which is a thing by itself, or a range.
    is_range = highs > lows
    ranges = np.unique(lows[is_range] << 32 | highs[is_range])
    things = lows.copy()
    things[is_range] = n_codes + np.searchsorted(ranges, lows[is_range] << 32 | highs[is_range])
    return Decomposed(
        offsets,
        things.astype(np.int32),
        taken_offsets,
        taken_lows.astype(np.int32),
        (ranges >> 32).astype(np.int32),
        (ranges & 0xFFFFFFFF).astype(np.int32),
    )


def _wide_runs(dictionary: Dictionary) -> np.ndarray:
    """Return first << 32 | last code, among those of all dimensions, of all that are ranges."""
    starts, stops = dictionary.interval_offsets[:-1], dictionary.interval_offsets[1:]
    out = np.empty(len(dictionary.lows), np.int64)
    n = _find_runs(dictionary, starts, stops, out)
    return out[:n]


@kernel
def _run_end(dictionary: Dictionary, k: int, stop: int) -> tuple[int, int]:
    """Return where a run that begins with interval k ends, and how many of it are wide."""
    lows, highs = dictionary.lows, dictionary.highs
    n_wide = int64(highs[k] - lows[k] >= _NARROW)
    k += 1
    while k < stop and lows[k] - highs[k - 1] - 1 <= _NARROW:
        n_wide += highs[k] - lows[k] >= _NARROW
        k += 1
    return k, n_wide


@kernel
def _find_runs(
    dictionary: Dictionary, starts: np.ndarray, stops: np.ndarray, out: np.ndarray
) -> int:
    n = 0
    for q in range(len(starts)):
        base = dictionary.edge_offsets[dictionary.dimensions[q]] + dictionary.dimensions[q]
        k = starts[q]
        while k < stops[q]:
            end, n_wide = _run_end(dictionary, k, stops[q])
            if n_wide > 1:
                out[n] = (base + dictionary.lows[k]) << 32 | (base + dictionary.highs[end - 1])
                n += 1
            else:
                for one in range(k, end):
                    if dictionary.highs[one] - dictionary.lows[one] >= _NARROW:
                        out[n] = (base + dictionary.lows[one]) << 32 | (
                            base + dictionary.highs[one]
                        )
                        n += 1
            k = end
    return n


@kernel
def _put(low: int, high: int, at: int, out_lows: np.ndarray, out_highs: np.ndarray) -> int:
    if len(out_lows):
        out_lows[at] = low
        out_highs[at] = high
    return at + 1


@kernel
def _put_interval(
    low: int,
    high: int,
    base: int,
    width: int,
    has_tree: bool,
    at: int,
    out_lows: np.ndarray,
    out_highs: np.ndarray,
) -> int:
    """Write an interval of codes as things; return where the next ones belong."""
    if high - low < _NARROW:
        for code in range(low, high + 1):
            at = _put(base + code, base + code, at, out_lows, out_highs)
    elif not has_tree:
        at = _put(base + low, base + high, at, out_lows, out_highs)
    else:
        while low <= high:  # the largest aligned piece that fits
            size = int64(1)
            while low & (2 * size - 1) == 0 and low + 2 * size - 1 <= high:
                size *= 2
            at = _put(base + low, base + low + size - 1, at, out_lows, out_highs)
            low += size
    return at


@kernel
def _decompose(
    dictionary: Dictionary,
    dimensions: np.ndarray,
    widths: np.ndarray,
    has_tree: np.ndarray,
    counts: np.ndarray,
    out_lows: np.ndarray,
    out_highs: np.ndarray,
    out_taken_lows: np.ndarray,
    out_taken_highs: np.ndarray,
) -> None:
    """Write the things of each predicate from counts[q] on, as intervals of all codes.

    With arrays without room nothing is written; counts are where the things of a predicate end.
    """
    lows, highs = dictionary.lows, dictionary.highs
    for q in range(len(dimensions)):
        d = dimensions[q]
        base = dictionary.edge_offsets[d] + d
        at, taken_at = counts[q, 0], counts[q, 1]
        k, stop = dictionary.interval_offsets[q], dictionary.interval_offsets[q + 1]
        while k < stop:
            end, n_wide = _run_end(dictionary, k, stop)
            if n_wide > 1:
                at = _put_interval(
                    int64(lows[k]), int64(highs[end - 1]), base, widths[d], has_tree[d],
                    at, out_lows, out_highs,
                )  # fmt: skip
                for one in range(k + 1, end):
                    for code in range(highs[one - 1] + 1, lows[one]):
                        taken_at = _put(
                            base + code, base + code, taken_at, out_taken_lows, out_taken_highs
                        )
            else:
                for one in range(k, end):
                    at = _put_interval(
                        int64(lows[one]), int64(highs[one]), base, widths[d], has_tree[d],
                        at, out_lows, out_highs,
                    )  # fmt: skip
            k = end
        counts[q, 0], counts[q, 1] = at, taken_at


def _above(parts: Decomposed, n_codes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranges that each code is in."""
    counts = np.zeros(n_codes + 1, np.int64)
    np.add.at(counts, parts.first_codes, 1)
    np.add.at(counts, parts.last_codes + 1, -1)
    offsets = offsets_of(np.cumsum(counts)[:-1])
    above = np.empty(int(offsets[-1]), np.int32)
    _fill_above(parts.first_codes, parts.last_codes, offsets[:-1].copy(), above)
    return offsets, above


@kernel
def _fill_above(
    first_codes: np.ndarray, last_codes: np.ndarray, next_at: np.ndarray, out: np.ndarray
) -> None:
    for r in range(len(first_codes)):
        for code in range(first_codes[r], last_codes[r] + 1):
            out[next_at[code]] = len(next_at) + r
            next_at[code] += 1


def _chances(
    dictionary: Dictionary,
    parts: Decomposed,
    statistics: Statistics | None,
    kinds: np.ndarray,
    n_codes: int,
) -> np.ndarray:
    """Return for each thing how many of its codes an event has, on average."""
    masses = code_masses(dictionary, statistics)
    first = dictionary.edge_offsets[:-1] + np.arange(len(kinds))
    several = np.flatnonzero(kinds == SEVERAL)
    masses[first[several]] = 0.0
    if statistics is not None:
        known = several[several < len(statistics.dimension_counts)]
        n_keys = np.diff(statistics.sample_offsets)[known]
        per_event = np.ones(len(kinds))
        per_event[known] = n_keys / np.maximum(1, statistics.dimension_counts[known])
        masses *= np.repeat(np.maximum(1.0, per_event), np.diff(dictionary.edge_offsets) + 1)
    sums = np.append(0.0, np.cumsum(masses))
    ranges = sums[parts.last_codes.astype(np.int64) + 1] - sums[parts.first_codes]
    out: np.ndarray = np.minimum(1.0, np.concatenate((masses, ranges)))
    return out


# -- entries --------------------------------------------------------------------------------------


class _Chosen(NamedTuple):
    """Of each clause the predicates that decide where it is filed, or -1."""

    access: np.ndarray  # int64
    signature: np.ndarray  # int64


@kernel
def _choose(
    table: ConjunctionTable,
    ids: np.ndarray,
    costs: np.ndarray,
    quantifiers: np.ndarray,
    out: _Chosen,
) -> None:
    """Choose the two least likely predicates of each clause that have to have some key."""
    for i in range(len(table.clause_ids)):
        best, second = int64(-1), int64(-1)
        for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
            if quantifiers[p] == NONE:
                continue
            if best < 0 or costs[ids[p]] < costs[ids[best]]:
                best, second = p, best
            elif second < 0 or costs[ids[p]] < costs[ids[second]]:
                second = p
        out.access[i] = best
        out.signature[i] = second


def _entries(
    table: ConjunctionTable,
    dictionary: Dictionary,
    parts: Decomposed,
    chosen: _Chosen,
    kinds: np.ndarray,
    n_codes: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return slot, signature, mask and row of each entry."""
    ids = dictionary.ids
    has_access = chosen.access >= 0
    accesses = ids[chosen.access[has_access]]
    offsets, positions = take_ranges(parts.offsets, accesses)
    rows = np.repeat(np.flatnonzero(has_access), np.diff(offsets))
    slots = parts.things[positions].astype(np.int64)
    others = np.flatnonzero(~has_access)
    rows = np.concatenate((rows, others))
    slots = np.concatenate((slots, np.full(len(others), n_codes + len(parts.first_codes))))
    masks = np.zeros(dictionary.n_distinct, np.uint64)
    words = np.zeros(dictionary.n_distinct, np.int64)
    _fill_masks(dictionary.dimensions, parts, n_codes, words, masks)
    signature = chosen.signature[rows]
    distinct = ids[signature] if len(ids) else signature
    has_signature = signature >= 0
    out_words = np.where(has_signature, words[distinct] if len(words) else 0, ALWAYS)
    ones = np.uint64(0xFFFFFFFFFFFFFFFF)
    out_masks = np.where(has_signature, masks[distinct] if len(masks) else ones, ones)
    out_words[_n_tests(table, ids, parts, chosen)[rows] == 0] = DIRECT
    return slots, out_words, out_masks, rows


@kernel
def _fill_masks(
    dimensions: np.ndarray,
    parts: Decomposed,
    n_codes: int,
    out_words: np.ndarray,
    out_masks: np.ndarray,
) -> None:
    """Write of each distinct predicate the bits of its things, and the word that has such bits."""
    for q in range(len(dimensions)):
        has_codes = has_ranges = False
        for k in range(parts.offsets[q], parts.offsets[q + 1]):
            thing = int64(parts.things[k])
            out_masks[q] |= uint64(1) << uint64(thing & 63)
            has_codes |= thing < n_codes
            has_ranges |= thing >= n_codes
        out_words[q] = 3 * int64(dimensions[q]) + (2 if has_codes and has_ranges else has_ranges)


def _n_tests(
    table: ConjunctionTable, ids: np.ndarray, parts: Decomposed, chosen: _Chosen
) -> np.ndarray:
    """Return how many predicates of each clause are left to test."""
    counts = np.diff(table.clause_offsets)
    has_access = chosen.access >= 0
    accesses = ids[chosen.access[has_access]]
    has_taken = parts.taken_offsets[accesses + 1] > parts.taken_offsets[accesses]
    counts[has_access] -= ~has_taken
    return counts


def _records(
    table: ConjunctionTable,
    dictionary: Dictionary,
    parts: Decomposed,
    chosen: _Chosen,
    kinds: np.ndarray,
    rows: np.ndarray,
    signatures: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the record of each entry is, and all records."""
    n_tests = _n_tests(table, dictionary.ids, parts, chosen)
    is_direct = signatures == DIRECT
    n_things = np.diff(parts.offsets)
    several = np.zeros(table.n_clauses, np.int64)
    has_access = chosen.access >= 0
    accesses = chosen.access[has_access]
    several[has_access] = (n_things[dictionary.ids[accesses]] > 1) & (
        kinds[table.dimensions[accesses]] == SEVERAL
    )
    n_words = n_things + np.diff(parts.taken_offsets) + 1 + (np.diff(parts.taken_offsets) > 0)
    per_predicate = offsets_of(n_words[dictionary.ids])
    lengths = 2 + np.diff(per_predicate[table.clause_offsets])
    is_tested = np.zeros(table.n_clauses, bool)
    is_tested[has_access] = n_tests[has_access] == np.diff(table.clause_offsets)[has_access]
    untested = has_access & ~is_tested
    lengths[untested] -= n_words[dictionary.ids[chosen.access[untested]]]
    copies = np.bincount(rows, minlength=table.n_clauses)
    is_shared = copies * lengths > _FEW_WORDS
    is_written = ~is_direct
    _, first = np.unique(rows, return_index=True)
    is_first = np.zeros(len(rows), bool)
    is_first[first] = True
    is_written &= is_first | ~is_shared[rows]
    written = np.flatnonzero(is_written)
    starts = offsets_of(lengths[rows[written]])
    records = np.empty(int(starts[-1]), np.int32)
    quantifiers = table.all_quantifiers()
    skipped = np.where(untested, chosen.access, -1)
    _write_records(
        table, dictionary.ids, parts, quantifiers, several, skipped, n_tests, rows[written], records
    )
    place_of_row = np.zeros(table.n_clauses, np.int64)
    place_of_row[rows[written][::-1]] = starts[:-1][::-1]
    entry_records = place_of_row[rows]
    entry_records[written] = starts[:-1]
    entry_records[is_direct] = rows[is_direct] << 1 | several[rows[is_direct]]
    return entry_records, records


@kernel
def _write_records(
    table: ConjunctionTable,
    ids: np.ndarray,
    parts: Decomposed,
    quantifiers: np.ndarray,
    several: np.ndarray,
    skipped: np.ndarray,
    n_tests: np.ndarray,
    rows: np.ndarray,
    out: np.ndarray,
) -> None:
    at = 0
    for row in rows:
        out[at] = row << 1 | several[row]
        out[at + 1] = n_tests[row]
        at += 2
        for p in range(table.clause_offsets[row], table.clause_offsets[row + 1]):
            if p == skipped[row]:
                continue
            q = ids[p]
            first, stop = parts.offsets[q], parts.offsets[q + 1]
            taken_first, taken_stop = parts.taken_offsets[q], parts.taken_offsets[q + 1]
            has_taken = taken_stop > taken_first
            out[at] = (stop - first) << 2 | int64(has_taken) << 1 | int64(quantifiers[p] == NONE)
            at += 1
            if has_taken:
                out[at] = taken_stop - taken_first
                at += 1
            for k in range(first, stop):
                out[at] = parts.things[k]
                at += 1
            for k in range(taken_first, taken_stop):
                out[at] = parts.taken[k]
                at += 1
