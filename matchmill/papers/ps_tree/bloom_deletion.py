"""How clauses leave `pst_bloom`: the way of `bloom_insertion.py` backwards.

First no leaf has the clause any more, then its cuts are taken back, and spaces that are no longer
divided become one again; what is filed in the two is the same by then. (The paper leaves this to a
report of its own.)
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.common.id_table import find_id
from matchmill.papers.common.pools import give_row
from matchmill.papers.ps_tree.bloom_insertion import WIDTH, BloomArrays
from matchmill.papers.ps_tree.bloom_signatures import drop_signature, sign
from matchmill.papers.ps_tree.clauses import (
    HEADER,
    TOP,
    give_block,
    n_access_of,
    next_predicate,
)
from matchmill.papers.ps_tree.cuts import MAX_KEY, key_interval_leaves, remove_key_cut
from matchmill.papers.ps_tree.forest import (
    EXTRA,
    EXTRA_SIZE,
    FIRST,
    N_PREDICATES,
    NEXT,
    PREVIOUS,
)
from matchmill.papers.ps_tree.leaf_lists import drop_list, remove_entry

__all__ = ["sign_again", "unfile_clauses"]


@kernel
def unfile_clauses(
    index: BloomArrays, seen: np.ndarray, ids: np.ndarray, scratch: np.ndarray
) -> None:
    """Clauses that are there leave without a trace, but for bits in signatures."""
    clauses = index.clauses
    for k in range(len(ids)):
        place = find_id(clauses.table.cells, ids[k])
        if place & 1:
            _uncover(index, clauses.wide.cells, place, MAX_KEY)
            _uncut(index, seen, clauses.wide.cells, place, MAX_KEY, scratch)
        else:
            _uncover(index, clauses.narrow.cells, place, TOP)
            _uncut(index, seen, clauses.narrow.cells, place, TOP, scratch)
        give_block(clauses, place)


@kernel
def _uncover(index: BloomArrays, words: np.ndarray, place: int, top: int) -> None:
    leaves = index.forest.leaves.cells
    start = place >> 1
    n_checked = words[start + 2]
    n = n_checked + n_access_of(words, start)
    if n_checked == n:
        remove_entry(index.lists, index.always, 0, WIDTH, place)
    at = start + HEADER
    for j in range(n):
        dimension, at, end = next_predicate(words, at)
        while at < end and words[at] > 0:
            high = int(words[at + 1])
            leaf, last = key_interval_leaves(
                index.forest, dimension, int(words[at]), high if high < top else MAX_KEY
            )
            while leaf != last:
                leaves[leaf, N_PREDICATES] -= 1
                if j >= n_checked:
                    remove_entry(index.lists, leaves, leaf, WIDTH, place)
                if leaves[leaf, N_PREDICATES] == 0:
                    drop_signature(index.signatures, leaves, leaf)
                leaf = int(leaves[leaf, NEXT])
            at += 2
        at = end


@kernel
def _uncut(
    index: BloomArrays,
    seen: np.ndarray,
    words: np.ndarray,
    place: int,
    top: int,
    scratch: np.ndarray,
) -> None:
    forest = index.forest
    at = (place >> 1) + HEADER
    start = place >> 1
    for _ in range(words[start + 2] + n_access_of(words, start)):
        dimension, at, end = next_predicate(words, at)
        while at < end and words[at] > 0:
            for side in range(2 if words[at + 1] < top else 1):
                key = int(words[at]) if side == 0 else int(words[at + 1]) + 1
                gone = remove_key_cut(forest, dimension, key, scratch)
                if gone >= 0:
                    _unite(index, seen, gone)
            at += 2
        at = end


@kernel
def _unite(index: BloomArrays, seen: np.ndarray, gone: int) -> None:
    """Drop a leaf that no cut divides off any more: it has what its neighbour has."""
    leaves = index.forest.leaves.cells
    kept = leaves[gone, PREVIOUS]
    seen[kept] = max(seen[kept], seen[gone])
    seen[gone] = 0
    drop_list(index.lists, leaves, gone)
    drop_signature(index.signatures, leaves, gone)
    give_row(index.forest.leaves, gone)


@kernel
def sign_again(index: BloomArrays) -> None:
    """Write all signatures again, without the clauses that are gone."""
    forest, clauses, signatures = index.forest, index.clauses, index.signatures
    leaves = forest.leaves.cells
    for tree in range(len(forest.trees)):
        leaf = int(forest.trees[tree, FIRST])
        while leaf >= 0:
            n_words = (1 << int(leaves[leaf, EXTRA_SIZE])) >> 6
            first = int(leaves[leaf, EXTRA])
            signatures.cells[first : first + n_words] = 0
            leaf = int(leaves[leaf, NEXT])
    cells = clauses.table.cells
    for h in range(len(cells)):
        place = int(cells[h, 1])
        if place >= 0 and place & 1:
            _sign_clause(index, clauses.wide.cells, place, MAX_KEY)
        elif place >= 0:
            _sign_clause(index, clauses.narrow.cells, place, TOP)


@kernel
def _sign_clause(index: BloomArrays, words: np.ndarray, place: int, top: int) -> None:
    leaves = index.forest.leaves.cells
    at = (place >> 1) + HEADER
    for _ in range(words[(place >> 1) + 2]):
        dimension, at, end = next_predicate(words, at)
        while at < end and words[at] > 0:
            high = int(words[at + 1])
            leaf, last = key_interval_leaves(
                index.forest, dimension, int(words[at]), high if high < top else MAX_KEY
            )
            while leaf != last:
                sign(index.signatures, leaves, leaf, place)
                leaf = int(leaves[leaf, NEXT])
            at += 2
        at = end
