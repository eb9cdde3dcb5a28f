"""Workloads of operators with a price: popularity, lengths, matches, and the same as booleans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.lab.workloads.flat import event_dicts, subscription_texts
from matchmill.lab.workloads.operators import OperatorWorkload, as_workload, operator_workload
from matchmill.lab.workloads.spec import WorkloadSpec
from tests.lab.workloads.test_op_index import (
    check_form,
    digest,
    matches_of_arrays,
    matches_of_texts,
    slope,
    small_spec,
)


def matched(workload: OperatorWorkload) -> np.ndarray:
    """Events × subscriptions."""
    starts = workload.subscription_offsets[:-1]
    return np.logical_and.reduceat(workload.truths[:, workload.predicate_ids], starts, axis=1)


def test_lengths_and_popularity() -> None:
    workload = operator_workload(small_spec(20_000, 0, max_size=11))
    sizes = np.diff(workload.subscription_offsets)
    assert (sizes.min(), sizes.max()) == (3, 11)
    assert sizes.mean() == pytest.approx(7, abs=0.1)
    assert (workload.n_subscriptions, workload.n_predicates) == (20_000, 5_000)
    rising = np.diff(workload.predicate_ids) > 0
    rising[workload.subscription_offsets[1:-1] - 1] = True
    assert rising.all()


def test_zipf_popularity() -> None:
    workload = operator_workload(small_spec(50_000, 0, min_size=1, max_size=1, zipf=0.8))
    assert slope(np.bincount(workload.predicate_ids)) == pytest.approx(-0.8, abs=0.08)


def test_uniform_popularity() -> None:
    """Weights are uniform in [0, 1], and how often a predicate is drawn is in proportion."""
    workload = operator_workload(small_spec(20_000, 0, popularity="uniform", n_predicates=200))
    weights = workload.weights
    assert 0 < weights.min() < 0.1
    assert 0.9 < weights.max() <= 1
    counts = np.bincount(workload.predicate_ids, minlength=200)
    assert np.corrcoef(weights, counts)[0, 1] > 0.99


@pytest.mark.parametrize("selectivity", ["varied", "equal"])
@pytest.mark.parametrize("popularity", ["uniform", "zipf"])
@pytest.mark.parametrize("ratio", [0.002, 0.05])
def test_share_of_matches(popularity: str, selectivity: str, ratio: float) -> None:
    workload = operator_workload(small_spec(
        2_000, 1_500, n_predicates=400, popularity=popularity, selectivity=selectivity,
        matched_ratio=ratio,
    ))  # fmt: skip
    logarithms = np.log(workload.selectivities)[workload.predicate_ids]
    sums = np.add.reduceat(logarithms, workload.subscription_offsets[:-1])
    assert np.exp(sums).mean() == pytest.approx(ratio, rel=1e-4)
    assert matched(workload).mean() == pytest.approx(ratio, rel=0.3)
    assert (len(np.unique(workload.selectivities)) == 1) == (selectivity == "equal")
    np.testing.assert_allclose(workload.truths.mean(axis=0), workload.selectivities, atol=0.07)


def test_costs() -> None:
    assert (operator_workload(small_spec()).costs == 1).all()
    costs = operator_workload(small_spec(costs="varied", max_cost=100.0)).costs
    assert 1 <= costs.min() < 2
    assert 99 < costs.max() <= 100


@pytest.mark.parametrize("with_false", [False, True])
def test_as_boolean_attributes(with_false: bool) -> None:
    operators = operator_workload(small_spec(n_predicates=40, matched_ratio=0.1))
    workload = as_workload(operators, with_false=with_false)
    check_form(workload)
    expected = [set(np.flatnonzero(row).tolist()) for row in matched(operators)]
    assert 0 < sum(map(len, expected))
    assert matches_of_arrays(workload) == expected
    texts, events = list(subscription_texts(workload)), list(event_dicts(workload))
    assert matches_of_texts(texts, events) == expected
    assert texts[0][1].count(" = true") in (3, 4, 5)
    values = {type(value) for event in events for value in event.values()}
    assert values == {bool}
    assert any(False in event.values() for event in events) == with_false


def test_the_bytes_stay() -> None:
    """Figures that were measured on one seed can be compared as long as this holds."""
    found = []
    for popularity in ("zipf", "uniform"):
        spec = small_spec(2_000, 20, n_predicates=500, popularity=popularity, costs="varied")
        workload = operator_workload(spec)
        # Without the weights: powers may differ in their last bit between machines.
        found.append(digest(workload.costs, workload.selectivities, *workload[4:]))
    assert found == ["7a40610488037551", "46c866085b57a013"]


def test_nothing_is_a_workload_too() -> None:
    workload = as_workload(operator_workload(WorkloadSpec("tested", 0, 0, 0)))
    assert (workload.subscriptions.n_clauses, workload.events.n_events) == (0, 0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n": 3}, "unknown parameter 'n' of tested; there are: n_predicates, popularity"),
        ({"popularity": "flat"}, "popularity must be one of zipf, uniform, not 'flat'"),
        ({"matched_ratio": 0}, "matched_ratio must be a number from 1e-09 to 0.999, not 0"),
        ({"min_size": 6}, "min_size must not exceed max_size"),
        ({"n_predicates": 4}, "min_size must not exceed max_size, nor max_size n_predicates"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(mm.InputError, match=message):
        operator_workload(small_spec(**parameters))
