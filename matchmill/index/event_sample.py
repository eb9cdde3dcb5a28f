"""A sample of past events, and what it tells about coming ones.

    slot s    dimensions[s] and keys[s] of one event; each event ever seen is in the sample with the
              same chance

Reservoir sampling by skips (Li 1994, Algorithm L): how many events to let pass before the next one
that is taken is drawn in advance, so that a batch of which none is taken costs one comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from threading import Lock

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import Statistics
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.forks import renewed_after_fork
from matchmill.kernels.uninterrupted import uninterrupted

__all__ = ["EventSample", "build_statistics", "drift"]

_FEWEST_EVENTS = 64  # fewer tell nothing
_MOST_PAIRS = 1 << 22  # in all events of a sample: 50 MB
_BELOW_ONE = 1.0 - 2.0**-53
_MOST_BINS = 16  # of one dimension
_KEYS_A_BIN = 8  # at least so many, or there are fewer bins


class EventSample:
    """At most `capacity` events, fewer if they are very long. Any thread may add to it."""

    def __init__(self, capacity: int = 1024, seed: int = 0) -> None:
        self._full_capacity = capacity
        self._random = Random(seed)
        self._lock = Lock()  # never held by the main thread, which a signal handler interrupts
        self._forget()
        renewed_after_fork(self)

    def after_fork(self) -> None:
        """In a forked child: another thread of the parent may have been adding."""
        if self._lock.locked():
            self._forget()
        self._lock = Lock()

    def _forget(self) -> None:
        self._capacity = self._full_capacity
        self._events: list[tuple[np.ndarray, np.ndarray]] = []  # dimensions and keys of each
        self._n_pairs = 0
        self._n_seen = 0
        self._next = 0  # the number of the next event to take
        self._threshold = 1.0

    @property
    def n_seen(self) -> int:
        """How many events this is a sample of."""
        return self._n_seen

    @property
    def n_sampled(self) -> int:
        """How many events are in the sample."""
        return len(self._events)

    def clear(self) -> None:
        """Forget all events: after a relabelling their keys mean nothing any more."""
        uninterrupted(self._clear)

    def _clear(self) -> None:
        with self._lock:
            self._forget()

    def add(self, batch: EventBatch, *, everything: bool = False) -> None:
        """Take some events of a batch.

        If another thread is adding at this moment, the batch is let pass unseen instead of waiting,
        unless `everything` is to be looked at.
        """
        n_seen = self._n_seen + batch.n_events
        if n_seen <= self._next and not everything:  # none is taken, as most often
            self._n_seen = n_seen
        else:
            uninterrupted(self._add, batch, everything)

    def _add(self, batch: EventBatch, everything: bool) -> None:
        if not self._lock.acquire(blocking=everything):
            return
        try:
            first = self._n_seen
            stop = first + batch.n_events
            self._next = max(self._next, first)  # `add` counts without the lock
            while self._next < stop:
                self._take(batch, self._next - first)
            self._n_seen = stop
        finally:
            self._lock.release()

    def _take(self, batch: EventBatch, event: int) -> None:
        start, stop = int(batch.offsets[event]), int(batch.offsets[event + 1])
        # Copies: a view would keep the whole batch in memory.
        dimensions, keys = batch.dimensions[start:stop].copy(), batch.keys[start:stop].copy()
        n_seen = self._next + 1
        self._next = n_seen
        if len(self._events) < self._capacity:
            self._events.append((dimensions, keys))
            if len(self._events) == self._capacity:
                self._start_skipping()
        else:
            slot = self._random.randrange(self._capacity)
            self._n_pairs -= len(self._events[slot][1])
            self._events[slot] = dimensions, keys
            self._threshold *= math.exp(math.log(1.0 - self._random.random()) / self._capacity)
            self._skip()
        self._n_pairs += len(keys)
        if self._n_pairs > _MOST_PAIRS and len(self._events) > 1:
            self._halve(n_seen)

    def _halve(self, n_seen: int) -> None:
        """Keep a random half: a random half of a sample is a sample."""
        n_kept = len(self._events) // 2
        kept = self._random.sample(range(len(self._events)), n_kept)
        self._events = [self._events[slot] for slot in kept]
        self._n_pairs = sum(len(keys) for _, keys in self._events)
        self._capacity = n_kept
        self._next = n_seen
        self._start_skipping()

    def _start_skipping(self) -> None:
        """Begin to skip events, now that the sample is full.

        Had each event so far a random number, the sample would be those with the least; the
        threshold is the largest of theirs. A coming event is taken if its number is below it.
        """
        n_others = self._next - self._capacity
        self._threshold = self._random.betavariate(self._capacity, n_others + 1)
        self._skip()

    def _skip(self) -> None:
        self._threshold = min(self._threshold, _BELOW_ONE)
        draw = 1.0 - self._random.random()
        self._next += int(math.log(draw) / math.log1p(-self._threshold))

    def batch(self) -> EventBatch:
        """Return the events of the sample."""
        events = list(self._events)
        return EventBatch(
            offsets_of(np.array([len(keys) for _, keys in events], np.int64)),
            np.concatenate([np.empty(0, np.int32), *(dimensions for dimensions, _ in events)]),
            np.concatenate([np.empty(0, np.int64), *(keys for _, keys in events)]),
        )

    def translate(self, change: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, ...]]) -> None:
        """Bring all events to other dimensions.

        `change` takes the dimensions and keys of all pairs, and returns those that are left, and
        their positions.
        """
        uninterrupted(self._translate, change)

    def _translate(
        self, change: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, ...]]
    ) -> None:
        with self._lock:
            if not self._events:
                return
            batch = self.batch()
            dimensions, keys, kept = change(batch.dimensions, batch.keys)
            ends = np.searchsorted(kept, batch.offsets[1:-1])
            parts = zip(np.split(dimensions, ends), np.split(keys, ends), strict=True)
            self._events = [(some.copy(), others.copy()) for some, others in parts]
            self._n_pairs = len(keys)

    def statistics(self, n_dimensions: int) -> Statistics | None:
        """Return the statistics of the sample; None if it is too small."""
        batch = self.batch()
        if batch.n_events < _FEWEST_EVENTS:
            return None
        return build_statistics(batch, n_dimensions)


def build_statistics(events: EventBatch, n_dimensions: int) -> Statistics:
    """Count how many events have each dimension, and sort its keys.

    A key counts once per event.
    """
    n_dimensions = max(n_dimensions, int(events.dimensions.max(initial=-1)) + 1)
    rows = np.repeat(np.arange(events.n_events), np.diff(events.offsets))
    order = np.lexsort((rows, events.keys, events.dimensions))
    dimensions, keys, rows = events.dimensions[order], events.keys[order], rows[order]
    again = (dimensions[1:] == dimensions[:-1]) & (keys[1:] == keys[:-1]) & (rows[1:] == rows[:-1])
    is_new = np.append(np.ones(min(1, len(keys)), bool), ~again)
    dimensions, keys, rows = dimensions[is_new], keys[is_new], rows[is_new]
    n_keys = np.bincount(dimensions, minlength=n_dimensions).astype(np.int64)
    pairs = np.unique(dimensions * max(1, events.n_events) + rows)
    counts = np.bincount(pairs // max(1, events.n_events), minlength=n_dimensions)
    return Statistics(events.n_events, counts.astype(np.int64), offsets_of(n_keys), keys)


# -- drift ----------------------------------------------------------------------------------------


def drift(now: Statistics, then: Statistics) -> float:
    """How different two statistics are: 0 if they may be of one source, 1 if nothing is as before.

    Each dimension is a distribution over "absent" and bins of keys, the quantiles of `then`. The
    total variation distances of all dimensions are summed up; what chance alone would make of one
    source is taken off; and the rest is divided by the most that there could have been.
    """
    if now.n_events == 0 or then.n_events == 0:
        return 0.0
    present = _padded(now.dimension_counts, then.dimension_counts)
    bins = _bin_counts(now, then, present.shape[1])
    distance = noise = 0.0
    for counts in (present, bins):
        share_now, share_then = counts[0] / now.n_events, counts[1] / then.n_events
        distance += 0.5 * float(np.abs(share_now - share_then).sum())
        noise += 0.5 * _expected_noise(counts.sum(axis=0), now.n_events, then.n_events)
    most = float(np.maximum(present[0] / now.n_events, present[1] / then.n_events).sum())
    if most <= noise:
        return 0.0
    return min(1.0, max(0.0, (distance - noise) / (most - noise)))


def _padded(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Two rows of counts, as long as the longer one."""
    out = np.zeros((2, max(len(a), len(b))))
    out[0, : len(a)] = a
    out[1, : len(b)] = b
    return out


