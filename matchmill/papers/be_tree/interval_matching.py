"""Events that are expressions (section 3): for each dimension the intervals of keys they allow.

    spans     for each dimension where the event's intervals on it begin and end; 0 … 0 for none

A bucket is looked at if it overlaps what the event allows, and a clause matches if each of its
tests does. A dimension that the event does not have allows key 0 alone.
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.event_batch import IntervalEvents
from matchmill.kernels.jit import int64, kernel
from matchmill.papers.be_tree.clause_records import (
    CHECKED,
    LIST,
    MASK,
    TESTS,
    TOTAL,
    hull,
    test_words,
    wide,
)
from matchmill.papers.be_tree.directories import find_partition
from matchmill.papers.be_tree.parameters import BY_OPERATIONS
from matchmill.papers.be_tree.tree import (
    DIMENSION,
    DIRECTORY,
    HIGH,
    LEAF,
    LEFT,
    LOW,
    ROOT,
    WORDS,
    Tree,
    note_visit,
)

__all__ = ["match_wide_events", "meets", "passes"]


@kernel
def meets(events: IntervalEvents, span: np.ndarray, low: int, high: int) -> bool:
    """Whether the event allows a key among low … high."""
    if span[0] == span[1]:
        return low <= 0
    for k in range(span[0], span[1]):
        if events.lows[k] <= high and low <= events.highs[k]:
            return True
    return False


@kernel
def passes(events: IntervalEvents, span: np.ndarray, words: np.ndarray, p: int) -> bool:
    """Whether the event allows a key that a test lets pass."""
    kind = words[p] & 3
    if kind == LIST:
        for q in range(p + 2, p + 2 + 4 * words[p + 1], 4):
            if meets(events, span, wide(words, q), wide(words, q + 2)):
                return True
        return False
    low, high = hull(words, p)
    if kind != MASK:
        return meets(events, span, low, high)
    for bit in range(high - low + 1):
        if words[p + 2 + (bit >> 5)] >> (bit & 31) & 1:
            if meets(events, span, low + bit, low + bit):
                return True
    return False


@kernel
def match_wide_events(
    tree: Tree,
    events: IntervalEvents,
    start: int,
    spans: np.ndarray,
    queue: np.ndarray,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int]:
    """Match as `match_events` does."""
    nodes, words, directories = tree.nodes.cells, tree.leaves.cells, tree.directories.cells
    counts_all = tree.settings[BY_OPERATIONS] != 0
    n_candidates = 0
    n_out = out_offsets[start]
    for e in range(start, len(events.offsets) - 1):
        first, last = events.offsets[e], events.offsets[e + 1]
        for k in range(first, last):
            if events.dimensions[k] < len(spans):
                spans[events.dimensions[k], 0] = events.interval_offsets[k]
                spans[events.dimensions[k], 1] = events.interval_offsets[k + 1]
        n_found = n_out
        queue[0] = ROOT
        n_queue, at = 1, 0
        while at < n_queue:
            node = queue[at]
            row = nodes[node]
            at += 1
            if counts_all:
                note_visit(tree, node)
            if row[DIMENSION] >= 0 and not meets(
                events, spans[row[DIMENSION]], max(row[LOW], int64(1)), row[HIGH]
            ):
                continue
            for side in range(2):
                if row[LEFT + side] >= 0:
                    queue[n_queue] = row[LEFT + side]
                    n_queue += 1
            if row[DIRECTORY] >= 0:
                for k in range(first, last):
                    top = find_partition(directories, row[DIRECTORY], events.dimensions[k])
                    if top >= 0:
                        queue[n_queue] = top
                        n_queue += 1
            record = row[LEAF]
            end = record + row[WORDS]
            while record < end:
                n_candidates += 1
                p, stop = record + TESTS, record + words[record + CHECKED]
                n_tests = 1
                while p < stop and passes(events, spans[words[p] >> 2], words, p):
                    p += test_words(words, p)
                    n_tests += 1
                if p >= stop:
                    if n_found < len(out):
                        out[n_found] = words[record]
                    n_found += 1
                elif counts_all:
                    tree.discarded[node] += n_tests
                record += words[record + TOTAL]
        for k in range(first, last):
            if events.dimensions[k] < len(spans):
                spans[events.dimensions[k]] = 0
        if n_found > len(out):
            return e, n_candidates
        n_out = n_found
        out_offsets[e + 1] = n_out
    return len(events.offsets) - 1, n_candidates
