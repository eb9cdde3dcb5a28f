"""The workload of advertisements has the shape that the paper gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from matchmill.errors import InputError
from matchmill.lab.workloads.ads import AdsDomain, ads
from matchmill.lab.workloads.characteristics import measure
from matchmill.lab.workloads.flat import Workload
from matchmill.lab.workloads.spec import WorkloadSpec
from tests.lab.workloads.test_be_gen import check_form, check_meaning, digest


def workload(n: int = 4000, n_events: int = 500, seed: int = 1, **parameters: Any) -> Workload:
    return ads(WorkloadSpec("ads", n, n_events, 250, seed, parameters))


@pytest.fixture(scope="module")
def made() -> Workload:
    return workload(30_000)


@pytest.mark.slow
def test_shape(made: Workload) -> None:
    got = measure(made, n_events=150, n_subscriptions=30_000)
    other = measure(made, n_events=150, n_subscriptions=30_000, events=made.training)
    assert got.matching_probability == pytest.approx(0.001, rel=0.15)
    assert other.matching_probability == pytest.approx(0.001, rel=0.15)
    assert got.mean_subscription_size == pytest.approx(8, rel=0.02)
    assert got.min_subscription_size == 1
    assert 40 <= got.max_subscription_size <= 56
    assert got.mean_event_size == pytest.approx(20, rel=0.02)
    assert got.n_attributes_used == 122
    assert 0.45 < got.share_equal < 0.65
    assert got.share_in > 0.1
    assert got.share_range > 0.1
    assert got.share_not_equal > 0.02
    assert got.share_not_in > 0.02


def test_arrays_keep_their_promises(made: Workload) -> None:
    assert isinstance(made.domain, AdsDomain)
    check_form(made.subscriptions, np.array(made.domain.cardinalities))


def test_cardinalities_are_mixed(made: Workload) -> None:
    n_values = [made.domain.n_values(a) for a in range(made.domain.n_attributes)]
    assert min(n_values) == 2
    assert max(n_values) == 5000
    for attribute, n in enumerate(n_values):
        values: list[Any] = [made.domain.value(attribute, code) for code in range(1, n + 1)]
        assert values == sorted(set(values))


def test_popularity(made: Workload) -> None:
    counts = np.bincount(made.events.attributes)
    assert counts[:10].mean() > 5 * counts[-10:].mean()


@pytest.mark.parametrize("probability", [0.01, 0.1, 0.5])
def test_probability(probability: float) -> None:
    made = workload(10_000, matching_probability=probability)
    got = measure(made, n_events=60, n_subscriptions=10_000)
    assert got.matching_probability == pytest.approx(probability, rel=0.06)
    assert got.mean_subscription_size == pytest.approx(8, rel=0.03)


def test_texts_and_dicts_mean_the_same_as_the_arrays() -> None:
    check_meaning(workload(200, 20, matching_probability=0.1))


def test_these_bytes_stay() -> None:
    assert digest(workload(2000, 100, matching_probability=0.01)) == "6336d5041523fdae"
    assert digest(workload(200, 10, seed=2, matching_probability=0.1)) != digest(
        workload(200, 10, matching_probability=0.1)
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"cardinality": 3}, "no parameter 'cardinality'; there are: equality_ratio"),
        ({"event_size": 200}, "event_size must be between 2 and 122"),
        ({"max_subscription_size": 123}, "max_subscription_size must be between 1 and 122"),
        ({"subscription_size": 40}, "subscription_size must be between 1 and 28.5"),
        ({"matching_probability": 0.6}, "matching_probability must be between 0 and 0.5"),
    ],
    ids=str,
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        workload(10, 1, **parameters)
