"""The sample is even, small, and safe to share; drift tells chance from change."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from matchmill.encoding.event_batch import EventBatch
from matchmill.index import event_sample
from matchmill.index.base import Statistics
from matchmill.index.event_sample import EventSample, build_statistics, drift
from matchmill.lab.experiments.measure import event_batch
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.spec import Parameter, WorkloadSpec


def numbered(start: int, stop: int, n_pairs: int = 1) -> EventBatch:
    """Events whose keys are their number."""
    n = stop - start
    return EventBatch(
        np.arange(n + 1) * n_pairs,
        np.tile(np.arange(n_pairs, dtype=np.int32), n),
        np.repeat(np.arange(start, stop), n_pairs),
    )


def feed(sample: EventSample, sizes: list[int]) -> None:
    start = 0
    for size in sizes:
        sample.add(numbered(start, start + size))
        start += size


# -- the sample -----------------------------------------------------------------------------------


def test_it_keeps_all_while_there_is_room() -> None:
    sample = EventSample(capacity=10)
    assert sample.batch().n_events == sample.n_sampled == sample.n_seen == 0
    feed(sample, [3, 0, 4])
    assert (sample.n_seen, sample.n_sampled) == (7, 7)
    assert sample.batch().keys.tolist() == list(range(7))
    sample.add(numbered(7, 30))
    assert (sample.n_seen, sample.n_sampled) == (30, 10)
    assert len(set(sample.batch().keys.tolist())) == 10


@pytest.mark.parametrize("sizes", [[200], [1] * 200, [7, 150, 43]])
def test_each_event_has_the_same_chance(sizes: list[int]) -> None:
    n_rounds, capacity = 600, 20
    counts = np.zeros(200)
    for seed in range(n_rounds):
        sample = EventSample(capacity, seed)
        feed(sample, sizes)
        counts[sample.batch().keys] += 1
    expected = n_rounds * capacity / 200
    # Eight parts of 25 events, each with a standard deviation of about 36.
    parts = counts.reshape(8, 25).sum(axis=1)
    assert np.abs(parts - 25 * expected).max() < 5 * 36


def test_whole_events_are_kept_apart_from_the_batch() -> None:
    batch = numbered(0, 50, n_pairs=3)
    sample = EventSample(capacity=8)
    sample.add(batch)
    batch.keys[:] = -1
    kept = sample.batch()
    assert kept.n_events == 8
    assert kept.dimensions.tolist() == [0, 1, 2] * 8
    assert kept.dimensions.dtype == np.int32
    keys = kept.keys.reshape(8, 3)
    assert (keys >= 0).all()
    assert (keys == keys[:, :1]).all()


def test_clearing() -> None:
    sample = EventSample(capacity=5)
    feed(sample, [100])
    sample.clear()
    assert (sample.n_seen, sample.n_sampled) == (0, 0)
    sample.add(numbered(0, 3))
    assert sample.batch().keys.tolist() == [0, 1, 2]


def test_long_events_make_it_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_sample, "_MOST_PAIRS", 100)
    counts = np.zeros(200)
    for seed in range(400):
        sample = EventSample(40, seed)
        sample.add(numbered(0, 100, n_pairs=4))
        sample.add(numbered(100, 200, n_pairs=4))
        assert 12 <= sample.n_sampled <= 25
        counts[np.unique(sample.batch().keys)] += 1
    assert sample.n_seen == 200
    parts = counts.reshape(4, 50).sum(axis=1)
    assert np.abs(parts / parts.mean() - 1).max() < 0.15
    sample.clear()
    sample.add(numbered(0, 100))
    assert sample.n_sampled == 40


def test_one_event_that_is_longer_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_sample, "_MOST_PAIRS", 2)
    sample = EventSample(4)
    sample.add(numbered(0, 30, n_pairs=5))
    assert (sample.n_seen, sample.n_sampled) == (30, 1)


def test_many_threads() -> None:
    sample = EventSample(capacity=64)

    def add(start: int) -> None:
        for n in range(200):
            sample.add(numbered(start + n, start + n + 1), everything=True)

    threads = [threading.Thread(target=add, args=(1000 * t,)) for t in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sample.n_seen, sample.n_sampled) == (1200, 64)
    assert len(np.unique(sample.batch().keys)) == 64


def test_a_batch_passes_unseen_rather_than_waiting() -> None:
    sample = EventSample()
    with sample._lock:
        sample.add(numbered(0, 5))
    assert sample.n_seen == 0


def test_statistics_need_some_events() -> None:
    sample = EventSample()
    sample.add(numbered(0, 63, n_pairs=2))
    assert sample.statistics(3) is None
    sample.add(numbered(63, 64, n_pairs=2))
    statistics = sample.statistics(3)
    assert statistics is not None
    assert statistics.n_events == 64
    assert statistics.dimension_counts.tolist() == [64, 64, 0]
    assert statistics.sample_keys.tolist() == 2 * list(range(64))


# -- drift ----------------------------------------------------------------------------------------

_BE: dict[str, Parameter] = {"n_dimensions": 400, "cardinality": 48, "event_size": 15}
SOURCES: dict[str, tuple[str, dict[str, Parameter]]] = {
    "be_gen": ("be_gen", _BE),
    "zipf": ("be_gen", {**_BE, "zipf": 1.0}),
    "30k": ("be_gen", {"n_dimensions": 30_000, "cardinality": 30, "event_size": 30}),
    "ads": ("ads", {}),
    "flights": ("flights", {}),
    "op_index": ("op_index", {}),
}


def two_samples(name: str, seed: int = 1) -> tuple[Statistics, Statistics]:
    generator, parameters = SOURCES[name]
    spec = WorkloadSpec(generator, 100, 2000, 10, seed, parameters)
    events = event_batch(generate(spec).events)
    return (
        build_statistics(events.slice(0, 1000), 0),
        build_statistics(events.slice(1000, 2000), 0),
    )


@pytest.mark.parametrize("name", SOURCES)
def test_one_source_does_not_drift_and_others_differ(name: str) -> None:
    first, second = two_samples(name)
    assert drift(first, second) < 0.05
    assert drift(second, first) < 0.05
    assert drift(first, first) == 0.0
    for other in ("be_gen", "ads"):
        if other != name:
            assert drift(two_samples(other)[0], first) > 0.5


def test_other_bases_of_the_same_generator() -> None:
    assert drift(two_samples("be_gen", 1)[0], two_samples("be_gen", 2)[0]) > 0.3


Source = Callable[[np.random.Generator, int], np.ndarray]


def wide(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(1e12, 1e9, n)


def moved(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(1.0015e12, 1e9, n)


def few(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.choice([10, 20, 30], n, p=[0.6, 0.3, 0.1])


def few_others(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.choice([10, 20, 30], n, p=[0.1, 0.3, 0.6])


def one_key(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.full(n, 5)


def column(source: Source, n: int, seed: int, presence: float = 1.0) -> Statistics:
    """Three dimensions with keys of one source."""
    rng = np.random.default_rng(seed)
    keys = np.stack([source(rng, n) for _ in range(3)], axis=1).astype(np.int64)
    there = rng.random(keys.shape) < presence
    offsets = np.concatenate(([0], np.cumsum(there.sum(axis=1))))
    dimensions = np.broadcast_to(np.arange(3, dtype=np.int32), keys.shape)
    return build_statistics(EventBatch(offsets, dimensions[there], keys[there]), 3)


@pytest.mark.parametrize("source", [wide, few, one_key])
@pytest.mark.parametrize("presence", [1.0, 0.3])
def test_chance_is_taken_off(source: Source, presence: float) -> None:
    for n, m, most in ((1000, 1000, 0.1), (64, 1000, 0.2), (1000, 64, 0.2)):
        for seed in range(10):
            now = column(source, n, seed, presence)
            assert drift(now, column(source, m, seed + 100, presence)) < most


@pytest.mark.parametrize(
    ("source", "other", "expected"),
    [(wide, moved, 0.55), (few, few_others, 0.5), (few, one_key, 1.0), (wide, few, 1.0)],
)
def test_change_is_seen_at_its_size(source: Source, other: Source, expected: float) -> None:
    """The total variation distance of the sources, as far as bins can tell."""
    for a, b in ((source, other), (other, source)):
        assert drift(column(a, 1000, 1), column(b, 1000, 2)) == pytest.approx(expected, abs=0.08)


def test_presence_counts() -> None:
    often, rarely = column(few, 1000, 1, presence=0.8), column(few, 1000, 2, presence=0.4)
    assert drift(often, rarely) == pytest.approx(0.5, abs=0.06)
    never = build_statistics(EventBatch(np.zeros(1001, np.int64), *_no_pairs()), 0)
    assert drift(often, never) == drift(never, often) == 1.0
    assert drift(never, never) == 0.0


def test_fewer_keys_than_events_are_weighed() -> None:
    """Statistics may hold a sample of the keys only."""
    whole, other = column(few, 1000, 1), column(few_others, 1000, 2)
    half = whole._replace(
        sample_offsets=whole.sample_offsets // 2, sample_keys=whole.sample_keys[::2]
    )
    assert drift(half, whole) < 0.05
    assert drift(half, other) == pytest.approx(0.5, abs=0.08)


def test_no_events() -> None:
    nothing = build_statistics(EventBatch(np.zeros(1, np.int64), *_no_pairs()), 0)
    assert drift(nothing, column(few, 100, 1)) == drift(column(few, 100, 1), nothing) == 0.0


def _no_pairs() -> tuple[np.ndarray, np.ndarray]:
    return np.empty(0, np.int32), np.empty(0, np.int64)
