"""Matching with `mill`: both kernels and the choice between them, what an event leaves behind,
buffers that grow, ids of all sizes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import concatenate
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError
from matchmill.index import small_batches
from matchmill.index.base import Statistics
from matchmill.index.event_sample import build_statistics
from matchmill.index.mill import Mill
from matchmill.index.mill import index as mill_index
from matchmill.kernels.jit import JIT_DISABLED
from matchmill.lab.experiments.measure import event_batch
from matchmill.lab.experiments.measure import table_of as table_of_workload
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.standard import standard
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_table,
    table_of,
)
from tests.support.mill_checks import by_kernel, check, flat_table, keys_on

pytestmark = pytest.mark.kernels


# -- kernels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_events", [0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129])
def test_batch_sizes(n_events: int) -> None:
    rng = Random(n_events)
    check(random_table(rng, 30), random_batch(rng, n_events))


@pytest.mark.parametrize("many_is_quicker", [True, False])
@pytest.mark.parametrize("n_events", [255, 256, 257, 400])
def test_the_choice_of_a_kernel(
    n_events: int, many_is_quicker: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large batch tries both kernels, by a clock on which one of them is always quicker; others
    go by what was found, and all give the same answers."""
    clock = [0.0]

    def takes(seconds: float, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            clock[0] += seconds
            return call(*arguments)

        return timed

    block_seconds = 0.5 if many_is_quicker else 2.0
    monkeypatch.setattr(small_batches, "time", SimpleNamespace(thread_time=lambda: clock[0]))
    monkeypatch.setattr(mill_index, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    monkeypatch.setattr(mill_index, "match_block", takes(block_seconds, mill_index.match_block))
    monkeypatch.setattr(mill_index.Scratch, "match", takes(1.0, mill_index.Scratch.match))
    monkeypatch.setattr(mill_index, "_TRIED_EVERY", 300)
    monkeypatch.setattr(mill_index, "_WORTH_TRYING", 256)
    monkeypatch.setattr(mill_index, "_SMALL", 256)
    rng = Random(n_events)
    table = random_table(rng, 12)
    arrays = Mill.build(table).arrays()
    index = Mill.from_arrays(arrays)
    for n in (n_events, 40, 5, 0, n_events, 64, 700):
        batch = random_batch(rng, n)
        assert matched(index.match_batch(batch)) == brute_force(table, batch)
        assert matched(index.match_batch(batch)) == brute_force(table, batch)
    index._events_until_trial = 65
    batch = random_batch(rng, 64)
    began = clock[0]
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
    assert clock[0] - began == min(1.0, block_seconds)


@pytest.mark.parametrize("many_is_quicker", [False, True])
def test_small_batches_alone_find_the_quicker_way(
    many_is_quicker: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, ways = [0.0], []
    monkeypatch.setattr(small_batches, "time", SimpleNamespace(thread_time=lambda: clock[0]))

    def match(by_blocks: bool) -> int:
        ways.append(by_blocks)
        clock[0] += 1.0 if by_blocks == many_is_quicker else 2.0
        return len(ways)

    batches = small_batches.SmallBatches()
    found = [batches.match(40, match) for _ in range(8)]
    assert found == [(n, None) for n in range(1, 8)] + [(8, many_is_quicker)]
    assert ways == [True, False] * 4
    assert batches.match(40, match)[1] is None


def test_similar_events_are_matched_together() -> None:
    """Of 640 events, 64 are the same in each of ten ways; sorted, each block reads one slot."""
    points = np.repeat(np.arange(1, 11), 100)
    table = flat_table(np.zeros(1000), points, points)
    keys = np.random.default_rng(5).permutation(np.repeat(np.arange(1, 11), 64))
    index = Mill.build(table, kernel="many")
    index.match_batch(keys_on(0, [3]))  # tells nothing of what events have in common
    before = index.stats().candidates
    matches = index.match_batch(keys_on(0, keys))
    assert np.array_equal(np.diff(matches.offsets), np.full(640, 100))
    found = np.sort(matches.clause_ids.reshape(640, 100), axis=1)
    assert np.array_equal(found, 100 * (keys[:, None] - 1) + np.arange(100))
    assert index.stats().candidates - before == 10 * 100


def test_both_kernels_look_at_the_same_clauses() -> None:
    """One at a time, that is: 64 events look at a clause together."""
    rng = Random(3)
    table, batch = random_table(rng, 200), random_batch(rng, 64)
    one, many = (Mill.build(table, kernel=kernel) for kernel in ("one", "many"))
    for e in range(batch.n_events):
        alone = batch.slice(e, e + 1)
        assert matched(one.match_batch(alone)) == matched(many.match_batch(alone))
    assert one.stats().candidates == many.stats().candidates
    before = many.stats().candidates
    many.match_batch(batch)
    assert many.stats().candidates - before < before


def test_unknown_kernels_are_rejected() -> None:
    with pytest.raises(InputError, match="kernel must be one of auto, one, many, not 'two'"):
        Mill.build(random_table(Random(1), 3), kernel="two")


@by_kernel
def test_events_leave_nothing_behind(kernel: str) -> None:
    """The same event before, between and after all others, also those that the buffers had no room
    for, has the same matches."""
    rng = Random(4)
    wide = table_of([{d: [(1, 9)]} for d in range(8) for _ in range(60)], first_id=500)
    table = concatenate([random_table(rng, 60), wide])
    index = Mill.build(table, kernel=kernel)
    others = random_batch(rng, 40)
    for probe in (random_batch(rng, 1), batch_of([{}])):
        expected = matched(index.match_batch(probe))[0]
        parts = [part for e in range(40) for part in (probe, others.slice(e, e + 1))]
        mixed = EventBatch(
            np.concatenate([[0], np.cumsum([part.offsets[-1] for part in parts])]),
            np.concatenate([part.dimensions for part in parts]),
            np.concatenate([part.keys for part in parts]),
        )
        got = matched(index.match_batch(mixed))
        assert got[::2] == [expected] * 40
        assert got[1::2] == brute_force(table, others)


@by_kernel
def test_pairs_of_an_event_in_any_order(kernel: str) -> None:
    rng = Random(5)
    table = random_table(rng, 120)
    index = Mill.build(table, kernel=kernel)
    for _ in range(5):
        event = [(d, rng.randrange(0, 40)) for d in range(9)]
        batch = batch_of([dict(rng.sample(event, 9)) for _ in range(5)])
        assert matched(index.match_batch(batch)) == brute_force(table, batch)


def test_many_threads_ask_one_index() -> None:
    rng = Random(6)
    table = random_table(rng, 100)
    batches = [random_batch(rng, n) for n in (1, 40, 300, 70)]
    expected = [brute_force(table, batch) for batch in batches]
    index = Mill.build(table)
    wrong: list[int] = []

    def ask(first: int) -> None:
        for turn in range(4):
            k = (first + turn) % 4
            if matched(index.match_batch(batches[k])) != expected[k]:
                wrong.append(k)

    threads = [Thread(target=ask, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# -- buffers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [255, 256, 257, 1023, 1024, 1025])
def test_more_matches_than_the_first_buffers(n: int) -> None:
    """Of one event among others without any, first or last."""
    table = table_of([{0: [(1, 1)]}] * n)
    for place in (0, 2):
        events: list[dict[int, int]] = [{}] * 3
        events[place] = {0: 1}
        assert check(table, batch_of(events)) == n


def test_more_matches_with_every_event() -> None:
    table = table_of([{0: [(1, k)]} for k in range(1, 41)] * 10)
    assert check(table, batch_of([{0: 41 - k} for k in range(41)])) == 10 * 40 * 41 // 2


def test_large_blocks_of_which_little_matches() -> None:
    """A thousand clauses under one slot and more, of which each event satisfies one or none."""
    clauses = [{0: [(1, 1)], 1: [(k, k)], 2: [(1, 5)]} for k in range(1, 1201)]
    table = table_of(clauses)
    seldom = Statistics(1000, np.array([1, 1000, 1000]), np.arange(4), np.array([1, 3, 3]))
    batch = batch_of([{0: 1, 1: k, 2: 3} for k in (1, 600, 1200, 1201)] + [{1: 5, 2: 1}])
    assert check(table, batch, seldom) == 3


@pytest.mark.parametrize("n", [1023, 1025, 1150, 1151, 1152, 1153, 1250, 3000])
def test_more_slots_than_the_first_list(n: int) -> None:
    """An event with so many attributes, each of which leads to clauses of its own."""
    table = table_of([{d: [(1, 1)]} for d in range(n)])
    batch = batch_of([{0: 1}, dict.fromkeys(range(n), 1), {}, dict.fromkeys(range(0, n, 2), 1)])
    assert check(table, batch) == 1 + n + (n + 1) // 2


def test_more_groups_than_the_first_list() -> None:
    """Ranges that many clauses share, of which an event satisfies a hundred on each of many
    attributes."""
    ranges = [(k, 200 - k) for k in range(1, 100)]
    clauses = [{d: [one], 60 + d: [(1, 3)]} for d in range(30) for one in ranges for _ in range(2)]
    likely = Statistics(1000, np.full(90, 1000), np.arange(91), np.full(90, 1))
    batch = batch_of([{0: 100}, dict.fromkeys(range(90), 100), dict.fromkeys(range(90), 2), {}])
    for statistics in (None, likely):
        check(table_of(clauses), batch, statistics)


# -- ids ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ids",
    [
        [0, 2**32 - 1, 5],
        [0, 2**32, 5],
        [2**63 - 1, 2**32 + 1, 1],
        [2**31, 2**31 - 1, 2**33],
        [-1, 3, 2**32 - 1],
    ],
)
def test_ids_of_all_sizes(ids: list[int]) -> None:
    table = table_of([{0: [(1, 5)]}, {0: [(2, 9)], 1: [(0, 3)]}, {}])
    check(table._replace(clause_ids=np.array(ids)), batch_of([{}, {0: 3}, {0: 1, 1: 4}, {0: 9}]))


# -- statistics -----------------------------------------------------------------------------------


@pytest.mark.skipif(JIT_DISABLED, reason="100,000 subscriptions are too many without the JIT")
@pytest.mark.parametrize("name", ["be01", "dense", "zipf", "30k"])
def test_a_small_sample_does_not_lead_astray(name: str) -> None:
    """Of workloads whose subscribers ask for what occurs: with what 512 events tell, hardly more
    clauses are looked at than without."""
    workload = generate(standard(name, 0.1).changed(n_events=300))
    table, events = table_of_workload(workload.subscriptions), event_batch(workload.events)
    statistics = build_statistics(event_batch(workload.training), table.n_dimensions)
    looked_at = []
    for known in (None, statistics):
        index = Mill.build(table, known, kernel="one")
        index.match_batch(events)
        looked_at.append(index.stats().candidates)
    assert looked_at[1] <= 1.03 * looked_at[0]
