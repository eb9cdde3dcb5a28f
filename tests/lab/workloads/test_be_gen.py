"""BE-Gen gives what was asked for, the same everywhere, and texts that mean what its arrays do."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.errors import InputError
from matchmill.lab.workloads.be_gen import BLOCK, be_gen
from matchmill.lab.workloads.be_gen_predicates import widths_of
from matchmill.lab.workloads.characteristics import clause_truths, measure
from matchmill.lab.workloads.flat import (
    FlatSubscriptions,
    Workload,
    event_dicts,
    subscription_texts,
)
from matchmill.lab.workloads.spec import WorkloadSpec


def workload(n: int = 4000, n_events: int = 500, seed: int = 1, **parameters: Any) -> Workload:
    return be_gen(WorkloadSpec("be_gen", n, n_events, 250, seed, parameters))


def digest(made: Workload) -> str:
    """Of all arrays, with their types."""
    hashed = hashlib.sha256()
    for part in (made.subscriptions, made.events, made.training):
        for array in part:
            hashed.update(str(array.dtype).encode() + array.astype("<i8").tobytes())
    return hashed.hexdigest()[:16]


# -- reproducible ---------------------------------------------------------------------------------


def test_these_bytes_stay() -> None:
    """Figures of different machines and versions can be compared as long as this holds."""
    assert digest(workload(2000, 100)) == "5c79af71bf96361e"
    assert (
        digest(workload(2000, 100, operators="high", zipf=1, value_zipf=0.5)) == "6c6f30ea54b6e811"
    )


def test_seeds_differ() -> None:
    assert digest(workload(500, 20)) == digest(workload(500, 20))
    assert digest(workload(500, 20)) != digest(workload(500, 20, seed=2))


def test_a_subscription_does_not_depend_on_how_many_follow() -> None:
    n = BLOCK + 10
    more, fewer = workload(n).subscriptions, workload(n - 20).subscriptions
    for long, short in zip(more, fewer, strict=True):
        assert np.array_equal(long[: len(short)], short)


def test_events_and_training_events_are_others() -> None:
    made = workload(100, 250)
    dicts = {tuple(sorted(e.items())) for e in event_dicts(made)}
    training = {tuple(sorted(e.items())) for e in event_dicts(made, made.training)}
    assert len(dicts) == len(training) == 250
    assert not dicts & training


# -- well formed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cardinality", [3, 4, 5, 6, 7, 12, 48])
def test_arrays_keep_their_promises(cardinality: int) -> None:
    made = workload(3000, 50, cardinality=cardinality, operators="high", equality_ratio=0.1)
    check_form(made.subscriptions, np.full(400, cardinality))
    for events in (made.events, made.training):
        inner = np.diff(events.attributes) > 0
        inner[events.offsets[1:-1] - 1] = True
        assert inner.all()
        assert events.codes.min() >= 1
        assert events.codes.max() <= cardinality


def check_form(flat: FlatSubscriptions, n_values: np.ndarray) -> None:
    assert [a.dtype.str for a in flat] == ["<i8", "<i8", "<i4", "<i8", "<i8", "<i8"]
    assert flat.clause_offsets[-1] == len(flat.attributes)
    assert flat.interval_offsets[-1] == len(flat.lows) == len(flat.highs)
    ascending = np.diff(flat.attributes) > 0
    ascending[flat.clause_offsets[1:-1] - 1] = True
    assert ascending.all()
    of_interval = np.repeat(flat.attributes, np.diff(flat.interval_offsets))
    assert (flat.lows >= 1).all()
    assert (flat.lows <= flat.highs).all()
    assert (flat.highs <= n_values[of_interval]).all()
    apart = flat.lows[1:] > flat.highs[:-1] + 1
    apart[flat.interval_offsets[1:-1] - 1] = True
    assert apart.all()
    n_accepted = np.add.reduceat(flat.highs - flat.lows + 1, flat.interval_offsets[:-1])
    assert (n_accepted < n_values[flat.attributes]).all(), "a predicate is true of all values"


def test_texts_and_dicts_mean_the_same_as_the_arrays() -> None:
    made = workload(300, 40, operators="high", cardinality=9, matching_probability=0.1)
    check_meaning(made)


def check_meaning(made: Workload) -> None:
    expressions = [mm.parse(text) for _, text in subscription_texts(made)]
    assert len(expressions) == made.spec.n_subscriptions
    n_true = 0
    truths = clause_truths(made.subscriptions, made.events)
    for event, truth in zip(event_dicts(made), truths, strict=True):
        by_text = [mm.evaluate(expression, event) is True for expression in expressions]
        assert by_text == truth.tolist()
        n_true += sum(by_text)
    assert n_true > 0


# -- what was asked for ---------------------------------------------------------------------------

PS_TREE: dict[str, Any] = {
    "n_dimensions": 100,
    "cardinality": 30,
    "subscription_size": 10,
    "event_size": 30,
    "equality_ratio": 0.6,
    "matching_probability": 0.001,
}

GRID: list[dict[str, Any]] = [
    {},
    {"matching_probability": 0.01},
    {"matching_probability": 0.3},
    {"matching_probability": 0.5},
    {"matching_probability": 1.0},
    {"n_dimensions": 3000},
    {"cardinality": 3},
    {"cardinality": 1000},
    {"subscription_size": 5},
    {"subscription_size": 30},
    {"event_size": 15},
    {"event_size": 90},
    {"event_size": 90, "cardinality": 3, "matching_probability": 0.01},
    {"equality_ratio": 0},
    {"equality_ratio": 1},
    {"zipf": 1},
    {"zipf": 5},
    {"zipf": 5, "cardinality": 10, "subscription_size": 5, "matching_probability": 0.005},
    {"value_zipf": 1},
]


@pytest.mark.parametrize(
    "changes",
    [*GRID[:3], *(pytest.param(changes, marks=pytest.mark.slow) for changes in GRID[3:])],
    ids=str,
)
def test_what_is_asked_for_is_what_comes(changes: dict[str, Any]) -> None:
    asked = {**PS_TREE, **changes}
    made = workload(10_000, 250, **asked)
    n_events = 250 if asked["matching_probability"] < 0.1 else 20
    for events in (made.events, made.training):
        got = measure(made, events=events, n_events=n_events, n_subscriptions=10_000)
        assert got.matching_probability == pytest.approx(asked["matching_probability"], rel=0.06)
        assert got.mean_event_size == pytest.approx(asked["event_size"], rel=0.02)
    assert got.mean_subscription_size == pytest.approx(asked["subscription_size"], rel=0.01)
    assert got.share_equal == pytest.approx(asked["equality_ratio"], abs=0.01)


@pytest.mark.parametrize(
    ("operators", "shares"),
    [
        ("min", (1.0, 0, 0, 0, 0)),
        ("low", (0.3, 0, 0, 0.7, 0)),
        ("med", (0.3, 0, 0.7 * 5 / 6, 0.7 / 6, 0)),
        ("high", (0.3, 0.7 / 8, 0.7 * 5 / 8, 0.7 / 8, 0.7 / 8)),
    ],
)
def test_operators_of_a_class(operators: str, shares: tuple[float, ...]) -> None:
    got = measure(workload(operators=operators), n_events=1, n_subscriptions=1)
    found = (
        got.share_equal,
        got.share_not_equal,
        got.share_range,
        got.share_in,
        got.share_not_in,
    )
    assert found == pytest.approx(shares, abs=0.015)


@pytest.mark.parametrize("share", [0.06, 0.12, 0.5, 0.9])
def test_width_of_between(share: float) -> None:
    n_values = np.full(20_000, 48)
    drawn = np.random.default_rng(1).integers(0, 2**32, 20_000, np.uint32)
    widths = widths_of(drawn, n_values, share)
    assert widths.mean() / 48 == pytest.approx(share, rel=0.02)
    assert widths.min() >= 2
    assert widths.max() <= 47


def test_popular_attributes_are_popular() -> None:
    flat, even = workload(zipf=1).subscriptions, workload(zipf=0).subscriptions
    counts, level = np.bincount(flat.attributes), np.bincount(even.attributes, minlength=400)
    assert counts[:10].sum() > 10 * level[:10].sum()


def test_nothing_matches_when_asked_for() -> None:
    made = workload(matching_probability=0)
    assert measure(made, n_events=50).matching_probability < 1e-5


def test_sizes_at_the_edges() -> None:
    made = workload(200, 20, n_dimensions=5, event_size=5, subscription_size=5)
    got = measure(made)
    assert (got.min_subscription_size, got.max_subscription_size) == (5, 5)
    assert (got.min_event_size, got.max_event_size) == (5, 5)
    nothing = workload(0, 0)
    assert nothing.subscriptions.n_clauses == nothing.events.n_events == 0
    assert nothing.subscriptions.clause_offsets.tolist() == [0]
    assert measure(nothing).matching_probability == 0


# -- what cannot be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"dimensions": 3}, "no parameter 'dimensions'; there are: cardinality"),
        ({"n_dimensions": 3.5}, "n_dimensions must be a whole number, not 3.5"),
        ({"n_dimensions": True}, "n_dimensions must be a whole number"),
        ({"zipf": "much"}, "zipf must be a number, not 'much'"),
        ({"operators": "all"}, "operators must be min, low, med or high"),
        ({"event_size": 401}, "event_size must be between 1 and 400"),
        ({"subscription_size": 16}, "subscription_size must be between 1 and 15"),
        ({"matching_probability": 1.1}, "matching_probability must be between 0 and 1"),
        ({"equality_ratio": float("nan")}, "equality_ratio must be between 0 and 1"),
        ({"cardinality": 2}, "a cardinality of at least 3, not 2"),
        ({"cardinality": 3, "operators": "low"}, "a cardinality of at least 4, not 3"),
    ],
    ids=str,
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        workload(10, 1, **parameters)


def test_a_probability_that_chance_exceeds() -> None:
    asked = {"zipf": 5, "cardinality": 3, "equality_ratio": 0, "subscription_size": 5}
    with pytest.raises(InputError, match="out of reach"):
        workload(10, 1, matching_probability=0.001, **asked)
