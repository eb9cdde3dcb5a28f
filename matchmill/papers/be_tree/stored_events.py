"""Symmetric publish/subscribe (section 3): events are stored, and subscriptions come in.

The tree holds events that are expressions. A subscription, an expression as well, finds the stored
events that satisfy it: for each of its predicates the event has one on the same dimension that some
key satisfies together with it. An event without a predicate on a dimension allows key 0 (absent)
alone there, as everywhere. With `both_ways` the event's predicates must hold for the subscription
in turn: the producer filters its consumers.

    subscription {price: 1 … 9}     finds {price: 5}, and {price: 8 … 20, region: 3}
    both ways                       finds {price: 5}; the other one asks for a region

A bucket that the subscription's predicate on its dimension does not overlap is left out, and
nothing else: an event that the way down has led elsewhere may satisfy the subscription too. So more
of the tree is looked at than by `match_wide_events`. Tests that are subsumed are made here, since
the subscription's predicates are what is counted.
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.event_batch import IntervalEvents
from matchmill.kernels.jit import int64, kernel
from matchmill.papers.be_tree.clause_records import TESTS, TOTAL, test_words
from matchmill.papers.be_tree.interval_matching import meets, passes
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
)

__all__ = ["match_stored_events"]


@kernel
def match_stored_events(
    both_ways: bool,
    tree: Tree,
    subscriptions: IntervalEvents,
    start: int,
    spans: np.ndarray,
    queue: np.ndarray,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int]:
    """Match as `match_events` does, the other way round."""
    nodes, words, directories = tree.nodes.cells, tree.leaves.cells, tree.directories.cells
    n_candidates = 0
    n_out = out_offsets[start]
    for e in range(start, len(subscriptions.offsets) - 1):
        first, last = subscriptions.offsets[e], subscriptions.offsets[e + 1]
        n_needed = 0
        is_possible = True
        for k in range(first, last):
            a, b = subscriptions.interval_offsets[k], subscriptions.interval_offsets[k + 1]
            is_needed = a == b or subscriptions.lows[a] > 0
            n_needed += is_needed
            if subscriptions.dimensions[k] < len(spans):
                spans[subscriptions.dimensions[k], 0] = a
                spans[subscriptions.dimensions[k], 1] = b
                spans[subscriptions.dimensions[k], 2] = 1 + is_needed
            elif is_needed:
                is_possible = False
        n_found = n_out
        queue[0] = ROOT
        n_queue, at = int64(is_possible), 0
        while at < n_queue:
            row = nodes[queue[at]]
            at += 1
            if row[DIMENSION] >= 0:
                span = spans[row[DIMENSION]]
                if span[2] and not meets(subscriptions, span, max(row[LOW], int64(1)), row[HIGH]):
                    continue
            for side in range(2):
                if row[LEFT + side] >= 0:
                    queue[n_queue] = row[LEFT + side]
                    n_queue += 1
            if row[DIRECTORY] >= 0:
                entry = row[DIRECTORY] + 1
                for _ in range(1 << directories[entry - 1]):
                    if directories[entry]:
                        queue[n_queue] = directories[entry + 1]
                        n_queue += 1
                    entry += 2
            record = row[LEAF]
            end = record + row[WORDS]
            while record < end:
                n_candidates += 1
                if _satisfies(subscriptions, spans, words, record, n_needed, both_ways):
                    if n_found < len(out):
                        out[n_found] = words[record]
                    n_found += 1
                record += words[record + TOTAL]
        for k in range(first, last):
            if subscriptions.dimensions[k] < len(spans):
                spans[subscriptions.dimensions[k]] = 0
        if n_found > len(out):
            return e, n_candidates
        n_out = n_found
        out_offsets[e + 1] = n_out
    return len(subscriptions.offsets) - 1, n_candidates


@kernel
def _satisfies(
    subscriptions: IntervalEvents,
    spans: np.ndarray,
    words: np.ndarray,
    record: int,
    n_needed: int,
    both_ways: bool,
) -> bool:
    p, stop = record + TESTS, record + words[record + TOTAL]
    n_met = 0
    while p < stop:
        span = spans[words[p] >> 2]
        if span[2]:
            if not passes(subscriptions, span, words, p):
                return False
            n_met += span[2] - 1
        elif both_ways and not passes(subscriptions, span, words, p):
            return False
        p += test_words(words, p)
    return bool(n_met == n_needed)
