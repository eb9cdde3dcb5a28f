"""Events against the tree: Algorithms 1 and 2, with a queue instead of recursion.

    keys     the event's key on each dimension, 0 for none
    queue    nodes to be looked at, from the root on

A node is fetched from memory when it enters the queue, and its leaf and directory some places
before its turn: most of the time of a match would be waiting otherwise (`ahead`; the paper says
nothing of it). A bucket that does not enclose the event's key is left when its turn comes. Where a
directory has few places they are all looked at, else the event's dimensions are looked up in it,
whatever is less.
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import int64, kernel
from matchmill.papers.be_tree.clause_records import CHECKED, LIST, SMALL, TESTS, TOTAL
from matchmill.papers.be_tree.directories import find_partition
from matchmill.papers.be_tree.parameters import BY_OPERATIONS
from matchmill.papers.be_tree.ranking import SAMPLE_EVERY
from matchmill.papers.be_tree.tree import (
    DIMENSION,
    DIRECTORY,
    HIGH,
    LEAF,
    LEFT,
    LOW,
    ROOT,
    SAMPLED,
    WORDS,
    Tree,
    note_visit,
)

__all__ = ["match_events"]

_AHEAD = 3
_FETCHED = 96  # words of a leaf; the machine itself sees where further reading goes
_WORD = (1 << 32) - 1


@kernel
def match_events(
    ahead: bool,
    tree: Tree,
    events: EventBatch,
    start: int,
    keys: np.ndarray,
    queue: np.ndarray,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int]:
    """Match events from `start` on, writing the slots of clauses.

    Returns the first event for which `out` had no room, or their number, and clauses looked at.
    """
    nodes, words, directories = tree.nodes.cells, tree.leaves.cells, tree.directories.cells
    counts_all = tree.settings[BY_OPERATIONS] != 0
    n_candidates = 0
    n_out = out_offsets[start]
    for e in range(start, len(events.offsets) - 1):
        first, last = events.offsets[e], events.offsets[e + 1]
        for k in range(first, last):
            if events.dimensions[k] < len(keys):
                keys[events.dimensions[k]] = events.keys[k]
        n_few = last - first
        is_sampled = counts_all or e % SAMPLE_EVERY == 0
        n_found = n_out
        queue[0] = ROOT
        n_queue, at = 1, 0
        while at < n_queue:
            if ahead and at + _AHEAD < n_queue:
                later = queue[at + _AHEAD]
                line = nodes[later, LEAF]
                stop = line + min(nodes[later, WORDS], _FETCHED)
                while line < stop:
                    prefetch(words, line)
                    line += 16
                if nodes[later, DIRECTORY] >= 0:
                    prefetch(directories, nodes[later, DIRECTORY])
            node = queue[at]
            at += 1
            dimension = nodes[node, DIMENSION]
            if dimension >= 0:
                if counts_all:
                    note_visit(tree, node)
                key = keys[dimension]
                if key < nodes[node, LOW] or key > nodes[node, HIGH]:
                    continue
                left, right = nodes[node, LEFT], nodes[node, LEFT + 1]
                if left >= 0 or right >= 0:
                    middle = nodes[node, LOW] + (nodes[node, HIGH] - nodes[node, LOW]) // 2
                    child = left if key <= middle else right
                    if child >= 0:
                        if ahead:
                            prefetch(nodes, child)
                        queue[n_queue] = child
                        n_queue += 1
            directory = nodes[node, DIRECTORY]
            if directory >= 0:
                if 1 << directories[directory] <= n_few:
                    for p in range(directory + 1, directory + 1 + (2 << directories[directory]), 2):
                        if directories[p] and keys[directories[p] - 1]:
                            if ahead:
                                prefetch(nodes, directories[p + 1])
                            queue[n_queue] = directories[p + 1]
                            n_queue += 1
                else:
                    for k in range(first, last):
                        if events.keys[k]:
                            top = find_partition(directories, directory, events.dimensions[k])
                            if top >= 0:
                                if ahead:
                                    prefetch(nodes, top)
                                queue[n_queue] = top
                                n_queue += 1
            record = nodes[node, LEAF]
            end = record + nodes[node, WORDS]
            n_discarded = 0
            while record < end:
                n_candidates += 1
                p, stop = record + TESTS, record + words[record + CHECKED]
                n_tests = 0
                while p < stop:
                    head = words[p]
                    key = keys[head >> 2]
                    kind = head & 3
                    n_tests += 1
                    if kind == SMALL:
                        bounds = int64(words[p + 1])
                        if key < bounds & 0xFFFF or key > bounds >> 16:
                            break
                        p += 2
                    elif kind == LIST:
                        n = int64(words[p + 1])
                        holds = False
                        for q in range(p + 2, p + 2 + 4 * n, 4):
                            low = (int64(words[q + 1]) << 32) | (int64(words[q]) & _WORD)
                            high = (int64(words[q + 3]) << 32) | (int64(words[q + 2]) & _WORD)
                            if low <= key <= high:
                                holds = True
                                break
                        if not holds:
                            break
                        p += 2 + 4 * n
                    else:
                        k = key - words[p + 1]
                        if k < 0 or k > 63:
                            break
                        if not words[p + 2 + (k >> 5)] >> (k & 31) & 1:
                            break
                        p += 4
                if p >= stop:
                    if n_found < len(out):
                        out[n_found] = words[record]
                    n_found += 1
                else:
                    n_discarded += n_tests
                record += words[record + TOTAL]
            if is_sampled and n_discarded:
                tree.discarded[node] += n_discarded
        for k in range(first, last):
            if events.dimensions[k] < len(keys):
                keys[events.dimensions[k]] = 0
        if n_found > len(out):
            return e, n_candidates
        if is_sampled:
            tree.sampled[SAMPLED] += 1
        n_out = n_found
        out_offsets[e + 1] = n_out
    return len(events.offsets) - 1, n_candidates
