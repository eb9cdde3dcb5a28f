"""The propagation algorithm: a bit per predicate, and clauses below one of theirs.

Fabret et al., "Filtering Algorithms and Implementation for Very Fast Publish/Subscribe Systems",
SIGMOD 2001; a baseline of BE-Tree, section 7.2, and PS-Tree.

    holds, fails    from a key to the predicates it makes true, or, of those that accept absence
                    and so are true to begin with, false: `key_postings.py`
    initial, bits   one bit per predicate: is it true of an event without pairs, of this event
    clusters        from a true predicate to the clauses it gives access to, column by column:
                    `propagation_clusters.py`

An event first fills the bits, one pair after the other, and notes the true predicates that give
access. Then it walks their clusters: a clause matches if the bits of all its columns are set. The
blocks of clusters to come are asked for ahead, as in the paper's variant with prefetching. The bits
are brought back one by one, or all at once if many have changed.

As in BE-Tree's comparison the access predicate is one predicate, the most selective of a clause; by
statistics if there are any, else by what subscribers ask for. In the papers it is an equality, and
clauses without one are looked at with every event: `equality_only=True`. Here they are filed under
another predicate if they can. (Of a million clauses with 30% equalities 9% have none; an event then
took 75 µs instead of 250.)

The paper also moves clauses between clusters while events come. Here an index is built once, as
BE-Tree has it, and changes go by segments; what is built again is clustered by the statistics of
that day.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import Statistics
from matchmill.index.predicate_codes import build_dictionary
from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import kernel, uint64
from matchmill.papers.baselines.key_postings import (
    MAX_LEVELS,
    KeyPostings,
    build_key_postings,
    find_nodes,
)
from matchmill.papers.baselines.propagation_clusters import (
    accepts_absence,
    build_clusters,
    key_intervals,
)
from matchmill.papers.common.array_index import ArrayIndex
from matchmill.papers.common.clause_intervals import complement

__all__ = ["Propagation"]

_AHEAD = 8  # blocks that are prefetched
_LINES, _LINE = 8, 16  # how many cache lines of each; numbers in a line
_COPY_FACTOR = 8  # copying a word takes so many times less than finding it by a predicate


class PropagationArrays(NamedTuple):
    clause_ids: np.ndarray  # int64
    initial: np.ndarray  # uint64
    holds: KeyPostings
    fails: KeyPostings
    block_offsets: np.ndarray  # int64
    blocks: np.ndarray  # int32


def build_propagation(
    table: ConjunctionTable, statistics: Statistics | None, equality_only: bool
) -> PropagationArrays:
    dictionary = build_dictionary(table)
    clusters = build_clusters(table, dictionary, statistics, equality_only=equality_only)
    intervals = key_intervals(dictionary, clusters.numbers)
    from_absence = accepts_absence(dictionary)
    is_against = np.repeat(from_absence, np.diff(dictionary.interval_offsets))
    starts_true = np.zeros(-dictionary.n_distinct // 64 * -64, bool)
    starts_true[clusters.numbers[from_absence]] = True
    return PropagationArrays(
        np.ascontiguousarray(table.clause_ids),
        np.packbits(starts_true, bitorder="little").view(np.uint64),
        build_key_postings(intervals.take(~is_against)),
        build_key_postings(complement(intervals.take(is_against))),
        clusters.block_offsets,
        clusters.blocks,
    )


class Propagation(ArrayIndex[PropagationArrays]):
    """Clauses in clusters below an access predicate, and a predicate bit vector."""

    name: ClassVar[str] = "propagation"
    array_type: ClassVar[type[Any]] = PropagationArrays

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        equality_only: bool = False,
        **options: Any,
    ) -> Propagation:
        """Build the index from a table."""
        started = time.perf_counter()
        arrays = build_propagation(table, statistics, equality_only)
        return cls(arrays, time.perf_counter() - started)

    def _new_scratch(self) -> tuple[Any, ...]:
        bits = self._arrays.initial.copy()
        changed = np.empty(64 * len(bits), np.uint32)
        return bits, changed

    def _kernel(self) -> Callable[..., tuple[int, int]]:
        return _match_events


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _flip_bits(
    postings: KeyPostings,
    events: EventBatch,
    e: int,
    bits: np.ndarray,
    changed: np.ndarray,
    n_changed: int,
) -> int:
    """Turn the bit of each predicate that an event concerns, and append it to `changed`."""
    run_offsets, rows = postings.run_offsets, postings.rows
    link_offsets, links = postings.link_offsets, postings.links
    nodes = np.empty(MAX_LEVELS, np.int64)
    for i in range(events.offsets[e], events.offsets[e + 1]):
        for j in range(find_nodes(postings, events.dimensions[i], events.keys[i], nodes)):
            node = nodes[j]
            link, last_link = link_offsets[node], link_offsets[node + 1]
            run = node
            while True:
                for k in range(run_offsets[run], run_offsets[run + 1]):
                    q = rows[k]
                    bits[q >> 6] ^= uint64(1) << uint64(q & 63)
                    changed[n_changed] = q
                    n_changed += 1
                if link == last_link:
                    break
                run = links[link]
                link += 1
    return n_changed


@kernel
def _walk_block(
    blocks: np.ndarray,
    start: int,
    stop: int,
    bits: np.ndarray,
    clause_ids: np.ndarray,
    out: np.ndarray,
    n_found: int,
) -> tuple[int, int]:
    """Append the clauses of a block whose bits are all set; returns (matches, clauses)."""
    n_looked_at = 0
    while start < stop:
        size, n = blocks[start], blocks[start + 1]
        start += 2
        for i in range(n):
            at = start + i
            stop_at = at + size * n
            while at < stop_at:
                q = uint64(blocks[at])
                if (bits[q >> uint64(6)] >> (q & uint64(63))) & uint64(1) == uint64(0):
                    break
                at += n
            if at == stop_at:
                if n_found < len(out):
                    out[n_found] = clause_ids[blocks[at]]
                n_found += 1
        n_looked_at += n
        start += n * (size + 1)
    return n_found, n_looked_at


@kernel
def _match_events(
    index: PropagationArrays,
    events: EventBatch,
    start: int,
    bits: np.ndarray,
    changed: np.ndarray,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int]:
    """Return (the first event for which `out` had no room, clauses looked at before it)."""
    clause_ids, initial = index.clause_ids, index.initial
    block_offsets, blocks = index.block_offsets, index.blocks
    n_access = len(block_offsets) - 2
    hits = np.empty(n_access + _AHEAD + 1, np.int64)
    n_events = len(events.offsets) - 1
    n_out = out_offsets[start]
    n_candidates = 0
    for e in range(start, n_events):
        n_true = _flip_bits(index.holds, events, e, bits, changed, 0)
        n_changed = _flip_bits(index.fails, events, e, bits, changed, n_true)
        n_hits = 0
        for i in range(n_true):
            if changed[i] < n_access:
                hits[n_hits] = changed[i]
                n_hits += 1
        hits[n_hits] = n_access
        n_hits += 1
        for i in range(n_hits, n_hits + _AHEAD):
            hits[i] = n_access
        n_found = n_out
        n_here = 0
        for i in range(n_hits):
            a = hits[i + _AHEAD]
            stop = min(block_offsets[a + 1], block_offsets[a] + _LINES * _LINE)
            for line in range(block_offsets[a], stop, _LINE):
                prefetch(blocks, line)
            a = hits[i]
            n_found, n_more = _walk_block(
                blocks, block_offsets[a], block_offsets[a + 1], bits, clause_ids, out, n_found
            )
            n_here += n_more
        if n_changed > _COPY_FACTOR * len(bits):
            for i in range(len(bits)):
                bits[i] = initial[i]
        else:
            for i in range(n_changed):
                bits[changed[i] >> 6] = initial[changed[i] >> 6]
        if n_found > len(out):
            return e, n_candidates
        n_out = n_found
        n_candidates += n_here
        out_offsets[e + 1] = n_out
    return n_events, n_candidates
