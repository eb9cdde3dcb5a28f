"""The baseline: look at every clause for every event.

    bounds     all bounds of all intervals, ascending; bound number r has code 2 r + 1, what lies
               between it and the bound before has code 2 r: keys become 32-bit codes
    codes      one int32 per dimension, the event's code or that of absence
    simple     clauses whose predicates are single intervals: dimension, low, high
    general    all other clauses, with interval lists
    lists      clauses with multi-valued dimensions, in the same form

A clause is left at its first predicate that fails. Nothing is sorted, shared or skipped: every
other index is compared with this. It takes as long as reading the clauses from memory, so they are
kept small. (With a row of four numbers per predicate it took half as long again.)
"""

from __future__ import annotations

import time
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import (
    ABSENT_KEY,
    ConjunctionTable,
    chain_keys,
    clause_holds,
    divide,
    list_clause_holds,
    take_clauses,
)
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.index.match_buffer import collect_matches
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import kernel
from matchmill.kernels.searches import first_at_least

__all__ = ["Scan"]


class ScanArrays(NamedTuple):
    """All arrays of the index."""

    bounds: np.ndarray  # int64
    simple: ConjunctionTable  # lows and highs as int32 codes, no interval_offsets
    general: ConjunctionTable  # lows and highs as int32 codes
    lists: ConjunctionTable  # lows and highs as int32 codes


def build_scan(table: ConjunctionTable) -> ScanArrays:
    """Turn the keys of a table into codes, and divide its clauses."""
    bounds = np.unique(np.concatenate((table.lows, table.highs)))
    table, lists = divide(table)
    n_intervals = np.diff(table.interval_offsets)
    n_several = offsets_of(n_intervals != 1)
    has_several = n_several[table.clause_offsets[1:]] > n_several[table.clause_offsets[:-1]]
    simple = _taken(table, ~has_several) if has_several.any() else table
    simple = simple._replace(interval_offsets=np.empty(0, np.int64))
    general = _taken(table, has_several)
    return ScanArrays(bounds, *(_coded(part, bounds) for part in (simple, general, lists)))


def _taken(table: ConjunctionTable, chosen: np.ndarray) -> ConjunctionTable:
    return take_clauses(table, np.flatnonzero(chosen))


def _coded(table: ConjunctionTable, bounds: np.ndarray) -> ConjunctionTable:
    lows = (2 * np.searchsorted(bounds, table.lows) + 1).astype(np.int32)
    highs = (2 * np.searchsorted(bounds, table.highs) + 1).astype(np.int32)
    return table._replace(lows=lows, highs=highs)


class Scan:
    """A compiled linear scan."""

    name: ClassVar[str] = "scan"
    takes_lists: ClassVar[bool] = True

    def __init__(self, arrays: ScanArrays, build_seconds: float = 0.0) -> None:
        self._arrays = arrays
        parts = arrays[1:]
        self._n_dimensions = max(int(p.dimensions.max(initial=-1)) + 1 for p in parts)
        self._n_clauses = sum(len(p.clause_ids) for p in parts)
        self._build_seconds = build_seconds
        self._candidates = 0

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> Scan:
        """Build the index."""
        started = time.perf_counter()
        arrays = build_scan(table)
        return cls(arrays, time.perf_counter() - started)

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Return the clauses that hold for each event."""
        absent = _code(self._arrays.bounds, ABSENT_KEY)
        codes = np.full(self._n_dimensions, absent, np.int32)

        def match_from(start: int, offsets: np.ndarray, out: np.ndarray) -> int:
            return _scan_events(self._arrays, events, start, codes, chains, absent, offsets, out)

        n_pairs = int(np.diff(events.offsets).max(initial=0))
        n_chained = self._n_dimensions if self._arrays.lists.n_clauses else 0
        chains = _Chains(
            np.full(n_chained, -1, np.int64),
            np.empty(n_pairs, np.int64),
            np.empty(n_pairs, np.int32),
        )
        self._candidates += events.n_events * self._n_clauses
        return collect_matches(events.n_events, self._n_clauses, match_from)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays, to be saved and mapped."""
        saved = {"bounds": self._arrays.bounds}
        for part, table in zip(ScanArrays._fields[1:], self._arrays[1:], strict=True):
            saved |= {f"{part}_{name}": a for name, a in table._asdict().items()}
        return saved

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Scan:
        """Return an index that was saved."""
        names = ConjunctionTable._fields
        parts = (
            ConjunctionTable(*(arrays[f"{part}_{name}"] for name in names))
            for part in ScanArrays._fields[1:]
        )
        return cls(ScanArrays(arrays["bounds"], *parts))

    def stats(self) -> IndexStats:
        """Return figures of the index."""
        n_bytes = sum(a.nbytes for a in self.arrays().values())
        return IndexStats(self._n_clauses, n_bytes, self._build_seconds, self._candidates)


