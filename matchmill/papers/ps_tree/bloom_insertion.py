"""How clauses come into `pst_bloom` (PS-Tree, Alg. 4).

Every predicate of a clause that does not accept absence is inserted into its dimension's PS-Tree.
The leaves that the access predicate covers list the clause, those of the other predicates have it
in their signatures. An access predicate of several intervals covers the leaves of all of them; as
these are disjoint, an event finds a clause once.

    entry    place of the clause, dimensions of its next two predicates by selectivity, or -1

The two dimensions stand in the entry so that their signatures are asked before the clause itself
is read from memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.common.pools import (
    Spans,
    rows_left,
    span_capacity,
    spans_left,
)
from matchmill.papers.ps_tree.access_predicates import Ranked
from matchmill.papers.ps_tree.bloom_signatures import (
    copy_signature,
    grow_signature,
    is_too_small,
    new_signature,
    sign,
    signature_words_needed,
)
from matchmill.papers.ps_tree.clauses import (
    Clauses,
    block_words,
    write_block,
)
from matchmill.papers.ps_tree.cuts import (
    MAX_KEY,
    add_key_cut,
    key_interval_leaves,
)
from matchmill.papers.ps_tree.forest import (
    KEY_ELEMENTS,
    LIST_ROOM,
    N_LIST,
    N_PREDICATES,
    NEXT,
    PREVIOUS,
    Forest,
    leaf_of_key,
)
from matchmill.papers.ps_tree.leaf_lists import (
    append_entry,
    copy_list,
    list_cells_needed,
    reserve,
)

__all__ = [
    "N_NEEDED",
    "WIDTH",
    "BloomArrays",
    "cut_clauses",
    "file_clauses",
    "prepare_leaves",
]

WIDTH = 3
_ROWS_PER_CUT = 2 * KEY_ELEMENTS + 1

# What a call has no room for.
N_CUTS, N_LIST_CELLS, N_SIGNATURE_WORDS, N_NARROW, N_WIDE, N_NEEDED = range(6)


class BloomArrays(NamedTuple):
    """The arrays of the index."""

    forest: Forest
    lists: Spans  # int32
    signatures: Spans  # int64
    clauses: Clauses
    always: np.ndarray  # int64: like a leaf; lists what no predicate leads to
    options: np.ndarray  # int64: logarithm of the most bits of a signature; 1 if all are asked


@kernel
def cut_clauses(
    index: BloomArrays,
    ranked: Ranked,
    seen: np.ndarray,
    start: int,
    scratch: np.ndarray,
    out_needed: np.ndarray,
) -> int:
    """Divide the spaces of clauses from `start` on, with what is filed in them.

    Returns the first clause for which there was no room.
    """
    table, order = ranked.table, ranked.order
    forest, lists, signatures = index.forest, index.lists, index.signatures
    leaves = forest.leaves.cells
    for i in range(start, len(table.clause_ids)):
        first = int(table.clause_offsets[i])
        last = first + int(ranked.n_eligible[i])
        n_cuts = n_cells = n_words = 0
        for j in range(first, last):
            p = order[j]
            for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
                n_cuts += 2
                if lists.state[1] + signatures.state[1] == 0:
                    continue  # nothing is filed yet that would have to be copied
                for key in (table.lows[k], table.highs[k]):
                    leaf = leaf_of_key(
                        forest.trees,
                        forest.nodes.cells,
                        forest.children.cells,
                        table.dimensions[p],
                        key,
                    )
                    if leaf >= 0:
                        n_cells += list_cells_needed(leaves, leaf, WIDTH)
                        n_words += signature_words_needed(leaves, leaf)
        if (
            min(rows_left(forest.nodes), rows_left(forest.children)) < n_cuts * _ROWS_PER_CUT
            or rows_left(forest.leaves) < 2 * n_cuts
            or spans_left(lists) < n_cells
            or spans_left(signatures) < n_words
        ):
            out_needed[N_CUTS] = n_cuts
            out_needed[N_LIST_CELLS] = n_cells
            out_needed[N_SIGNATURE_WORDS] = n_words
            return i
        for j in range(first, last):
            p = order[j]
            dimension = table.dimensions[p]
            for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
                for side in range(2 if table.highs[k] < MAX_KEY else 1):
                    key = table.lows[k] if side == 0 else table.highs[k] + 1
                    new = add_key_cut(forest, dimension, key, scratch)
                    if new >= 0:
                        _divide(index, seen, new)
    return len(table.clause_ids)


@kernel
def _divide(index: BloomArrays, seen: np.ndarray, new: int) -> None:
    """Give a leaf that a cut has made what the one to its left has."""
    leaves = index.forest.leaves.cells
    old = int(leaves[new, PREVIOUS])
    seen[new] = seen[old]
    copy_list(index.lists, leaves, old, new, WIDTH)
    copy_signature(index.signatures, leaves, old, new)


@kernel
def prepare_leaves(
    index: BloomArrays, n_listed: np.ndarray, n_covering: np.ndarray, start: int
) -> int:
    """Counters, lists and signatures for what will be filed, from leaf `start` on.

    Returns the first leaf for which there was no room, or -1.
    """
    leaves = index.forest.leaves.cells
    for leaf in range(start, len(n_covering)):
        n = int(n_covering[leaf])
        if n == 0:
            continue
        if spans_left(index.lists) < span_capacity(WIDTH * n) or spans_left(
            index.signatures
        ) < span_capacity(n):
            return leaf
        leaves[leaf, N_PREDICATES] = n
        if n_listed[leaf]:
            reserve(index.lists, leaves, leaf, int(n_listed[leaf]), WIDTH)
        if n > n_listed[leaf]:
            new_signature(index.signatures, leaves, leaf, n, int(index.options[0]))
    return -1


@kernel
def file_clauses(
    index: BloomArrays,
    ranked: Ranked,
    is_prepared: bool,
    start: int,
    out_places: np.ndarray,
    out_needed: np.ndarray,
) -> int:
    """Store clauses from `start` on, whose cuts are made. Returns the first without room.

    `is_prepared`: counters, lists and signatures have their sizes already, and the signatures are
    written by whoever has prepared them.
    """
    table, order = ranked.table, ranked.order
    forest, clauses, lists, signatures = index.forest, index.clauses, index.lists, index.signatures
    leaves = forest.leaves.cells
    most = int(index.options[0])
    for i in range(start, len(table.clause_ids)):
        first = int(table.clause_offsets[i])
        n_eligible = int(ranked.n_eligible[i])
        n_words, narrow = block_words(table, i)
        n_cells = n_signature_words = 0
        if n_eligible == 0 or not is_prepared:
            n_cells, n_signature_words = _room_to_file(index, ranked, i)
        if (
            spans_left(clauses.narrow) < (n_words if narrow else 0)
            or spans_left(clauses.wide) < (0 if narrow else n_words)
            or 2 * (clauses.table.n_used[0] + 1) > len(clauses.table.cells)
            or spans_left(lists) < n_cells
            or spans_left(signatures) < n_signature_words
        ):
            out_needed[N_NARROW] = n_words if narrow else 0
            out_needed[N_WIDE] = 0 if narrow else n_words
            out_needed[N_LIST_CELLS] = n_cells
            out_needed[N_SIGNATURE_WORDS] = n_signature_words
            return i
        place = write_block(clauses, table, i, order, min(n_eligible, 1), 0)
        out_places[i] = place
        second = table.dimensions[order[first + 1]] if n_eligible > 1 else -1
        third = table.dimensions[order[first + 2]] if n_eligible > 2 else -1
        if n_eligible == 0:
            _list(lists, index.always, 0, place, -1, -1)
        for j in range(first, first + (min(n_eligible, 1) if is_prepared else n_eligible)):
            p = order[j]
            for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
                leaf, end = key_interval_leaves(
                    forest, table.dimensions[p], table.lows[k], table.highs[k]
                )
                while leaf != end:
                    if not is_prepared:
                        leaves[leaf, N_PREDICATES] += 1
                    if j == first:
                        _list(lists, leaves, leaf, place, second, third)
                    else:
                        if is_too_small(leaves, leaf, int(leaves[leaf, N_PREDICATES]), most):
                            grow_signature(signatures, leaves, leaf)
                        sign(signatures, leaves, leaf, place)
                    leaf = int(leaves[leaf, NEXT])
    return len(table.clause_ids)


@kernel
def _list(lists: Spans, leaves: np.ndarray, leaf: int, place: int, second: int, third: int) -> None:
    at = append_entry(lists, leaves, leaf, WIDTH)
    lists.cells[at] = place
    lists.cells[at + 1] = second
    lists.cells[at + 2] = third


@kernel
def _room_to_file(index: BloomArrays, ranked: Ranked, i: int) -> tuple[int, int]:
    """Cells of lists and words of signatures that the filing of a clause takes."""
    table, order, forest = ranked.table, ranked.order, index.forest
    leaves = forest.leaves.cells
    first = int(table.clause_offsets[i])
    n_cells = n_words = 0
    if ranked.n_eligible[i] == 0:
        return span_capacity((int(index.always[0, N_LIST]) + 1) * WIDTH), 0
    for j in range(first, first + ranked.n_eligible[i]):
        p = order[j]
        for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
            leaf, end = key_interval_leaves(
                forest, table.dimensions[p], table.lows[k], table.highs[k]
            )
            while leaf != end:
                if j > first:
                    n_covering = int(leaves[leaf, N_PREDICATES]) + 1
                    if is_too_small(leaves, leaf, n_covering, int(index.options[0])):
                        n_words += signature_words_needed(leaves, leaf)
                elif (leaves[leaf, N_LIST] + 1) * WIDTH > leaves[leaf, LIST_ROOM]:
                    n_cells += span_capacity((int(leaves[leaf, N_LIST]) + 1) * WIDTH)
                leaf = int(leaves[leaf, NEXT])
    return n_cells, n_words
