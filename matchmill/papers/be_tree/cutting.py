"""Two-phase space cutting: Algorithms 5 and 6, and section 4.2 and 4.3.

`cut` does one step for one node: what it makes, and what may overflow in turn, goes on the list of
work (the paper recurses). It makes sure of its memory first, so that it can be called again.

A dimension is a candidate for partitioning if no p-node above has it and at least `min_size`
clauses of the leaf have a test on it that absence does not pass: an event without the dimension
would not look there. The rank of a candidate (section 5) is beta times the number of its clauses,
less gamma times an estimate of its Loss:

    optimistic   nothing is lost, so the highest rank is that of the dimension with the most
                 clauses. All of a leaf is counted once; counts only fall while clauses leave, so
                 dimensions lie in lists by their count and are moved down when met.
    histogram    (`histogram_buckets`) the keys from the least to the largest that the leaf's
                 clauses ask for on the dimension are cut into equal buckets. A clause is in all
                 that it overlaps, and the average size of a bucket is what an event will look at.
                 A sum of each clause's share of the buckets is that average: no bucket is stored.

With `exploration`, a share of the choices is made at random among the candidates.
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.be_tree.clause_records import (
    TESTS,
    TOTAL,
    find_test,
    hull,
    mark_subsumed,
    test_words,
)
from matchmill.papers.be_tree.directories import add_partition
from matchmill.papers.be_tree.parameters import (
    BETA,
    GAMMA,
    HISTOGRAM_BUCKETS,
    MAX_CAPACITY,
    MIN_SIZE,
    RARE_FIRST,
    draw,
    explores,
)
from matchmill.papers.be_tree.scratch import (
    COUNT,
    HEAD,
    N_WORK,
    NEED_DIRECTORIES,
    NEED_ENTRIES,
    NEED_NODES,
    NEED_PARTITIONS,
    NEED_WORDS,
    NEXT,
    USED,
    Scratch,
)
from matchmill.papers.be_tree.tree import (
    ABOVE,
    CAPACITY,
    DIMENSION,
    HIGH,
    IS_SPLIT,
    LAST_KEY,
    LEAF,
    LEFT,
    LOSS,
    LOSS_UNIT,
    LOW,
    N_PARTITIONS,
    OWNER,
    P_DIMENSION,
    RIGHT,
    SIZE,
    TOP,
    TOTAL_SIZE,
    WORDS,
    Tree,
    append_record,
    dyadic,
    new_node,
    shrink_leaf,
    start_window,
)
from matchmill.papers.common.pools import Spans, give_span, rows_left, spans_left, take_row

__all__ = ["cut", "fitting_capacity", "push_work"]


@kernel
def push_work(scratch: Scratch, node: int) -> None:
    """Note a node that needs work."""
    scratch.work[scratch.state[N_WORK]] = node
    scratch.state[N_WORK] += 1


@kernel
def fitting_capacity(size: int, max_capacity: int) -> int:
    """UpdateClusterCapacity: the next multiple of max_capacity, at least one."""
    return max(1, (size + max_capacity - 1) // max_capacity) * max_capacity


@kernel
def cut(tree: Tree, scratch: Scratch, node: int) -> bool:
    """SpaceClustering for one node; False if there was no room, and nothing has changed."""
    row = tree.nodes.cells[node]
    if row[SIZE] <= row[CAPACITY]:
        return True
    n_new = row[SIZE] // tree.settings[MIN_SIZE] + 2
    needs = scratch.needs
    needs[NEED_NODES] = needs[NEED_PARTITIONS] = n_new
    needs[NEED_WORDS] = 8 * row[WORDS]
    needs[NEED_DIRECTORIES] = 32 * (row[N_PARTITIONS] + n_new)
    needs[NEED_ENTRIES] = row[WORDS]
    if (
        rows_left(tree.nodes) < n_new
        or rows_left(tree.partitions) < n_new
        or spans_left(tree.leaves) < needs[NEED_WORDS]
        or spans_left(tree.directories) < needs[NEED_DIRECTORIES]
        or len(scratch.places) < needs[NEED_ENTRIES]
    ):
        return False
    if row[OWNER] >= 0 and not row[IS_SPLIT] and row[LOW] < row[HIGH]:
        _split(tree, scratch, node)
    _partition(tree, scratch, node)
    return True


@kernel
def _split(tree: Tree, scratch: Scratch, node: int) -> None:
    """Cut a bucket in halves and move the clauses that a half encloses."""
    nodes, words = tree.nodes.cells, tree.leaves.cells
    row = nodes[node]
    middle = row[LOW] + (row[HIGH] - row[LOW]) // 2
    start, end = row[LEAF], row[LEAF] + row[WORDS]
    lows, highs = (LAST_KEY, LAST_KEY), (-1, -1)
    record = start
    while record < end:
        low, high = hull(words, find_test(words, record, row[DIMENSION]))
        if high <= middle:
            lows, highs = (min(lows[0], low), lows[1]), (max(highs[0], high), highs[1])
        elif low > middle:
            lows, highs = (lows[0], min(lows[1], low)), (highs[0], max(highs[1], high))
        record += words[record + TOTAL]
    row[IS_SPLIT] = 1
    if highs[0] < 0 and highs[1] < 0:
        return
    for side in range(2):
        if highs[side] >= 0:
            low, high = dyadic(lows[side], highs[side])
            child = new_node(tree, row[OWNER], node, low, high)
            row[LEFT + side] = child
            push_work(scratch, child)
    n_words = row[WORDS]
    row[WORDS] = row[SIZE] = 0
    record = start
    while record < end:
        low, high = hull(words, find_test(words, record, row[DIMENSION]))
        if high <= middle or low > middle:
            child = row[LEFT if high <= middle else RIGHT]
            place = append_record(nodes, tree.leaves, tree.slot_nodes, child, words, record)
            bucket = nodes[child]
            mark_subsumed(words, place, row[DIMENSION], bucket[LOW], bucket[HIGH])
        else:
            append_record(nodes, tree.leaves, tree.slot_nodes, node, words, record)
        record += words[record + TOTAL]
    give_span(tree.leaves, start, n_words)


@kernel
def _partition(tree: Tree, scratch: Scratch, node: int) -> None:
    """SpacePartitioning: p-nodes for the best dimensions until the leaf is no longer too full."""
    row = tree.nodes.cells[node]
    if row[SIZE] > row[CAPACITY]:
        _mark_path(tree.nodes.cells, tree.partitions.cells, scratch.by_dimension, node, 1)
        n_touched = _count_tests(row, tree.leaves.cells, scratch)
        if tree.settings[HISTOGRAM_BUCKETS]:
            _estimate_losses(tree, scratch, node)
        _move_to_partitions(tree, scratch, node, n_touched)
        _mark_path(tree.nodes.cells, tree.partitions.cells, scratch.by_dimension, node, 0)
        for k in range(n_touched):
            scratch.by_dimension[scratch.touched[k], COUNT] = 0
            scratch.by_dimension[scratch.touched[k], HEAD] = -1
    max_capacity = tree.settings[MAX_CAPACITY]
    if row[SIZE] > row[CAPACITY]:
        # An extended leaf. The paper adds max_capacity; an eighth keeps a long leaf of clauses that
        # cannot be told apart from being counted again and again.
        row[CAPACITY] = max(row[CAPACITY] + max_capacity, row[SIZE] + row[SIZE] // 8)
    else:
        row[CAPACITY] = fitting_capacity(row[SIZE], max_capacity)


@kernel
def _mark_path(
    nodes: np.ndarray, partitions: np.ndarray, by_dimension: np.ndarray, node: int, mark: int
) -> None:
    """Mark the dimensions of the p-nodes above."""
    owner = nodes[node, OWNER]
    while owner >= 0:
        by_dimension[partitions[owner, P_DIMENSION], USED] = mark
        owner = nodes[partitions[owner, ABOVE], OWNER]


@kernel
def _count_tests(row: np.ndarray, words: np.ndarray, scratch: Scratch) -> int:
    """Chain the clauses of a leaf by the dimensions that it could be partitioned by."""
    by_dimension, chain = scratch.by_dimension, scratch.chain
    n_touched = n_entries = n_records = 0
    record = row[LEAF]
    end = record + row[WORDS]
    while record < end:
        p, stop = record + TESTS, record + words[record + TOTAL]
        while p < stop:
            dimension = words[p] >> 2
            if not by_dimension[dimension, USED] and hull(words, p)[0] > 0:
                if by_dimension[dimension, HEAD] < 0:
                    scratch.touched[n_touched] = dimension
                    scratch.bounds[dimension, 0] = LAST_KEY
                    scratch.bounds[dimension, 1] = 0
                    scratch.losses[dimension] = 0.0
                    n_touched += 1
                chain[n_entries, 0] = n_records
                chain[n_entries, 1] = by_dimension[dimension, HEAD]
                by_dimension[dimension, HEAD] = n_entries
                by_dimension[dimension, COUNT] += 1
                n_entries += 1
            p += test_words(words, p)
        scratch.places[n_records] = record
        n_records += 1
        record = stop
    return n_touched


@kernel
def _estimate_losses(tree: Tree, scratch: Scratch, node: int) -> None:
    """Find the range and the average bucket of the histogram of each candidate."""
    row, words, bounds = tree.nodes.cells[node], tree.leaves.cells, scratch.bounds
    for turn in range(2):
        p, end = row[LEAF], row[LEAF] + row[WORDS]
        while p < end:
            stop = p + words[p + TOTAL]
            p += TESTS
            while p < stop:
                dimension = words[p] >> 2
                low, high = hull(words, p)
                if not scratch.by_dimension[dimension, USED] and low > 0:
                    if turn == 0:
                        bounds[dimension, 0] = min(bounds[dimension, 0], low)
                        bounds[dimension, 1] = max(bounds[dimension, 1], high)
                    else:
                        scratch.losses[dimension] += _share(tree, scratch, dimension, low, high)
                p += test_words(words, p)


@kernel
def _share(tree: Tree, scratch: Scratch, dimension: int, low: int, high: int) -> float:
    """Return the share of a histogram's buckets that low … high overlaps."""
    first, last = scratch.bounds[dimension, 0], scratch.bounds[dimension, 1]
    width = (last - first) // tree.settings[HISTOGRAM_BUCKETS] + 1
    n_buckets = (last - first) // width + 1
    return float(((high - first) // width - (low - first) // width + 1) / n_buckets)


@kernel
def _rank(tree: Tree, scratch: Scratch, dimension: int) -> float:
    """Return the rank of a candidate, by the clauses that are still in the leaf."""
    gain = tree.weights[BETA] * scratch.by_dimension[dimension, COUNT]
    return float(gain - tree.weights[GAMMA] * scratch.losses[dimension])


@kernel
def _fill_by_rank(tree: Tree, scratch: Scratch, node: int, n_touched: int) -> int:
    """Make p-nodes by rank until the leaf is no longer too full; how many clauses stay."""
    row, touched, min_size = tree.nodes.cells[node], scratch.touched, tree.settings[MIN_SIZE]
    left = row[SIZE]
    while left > row[CAPACITY]:
        best, best_rank = -1, 0.0
        for k in range(n_touched):
            if scratch.by_dimension[touched[k], COUNT] >= min_size:
                rank = _rank(tree, scratch, touched[k])
                if best < 0 or rank > best_rank:
                    best, best_rank = k, rank
        if best < 0:
            break
        if explores(tree.settings, tree.weights):
            best = _any_candidate(tree, scratch, n_touched)
        left -= _fill_partition(tree, scratch, node, touched[best])
    return int(left)


@kernel
def _any_candidate(tree: Tree, scratch: Scratch, n_touched: int) -> int:
    """Draw one of the touched dimensions that enough clauses have, or -1 if there is none."""
    chosen, n_found = -1, 0
    for k in range(n_touched):
        if scratch.by_dimension[scratch.touched[k], COUNT] >= tree.settings[MIN_SIZE]:
            n_found += 1
            if draw(tree.settings, n_found) == 0:
                chosen = k
    return chosen


@kernel
def _fill_by_count(tree: Tree, scratch: Scratch, node: int, n_touched: int) -> int:
    """Do as `_fill_by_rank` where ranks are counts."""
    by_dimension, by_count = scratch.by_dimension, scratch.by_count
    row = tree.nodes.cells[node]
    size, capacity, min_size = row[SIZE], row[CAPACITY], tree.settings[MIN_SIZE]
    by_count[: size + 1] = -1
    for k in range(n_touched - 1, -1, -1):
        dimension = scratch.touched[k]
        count = by_dimension[dimension, COUNT]
        by_dimension[dimension, NEXT] = by_count[count]
        by_count[count] = dimension
    rare_first = tree.settings[RARE_FIRST]
    count, step = (min_size, 1) if rare_first else (size, -1)
    left = size
    while left > capacity and min_size <= count <= size:
        dimension = by_count[count]
        if explores(tree.settings, tree.weights):
            chosen = _any_candidate(tree, scratch, n_touched)
            if chosen >= 0:
                left -= _fill_partition(tree, scratch, node, scratch.touched[chosen])
                continue
        if dimension < 0:
            count += step
            continue
        by_count[count] = by_dimension[dimension, NEXT]
        now = by_dimension[dimension, COUNT]
        if now < count and not rare_first:  # its turn comes later
            by_dimension[dimension, NEXT] = by_count[now]
            by_count[now] = dimension
            continue
        if now < min_size:
            continue
        left -= _fill_partition(tree, scratch, node, dimension)
    return int(left)


@kernel
def _move_to_partitions(tree: Tree, scratch: Scratch, node: int, n_touched: int) -> None:
    row = tree.nodes.cells[node]
    size = row[SIZE]
    if tree.settings[HISTOGRAM_BUCKETS]:
        left = _fill_by_rank(tree, scratch, node, n_touched)
    else:
        left = _fill_by_count(tree, scratch, node, n_touched)
    if left < size:
        _close_gaps(row, tree.leaves, scratch.places, size)


@kernel
def _fill_partition(tree: Tree, scratch: Scratch, node: int, dimension: int) -> int:
    """Make a p-node with all clauses of the leaf that have a test on its dimension.

    Their number.
    """
    by_dimension, chain, words = scratch.by_dimension, scratch.chain, tree.leaves.cells
    nodes, leaves, slot_nodes = tree.nodes.cells, tree.leaves, tree.slot_nodes
    partition = take_row(tree.partitions)
    p_row = tree.partitions.cells[partition]
    p_row[P_DIMENSION], p_row[ABOVE] = dimension, node
    p_row[LOSS] = int(LOSS_UNIT * scratch.losses[dimension])
    start_window(tree.windows, tree.sampled, partition)
    top = new_node(tree, partition, -1, 0, LAST_KEY)
    p_row[TOP] = top
    add_partition(tree, node, partition)
    has_histogram = tree.settings[HISTOGRAM_BUCKETS] > 0
    n_moved = 0
    entry = by_dimension[dimension, HEAD]
    while entry >= 0:
        k = chain[entry, 0]
        entry = chain[entry, 1]
        record = scratch.places[k]
        if record < 0:
            continue
        append_record(nodes, leaves, slot_nodes, top, words, record)
        scratch.places[k] = -1
        n_moved += 1
        p, stop = record + TESTS, record + words[record + TOTAL]
        while p < stop:
            other = words[p] >> 2
            low, high = hull(words, p)
            if not by_dimension[other, USED] and low > 0:
                by_dimension[other, COUNT] -= 1
                if has_histogram:
                    scratch.losses[other] -= _share(tree, scratch, other, low, high)
            p += test_words(words, p)
    p_row[TOTAL_SIZE] = n_moved
    push_work(scratch, top)
    return n_moved


@kernel
def _close_gaps(row: np.ndarray, leaves: Spans, places: np.ndarray, n_records: int) -> None:
    """Move the clauses that stay to the beginning of their leaf."""
    words = leaves.cells
    place, row[SIZE] = row[LEAF], 0
    for k in range(n_records):
        record = places[k]
        if record >= 0:
            for j in range(words[record + TOTAL]):
                words[place + j] = words[record + j]
            place += words[place + TOTAL]
            row[SIZE] += 1
    shrink_leaf(row, leaves, place - row[LEAF])
