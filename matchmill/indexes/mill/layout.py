"""The arrays that matching reads, and how they are put together.

    entry        one clause under one slot
    slot s       its entries are in `words`: slot_places[s] is place << 24 | length, or 0 if
                 there are none. They stand in blocks, one after the other, each with entries of
                 one shape:

    block        header       n entries << 34 | in runs << 33 | tests an entry << 17 |
                              privates an entry << 1 | whether another block follows
                 runs         only if so: 64 bits with their number; then 32 bits each: a test and
                              the number of entries that have it as their first
                 tests        16 bits each, an entry's in a row, the least likely first (unless
                              that is in the runs); padded with the one that is always true, in
                              the end to a full 32 bits
                 ids          32 bits each: the clause (or its place in `clause_ids`, if that is
                              not empty); then padded to full 64 bits
                 privates     64 bits each, an entry's in a row

    dimension d  one row of `dimensions`, fields below

A clause is filed under one or several slots (`access.py`). What its slot implies is not tested. All
that a visit reads lies in one piece of memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill._jit import int64, kernel, uint64
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.errors import InputError
from matchmill.indexes.base import Statistics
from matchmill.indexes.mill.access import (
    GROUP,
    MOST_NODES,
    AccessPlan,
    choose_access,
    cover_of,
    node_place,
)
from matchmill.indexes.mill.chances import code_masses, predicate_chances
from matchmill.indexes.mill.dictionary import Dictionary, build_dictionary
from matchmill.indexes.mill.privates import PADDING, PrivateTests, build_privates
from matchmill.indexes.mill.sharing import ALWAYS, SharedPredicates, share_predicates

__all__ = ["MillArrays", "build_arrays"]

# Fields of a dimension.
EDGE_START, EDGE_STOP, ROW_START, FIRST_WORD, N_WORDS = range(5)
NODE_START, USED_LEVELS, COLUMN_START, COLUMN_STOP, DEFAULT_ROW = range(5, 10)
N_FIELDS = 10

# Fields of `sizes`.
GROUP_START, N_SLOTS, N_MASKS, N_POINTS, N_SHARED, N_CLAUSES, N_ENTRIES = range(7)

_PADDING, _PADDING_SHARE = 24, 6  # bytes, and a share, that are cheaper than one more block
_RUN = 2  # entries with the same first test from which runs pay
_MOST_PRIVATES = (1 << 16) - 1
_LONGEST = (1 << 24) - 1  # length that is told of a slot; only a hint what to load
_FIRST_WORD = 1  # place 0 says that there is nothing


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
    pairs: np.ndarray  # int64, four a pair: two dimensions, first slot, slots of a code
    absent_dimensions: np.ndarray  # int32: those with entries for events without them
    slot_places: np.ndarray  # int64
    words: np.ndarray  # uint64: the blocks
    pool: np.ndarray  # int32
    clause_ids: np.ndarray  # int64: empty if entries hold the ids themselves


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
    n_entries = _count_entries(dictionary, plan, shared.numbers)
    clauses = np.empty(n_entries, np.int32)
    slots = np.empty(n_entries, np.int32)
    shapes = np.empty(n_entries, np.int64)
    private_sizes = np.diff(privates.test_offsets)
    _file_clauses(
        table, dictionary, shared.numbers, plan, private_sizes, chances, clauses, slots, shapes
    )
    if shapes.max(initial=0) >> 40 > _MOST_PRIVATES:
        raise InputError(f"a clause has more than {_MOST_PRIVATES:,} predicates of its own")
    order = _sorted_entries(slots, shapes, plan.n_slots)
    slot_places = np.zeros(plan.n_slots, np.int64)
    blocks = _cut_blocks(slots, shapes, order, slot_places)
    ids = table.clause_ids
    is_narrow = len(ids) == 0 or (int(ids.min()) >= 0 and int(ids.max()) < 1 << 32)
    words = np.zeros(int(blocks[-1, 0]), np.uint64)
    _fill_blocks(
        table,
        dictionary,
        shared.numbers,
        plan,
        privates,
        chances,
        ids if is_narrow else np.arange(len(ids)),
        clauses[order],
        blocks,
        words,
        words.view(np.uint32),
        words.view(np.uint16),
    )
    _mark_followed(slot_places, blocks, words)
    n_words = (shared.n_shared + 63) >> 6
    access_words = np.zeros(n_words, np.uint64)
    groups = np.flatnonzero(slot_places[plan.group_start : plan.n_slots - 1])
    np.bitwise_or.at(access_words, groups >> 6, uint64(1) << (groups & 63).astype(np.uint64))
    default_truth = np.zeros(n_words, np.uint64)
    dimensions, absent_dimensions = _describe_dimensions(
        dictionary, shared, plan, privates, slot_places, access_words, default_truth
    )
    default_truth[0] |= uint64(1 << ALWAYS)
    sizes = np.array(
        [
            plan.group_start,
            plan.n_slots,
            privates.n_masks,
            privates.n_points,
            shared.n_shared,
            table.n_clauses,
            n_entries,
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
        _pair_rows(plan),
        absent_dimensions,
        slot_places,
        words,
        privates.pool,
        np.empty(0, np.int64) if is_narrow else ids,
    )


def _pair_rows(plan: AccessPlan) -> np.ndarray:
    pairs = plan.pairs
    starts = plan.pair_start + pairs.starts[:-1]
    return np.stack((pairs.first, pairs.second, starts, pairs.widths), axis=1)


# -- entries --------------------------------------------------------------------------------------


@kernel
def _count_entries(dictionary: Dictionary, plan: AccessPlan, shared: np.ndarray) -> int:
    nodes, others = np.empty(MOST_NODES, np.int64), np.empty(MOST_NODES, np.int64)
    slots = np.empty(MOST_NODES, np.int64)
    n = 0
    for i in range(len(plan.access)):
        n += _find_slots(dictionary, plan, shared, i, nodes, others, slots)
    return n


@kernel
def _find_slots(
    dictionary: Dictionary,
    plan: AccessPlan,
    shared: np.ndarray,
    i: int,
    nodes: np.ndarray,
    others: np.ndarray,
    out: np.ndarray,
) -> int:
    """The slots under which clause i is filed; returns how many."""
    q, r = int64(plan.access[i]), int64(plan.second[i])
    if q < 0:
        out[0] = plan.n_slots - 1
        return 1
    if r >= 0:
        pair = plan.pairs.of_clause[i]
        start, width = plan.pair_start + plan.pairs.starts[pair], plan.pairs.widths[pair]
        n_first, n_second = cover_of(dictionary, q, 0, nodes), cover_of(dictionary, r, 0, others)
        for a in range(n_first):
            for b in range(n_second):
                out[a * n_second + b] = start + nodes[a] * width + others[b]
        return n_first * n_second
    if plan.kinds[q] == GROUP:
        out[0] = plan.group_start + shared[q]
        return 1
    d = int64(dictionary.dimensions[q])
    n_codes = dictionary.edge_offsets[d + 1] - dictionary.edge_offsets[d] + 1
    n = cover_of(dictionary, q, plan.levels[q], nodes)
    for k in range(n):
        out[k] = plan.node_starts[d] + node_place(n_codes, nodes[k])
    return n


@kernel
def _implied(plan: AccessPlan, i: int) -> tuple[int, int]:
    """The predicates of clause i that hold because of where it is filed; -1 for none."""
    q, r = int64(plan.access[i]), int64(plan.second[i])
    if q >= 0 and r < 0 and plan.kinds[q] != GROUP and plan.levels[q] != 0:
        q = int64(-1)
    return q, r


@kernel
def _file_clauses(
    table: ConjunctionTable,
    dictionary: Dictionary,
    shared: np.ndarray,
    plan: AccessPlan,
    private_sizes: np.ndarray,
    chances: np.ndarray,
    out_clauses: np.ndarray,
    out_slots: np.ndarray,
    out_shapes: np.ndarray,
) -> None:
    """The entries: clause, slot and shape: private words << 40 | tests << 16 | first test."""
    nodes, others = np.empty(MOST_NODES, np.int64), np.empty(MOST_NODES, np.int64)
    slots = np.empty(MOST_NODES, np.int64)
    n = 0
    for i in range(len(plan.access)):
        q, r = _implied(plan, i)
        shape = int64(0)
        least = np.inf
        first = int64(0)
        for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
            other = dictionary.ids[p]
            if other in (q, r):
                continue
            if shared[other] < 0:
                shape += private_sizes[other] << 40
            else:
                shape += 1 << 16
                if chances[other] < least:
                    least = chances[other]
                    first = int64(shared[other])
        shape |= first
        for k in range(_find_slots(dictionary, plan, shared, i, nodes, others, slots)):
            out_clauses[n] = i
            out_slots[n] = slots[k]
            out_shapes[n] = shape
            n += 1


@kernel
def _sorted_entries(slots: np.ndarray, shapes: np.ndarray, n_slots: int) -> np.ndarray:
    """The entries by slot, and by shape inside a slot."""
    starts = np.zeros(n_slots + 1, np.int64)
    for slot in slots:
        starts[slot + 1] += 1
    for s in range(n_slots):
        starts[s + 1] += starts[s]
    order = np.empty(len(slots), np.int64)
    ends = starts[:-1].copy()
    for e in range(len(slots)):
        order[ends[slots[e]]] = e
        ends[slots[e]] += 1
    for s in range(n_slots):
        first, last = starts[s], starts[s + 1]
        if last - first > 64:
            here = order[first:last]
            order[first:last] = here[np.argsort(shapes[here], kind="mergesort")]
        else:
            for k in range(first + 1, last):
                e = order[k]
                j = k
                while j > first and shapes[order[j - 1]] > shapes[e]:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = e
    return order


@kernel
def _count_runs(shapes: np.ndarray, order: np.ndarray, first: int, last: int) -> int:
    """How many runs of entries with the same first test there are."""
    n = 1
    length = 1
    for e in range(first + 1, last):
        length += 1
        if (shapes[order[e]] ^ shapes[order[e - 1]]) & 0xFFFF != 0 or length > 0xFFFF:
            n += 1
            length = 1
    return n


@kernel
def _cut_blocks(
    slots: np.ndarray, shapes: np.ndarray, order: np.ndarray, out_places: np.ndarray
) -> np.ndarray:
    """The blocks of all slots as rows (place, first entry, tests, privates, runs or 0), and one
    row more. An entry of another shape opens a new block unless padding is cheap."""
    blocks = np.empty((1024, 5), np.int64)
    n_blocks = 0
    place = int64(_FIRST_WORD)
    e = 0
    while e < len(order):
        slot = slots[order[e]]
        slot_start = place
        while e < len(order) and slots[order[e]] == slot:
            first = e
            n_tests, n_privates = int64(0), int64(0)
            n_exact = 0
            while e < len(order) and slots[order[e]] == slot:
                shape = shapes[order[e]]
                entry_tests, entry_privates = (shape >> 16) & 0xFFFFFF, shape >> 40
                tests, privates = max(n_tests, entry_tests), max(n_privates, entry_privates)
                exact = n_exact + 2 * entry_tests + 8 * entry_privates
                padding = (e - first + 1) * (2 * tests + 8 * privates) - exact
                if padding > _PADDING + exact // _PADDING_SHARE:
                    break
                n_tests, n_privates, n_exact = tests, privates, exact
                e += 1
            if n_blocks + 1 == len(blocks):
                grown = np.empty((2 * len(blocks), 5), np.int64)
                grown[:n_blocks] = blocks[:n_blocks]
                blocks = grown
            n = e - first
            n_runs = _count_runs(shapes, order, first, e) if n_tests > 0 else n
            if n < _RUN * n_runs:
                n_runs = 0
            blocks[n_blocks, 0] = place
            blocks[n_blocks, 1] = first
            blocks[n_blocks, 2] = n_tests
            blocks[n_blocks, 3] = n_privates
            blocks[n_blocks, 4] = n_runs
            n_blocks += 1
            n_halves = n + n_runs + (n * (n_tests - (n_runs > 0)) + 1) // 2
            place += 1 + (n_runs > 0) + ((n_halves + 1) >> 1) + n * n_privates
        out_places[slot] = (slot_start << 24) | min(place - slot_start, _LONGEST)
    blocks[n_blocks, 0] = place
    blocks[n_blocks, 1] = len(order)
    return blocks[: n_blocks + 1].copy()


@kernel
def _fill_blocks(
    table: ConjunctionTable,
    dictionary: Dictionary,
    shared: np.ndarray,
    plan: AccessPlan,
    privates: PrivateTests,
    chances: np.ndarray,
    clause_ids: np.ndarray,
    clauses: np.ndarray,
    blocks: np.ndarray,
    out_words: np.ndarray,
    out_ids: np.ndarray,
    out_tests: np.ndarray,
) -> None:
    clause_offsets, ids = table.clause_offsets, dictionary.ids
    private_offsets, private_tests = privates.test_offsets, privates.tests
    for b in range(len(blocks) - 1):
        n_tests, n_privates, n_runs = blocks[b, 2], blocks[b, 3], blocks[b, 4]
        first, last = blocks[b, 1], blocks[b + 1, 1]
        n = last - first
        place = blocks[b, 0]
        out_words[place] = (
            (uint64(n) << uint64(34))
            | (uint64(n_runs > 0) << uint64(33))
            | (uint64(n_tests) << uint64(17))
            | (uint64(n_privates) << uint64(1))
        )
        run_at = 4 * (place + 2) - 2
        test_at = 4 * (place + 1)
        if n_runs > 0:
            out_words[place + 1] = uint64(n_runs)
            test_at = 4 * (place + 2) + 2 * n_runs
        id_at = (test_at + n * (n_tests - (n_runs > 0)) + 1) >> 1
        private_at = (id_at + n + 1) >> 1
        run_test = int64(-1)
        for e in range(first, last):
            i = clauses[e]
            implied, also_implied = _implied(plan, i)
            out_ids[id_at] = clause_ids[i]
            id_at += 1
            word = private_at
            private_at += n_privates
            first_test = int64(ALWAYS)
            least = np.inf
            at = test_at + (n_runs == 0)
            for p in range(clause_offsets[i], clause_offsets[i + 1]):
                q = ids[p]
                if q in (implied, also_implied):
                    continue
                if shared[q] >= 0:
                    test = int64(shared[q])
                    if chances[q] < least:
                        least = chances[q]
                        test, first_test = first_test, test
                    if test != ALWAYS:
                        out_tests[at] = test
                        at += 1
                else:
                    for k in range(private_offsets[q], private_offsets[q + 1]):
                        out_words[word] = private_tests[k]
                        word += 1
            while word < private_at:
                out_words[word] = uint64(PADDING)
                word += 1
            if n_runs == 0:
                if n_tests > 0:
                    out_tests[test_at] = first_test
                test_at += n_tests
            else:
                if first_test != run_test or out_tests[run_at + 1] == 0xFFFF:
                    run_at += 2
                    run_test = first_test
                    out_tests[run_at] = first_test
                out_tests[run_at + 1] += 1
                test_at += n_tests - 1


@kernel
def _mark_followed(slot_places: np.ndarray, blocks: np.ndarray, out_words: np.ndarray) -> None:
    """Set the flag of all blocks that are not the last of their slot."""
    is_first = np.zeros(out_words.shape[0] + 1, np.uint8)
    for place in slot_places:
        is_first[place >> 24] = 1
    for b in range(len(blocks) - 2):
        if not is_first[blocks[b + 1, 0]]:
            out_words[blocks[b, 0]] |= uint64(1)


# -- dimensions -----------------------------------------------------------------------------------


def _describe_dimensions(
    dictionary: Dictionary,
    shared: SharedPredicates,
    plan: AccessPlan,
    privates: PrivateTests,
    slot_places: np.ndarray,
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
    is_absent[with_cells] = slot_places[starts] > 0
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
        row = int64(row_of_code[fields[d, ROW_START]])
        for w in range(fields[d, N_WORDS]):
            word = rows[row + w]
            if word != 0:
                fields[d, DEFAULT_ROW] = row
                out_truth[fields[d, FIRST_WORD] + w] |= word
                if word & access_words[fields[d, FIRST_WORD] + w] != 0:
                    out_is_absent[d] = True
