"""What a workload really is: how much matches, how long things are, which operators occur.

Asked for and realised are two things, so generators are held to these figures by their tests, and
reports print them beside every time. The truth of clauses is found by comparing every interval with
every event, in plain NumPy: slow, obvious, and with no index involved.

Operators are recognised by the form of a set of values, as texts are written from it: `a <= 3` and
`a between 1 and 3` are one and the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from matchmill.kernels.csr import take_ranges
from matchmill.kernels.hashing import mix64
from matchmill.lab.workloads.flat import FlatEvents, FlatSubscriptions, Workload

__all__ = ["WorkloadMeasures", "clause_truths", "measure"]


class WorkloadMeasures(NamedTuple):
    """Realised figures. A subscription's size is the number of predicates of one of its clauses."""

    n_subscriptions: int
    n_events: int
    matching_probability: float  # of an event and a subscription, over the sample
    mean_subscription_size: float
    min_subscription_size: int
    max_subscription_size: int
    mean_event_size: float
    min_event_size: int
    max_event_size: int
    share_equal: float  # shares of all predicates; together 1
    share_not_equal: float
    share_range: float
    share_in: float
    share_not_in: float
    share_null: float  # accepts an absent attribute, alone or besides values
    share_other: float
    n_attributes_used: int  # by subscriptions
    n_distinct_predicates: int


def measure(
    workload: Workload,
    *,
    n_events: int = 256,
    n_subscriptions: int = 20_000,
    events: FlatEvents | None = None,
) -> WorkloadMeasures:
    """Return the figures of a workload, the matching probability on a sample of this size.

    `events` are others to measure with than the workload's own, such as its training events.
    """
    events = workload.events if events is None else events
    flat = workload.subscriptions
    total = int(flat.owners[-1]) + 1 if flat.n_clauses else 0
    mean_size, min_size, max_size = _mean_min_max(np.diff(flat.clause_offsets))
    mean_pairs, min_pairs, max_pairs = _mean_min_max(np.diff(events.offsets))
    return WorkloadMeasures(
        n_subscriptions=total,
        n_events=events.n_events,
        matching_probability=_matching_probability(flat, total, events, n_events, n_subscriptions),
        mean_subscription_size=mean_size,
        min_subscription_size=min_size,
        max_subscription_size=max_size,
        mean_event_size=mean_pairs,
        min_event_size=min_pairs,
        max_event_size=max_pairs,
        **_shares(workload),
        n_attributes_used=int(np.count_nonzero(np.bincount(flat.attributes))),
        n_distinct_predicates=_n_distinct_predicates(flat),
    )


def clause_truths(flat: FlatSubscriptions, events: FlatEvents) -> Iterator[np.ndarray]:
    """For one event after another: which clauses are true."""
    widest = max((int(a.max()) for a in (flat.attributes, events.attributes) if len(a)), default=0)
    code_of = np.zeros(widest + 1, np.int64)  # 0 is absent
    lowest, highest = (
        flat.lows[flat.interval_offsets[:-1]],
        flat.highs[flat.interval_offsets[1:] - 1],
    )
    for e in range(events.n_events):
        span = slice(events.offsets[e], events.offsets[e + 1])
        code_of[events.attributes[span]] = events.codes[span]
        # Most clauses fail by the ends of a predicate already: look at the others alone.
        codes = code_of[flat.attributes]
        beyond = (codes < lowest) | (codes > highest)
        clauses = np.flatnonzero(_sums(beyond, flat.clause_offsets) == 0)
        clause_offsets, predicates = take_ranges(flat.clause_offsets, clauses)
        interval_offsets, intervals = take_ranges(flat.interval_offsets, predicates)
        codes = np.repeat(codes[predicates], np.diff(interval_offsets))
        inside = (flat.lows[intervals] <= codes) & (codes <= flat.highs[intervals])
        failing = _sums(inside, interval_offsets) == 0
        truth = np.zeros(flat.n_clauses, np.bool_)
        truth[clauses] = _sums(failing, clause_offsets) == 0
        yield truth
        code_of[events.attributes[span]] = 0


def _matching_probability(
    flat: FlatSubscriptions, total: int, events: FlatEvents, n_events: int, n_subscriptions: int
) -> float:
    sample = _sampled(flat, total, n_subscriptions)
    chosen = _chosen(events.n_events, n_events)
    n_matches = 0
    for truth in clause_truths(sample, _events_at(events, chosen)):
        n_matches += len(np.unique(sample.owners[truth]))
    n_pairs = len(np.unique(sample.owners)) * len(chosen)
    return n_matches / n_pairs if n_pairs else 0.0


