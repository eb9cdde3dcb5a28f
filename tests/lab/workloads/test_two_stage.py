"""The two-stage paper's workloads: domains, operators, different predicates, text like arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.lab.workloads.flat import Workload, event_dicts, subscription_texts
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.lab.workloads.two_stage import two_stage
from tests.lab.workloads.test_op_index import (
    check_form,
    matches_of_arrays,
    matches_of_texts,
    small_spec,
    workload_digest,
)


def bounds(workload: Workload, attribute: int) -> tuple[Any, Any]:
    domain = workload.domain
    return domain.value(attribute, 1), domain.value(attribute, domain.n_values(attribute))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("w0", [(1, 100)] * 3),
        ("w1", [(1_000, 10_000)] * 3),
        ("w2", [(100_000, 1_000_000)] * 3),
        ("w3", [(1, 100), (1_000, 10_000), (100_000, 1_000_000)]),
    ],
)
def test_predicate_workloads(name: str, expected: list[tuple[int, int]]) -> None:
    workload = two_stage(small_spec(20_000, 30, workload=name))
    check_form(workload)
    assert [bounds(workload, a) for a in range(3)] == expected
    assert workload.domain.n_attributes == 100
    flat = workload.subscriptions
    assert (np.diff(flat.clause_offsets) == 1).all()
    assert (np.diff(workload.events.offsets) == 100).all()
    # Two intervals are `!=`; all but a few of the others show their operator, too.
    n_values = np.array([workload.domain.n_values(a) for a in range(100)])[flat.attributes]
    n_intervals = np.diff(flat.interval_offsets)
    first = flat.interval_offsets[:-1]
    is_equality = (flat.lows == flat.highs)[first] & (n_intervals == 1)
    is_less = (flat.lows[first] == 1) & (n_intervals == 1) & ~is_equality
    is_greater = (flat.highs[first] == n_values) & (n_intervals == 1) & ~is_equality & ~is_less
    for kind in (n_intervals == 2, is_equality, is_less, is_greater):
        # W0 has taken half of all its predicates.
        assert kind.mean() == pytest.approx(0.25, abs=0.015)


def test_all_different_predicates() -> None:
    """3 attributes of 5 values: 5 `=`, 5 `!=`, 4 `<` and 4 `>` each."""
    workload = two_stage(small_spec(54, 40, n_attributes=3, highest=5))
    check_form(workload)
    texts = [text for _, text in subscription_texts(workload)]
    # Operators at the ends are sets that other operators give: < 2 is = 1, != 1 is > 1 ...
    assert len(set(texts)) == 3 * 14
    assert np.bincount(workload.subscriptions.attributes).tolist() == [18, 18, 18]
    with pytest.raises(mm.InputError, match=r"there are 54 different predicates .* = 55"):
        two_stage(small_spec(55, 40, n_attributes=3, highest=5))


def test_mixture_goes_on_when_the_small_domains_are_exhausted() -> None:
    workload = two_stage(small_spec(60_000, 0, workload="w3"))
    counts = np.bincount(workload.subscriptions.attributes)
    assert counts[0::3].max() <= 398
    assert counts[2::3].min() > 600


def test_subscription_workload() -> None:
    workload = two_stage(small_spec(5_000, 50, workload="subscriptions"))
    check_form(workload)
    flat = workload.subscriptions
    assert (np.diff(flat.clause_offsets) == 5).all()
    assert workload.domain.n_attributes == 10
    assert bounds(workload, 9) == (1, 10)
    counts = np.bincount(flat.attributes)
    assert counts.min() > 0.9 * counts.max()


@pytest.mark.parametrize(
    "parameters",
    [
        {"workload": "w0", "event_size": 40},
        {"workload": "w3"},
        {"workload": "subscriptions"},
        {"workload": "subscriptions", "size": 2, "event_size": 4, "lowest": 3, "highest": 4},
    ],
)
def test_text_means_what_the_arrays_mean(parameters: dict[str, Any]) -> None:
    workload = two_stage(small_spec(**parameters))
    check_form(workload)
    expected = matches_of_arrays(workload)
    assert sum(map(len, expected)) > 100
    assert matches_of_texts(subscription_texts(workload), event_dicts(workload)) == expected


def test_the_bytes_stay() -> None:
    """Figures that were measured on one seed can be compared as long as this holds."""
    names = ("w0", "w1", "w2", "w3", "subscriptions")
    found = [workload_digest(two_stage(small_spec(2_000, 20, workload=name))) for name in names]
    assert found == [
        "2d775bc3843ffb12",
        "5d819cbd9d6908a8",
        "f4e4adcd5c294dff",
        "abaa444cebdfee05",
        "53465883423e6f0e",
    ]


def test_nothing_is_a_workload_too() -> None:
    for name in ("w0", "subscriptions"):
        workload = two_stage(WorkloadSpec("tested", 0, 0, 0, parameters={"workload": name}))
        assert (workload.subscriptions.n_clauses, workload.events.n_events) == (0, 0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"domain": 3}, "unknown parameter 'domain' of tested; there are: workload, n_attributes"),
        ({"workload": "w4"}, "workload must be one of w0, w1, w2, w3, subscriptions, not 'w4'"),
        ({"lowest": 100}, "lowest must be less than highest, not 100 and 100"),
        ({"size": 101}, "size is 101, more than the 100 attributes"),
        ({"event_size": 101}, "event_size is 101, more than the 100 attributes"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(mm.InputError, match=message):
        two_stage(small_spec(**parameters))
