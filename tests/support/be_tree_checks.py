"""What must hold of a BE-Tree after every operation: the properties of Figure 1 and the invariance
of section 4.3, and that counts, chains and pools agree with what is there."""

from __future__ import annotations

from collections.abc import Mapping

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.papers.be_tree import BeTree
from matchmill.papers.be_tree.clause_records import CHECKED, LIST, MASK, SLOT, TESTS, TOTAL
from matchmill.papers.be_tree.directories import directory_words
from matchmill.papers.be_tree.parameters import MIN_SIZE
from matchmill.papers.be_tree.tree import (
    ABOVE,
    CAPACITY,
    DIMENSION,
    DIRECTORY,
    HIGH,
    IS_SPLIT,
    LAST_KEY,
    LEAF,
    LEFT,
    LOW,
    N_PARTITIONS,
    OWNER,
    P_DIMENSION,
    RIGHT,
    ROOT,
    SIZE,
    TOP,
    TOTAL_SIZE,
    UPPER,
    WORDS,
    Tree,
)
from matchmill.papers.common.pools import rows_in_use, span_capacity, spans_in_use

__all__ = ["check_tree", "clauses_of", "leaf_clauses", "partitions_of", "shape_of"]

Pairs = list[tuple[int, int]]


def clauses_of(table: ConjunctionTable) -> dict[int, dict[int, Pairs]]:
    """id → dimension → intervals."""
    out = {}
    for i, clause_id in enumerate(table.clause_ids.tolist()):
        out[clause_id] = {
            int(table.dimensions[p]): [
                (int(table.lows[k]), int(table.highs[k]))
                for k in range(table.interval_offsets[p], table.interval_offsets[p + 1])
            ]
            for p in range(table.clause_offsets[i], table.clause_offsets[i + 1])
        }
    return out


def _intervals(words: list[int], p: int) -> tuple[Pairs, int]:
    """The intervals of a test, and where it ends."""

    def wide(at: int) -> int:
        return words[at + 1] << 32 | words[at] & 0xFFFFFFFF

    kind = words[p] & 3
    if kind == LIST:
        n = words[p + 1]
        return [(wide(q), wide(q + 2)) for q in range(p + 2, p + 2 + 4 * n, 4)], p + 2 + 4 * n
    if kind == MASK:
        keys = [words[p + 1] + bit for bit in range(64) if wide(p + 2) >> bit & 1]
        out: Pairs = []
        for key in keys:
            if out and out[-1][1] == key - 1:
                out[-1] = (out[-1][0], key)
            else:
                out.append((key, key))
        return out, p + 4
    return [(words[p + 1] & 0xFFFF, words[p + 1] >> 16)], p + 2


def leaf_clauses(index: BeTree, node: int) -> dict[int, tuple[dict[int, Pairs], set[int]]]:
    """slot → the clause, and the dimensions whose tests are not made."""
    row = index._tree.nodes.cells[node]
    words = index._tree.leaves.cells[row[LEAF] : row[LEAF] + row[WORDS]].tolist()
    out = {}
    record = 0
    while record < len(words):
        clause, subsumed = {}, set()
        p = record + TESTS
        while p < record + words[record + TOTAL]:
            intervals, end = _intervals(words, p)
            clause[words[p] >> 2] = intervals
            if p >= record + words[record + CHECKED]:
                subsumed.add(words[p] >> 2)
            p = end
        assert p == record + words[record + TOTAL]
        out[words[record + SLOT]] = (clause, subsumed)
        record = p
    assert record == len(words)
    assert len(out) == row[SIZE]
    return out


def partitions_of(tree: Tree, node: int) -> dict[int, int]:
    """The partition directory of a c-node: dimension → p-node."""
    start = int(tree.nodes.cells[node, DIRECTORY])
    if start < 0:
        return {}
    cells = tree.directories.cells
    entries = [start + 1 + 2 * place for place in range(1 << cells[start])]
    return {
        int(cells[e]) - 1: int(tree.nodes.cells[cells[e + 1], OWNER]) for e in entries if cells[e]
    }


class _Seen:
    def __init__(self) -> None:
        self.clauses: dict[int, dict[int, Pairs]] = {}
        self.n_nodes = self.n_partitions = self.n_leaf_cells = self.n_directory_cells = 0


def check_tree(
    index: BeTree, expected: Mapping[int, Mapping[int, Pairs]] | None = None
) -> dict[int, dict[int, Pairs]]:
    """The tree is whole and holds exactly these clauses, given by their ids; what it holds."""
    tree = index._tree
    seen = _Seen()
    assert tree.nodes.cells[ROOT, OWNER] == -1  # property 1: the root is a c-node, no bucket
    _check_node(index, ROOT, {}, seen)
    assert expected is None or seen.clauses == expected
    assert index.stats().n_clauses == len(seen.clauses)
    assert rows_in_use(tree.nodes) == seen.n_nodes
    assert rows_in_use(tree.partitions) == seen.n_partitions
    assert spans_in_use(tree.leaves) == seen.n_leaf_cells
    assert spans_in_use(tree.directories) == seen.n_directory_cells
    return seen.clauses