class _Chains(NamedTuple):
    """The pairs of one event by dimension, for clauses with multi-valued dimensions."""

    last: np.ndarray  # int64 per dimension; -1 at rest
    earlier: np.ndarray  # int64 per pair
    codes: np.ndarray  # int32 per pair


@kernel
def _code(bounds: np.ndarray, key: int) -> int:
    """Return the code of a key among the bounds."""
    at = first_at_least(bounds, key, 0, len(bounds))
    is_bound = at < len(bounds) and bounds[at] == key
    return 2 * at + 1 if is_bound else 2 * at


@kernel
def _simple_holds(clauses: ConjunctionTable, i: int, codes: np.ndarray) -> bool:
    for p in range(clauses.clause_offsets[i], clauses.clause_offsets[i + 1]):
        code = codes[clauses.dimensions[p]]
        if code < clauses.lows[p] or code > clauses.highs[p]:
            return False
    return True


@kernel
def _scan_lists(
    scan: ScanArrays,
    events: EventBatch,
    e: int,
    chains: _Chains,
    absent: int,
    n_found: int,
    out: np.ndarray,
) -> int:
    """Find the clauses with multi-valued dimensions; return how many ids there are with them."""
    start, stop = events.offsets[e], events.offsets[e + 1]
    chain_keys(events.dimensions, start, stop, chains.last, chains.earlier)
    for k in range(start, stop):
        chains.codes[k - start] = _code(scan.bounds, events.keys[k])
    for i in range(len(scan.lists.clause_ids)):
        if list_clause_holds(scan.lists, i, chains.codes, 0, chains.last, chains.earlier, absent):
            if n_found < len(out):
                out[n_found] = scan.lists.clause_ids[i]
            n_found += 1
    chains.last[:] = -1
    return n_found


@kernel
def _scan_events(
    scan: ScanArrays,
    events: EventBatch,
    start: int,
    codes: np.ndarray,
    chains: _Chains,
    absent: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    """Match events from `start` on; return the first one for which `out` had no room."""
    n_out = out_offsets[start]
    for e in range(start, len(events.offsets) - 1):
        for k in range(events.offsets[e], events.offsets[e + 1]):
            if events.dimensions[k] < len(codes):
                codes[events.dimensions[k]] = _code(scan.bounds, events.keys[k])
        n_found = n_out
        for i in range(len(scan.simple.clause_ids)):
            if _simple_holds(scan.simple, i, codes):
                if n_found < len(out):
                    out[n_found] = scan.simple.clause_ids[i]
                n_found += 1
        for i in range(len(scan.general.clause_ids)):
            if clause_holds(scan.general, i, codes):
                if n_found < len(out):
                    out[n_found] = scan.general.clause_ids[i]
                n_found += 1
        if len(scan.lists.clause_ids):
            n_found = _scan_lists(scan, events, e, chains, absent, n_found, out)
        for k in range(events.offsets[e], events.offsets[e + 1]):
            if events.dimensions[k] < len(codes):
                codes[events.dimensions[k]] = absent
        if n_found > len(out):
            return e
        n_out = n_found
        out_offsets[e + 1] = n_out
    return len(events.offsets) - 1
