"""The arrays that matching reads, and how they are put together.

    entry e      one clause under one slot: entry_ids[e], and its private tests
                 private_offsets[e] … [e + 1] of `privates`
    block b      entries of one slot with the same number of shared tests:
                 blocks[b] = (place of the first test << 16 | tests an entry, first entry)
                 entries first_entry[b] … first_entry[b + 1]
    slot s       blocks slot_blocks[s] … slot_blocks[s + 1]
    tests        16 bits each: entry i of a block has tests place + i * n … , the least likely
                 first, padded with the one that is always true

    dimension d  one row of `dimensions`, fields below

A clause is filed under one or several slots (`access.py`). What its slot implies is not tested.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill._jit import kernel
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.indexes.base import Statistics
from matchmill.indexes.mill.access import (
    GROUP,
    MOST_NODES,
    AccessPlan,
    choose_access,
    cover_of,
)
from matchmill.indexes.mill.chances import code_masses, predicate_chances
from matchmill.indexes.mill.dictionary import Dictionary, build_dictionary
from matchmill.indexes.mill.privates import PrivateTests, build_privates
from matchmill.indexes.mill.sharing import ALWAYS, SharedPredicates, share_predicates

__all__ = ["MillArrays", "build_arrays"]

# Fields of a dimension.
EDGE_START, EDGE_STOP, ROW_START, FIRST_WORD, N_WORDS = range(5)
NODE_START, USED_LEVELS, COLUMN_START, COLUMN_STOP, DEFAULT_ROW = range(5, 10)
N_FIELDS = 10

# Fields of `sizes`.
GROUP_START, N_SLOTS, N_MASKS, N_HASHED, N_SHARED, N_TRUTH_WORDS = range(6)

_PADDING = 16  # tests of padding that are cheaper than one more block


class MillArrays(NamedTuple):
    sizes: np.ndarray  # int64
    dimensions: np.ndarray  # int64, a row a dimension
    edges: np.ndarray  # int64
    row_of_code: np.ndarray  # int32
    rows: np.ndarray  # uint64
    access_words: np.ndarray  # uint64: shared predicates that have a group
    default_truth: np.ndarray  # uint64: the truth table of the empty event
    columns: np.ndarray  # int32: the columns of each dimension
    rank_starts: np.ndarray  # int64
    ranks: np.ndarray  # uint8
    default_values: np.ndarray  # int32: the values in the columns of the empty event
    absent_dimensions: np.ndarray  # int32: those with entries for events without them
    slot_blocks: np.ndarray  # int32
    blocks: np.ndarray  # int64, two a block, one block more than there are
    tests: np.ndarray  # uint16
    entry_ids: np.ndarray  # int64
    private_offsets: np.ndarray  # int64
    privates: np.ndarray  # uint64
    pool: np.ndarray  # int32


def build_arrays(table: ConjunctionTable, statistics: Statistics | None) -> MillArrays:
    dictionary = build_dictionary(table)
    masses = code_masses(dictionary, statistics)
    chances = predicate_chances(dictionary, masses)
    shared = share_predicates(dictionary)
    plan = choose_access(table, dictionary, shared, masses, chances)
    privates = build_privates(dictionary, shared.numbers < 0)
    return _lay_out(table, dictionary, shared, plan, privates, chances)


def _lay_out(
    table: ConjunctionTable,
    dictionary: Dictionary,
    shared: SharedPredicates,
    plan: AccessPlan,
    privates: PrivateTests,
    chances: np.ndarray,
) -> MillArrays:
    n_entries = _count_entries(dictionary, plan)
    clauses = np.empty(n_entries, np.int32)
    slots = np.empty(n_entries, np.int32)
    lengths = np.empty(n_entries, np.uint16)
    _file_clauses(table, dictionary, shared.numbers, plan, clauses, slots, lengths)
    order = _sorted_by(lengths, int(lengths.max(initial=0)) + 1, np.arange(n_entries))
    order = _sorted_by(slots, plan.n_slots, order)
    slot_blocks = np.zeros(plan.n_slots + 1, np.int32)
    blocks = _cut_blocks(slots, lengths, order, slot_blocks)
    n_tests = int(blocks[-2] >> 16)
    tests = np.full(n_tests, ALWAYS, np.uint16)
    entry_ids = np.empty(n_entries, np.int64)
    private_offsets = np.zeros(n_entries + 1, np.int64)
    _fill_tests(
        table,
        dictionary,
        shared.numbers,
        plan,
        privates.test_offsets,
        chances,
        clauses[order],
        blocks,
        tests,
        entry_ids,
        private_offsets,
    )
    words = np.empty(int(private_offsets[-1]), np.uint64)
    _fill_privates(
        table, dictionary, shared.numbers, plan, privates, clauses[order], private_offsets, words
    )
    n_words = (shared.n_shared + 63) >> 6
    access_words = np.zeros(n_words, np.uint64)
    groups = np.flatnonzero(np.diff(slot_blocks[plan.group_start :][: shared.n_shared + 1]))
    np.bitwise_or.at(access_words, groups >> 6, np.uint64(1) << (groups & 63).astype(np.uint64))
    default_truth = np.zeros(n_words, np.uint64)
    dimensions, absent_dimensions = _describe_dimensions(
        dictionary, shared, plan, privates, slot_blocks, access_words, default_truth
    )
    default_truth[0] |= np.uint64(1 << ALWAYS)
    sizes = np.array(
        [
            plan.group_start,
            plan.n_slots,
            privates.n_masks,
            privates.n_hashed,
            shared.n_shared,
            n_words,
        ],
        np.int64,
    )
    return MillArrays(
        sizes,
        dimensions,
        dictionary.edges,
        shared.row_of_code,
        shared.rows,
        access_words,
        default_truth,
        privates.columns,
        privates.rank_starts,
        privates.ranks,
        privates.defaults,
        absent_dimensions,
        slot_blocks,
        blocks,
        tests,
        entry_ids,
        private_offsets,
        words,
        privates.pool,
    )


# -- entries --------------------------------------------------------------------------------------


@kernel
def _count_entries(dictionary: Dictionary, plan: AccessPlan) -> int:
    n_distinct = len(dictionary.dimensions)
    n_nodes = np.zeros(n_distinct, np.uint8)
    nodes = np.empty(MOST_NODES, np.int64)
    n = 0
    for i in range(len(plan.access)):
        q = plan.access[i]
        if q < 0:
            n += 1
            continue
        if n_nodes[q] == 0:
            if plan.kinds[q] == GROUP:
                n_nodes[q] = 1
            else:
                n_nodes[q] = cover_of(dictionary, q, plan.levels[q], nodes)
        n += n_nodes[q]
    return n


@kernel
def _slot_of(dictionary: Dictionary, plan: AccessPlan, d: int, node: int) -> int:
    """The slot of a node, given as level << 32 | place."""
    n_codes = dictionary.edge_offsets[d + 1] - dictionary.edge_offsets[d] + 1
    slot = plan.node_starts[d]
    for level in range(node >> 32):
        slot += ((n_codes - 1) >> level) + 1
    return int(slot + (node & 0xFFFFFFFF))


@kernel
def _is_implied(plan: AccessPlan, q: int) -> bool:
    """Whether being filed under its slots says that the predicate holds."""
    return bool(plan.kinds[q] == GROUP or plan.levels[q] == 0)


@kernel
def _file_clauses(
    table: ConjunctionTable,
    dictionary: Dictionary,
    shared: np.ndarray,
    plan: AccessPlan,
    out_clauses: np.ndarray,
    out_slots: np.ndarray,
    out_lengths: np.ndarray,
) -> None:
    nodes = np.empty(MOST_NODES, np.int64)
    n = 0
    for i in range(len(plan.access)):
        q = np.int64(plan.access[i])
        length = 0
        for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
            length += shared[dictionary.ids[p]] >= 0
        if q < 0:
            out_slots[n] = plan.n_slots - 1
            n_nodes = 1
        else:
            length -= _is_implied(plan, q) and shared[q] >= 0
            if plan.kinds[q] == GROUP:
                out_slots[n] = plan.group_start + shared[q]
                n_nodes = 1
            else:
                d = np.int64(dictionary.dimensions[q])
                n_nodes = cover_of(dictionary, q, plan.levels[q], nodes)
                for k in range(n_nodes):
                    out_slots[n + k] = _slot_of(dictionary, plan, d, nodes[k])
        for _ in range(n_nodes):
            out_clauses[n] = i
            out_lengths[n] = length
            n += 1


@kernel
def _sorted_by(keys: np.ndarray, n_keys: int, order: np.ndarray) -> np.ndarray:
    """The order, stably sorted by small keys."""
    starts = np.zeros(n_keys + 1, np.int64)
    for e in range(len(order)):
        starts[np.int64(keys[e]) + 1] += 1
    for k in range(n_keys):
        starts[k + 1] += starts[k]
    out = np.empty_like(order)
    for e in order:
        key = np.int64(keys[e])
        out[starts[key]] = e
        starts[key] += 1
    return out


@kernel
def _cut_blocks(
    slots: np.ndarray, lengths: np.ndarray, order: np.ndarray, out_slot_blocks: np.ndarray
) -> np.ndarray:
    """The blocks of all slots, entries by ascending length: a longer entry opens a new block unless
    padding those before it is cheap."""
    blocks = np.empty(2 * len(order) + 2, np.int64)
    n_blocks = 0
    place = np.int64(0)
    n_slots = len(out_slot_blocks) - 1
    e = 0
    for slot in range(n_slots):
        out_slot_blocks[slot] = n_blocks
        while e < len(order) and slots[order[e]] == slot:
            first = e
            length = np.int64(lengths[order[e]])
            padding = 0
            while e < len(order) and slots[order[e]] == slot:
                longer = np.int64(lengths[order[e]]) - length
                padding += longer * (e - first)
                if padding > _PADDING:
                    break
                length += longer
                e += 1
            blocks[2 * n_blocks] = (place << 16) | length
            blocks[2 * n_blocks + 1] = first
            n_blocks += 1
            place += length * (e - first)
    out_slot_blocks[n_slots] = n_blocks
    blocks[2 * n_blocks] = place << 16
    blocks[2 * n_blocks + 1] = len(order)
    return blocks[: 2 * n_blocks + 2].copy()


@kernel
def _fill_tests(
    table: ConjunctionTable,
    dictionary: Dictionary,
    shared: np.ndarray,
    plan: AccessPlan,
    private_sizes: np.ndarray,
    chances: np.ndarray,
    clauses: np.ndarray,
    blocks: np.ndarray,
    out_tests: np.ndarray,
    out_ids: np.ndarray,
    out_private_offsets: np.ndarray,
) -> None:
    for b in range(len(blocks) // 2 - 1):
        place, length = blocks[2 * b] >> 16, blocks[2 * b] & 0xFFFF
        for e in range(blocks[2 * b + 1], blocks[2 * b + 3]):
            i = clauses[e]
            out_ids[e] = table.clause_ids[i]
            access = np.int64(plan.access[i])
            if access >= 0 and not _is_implied(plan, access):
                access = np.int64(-1)
            at = place
            least = np.inf
            n_private = 0
            for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
                q = dictionary.ids[p]
                if q == access:
                    continue
                if shared[q] < 0:
                    n_private += private_sizes[q + 1] - private_sizes[q]
                    continue
                out_tests[at] = shared[q]
                if chances[q] < least:
                    least = chances[q]
                    out_tests[at] = out_tests[place]
                    out_tests[place] = shared[q]
                at += 1
            out_private_offsets[e + 1] = out_private_offsets[e] + n_private
            place += length


@kernel
def _fill_privates(
    table: ConjunctionTable,
    dictionary: Dictionary,
    shared: np.ndarray,
    plan: AccessPlan,
    privates: PrivateTests,
    clauses: np.ndarray,
    private_offsets: np.ndarray,
    out: np.ndarray,
) -> None:
    for e in range(len(clauses)):
        at = private_offsets[e]
        if private_offsets[e + 1] == at:
            continue
        i = clauses[e]
        access = np.int64(plan.access[i])
        if access >= 0 and not _is_implied(plan, access):
            access = np.int64(-1)
        for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
            q = dictionary.ids[p]
            if q != access and shared[q] < 0:
                for k in range(privates.test_offsets[q], privates.test_offsets[q + 1]):
                    out[at] = privates.tests[k]
                    at += 1


# -- dimensions -----------------------------------------------------------------------------------


def _describe_dimensions(
    dictionary: Dictionary,
    shared: SharedPredicates,
    plan: AccessPlan,
    privates: PrivateTests,
    slot_blocks: np.ndarray,
    access_words: np.ndarray,
    out_default_truth: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of `dimensions`, and the dimensions that events without them must visit."""
    n = dictionary.n_dimensions
    fields = np.empty((n, N_FIELDS), np.int64)
    fields[:, EDGE_START] = dictionary.edge_offsets[:-1]
    fields[:, EDGE_STOP] = dictionary.edge_offsets[1:]
    fields[:, ROW_START] = shared.row_starts
    fields[:, FIRST_WORD] = shared.first_words
    fields[:, N_WORDS] = shared.n_words
    fields[:, NODE_START] = plan.node_starts
    fields[:, USED_LEVELS] = plan.used_levels
    fields[:, COLUMN_START] = privates.column_offsets[:-1]
    fields[:, COLUMN_STOP] = privates.column_offsets[1:]
    fields[:, DEFAULT_ROW] = -1
    is_absent = np.zeros(n, bool)
    with_cells = np.flatnonzero(plan.used_levels)
    starts = plan.node_starts[with_cells]
    is_absent[with_cells] = slot_blocks[starts + 1] > slot_blocks[starts]
    _find_defaults(
        fields, shared.row_of_code, shared.rows, access_words, out_default_truth, is_absent
    )
    return fields, np.flatnonzero(is_absent).astype(np.int32)


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
        row = np.int64(row_of_code[fields[d, ROW_START]])
        for w in range(fields[d, N_WORDS]):
            word = rows[row + w]
            if word != 0:
                fields[d, DEFAULT_ROW] = row
                out_truth[fields[d, FIRST_WORD] + w] |= word
                if word & access_words[fields[d, FIRST_WORD] + w] != 0:
                    out_is_absent[d] = True
