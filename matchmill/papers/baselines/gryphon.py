"""Gryphon: a tree of tests that an event walks along all paths at once.

Aguilera et al., "Matching Events in a Content-Based Subscription System", PODC 1999; a baseline of
BE-Tree, section 7.2.

A node tests; clauses hang below the outcomes they want, and below "don't care" if they do not ask.
How that is laid out stands in `gryphon_tree.py`. Both forms that BE-Tree compares are one here:

    equality    a branch is found by what the event has: flags for a few, binary search for many
    general     each predicate is an edge of its own, tested one by one against the event's code

Clauses are tested for their equalities first, so that with equalities alone this is the
specialised tree, and with other predicates these come where few clauses are left. Among equals,
the dimensions that fewest clauses ask for come first: an event that lacks one is done with a whole
branch. The opposite (`rare_first=False`) shares more nodes; on a million clauses with a Zipf
distribution of dimensions it took five times as long, with a uniform one the same.

Matching first walks the nodes, and collects leaves; these are checked when all are known, so that
their memory is asked for ahead. The tree is static, as BE-Tree has it; changes go by segments.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import Statistics
from matchmill.index.predicate_codes import code_of
from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import kernel
from matchmill.kernels.searches import first_at_least
from matchmill.papers.baselines.gryphon_tree import GryphonTree, build_tree
from matchmill.papers.common.array_index import ArrayIndex

__all__ = ["Gryphon"]

_AHEAD = 12  # leaves that are prefetched
_LEAF_LINES, _LINE = 3, 16  # how many cache lines of each; numbers in a line
_SEARCH_FACTOR = 8  # a binary search takes as long as looking at so many flags


class _Scratch(NamedTuple):
    """Of one call; codes are 0 and flags of what an event may have are unset between two events."""

    codes: np.ndarray  # int32, by rank
    flags: np.ndarray  # bool, by branch key
    event_keys: np.ndarray  # int64: the branch keys of this event
    hits: np.ndarray  # int64: branches of a node
    stack: np.ndarray  # int64: nodes to come
    leaves: np.ndarray  # int64: leaves to be checked


def _new_scratch(tree: GryphonTree) -> _Scratch:
    n_dimensions = len(tree.ranks)
    always_from = len(tree.edge_keys) + 2 * n_dimensions
    flags = np.zeros(always_from + n_dimensions, np.bool_)
    flags[always_from:] = True  # absence is accepted, so these are tested with every event
    return _Scratch(
        np.zeros(n_dimensions, np.int32),
        flags,
        np.empty(2 * n_dimensions, np.int64),
        np.empty(int(np.diff(tree.branch_offsets).max()), np.int64),
        np.empty(len(tree.branch_offsets) - 1, np.int64),
        np.empty(len(tree.clause_ids), np.int64),
    )


class Gryphon(ArrayIndex[GryphonTree]):
    """A parallel search tree."""

    name: ClassVar[str] = "gryphon"
    array_type: ClassVar[type[Any]] = GryphonTree

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        rare_first: bool = True,
        **options: Any,
    ) -> Gryphon:
        """Build the index from a table."""
        started = time.perf_counter()
        tree = build_tree(table, rare_first=rare_first)
        return cls(tree, time.perf_counter() - started)

    def _new_scratch(self) -> tuple[Any, ...]:
        return (_new_scratch(self._arrays),)

    def _kernel(self) -> Callable[..., tuple[int, int]]:
        return _match_events


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _walk(
    tree: GryphonTree,
    scratch: _Scratch,
    event_keys: np.ndarray,
    out: np.ndarray,
    n_found: int,
) -> tuple[int, int]:
    """Append the clauses that end at nodes on the event's way, and collect the leaves.

    Returns (matches, leaves).
    """
    branch_offsets, branch_keys = tree.branch_offsets, tree.branch_keys
    edge_offsets = tree.edge_offsets
    interval_offsets, lows, highs = tree.interval_offsets, tree.lows, tree.highs
    targets = tree.targets
    codes, flags, hits = scratch.codes, scratch.flags, scratch.hits
    stack, out_leaves = scratch.stack, scratch.leaves
    n_nodes = len(branch_offsets) - 1
    n_cells = len(tree.edge_keys) + len(tree.ranks)
    always_from = n_cells + len(tree.ranks)
    n_leaves = 0
    stack[0] = 0
    n_stack = 1
    while n_stack > 0:
        n_stack -= 1
        node = stack[n_stack]
        for k in range(tree.row_offsets[node], tree.row_offsets[node + 1]):
            if n_found < len(out):
                out[n_found] = tree.clause_ids[tree.rows[k]]
            n_found += 1
        first, last = branch_offsets[node], branch_offsets[node + 1]
        n_hits = 0
        if last - first > _SEARCH_FACTOR * (len(event_keys) + 1):
            for key in event_keys:
                b = first_at_least(branch_keys, key, first, last)
                if b < last and branch_keys[b] == key:
                    hits[n_hits] = b
                    n_hits += 1
            first = first_at_least(branch_keys, always_from, first, last)
        for b in range(first, last):
            if flags[branch_keys[b]]:
                hits[n_hits] = b
                n_hits += 1
        for h in range(n_hits):
            b = hits[h]
            key = branch_keys[b]
            code = 0
            if key >= always_from:
                code = codes[key - always_from]
            elif key >= n_cells:
                code = codes[key - n_cells]
            for edge in range(edge_offsets[b], edge_offsets[b + 1]):
                holds = key < n_cells
                for k in range(interval_offsets[edge], interval_offsets[edge + 1]):
                    if code <= highs[k]:  # intervals ascend: no other can have it
                        holds = code >= lows[k]
                        break
                if holds:
                    target = targets[edge]
                    if target < n_nodes:
                        stack[n_stack] = target
                        n_stack += 1
                    else:
                        out_leaves[n_leaves] = target - n_nodes
                        n_leaves += 1
    return n_found, n_leaves


@kernel
def _check_leaves(
    leaves: np.ndarray,
    some: np.ndarray,
    clause_ids: np.ndarray,
    codes: np.ndarray,
    out: np.ndarray,
    n_found: int,
) -> int:
    """Append the clauses of those leaves that have no test left that fails."""
    for i in range(len(some)):
        if i + _AHEAD < len(some):
            for line in range(_LEAF_LINES):  # what lies behind the last leaf does no harm
                prefetch(leaves, some[i + _AHEAD] + _LINE * line)
        at = some[i]
        row, n_tests = leaves[at], leaves[at + 1]
        at += 2
        holds = True
        for _ in range(n_tests):
            code = codes[leaves[at]]
            stop = at + 2 + 2 * leaves[at + 1]
            holds = False
            for k in range(at + 2, stop, 2):
                if code <= leaves[k + 1]:
                    holds = code >= leaves[k]
                    break
            if not holds:
                break
            at = stop
        if holds:
            if n_found < len(out):
                out[n_found] = clause_ids[row]
            n_found += 1
    return n_found


@kernel
def _match_events(
    tree: GryphonTree,
    events: EventBatch,
    start: int,
    scratch: _Scratch,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int]:
    """Return (the first event for which `out` had no room, clauses looked at before it)."""
    ranks, cell_starts = tree.ranks, tree.cell_starts
    edge_key_offsets, edge_keys = tree.edge_key_offsets, tree.edge_keys
    n_dimensions = len(ranks)
    n_cells = len(edge_keys) + n_dimensions
    codes, flags, event_keys = scratch.codes, scratch.flags, scratch.event_keys
    n_events = len(events.offsets) - 1
    n_out = out_offsets[start]
    n_candidates = 0
    for e in range(start, n_events):
        n_keys = 0
        for i in range(events.offsets[e], events.offsets[e + 1]):
            d = events.dimensions[i]
            if d < n_dimensions:
                first, last = edge_key_offsets[d], edge_key_offsets[d + 1]
                code = code_of(edge_keys, first, last, events.keys[i])
                if code > 0:  # as if absent otherwise
                    codes[ranks[d]] = code
                    event_keys[n_keys] = cell_starts[d] + code
                    event_keys[n_keys + 1] = n_cells + ranks[d]
                    n_keys += 2
        for i in range(n_keys):
            flags[event_keys[i]] = True
        n_found, n_leaves = _walk(tree, scratch, event_keys[:n_keys], out, n_out)
        n_here = n_found - n_out + n_leaves
        n_found = _check_leaves(
            tree.leaves, scratch.leaves[:n_leaves], tree.clause_ids, codes, out, n_found
        )
        for i in range(n_keys):
            flags[event_keys[i]] = False
            if event_keys[i] >= n_cells:
                codes[event_keys[i] - n_cells] = 0
        if n_found > len(out):
            return e, n_candidates
        n_out = n_found
        n_candidates += n_here
        out_offsets[e + 1] = n_out
    return n_events, n_candidates
