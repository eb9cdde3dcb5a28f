"""PSTBloom: one access predicate per clause, signatures that spare checks (PS-Tree, section 5).

    forest       one PS-Tree per dimension (`forest.py`)
    lists        a leaf's entries: clauses whose access predicate covers it (`bloom_insertion.py`)
    signatures   a leaf's Bloom filter of clauses another predicate of which covers it
    clauses      each clause in one piece (`clauses.py`)
    always       the entries of clauses that accept events without any of their dimensions
    seen         matched events per leaf, beside the counters from statistics; not saved

An event is matched in three steps (Alg. 5): its keys lead to leaves; an entry is dropped when a
signature of one of its two dimensions lacks it, or the event lacks the dimension; what is left is
checked. The paper asks the signatures of all predicates first, as `signatures="all"` does. By
default the check itself takes over as soon as the clause has to be read: comparing a key with
bounds that are there is cheaper, and exact.

Building (`bloom_bulk_load.py`) cuts all spaces first and files clauses after that, so that no list
is ever copied.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError, LimitError
from matchmill.index.base import Statistics
from matchmill.kernels.hashing import mix31
from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import kernel
from matchmill.papers.common.pools import new_spans, spans_with_room
from matchmill.papers.ps_tree.access_predicates import Ranked, ranked
from matchmill.papers.ps_tree.bloom_bulk_load import (
    bulk_of,
    count_filings,
    cut_predicates,
    sign_predicates,
)
from matchmill.papers.ps_tree.bloom_deletion import sign_again, unfile_clauses
from matchmill.papers.ps_tree.bloom_insertion import (
    N_NEEDED,
    WIDTH,
    BloomArrays,
    cut_clauses,
    file_clauses,
    prepare_leaves,
)
from matchmill.papers.ps_tree.bloom_signatures import FEWEST_BITS, HASH_BITS, MOST_BITS
from matchmill.papers.ps_tree.clauses import (
    HEADER,
    TOP,
    Clauses,
    bring_block,
    check_places,
    clauses_with_room,
    new_clauses,
    next_predicate,
)
from matchmill.papers.ps_tree.forest import (
    EXTRA,
    EXTRA_SIZE,
    LIST,
    N_LIST,
    forest_with_room,
    leaf_of_key,
    new_forest,
    with_trees,
)
from matchmill.papers.ps_tree.index_base import PSTIndex, Scratch

__all__ = ["PSTBloom"]

_FEWEST_DEAD = 1000  # before signatures are written again
_MOST_LIST_CELLS = (1 << 31) - 1  # free spans are linked by 32-bit numbers


def _empty(signatures: str, signature_bits: int | None) -> BloomArrays:
    if signatures not in ("two", "all"):
        raise InputError(f"signatures is {signatures!r}; it can be 'two' or 'all'")
    most = MOST_BITS if signature_bits is None else signature_bits
    if not FEWEST_BITS <= most <= MOST_BITS:
        raise InputError(
            f"signature_bits is {most!r}; it can be {FEWEST_BITS} to {MOST_BITS}, or None for as "
            "many as the clauses ask for"
        )
    always = np.zeros((1, 11), np.int64)
    options = np.array([most.bit_length() - 1, signatures == "all"], np.int64)
    lists = new_spans(np.int32)
    return BloomArrays(new_forest(), lists, new_spans(), new_clauses(), always, options)


class PSTBloom(PSTIndex[BloomArrays]):
    """One access predicate per clause, and Bloom filters at leaves."""

    name: ClassVar[str] = "pst_bloom"
    array_type: ClassVar[type[Any]] = BloomArrays
    n_pair_rows: ClassVar[int] = 3

    _n_dead = 0  # clauses whose signatures are still there

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        signatures: str = "two",
        signature_bits: int | None = 1 << 17,
        ahead: bool = True,
        one_sided: np.ndarray | None = None,
        **options: Any,
    ) -> PSTBloom:
        """Build the index.

        `signatures`: ask those of two predicates before a clause is read, or of all (Alg. 5).
        `signature_bits`: the most that a signature has, rounded down to a power of two; None: no
        limit but eight to sixteen bits per predicate. `ahead`: prefetch memory, of which the paper
        says nothing. `one_sided`: which predicates are ranges with one end (`<`, `>`), where keys
        do not show it (`access_predicates.py`).
        """
        started = time.perf_counter()
        index = cls(_empty(signatures, signature_bits))
        index._ahead = ahead
        index._fill(table, statistics, one_sided)
        index._learn(statistics)
        index._build_seconds = time.perf_counter() - started
        return index

    def insert(self, table: ConjunctionTable, one_sided: np.ndarray | None = None) -> None:
        """Insert the clauses of a table; `one_sided` as in `build`."""
        self._check_new(table)
        if self.n_clauses == 0 and table.n_clauses > 1:
            self._fill(table, None, one_sided)
            return
        self._make_trees(table)
        new = ranked(table, None, self._arrays.forest, self._seen, self._history > 0, one_sided)
        self._cut(new)
        self._file(new, is_prepared=False)

    def delete(self, clause_ids: np.ndarray) -> None:
        """Delete clauses by their ids."""
        ids = np.unique(clause_ids)
        self._check_known(ids)
        unfile_clauses(self._arrays, self._seen, ids, self._elements)
        self._n_dead += len(ids)
        if self._n_dead > max(_FEWEST_DEAD, self.n_clauses):
            sign_again(self._arrays)
            self._n_dead = 0

    def _fill(
        self,
        table: ConjunctionTable,
        statistics: Statistics | None,
        one_sided: np.ndarray | None,
    ) -> None:
        """Insert clauses into an index without any."""
        self._check_new(table)
        self._make_trees(table)
        use_leaves = statistics is None and self._history > 0
        new = ranked(table, statistics, self._arrays.forest, self._seen, use_leaves, one_sided)
        bulk = bulk_of(new)
        done = 0
        while True:
            done = cut_predicates(self._arrays.forest, table, bulk, done, self._elements)
            if done == len(bulk.predicates):
                break
            p = int(bulk.predicates[done])
            n_cuts = 2 * int(table.interval_offsets[p + 1] - table.interval_offsets[p])
            self._make_room(n_cuts, 0, 0, 0, 0)
        forest = self._arrays.forest
        n_listed, n_covering = np.zeros((2, len(forest.leaves.cells)), np.int64)
        count_filings(forest, table, bulk, n_listed, n_covering)
        leaf = 0
        while (leaf := prepare_leaves(self._arrays, n_listed, n_covering, leaf)) >= 0:
            n = int(n_covering[leaf])
            self._make_room(0, 2 * WIDTH * n, 2 * n, 0, 0)
        places = self._file(new, is_prepared=True)
        sign_predicates(self._arrays.forest, self._arrays.signatures, table, bulk, places)

    def _cut(self, new: Ranked) -> None:
        needed, done = np.zeros(N_NEEDED, np.int64), 0
        while True:
            done = cut_clauses(self._arrays, new, self._seen, done, self._elements, needed)
            if done == new.table.n_clauses:
                return
            self._make_room(*needed.tolist())

    def _file(self, new: Ranked, *, is_prepared: bool) -> np.ndarray:
        """File the clauses, and return their places."""
        needed, done = np.zeros(N_NEEDED, np.int64), 0
        places = np.empty(new.table.n_clauses, np.int64)
        while True:
            done = file_clauses(self._arrays, new, is_prepared, done, places, needed)
            if done == new.table.n_clauses:
                return places
            self._make_room(*needed.tolist())

    def _make_trees(self, table: ConjunctionTable) -> None:
        forest = with_trees(self._arrays.forest, table.n_dimensions)
        self._arrays = self._arrays._replace(forest=forest)

    def _make_room(
        self, n_cuts: int, n_list_cells: int, n_signature_words: int, n_narrow: int, n_wide: int
    ) -> None:
        forest, lists, signatures, clauses, always, options = self._arrays
        lists = spans_with_room(lists, n_list_cells)
        if len(lists.cells) > _MOST_LIST_CELLS:
            raise LimitError(
                "this index has no place for so long lists: wide predicates are listed in each "
                "space that they cover; divide the subscriptions among several engines"
            )
        self._arrays = BloomArrays(
            forest_with_room(forest, n_cuts),
            lists,
            spans_with_room(signatures, n_signature_words),
            clauses_with_room(clauses, 1, n_narrow, n_wide),
            always,
            options,
        )
        self._count_new_leaves()

    def _kernel(self) -> Callable[..., tuple[int, int]]:
        return _match_events


@kernel
def _has_all_signatures(
    block_words: np.ndarray, place: int, signatures: np.ndarray, words: np.ndarray
) -> bool:
    """Tell whether the signatures of all predicates that have one know a clause."""
    start = place >> 1
    mixed = mix31(place)
    at = start + HEADER
    for _ in range(block_words[start + 2]):
        dimension, at, end = next_predicate(block_words, at)
        if at == end or block_words[at] > 0:  # one that accepts absence has none
            signature = signatures[dimension]
            if signature < 0:
                return False
            bit = mixed >> (HASH_BITS - (signature & 31))
            if ((words[(signature >> 5) + (bit >> 6)] >> (bit & 63)) & 1) == 0:
                return False
        at = end
    return True


@kernel
def _keep_signed(
    clauses: Clauses, places: np.ndarray, n: int, signatures: np.ndarray, words: np.ndarray
) -> int:
    """Keep those of n places that are in all signatures; returns how many these are."""
    narrow, wide = clauses.narrow.cells, clauses.wide.cells
    n_kept = 0
    for k in range(n):
        place = places[k]
        if place & 1:
            is_signed = _has_all_signatures(wide, place, signatures, words)
        else:
            is_signed = _has_all_signatures(narrow, place, signatures, words)
        if is_signed:
            places[n_kept] = place
            n_kept += 1
    return n_kept


@kernel
def _match_events(
    index: BloomArrays,
    events: EventBatch,
    start: int,
    seen: np.ndarray,
    scratch: Scratch,
    pairs: np.ndarray,
    ahead: bool,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int]:
    """Match events from `start` on.

    The first one for which `out` had no room, and how many clauses were checked for those before.
    `pairs` is scratch for the lists of one event.
    """
    trees, nodes, children = (
        index.forest.trees,
        index.forest.nodes.cells,
        index.forest.children.cells,
    )
    leaves, lists, words = index.forest.leaves.cells, index.lists.cells, index.signatures.cells
    clauses = index.clauses
    keys, narrow_keys, signatures, places = scratch
    dimensions, event_keys = events.dimensions, events.keys
    ask_all = index.options[1] != 0
    n_candidates = 0
    n_out = out_offsets[start]
    for e in range(start, len(events.offsets) - 1):
        n_lists = 1
        pairs[0, 0] = -1
        pairs[1, 0] = index.always[0, LIST]
        pairs[2, 0] = pairs[1, 0] + WIDTH * index.always[0, N_LIST]
        for k in range(events.offsets[e], events.offsets[e + 1]):
            dimension, key = dimensions[k], event_keys[k]
            if dimension >= len(trees) or key == 0:
                continue
            keys[dimension] = key
            narrow_keys[dimension] = min(key, TOP)
            leaf = leaf_of_key(trees, nodes, children, dimension, key)
            if leaf >= 0:
                pairs[0, n_lists] = leaf
                pairs[1, n_lists] = leaves[leaf, LIST]
                pairs[2, n_lists] = leaves[leaf, LIST] + WIDTH * leaves[leaf, N_LIST]
                if ahead:
                    prefetch(lists, pairs[1, n_lists])
                n_lists += 1
                if leaves[leaf, EXTRA_SIZE] > 0:
                    signatures[dimension] = 32 * leaves[leaf, EXTRA] + leaves[leaf, EXTRA_SIZE]
        n_found = n_out
        n_checked = 0
        p = 0
        at = pairs[1, 0]
        while p < n_lists:
            n_places = 0
            while p < n_lists:
                end = pairs[2, p]
                while at < end and n_places < len(places):
                    place = lists[at]
                    is_candidate = True
                    for c in range(1, WIDTH):
                        dimension = lists[at + c]
                        if dimension >= 0 and is_candidate:
                            signature = signatures[dimension]
                            if signature < 0:
                                is_candidate = False
                            else:
                                bit = mix31(place) >> (HASH_BITS - (signature & 31))
                                word = words[(signature >> 5) + (bit >> 6)]
                                is_candidate = ((word >> (bit & 63)) & 1) != 0
                    if is_candidate:
                        places[n_places] = place
                        n_places += 1
                        if ahead:
                            bring_block(clauses, place)
                    at += WIDTH
                if at < end:
                    break
                p += 1
                at = pairs[1, p] if p < n_lists else 0
            if ask_all:
                n_places = _keep_signed(clauses, places, n_places, signatures, words)
            n_checked += n_places
            n_found = check_places(clauses, places, n_places, keys, narrow_keys, out, n_found)
        for k in range(events.offsets[e], events.offsets[e + 1]):
            dimension = dimensions[k]
            if dimension < len(trees):
                keys[dimension] = 0
                narrow_keys[dimension] = 0
                signatures[dimension] = -1
        if n_found > len(out):
            return e, n_candidates
        for k in range(1, n_lists):
            seen[pairs[0, k]] += 1
        n_candidates += n_checked
        n_out = n_found
        out_offsets[e + 1] = n_out
    return len(events.offsets) - 1, n_candidates
