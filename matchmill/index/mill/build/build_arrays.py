"""From a table to the arrays that matching reads: all steps of building, in order."""

from __future__ import annotations

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.base import Statistics
from matchmill.index.mill.arrays import (
    BELOW_KEY,
    DEFAULT_ROW,
    EDGE_START,
    EDGE_STOP,
    FIRST_COLUMN,
    FIRST_WORD,
    GROUP_START,
    LAST_KEY,
    N_CLAUSES,
    N_ENTRIES,
    N_FIELDS,
    N_MASKS,
    N_POINTS,
    N_SHARED,
    N_SIZES,
    N_SLOTS,
    N_WORDS,
    NODE_START,
    RANK_START,
    ROW_START,
    SECOND_COLUMN,
    USED_LEVELS,
    MillArrays,
)
from matchmill.index.mill.build.access import AccessPlan, choose_access
from matchmill.index.mill.build.blocks import build_blocks
from matchmill.index.mill.build.entries import file_clauses
from matchmill.index.mill.build.inline_tests import InlineTests, build_inline_tests
from matchmill.index.mill.build.shared_predicates import ALWAYS, SharedPredicates, share_predicates
from matchmill.index.predicate_codes import Dictionary, build_dictionary
from matchmill.index.selectivity import code_masses, predicate_chances
from matchmill.kernels.jit import int64, kernel, uint64
from matchmill.kernels.threads import at_once

__all__ = ["build_arrays"]


def build_arrays(table: ConjunctionTable, statistics: Statistics | None) -> MillArrays:
    """Build all arrays of an index; `statistics` of events help to choose access predicates."""
    dictionary = build_dictionary(table)
    shared, (masses, chances) = at_once(
        table.n_predicates,
        lambda: share_predicates(dictionary),
        lambda: _masses_and_chances(dictionary, statistics),
    )
    inline, plan = at_once(
        table.n_predicates,
        lambda: build_inline_tests(dictionary, shared.numbers < 0),
        lambda: choose_access(table, dictionary, shared, masses, chances),
    )
    entries = file_clauses(table, dictionary, shared.numbers, plan, inline, chances)
    ids = table.clause_ids
    is_narrow = len(ids) == 0 or (int(ids.min()) >= 0 and int(ids.max()) < 1 << 31)
    slot_places, words = build_blocks(
        entries, ids if is_narrow else np.arange(len(ids)), plan.n_slots
    )
    n_words = (shared.n_shared + 63) >> 6
    access_words = np.zeros(n_words, np.uint64)
    groups = np.flatnonzero(slot_places[plan.group_start : plan.n_slots - 1])
    np.bitwise_or.at(access_words, groups >> 6, uint64(1) << (groups & 63).astype(np.uint64))
    default_truth = np.zeros(n_words, np.uint64)
    dimensions, absent_dimensions = _describe_dimensions(
        dictionary, shared, plan, inline, slot_places, access_words, default_truth
    )
    default_truth[0] |= uint64(1 << ALWAYS)
    sizes = np.zeros(N_SIZES, np.int64)
    sizes[GROUP_START], sizes[N_SLOTS] = plan.group_start, plan.n_slots
    sizes[N_MASKS], sizes[N_POINTS] = inline.n_masks, inline.n_points
    sizes[N_SHARED] = shared.n_shared
    sizes[N_CLAUSES], sizes[N_ENTRIES] = table.n_clauses, len(entries.clauses)
    return MillArrays(
        sizes=sizes,
        dimensions=dimensions,
        edges=dictionary.edges,
        row_of_code=shared.row_of_code,
        rows=shared.rows,
        access_words=access_words,
        default_truth=default_truth,
        ranks=inline.ranks,
        default_values=inline.defaults,
        pairs=_pair_rows(plan),
        absent_dimensions=absent_dimensions,
        slot_places=slot_places,
        words=words,
        pool=inline.pool,
        clause_ids=np.empty(0, np.int64) if is_narrow else ids,
    )


def _masses_and_chances(
    dictionary: Dictionary, statistics: Statistics | None
) -> tuple[np.ndarray, np.ndarray]:
    masses = code_masses(dictionary, statistics)
    return masses, predicate_chances(dictionary, masses)