def _chosen(total: int, wanted: int) -> np.ndarray:
    """Different numbers below total, ascending: all of them, or about as many as wanted.

    Drawn at random, since generators place things evenly and an even stride could fall in step.
    """
    if wanted >= total:
        return np.arange(total)
    keys = np.random.Generator(np.random.PCG64(total)).random(total)
    return np.sort(np.argpartition(keys, wanted)[:wanted])


def _sampled(flat: FlatSubscriptions, total: int, wanted: int) -> FlatSubscriptions:
    if wanted >= total:
        return flat
    kept = np.zeros(total, np.bool_)
    kept[_chosen(total, wanted)] = True
    clauses = np.flatnonzero(kept[flat.owners])
    clause_offsets, predicates = take_ranges(flat.clause_offsets, clauses)
    interval_offsets, intervals = take_ranges(flat.interval_offsets, predicates)
    return FlatSubscriptions(
        flat.owners[clauses],
        clause_offsets,
        flat.attributes[predicates],
        interval_offsets,
        flat.lows[intervals],
        flat.highs[intervals],
    )


def _events_at(events: FlatEvents, chosen: np.ndarray) -> FlatEvents:
    offsets, pairs = take_ranges(events.offsets, chosen)
    return FlatEvents(offsets, events.attributes[pairs], events.codes[pairs])


def _sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the sums over the rows of a CSR; rows may be empty."""
    running = np.zeros(len(values) + 1, np.uint64 if values.dtype == np.uint64 else np.int64)
    np.cumsum(values, out=running[1:])
    sums: np.ndarray = running[offsets[1:]] - running[offsets[:-1]]
    return sums


def _mean_min_max(sizes: np.ndarray) -> tuple[float, int, int]:
    if not len(sizes):
        return 0.0, 0, 0
    return float(sizes.mean()), int(sizes.min()), int(sizes.max())


# -- predicates -----------------------------------------------------------------------------------


_KINDS = ("null", "equal", "range", "not_equal", "not_in", "in", "other")


def _shares(workload: Workload) -> dict[str, float]:
    flat, domain = workload.subscriptions, workload.domain
    n_predicates = len(flat.attributes)
    if not n_predicates:
        return {f"share_{kind}": 0.0 for kind in _KINDS}
    n_values = np.array([domain.n_values(a) for a in range(domain.n_attributes)], np.int64)
    first, last = flat.interval_offsets[:-1], flat.interval_offsets[1:] - 1
    n_intervals = last - first + 1
    head = flat.lows[first] - 1
    tail = n_values[flat.attributes] - flat.highs[last]
    gaps = np.zeros(len(flat.lows), np.int64)  # before each interval
    gaps[1:] = flat.lows[1:] - flat.highs[:-1] - 1
    gaps[first] = 1
    points = _sums(flat.lows == flat.highs, flat.interval_offsets) == n_intervals
    thin = _sums(gaps == 1, flat.interval_offsets) == n_intervals  # all gaps are single values
    whole = (head == 0) & (tail == 0)
    single = n_intervals == 1
    kinds = [
        (head < 0, "null"),
        (single & points, "equal"),
        (single, "range"),
        (whole & thin & (n_intervals == 2), "not_equal"),
        (whole & thin, "not_in"),
        (points, "in"),
        (thin & (head <= 1) & (tail <= 1), "not_in"),
        (whole & (n_intervals == 2), "range"),  # not between
    ]
    places = [_KINDS.index(kind) for _, kind in kinds]
    found = np.select([case for case, _ in kinds], places, _KINDS.index("other"))
    counts = np.bincount(found, minlength=len(_KINDS)).tolist()
    return {f"share_{kind}": n / n_predicates for kind, n in zip(_KINDS, counts, strict=True)}


def _n_distinct_predicates(flat: FlatSubscriptions) -> int:
    """By 64-bit hashes: intervals are in order, so the sum of theirs stands for all of them."""
    hashes = mix64(mix64(flat.lows.astype(np.uint64)) + flat.highs.astype(np.uint64))
    sums = _sums(hashes, flat.interval_offsets)
    return len(np.unique(mix64(sums + flat.attributes.astype(np.uint64))))
