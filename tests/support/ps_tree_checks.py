"""What must hold of PS-Trees and of the indexes over them, whatever was inserted and deleted.

`check_index` is for both indexes, `check_forest` for trees alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from matchmill.kernels.hashing import mix31
from matchmill.papers.common.id_table import find_id
from matchmill.papers.common.pools import Spans, rows_in_use, span_capacity
from matchmill.papers.ps_tree.bloom_index import PSTBloom
from matchmill.papers.ps_tree.bloom_signatures import HASH_BITS
from matchmill.papers.ps_tree.clauses import (
    HEADER,
    TOP,
    Clauses,
    block_id,
    n_access_of,
    next_predicate,
)
from matchmill.papers.ps_tree.cuts import MAX_KEY, key_interval_leaves
from matchmill.papers.ps_tree.forest import (
    CHILDREN,
    EXTRA,
    EXTRA_SIZE,
    FANOUT,
    FIRST,
    LAST,
    LEFT,
    LIST,
    LIST_ROOM,
    MASK,
    N_AFTER,
    N_BEFORE,
    N_LIST,
    N_PREDICATES,
    NEXT,
    PARENT,
    PREVIOUS,
    RIGHT,
    ROOT,
    E,
    Forest,
    G,
    L,
)
from matchmill.papers.ps_tree.hash_index import PSTHash
from matchmill.papers.ps_tree.hash_records import MOST_RECORDS, next_record, record_of


def check_forest(forest: Forest) -> list[int]:
    """Asserts all invariants; returns how many spaces each tree has."""
    counts = [check_tree(forest, t) for t in range(len(forest.trees)) if forest.trees[t, ROOT] >= 0]
    assert rows_in_use(forest.leaves) == sum(n for n, _, _ in counts)
    assert rows_in_use(forest.nodes) == sum(n for _, n, _ in counts)
    assert rows_in_use(forest.children) == sum(n for _, _, n in counts)
    return [n for n, _, _ in counts]


def check_tree(forest: Forest, tree: int) -> tuple[int, int, int]:
    """Leaves, nodes and rows of children of one tree."""
    nodes, leaves = forest.nodes.cells, forest.leaves.cells
    root = int(forest.trees[tree, ROOT])
    assert nodes[root, PARENT] == -1
    boundaries: list[int] = []
    n_nodes, n_rows = _walk(forest, root, boundaries, is_root=True)

    # Boundaries in order say which leaves there are, and where they begin and end.
    expected = [(-1, -1)]
    for node in boundaries:
        before, e, g = (int(x) for x in nodes[node, [L, E, G]])
        assert before == expected[-1][0] or expected[-1][0] == -1
        expected[-1] = (before, expected[-1][1])
        assert (e != before) == (nodes[node, N_BEFORE] > 0)
        assert (g != e) == (nodes[node, N_AFTER] > 0)
        if e != before:
            expected.append((e, node))
        if g != e:
            expected.append((g, node))
    if expected[-1][0] == -1:
        expected[-1] = (int(forest.trees[tree, LAST]), -1)

    chain = []
    leaf = int(forest.trees[tree, FIRST])
    previous = -1
    while leaf >= 0:
        assert leaves[leaf, PREVIOUS] == previous
        chain.append((leaf, int(leaves[leaf, LEFT])))
        previous, leaf = leaf, int(leaves[leaf, NEXT])
    assert previous == forest.trees[tree, LAST]
    assert chain == expected
    rights = [node for _, node in chain[1:]] + [-1]
    assert [int(leaves[leaf, RIGHT]) for leaf, _ in chain] == rights
    return len(chain), n_nodes, n_rows


def _walk(forest: Forest, node: int, out: list[int], is_root: bool = False) -> tuple[int, int]:
    """Boundaries from `node` down, in order; counts nodes and rows of children."""
    nodes = forest.nodes.cells
    assert min(nodes[node, N_BEFORE], nodes[node, N_AFTER]) >= 0
    is_boundary = nodes[node, N_BEFORE] + nodes[node, N_AFTER] > 0
    mask = int(nodes[node, MASK])
    assert is_boundary or mask or is_root, "a node that leads nowhere"
    assert (nodes[node, CHILDREN] >= 0) == (mask != 0)
    if is_boundary:
        out.append(node)
    first = len(out) - int(is_boundary)
    n_nodes, n_rows = 1, int(mask != 0)
    for element in range(FANOUT):
        if mask >> element & 1:
            child = int(forest.children.cells[nodes[node, CHILDREN], element])
            assert nodes[child, PARENT] == node
            below = _walk(forest, child, out)
            n_nodes, n_rows = n_nodes + below[0], n_rows + below[1]
    if mask or is_boundary:
        assert nodes[node, L] == nodes[out[first], L], "l is that of the least boundary"
    return n_nodes, n_rows


def key_bounds(forest: Forest, tree: int, keys: range) -> np.ndarray:
    """For each key the leaf that a walk along the leaves finds: the slow way."""
    starts = {-1: 0}
    for node, value in _values(forest, int(forest.trees[tree, ROOT]), 0):
        starts[node] = value
    found = []
    for key in keys:
        leaf = int(forest.trees[tree, FIRST])
        leaves = forest.leaves.cells
        while (after := int(leaves[leaf, NEXT])) >= 0 and starts[int(leaves[after, LEFT])] <= key:
            leaf = after
        found.append(leaf)
    return np.array(found)


def _values(forest: Forest, node: int, value: int) -> list[tuple[int, int]]:
    nodes = forest.nodes.cells
    found = []
    if nodes[node, N_BEFORE] + nodes[node, N_AFTER] > 0:
        found.append((node, value))
    for element in range(FANOUT):
        if int(nodes[node, MASK]) >> element & 1:
            child = int(forest.children.cells[nodes[node, CHILDREN], element])
            found += _values(forest, child, 16 * value + element)
    return found


# -- the indexes ----------------------------------------------------------------------------------


class Filed(NamedTuple):
    """A clause as an index has stored it."""

    place: int
    n_access: int
    n_records: int
    predicates: list[tuple[int, list[tuple[int, int]]]]  # those that are checked come first

    @property
    def n_checked(self) -> int:
        return len(self.predicates) - self.n_access

    @property
    def access(self) -> list[tuple[int, list[tuple[int, int]]]]:
        return self.predicates[self.n_checked :]


def check_index(index: Any) -> None:
    """Assert all invariants of a `PSTBloom` or a `PSTHash`.

    Trees, pools and tables are whole; each leaf has what the clauses say that it has, no more and
    no less, but for bits in signatures. It is slow: for indexes of up to some hundred clauses.
    """
    if isinstance(index, PSTBloom):
        check_bloom(index)
    else:
        assert isinstance(index, PSTHash)
        check_hash(index)


def check_bloom(index: PSTBloom) -> None:
    """Assert all invariants of a `PSTBloom`."""
    arrays = index._arrays
    forest, lists, signatures = arrays.forest, arrays.lists, arrays.signatures
    leaves = forest.leaves.cells
    counts = check_forest(forest)
    filed = filed_clauses(arrays.clauses)

    covering: Counter[int] = Counter()
    listed: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    signed: dict[int, list[int]] = defaultdict(list)
    always = []
    for clause in filed.values():
        eligible = [p for p in clause.predicates if not accepts_absence(p)]
        assert clause.n_access == min(len(eligible), 1)
        for predicate in eligible:
            covering.update(covered_leaves(forest, predicate))
        ranked = [d for d, _ in (*clause.access, *clause.predicates[: clause.n_checked])]
        others = (*ranked[1 : len(eligible)], -1, -1)[:2]
        if not clause.access:
            always.append((clause.place, -1, -1))
            continue
        for leaf in covered_leaves(forest, clause.access[0]):
            listed[leaf].append((clause.place, *others))
        for predicate in clause.predicates[: clause.n_checked]:
            if not accepts_absence(predicate):
                for leaf in covered_leaves(forest, predicate):
                    signed[leaf].append(clause.place)

    check_cuts(forest, [p for c in filed.values() for p in c.predicates if not accepts_absence(p)])
    list_spans = [check_list(lists, arrays.always, 0, 3, always)]
    signature_spans = []
    for leaf in all_leaves(forest):
        assert leaves[leaf, N_PREDICATES] == covering[leaf]
        list_spans.append(check_list(lists, leaves, leaf, 3, listed[leaf]))
        size = int(leaves[leaf, EXTRA_SIZE])
        assert size == 0 or covering[leaf], "a signature that no predicate needs"
        if not size:
            assert not signed[leaf]
            continue
        n_words = (1 << size) >> 6
        first = int(leaves[leaf, EXTRA])
        signature_spans.append((first, n_words))
        words = signatures.cells[first : first + n_words].view(np.uint64)
        for place in signed[leaf]:
            bit = mix31(place) >> (HASH_BITS - size)
            assert int(words[bit >> 6]) >> (bit & 63) & 1, "a clause that its signature lacks"
    check_spans(lists, list_spans)
    check_spans(signatures, signature_spans)
    if not filed:
        assert set(counts) <= {1}


def check_hash(index: PSTHash) -> None:
    """Assert all invariants of a `PSTHash`."""
    arrays = index._arrays
    forest, lists, records = arrays.forest, arrays.lists, arrays.records
    leaves, rows = forest.leaves.cells, records.rows.cells
    counts = check_forest(forest)
    filed = filed_clauses(arrays.clauses)
    n = int(arrays.n_access[0])

    covering: Counter[int] = Counter()
    listed: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    combined: dict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)
    always = []
    for clause in filed.values():
        n_eligible = sum(not accepts_absence(p) for p in clause.predicates)
        assert clause.n_access in {min(n_eligible, 1)} | ({n} if n_eligible >= n else set())
        assert not any(accepts_absence(p) for p in clause.access)
        for predicate in clause.access:
            covering.update(covered_leaves(forest, predicate))
        n_records = 0
        if clause.n_access == 0:
            always.append((clause.place,))
        elif clause.n_access == 1:
            for leaf in covered_leaves(forest, clause.access[0]):
                listed[leaf].append((clause.place,))
        else:
            spaces = [covered_leaves(forest, p) for p in clause.access]
            n_records = prod(map(len, spaces))
            assert n_records <= MOST_RECORDS
            for combination in product(*spaces):
                combined[tuple(sorted(combination))].append((clause.place,))
        assert clause.n_records == n_records

    check_cuts(forest, [p for c in filed.values() for p in c.access])
    list_spans = [check_list(lists, arrays.always, 0, 1, always)]
    in_chains: Counter[int] = Counter()
    for leaf in all_leaves(forest):
        assert leaves[leaf, N_PREDICATES] == covering[leaf]
        list_spans.append(check_list(lists, leaves, leaf, 1, listed[leaf]))
        chain = []
        r = int(leaves[leaf, EXTRA]) - 1
        while r >= 0:
            assert leaf in rows[r, :3]
            chain.append(r)
            r = next_record(rows, r, leaf)
        assert len(chain) == len(set(chain)) == leaves[leaf, EXTRA_SIZE]
        in_chains.update(chain)
    assert rows_in_use(records.rows) == len(in_chains) == len(combined)
    table = records.table.cells[records.table.cells[:, 1] >= 0]
    assert sorted(table[:, 1].tolist()) == sorted(in_chains)
    assert len(table) == records.table.n_used[0]
    record_spans = []
    for r, n_chains in in_chains.items():
        of_record = [leaf for leaf in rows[r, :3].tolist() if leaf >= 0]
        assert of_record == sorted(of_record)
        assert len(of_record) == n_chains == n
        assert record_of(records, *rows[r, :3].tolist()) == r
        expected = combined[tuple(of_record)]
        assert expected, "a record without clauses"
        record_spans.append(check_list(records.lists, rows, r, 1, expected))
    check_spans(lists, list_spans)
    check_spans(records.lists, record_spans)
    if not filed:
        assert set(counts) <= {1}


# -- parts of them --------------------------------------------------------------------------------


def filed_clauses(clauses: Clauses) -> dict[int, Filed]:
    """All clauses by id; their blocks tile the two pools."""
    cells = clauses.table.cells
    used = cells[cells[:, 1] >= 0]
    assert len(used) == clauses.table.n_used[0] <= len(cells) // 2
    filed: dict[int, Filed] = {}
    spans: tuple[list[tuple[int, int]], ...] = ([], [])
    for clause_id, place in used.tolist():
        assert find_id(cells, clause_id) == place
        is_wide, start = bool(place & 1), place >> 1
        words = (clauses.wide if is_wide else clauses.narrow).cells
        top = MAX_KEY if is_wide else TOP
        assert block_id(words, start) == clause_id
        n_access = n_access_of(words, start)
        predicates = []
        at = start + HEADER
        for _ in range(int(words[start + 2]) + n_access):
            dimension, at, end = next_predicate(words, at)
            bounds = words[at:end].reshape(-1, 2).tolist()
            predicates.append((dimension, [(a, MAX_KEY if b >= top else b) for a, b in bounds]))
            at = end
        spans[is_wide].append((start, at - start))
        filed[clause_id] = Filed(place, n_access, int(words[start + 3]) >> 2, predicates)
    check_spans(clauses.narrow, spans[0])
    check_spans(clauses.wide, spans[1])
    return filed


def accepts_absence(predicate: tuple[int, list[tuple[int, int]]]) -> bool:
    """Tell whether an event without the dimension satisfies a predicate."""
    return any(low == 0 for low, _ in predicate[1])


def covered_leaves(forest: Forest, predicate: tuple[int, list[tuple[int, int]]]) -> list[int]:
    """The leaves that a predicate covers."""
    dimension, intervals = predicate
    found = []
    for low, high in intervals:
        leaf, last = key_interval_leaves(forest, dimension, low, high)
        while leaf != last:
            found.append(int(leaf))
            leaf = int(forest.leaves.cells[leaf, NEXT])
    assert len(set(found)) == len(found)
    return found


def all_leaves(forest: Forest) -> list[int]:
    """The leaves of all trees."""
    found = []
    for tree in forest.trees:
        leaf = int(tree[FIRST]) if tree[ROOT] >= 0 else -1
        while leaf >= 0:
            found.append(leaf)
            leaf = int(forest.leaves.cells[leaf, NEXT])
    return found


def check_cuts(forest: Forest, predicates: list[tuple[int, list[tuple[int, int]]]]) -> None:
    """The cuts of the forest are the bounds of these predicates, each as often as it is one."""
    expected: Counter[tuple[int, int]] = Counter()
    for dimension, intervals in predicates:
        for low, high in intervals:
            expected[dimension, low] += 1
            if high < MAX_KEY:
                expected[dimension, high + 1] += 1
    found = {
        (tree, value): int(forest.nodes.cells[node, N_BEFORE])
        for tree in range(len(forest.trees))
        if forest.trees[tree, ROOT] >= 0
        for node, value in _values(forest, int(forest.trees[tree, ROOT]), 0)
    }
    assert found == expected


def check_list(
    spans: Spans, rows: np.ndarray, row: int, width: int, expected: list[tuple[int, ...]]
) -> tuple[int, int]:
    """The list of a row has these entries, in any order; returns its span: start and capacity."""
    n, room = int(rows[row, N_LIST]), int(rows[row, LIST_ROOM])
    assert n == len(expected)
    assert room >= n * width
    assert (room > 0) == (n > 0)
    start = int(rows[row, LIST]) if room else 0
    entries = spans.cells[start : start + n * width].reshape(-1, width)
    assert sorted(map(tuple, entries.tolist())) == sorted(expected)
    return start, room


def check_spans(spans: Spans, used: list[tuple[int, int]]) -> None:
    """Spans in use, given as start and number of cells, and free ones tile what was ever taken."""
    top, in_use = spans.state.tolist()
    assert top <= len(spans.cells), "a span beyond the memory that there is"
    tiles = [(start, span_capacity(n)) for start, n in used if n]
    assert sum(n for _, n in tiles) == in_use
    for k, first in enumerate(spans.free.tolist()):
        start = first
        while start >= 0:
            tiles.append((start, 1 << k))
            assert len(tiles) <= top, "free spans that go round"
            start = int(spans.cells[start])
    end = 0
    for start, n in sorted(tiles):
        assert start == end, "spans overlap, or one is lost"
        end += n
    assert end == top