def _pair_rows(plan: AccessPlan) -> np.ndarray:
    pairs = plan.pairs
    starts = plan.pair_start + pairs.starts[:-1]
    return np.stack((pairs.first, pairs.second, starts, pairs.widths), axis=1)


def _describe_dimensions(
    dictionary: Dictionary,
    shared: SharedPredicates,
    plan: AccessPlan,
    inline: InlineTests,
    slot_places: np.ndarray,
    access_words: np.ndarray,
    out_default_truth: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of `dimensions`, and the dimensions whose slots events without them visit."""
    n = dictionary.n_dimensions
    fields = _aligned_rows(n)
    fields[:, EDGE_START] = dictionary.edge_offsets[:-1]
    fields[:, EDGE_STOP] = dictionary.edge_offsets[1:]
    fields[:, ROW_START] = shared.row_starts
    fields[:, FIRST_WORD] = shared.first_words
    fields[:, N_WORDS] = shared.n_words
    fields[:, NODE_START] = plan.node_starts
    fields[:, USED_LEVELS] = plan.used_levels
    _describe_keys(dictionary, fields)
    _describe_columns(inline, fields)
    fields[:, DEFAULT_ROW] = -1
    is_absent = np.zeros(n, bool)
    with_cells = np.flatnonzero(plan.used_levels)
    starts = plan.node_starts[with_cells]
    is_absent[with_cells] = slot_places[starts] > 0
    _find_defaults(
        fields, shared.row_of_code, shared.rows, access_words, out_default_truth, is_absent
    )
    return fields, np.flatnonzero(is_absent).astype(np.int32)


def _aligned_rows(n: int) -> np.ndarray:
    """Return rows of fields, each in two lines of the cache."""
    room = np.zeros(n * N_FIELDS + 8, np.int64)
    start = -(room.ctypes.data >> 3) % 8
    return room[start : start + n * N_FIELDS].reshape(n, N_FIELDS)


def _describe_keys(dictionary: Dictionary, out_fields: np.ndarray) -> None:
    """Describe dimensions whose edges are neighbours: the code follows from the key alone."""
    starts, stops = dictionary.edge_offsets[:-1], dictionary.edge_offsets[1:]
    out_fields[:, LAST_KEY] = -1  # below BELOW_KEY: they are not
    with_edges = np.flatnonzero(stops > starts)
    first, last = dictionary.edges[starts[with_edges]], dictionary.edges[stops[with_edges] - 1]
    is_even = last - first == (stops - starts)[with_edges] - 1
    out_fields[with_edges[is_even], BELOW_KEY] = first[is_even] - 1
    out_fields[with_edges[is_even], LAST_KEY] = last[is_even]


def _describe_columns(inline: InlineTests, out_fields: np.ndarray) -> None:
    """Describe the columns of each dimension, at most two; if one is a mask, it is the first."""
    starts, stops = inline.column_offsets[:-1], inline.column_offsets[1:]
    out_fields[:, [FIRST_COLUMN, SECOND_COLUMN, RANK_START]] = -1
    for field, at in ((FIRST_COLUMN, starts), (SECOND_COLUMN, starts + 1)):
        there = at < stops
        out_fields[there, field] = inline.columns[at[there]]
    first = out_fields[:, FIRST_COLUMN]
    by_mask = np.flatnonzero((first >= 0) & (first < inline.n_masks))
    out_fields[by_mask, RANK_START] = inline.rank_starts[first[by_mask]]


@kernel
def _find_defaults(
    fields: np.ndarray,
    row_of_code: np.ndarray,
    rows: np.ndarray,
    access_words: np.ndarray,
    out_truth: np.ndarray,
    out_is_absent: np.ndarray,
) -> None:
    for d in range(len(fields)):
        if fields[d, ROW_START] < 0:
            continue
        row = int64(row_of_code[fields[d, ROW_START]])
        for w in range(fields[d, N_WORDS]):
            word = rows[row + w]
            if word != 0:
                fields[d, DEFAULT_ROW] = row
                out_truth[fields[d, FIRST_WORD] + w] |= word
                if word & access_words[fields[d, FIRST_WORD] + w] != 0:
                    out_is_absent[d] = True
