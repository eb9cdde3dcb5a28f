"""The standard workloads, small ones of them, are what their descriptions say."""

from __future__ import annotations

import numpy as np
import pytest

from matchmill.errors import InputError
from matchmill.lab.workloads.ads import ads
from matchmill.lab.workloads.be_gen import be_gen
from matchmill.lab.workloads.characteristics import clause_truths, measure
from matchmill.lab.workloads.flat import FlatEvents, FlatSubscriptions, IntegerDomain, Workload
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.lab.workloads.standard import STANDARD, standard

BY_NAME = {"be_gen": be_gen, "ads": ads}


def test_sizes() -> None:
    assert {"be1", "be01", "dense", "30k", "zipf", "eq0", "ads", "flights"} == STANDARD.keys()
    for name in ("be1", "be01", "dense", "30k", "zipf", "eq0"):
        assert standard(name).n_subscriptions == 1_000_000
    assert standard("ads").n_subscriptions == 3_000_000
    assert standard("be1", scale=0.01).n_subscriptions == 10_000
    assert standard("be1", scale=1e-9).n_subscriptions == 1
    assert standard("be1", scale=2).parameters == STANDARD["be1"].parameters


def test_bad_names() -> None:
    with pytest.raises(InputError, match="unknown workload 'be2'; there are: be1, be01"):
        standard("be2")
    with pytest.raises(InputError, match="scale must be above 0"):
        standard("be1", scale=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "probability", "equal"),
    [
        ("be1", 0.01, 0.3),
        ("be01", 0.001, 0.3),
        ("dense", 0.001, 0.6),
        ("zipf", 0.001, 0.3),
        ("eq0", 0.01, 0.0),
    ],
)
def test_figures(name: str, probability: float, equal: float) -> None:
    spec = standard(name, scale=0.01).changed(n_events=200)
    got = measure(BY_NAME[spec.generator](spec), n_events=200, n_subscriptions=10_000)
    assert got.matching_probability == pytest.approx(probability, rel=0.06)
    assert got.share_equal == pytest.approx(equal, abs=0.01)
    size = spec.parameters["subscription_size"]
    assert got.mean_subscription_size == pytest.approx(size, rel=0.01)


# -- the measures themselves ----------------------------------------------------------------------


def one_of_each() -> Workload:
    """Attribute 0 with the values 1 … 9; subscription 8 has two clauses, 9 has no predicate."""
    sets = [
        [(3, 3)],
        [(1, 4), (6, 9)],
        [(2, 5)],
        [(2, 2), (4, 4)],
        [(1, 1), (3, 6), (8, 9)],
        [(0, 0)],
        [(0, 3)],
        [(2, 3), (6, 7)],
        [(1, 2)],
        [(2, 3)],
    ]
    flat = FlatSubscriptions(
        np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9]),
        np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10]),
        np.zeros(10, np.int32),
        np.cumsum([0, *map(len, sets)]),
        np.array([low for intervals in sets for low, _ in intervals]),
        np.array([high for intervals in sets for _, high in intervals]),
    )
    events = FlatEvents(np.array([0, 1, 1]), np.zeros(1, np.int32), np.array([2]))
    return Workload(WorkloadSpec("by hand", 10, 2), IntegerDomain(1, 9), flat, events, events)


def test_measures_by_hand() -> None:
    made = one_of_each()
    truths = [np.flatnonzero(t).tolist() for t in clause_truths(made.subscriptions, made.events)]
    assert truths == [[1, 2, 3, 6, 7, 8, 9, 10], [5, 6, 10]]
    got = measure(made)
    assert got.matching_probability == (7 + 3) / 20
    assert (got.n_subscriptions, got.n_events) == (10, 2)
    assert (got.min_subscription_size, got.max_subscription_size) == (0, 1)
    assert (got.min_event_size, got.mean_event_size, got.max_event_size) == (0, 0.5, 1)
    assert got.share_equal == got.share_not_equal == got.share_in == got.share_not_in == 0.1
    assert got.share_range == pytest.approx(0.3)
    assert got.share_null == 0.2
    assert got.share_other == 0.1
    assert (got.n_attributes_used, got.n_distinct_predicates) == (1, 10)


def test_a_sample_is_near_the_whole() -> None:
    made = be_gen(standard("be1", scale=0.02).changed(n_events=200, operators="high"))
    whole = measure(made, n_events=200, n_subscriptions=20_000)
    part = measure(made, n_events=100, n_subscriptions=8000)
    assert part.matching_probability == pytest.approx(whole.matching_probability, rel=0.1)
    assert part._replace(matching_probability=0) == whole._replace(matching_probability=0)