def _check_node(index: BeTree, node: int, path: dict[int, tuple[int, int]], seen: _Seen) -> int:
    """Check a c-node and what is below its p-nodes and buckets; the clauses there.

    `path`: the bucket of each p-node above, this one's included."""
    tree = index._tree
    row = tree.nodes.cells[node]
    seen.n_nodes += 1
    if row[WORDS]:
        seen.n_leaf_cells += span_capacity(int(row[WORDS]))
    n_clauses = _check_leaf(index, node, path, seen)
    # Properties 2 to 5: one l-node (it is in the row); p-nodes below, with c-nodes below them.
    partitions = partitions_of(tree, node)
    assert len(partitions) == row[N_PARTITIONS]
    if partitions:
        seen.n_directory_cells += span_capacity(
            directory_words(int(tree.directories.cells[row[DIRECTORY]]))
        )
        # The forced split: what is partitioned is the root, atomic, or has been split.
        assert row[OWNER] < 0 or row[LOW] == row[HIGH] or row[IS_SPLIT]
    for dimension, partition in partitions.items():
        p_row = tree.partitions.cells[partition]
        seen.n_partitions += 1
        assert dimension not in path  # each dimension once on a way down
        assert (p_row[P_DIMENSION], p_row[ABOVE]) == (dimension, node)
        top = tree.nodes.cells[p_row[TOP]]
        assert (top[LOW], top[HIGH], top[UPPER]) == (0, LAST_KEY, -1)
        n_below = _check_bucket(index, int(p_row[TOP]), partition, path, seen)
        assert n_below == p_row[TOTAL_SIZE] >= tree.settings[MIN_SIZE]
        n_clauses += n_below
    return n_clauses


def _check_leaf(index: BeTree, node: int, path: dict[int, tuple[int, int]], seen: _Seen) -> int:
    tree = index._tree
    row = tree.nodes.cells[node]
    assert row[SIZE] <= row[CAPACITY]
    clauses = leaf_clauses(index, node)
    partitions = partitions_of(tree, node)
    for slot, (clause, subsumed) in clauses.items():
        assert tree.slot_nodes[slot] == node
        clause_id = int(index._slots.ids[slot])
        assert clause_id not in seen.clauses
        seen.clauses[clause_id] = clause
        for dimension, bucket in path.items():  # every clause is in the buckets above it
            low, high = clause[dimension][0][0], clause[dimension][-1][1]
            assert 0 < low
            assert bucket[0] <= low
            assert high <= bucket[1]
        assert subsumed == {d for d, bucket in path.items() if clause[d] == [bucket]}
        if row[OWNER] >= 0 and row[IS_SPLIT]:  # and in the smallest one of its directory
            intervals = clause[int(row[DIMENSION])]
            middle = (int(row[LOW]) + int(row[HIGH])) // 2
            assert intervals[0][0] <= middle < intervals[-1][1]
        # A clause is in the leaf of a c-node only if no p-node there takes it.
        takers = {d for d, i in clause.items() if i and i[0][0] > 0} - set(path)
        assert not takers & set(partitions)
    return len(clauses)


def _check_bucket(
    index: BeTree, node: int, partition: int, path: dict[int, tuple[int, int]], seen: _Seen
) -> int:
    """Check a bucket and those in its halves; the clauses there."""
    tree = index._tree
    row = tree.nodes.cells[node]
    dimension, low, high = int(row[DIMENSION]), int(row[LOW]), int(row[HIGH])
    length = high - low + 1
    assert length & (length - 1) == 0  # dyadic: cut where everybody would cut
    assert low % length == 0
    assert row[OWNER] == partition
    assert dimension == tree.partitions.cells[partition, P_DIMENSION]
    n_clauses = _check_node(index, node, {**path, dimension: (low, high)}, seen)
    middle = low + (high - low) // 2
    for side, first, last in ((LEFT, low, middle), (RIGHT, middle + 1, high)):
        half = int(row[side])
        if half >= 0:
            assert row[IS_SPLIT]
            assert tree.nodes.cells[half, UPPER] == node
            assert first <= tree.nodes.cells[half, LOW]
            assert tree.nodes.cells[half, HIGH] <= last
            n_clauses += _check_bucket(index, half, partition, path, seen)
    return n_clauses


Shape = tuple[list[int], dict[int, list["tuple[tuple[int, int], Shape]"]]]


def shape_of(index: BeTree, node: int = ROOT) -> Shape:
    """The ids in a leaf, and for each partition its buckets with what is in them."""
    tree = index._tree
    ids = sorted(int(index._slots.ids[slot]) for slot in leaf_clauses(index, node))
    below = {}
    for dimension, partition in partitions_of(tree, node).items():
        buckets: list[tuple[tuple[int, int], Shape]] = []
        waiting = [int(tree.partitions.cells[partition, TOP])]
        while waiting:
            bucket = waiting.pop(0)
            row = tree.nodes.cells[bucket]
            buckets.append(((int(row[LOW]), int(row[HIGH])), shape_of(index, bucket)))
            waiting += [int(row[side]) for side in (LEFT, RIGHT) if row[side] >= 0]
        below[dimension] = buckets
    return ids, below