def _bin_counts(now: Statistics, then: Statistics, n_dimensions: int) -> np.ndarray:
    """How many events of each kind fall into each bin of each dimension.

    All dimensions stand on one line of (dimension, rank of the key). Edges on it: the start of each
    dimension, and quantiles of its keys. A bin is an edge itself, or what lies between two edges.
    """
    ranks = np.unique(np.concatenate((now.sample_keys, then.sample_keys)), return_inverse=True)[1]
    width = len(ranks) + 2
    n_now = len(now.sample_keys)
    owners = [np.repeat(np.arange(len(s.sample_offsets) - 1), _n_keys(s)) for s in (now, then)]
    line_now = owners[0] * width + ranks[:n_now] + 1
    line_then = owners[1] * width + ranks[n_now:] + 1
    n_bins = np.minimum(_n_keys(then) // _KEYS_A_BIN, _MOST_BINS)
    within = np.arange(int(n_bins.sum())) - np.repeat(np.cumsum(n_bins) - n_bins, n_bins)
    at = (2 * within + 1) * np.repeat(_n_keys(then), n_bins) // (2 * np.repeat(n_bins, n_bins))
    quantiles = line_then[np.repeat(then.sample_offsets[:-1], n_bins) + at]
    edges = np.union1d(np.arange(n_dimensions) * width, quantiles)
    out = np.zeros((2, 2 * len(edges) + 1))
    for row, statistics, owner, line in zip(
        out, (now, then), owners, (line_now, line_then), strict=True
    ):
        place = np.searchsorted(edges, line, "left") + np.searchsorted(edges, line, "right")
        weight = statistics.dimension_counts / np.maximum(_n_keys(statistics), 1)
        row[:] = np.bincount(place, weight[owner], len(row))
    return out


def _n_keys(statistics: Statistics) -> np.ndarray:
    return np.diff(statistics.sample_offsets)


def _expected_noise(totals: np.ndarray, n: int, m: int) -> float:
    """Estimate how far two samples of one source differ by chance.

    Of their n + m events, s in all are of some kind. The share of these among the n and their share
    among the m differ by so much on average, summed over all s in `totals`.
    """
    kinds, n_kinds = np.unique(np.rint(totals).astype(np.int64), return_counts=True)
    deviations = np.array([_mean_deviation(int(s), n / (n + m)) for s in kinds])
    # The n + m events are given, and drawn without putting back.
    finite = np.sqrt(np.maximum(0, n + m - kinds) / max(1, n + m - 1))
    return float((1 / n + 1 / m) * (n_kinds * deviations * finite).sum())


def _mean_deviation(s: int, p: float) -> float:
    """Return the mean absolute deviation of a binomial variable, by de Moivre's formula."""
    if s == 0:
        return 0.0
    k = min(s, int(s * p) + 1)
    log_ways = math.lgamma(s + 1) - math.lgamma(k + 1) - math.lgamma(s - k + 1)
    return 2 * k * math.exp(log_ways + k * math.log(p) + (s - k + 1) * math.log1p(-p))
