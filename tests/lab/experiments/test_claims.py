"""Claims are compared with figures: values, lines, tolerances, verdicts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from matchmill.errors import InputError
from matchmill.lab.experiments.claims import Judged, judge, read_parts, verdict_of
from matchmill.lab.experiments.facts import Fact, Facts
from matchmill.lab.experiments.results import SCHEMA, Results
from matchmill.lab.experiments.spec import parse_experiment

SPEC = """
title = "t"
paper = "BE-Tree"
shows = "Figure 99"
claim = "c."
measures = ["match"]
indexes = ["scan", "mill", "sift"]
[workload]
generator = "be_gen"
n_subscriptions = 100
n_events = 10
[grid]
zipf = [0.0, 1.0]
n_dimensions = [10, 100]
"""
# zipf, n_dimensions: µs of scan, mill and sift; None: failed
FIGURES: dict[tuple[float, int], tuple[float | None, ...]] = {
    (0.0, 10): (100, 10, 20),
    (0.0, 100): (200, 5, None),
    (1.0, 10): (100, 10, 30),
    (1.0, 100): (400, 40, 40),
}
FACTS = Facts(Path("facts.json"), {"sizes": Fact("t", "how", "m", ["part", "bytes"], [["a", 12]])})


def results() -> Results:
    rows: list[dict[str, Any]] = []
    for (zipf, n_dimensions), times in FIGURES.items():
        for name, time in zip(("scan", "mill", "sift"), times, strict=True):
            row: dict[str, Any] = {
                "labels": json.dumps({"zipf": zipf, "n_dimensions": n_dimensions}),
                "point": len(rows) // 3,
                "contender": name,
                "status": "failed" if time is None else "ok",
                "us_per_event": time,
                "build_seconds": 7.0,
            }
            rows.append(row)
    table = pa.Table.from_pylist(rows, SCHEMA)
    return Results(Path("x"), parse_experiment(SPEC), {}, {"scale": "full"}, table)


def outcome(value: str, relation: str, number: float, **more: Any) -> Judged:
    check = {"says": "s", "value": value, "is": relation, "paper": number, **more}
    (found,) = judge(results(), read_parts([check], ["match"], "here"), FACTS, "here")
    return found


UNIFORM = {"zipf": 0.0, "n_dimensions": 10}
FIRST_LINE = {"zipf": 0.0}
SECOND_LINE = {"zipf": 1.0}


@pytest.mark.parametrize(
    ("value", "at", "along", "expected"),
    [
        ("mill", UNIFORM, "", 10),
        ("mill / scan", UNIFORM, "", 0.1),
        ("(mill + 2 * scan - 10) / 4", UNIFORM, "", 50),
        ("least(scan, mill, sift)", UNIFORM, "", 10),
        ("most(scan, mill, sift)", UNIFORM, "", 100),
        ("missing(sift)", UNIFORM, "", 0),
        ("missing(sift)", {"zipf": 0.0, "n_dimensions": 100}, "", 1),
        ("most(mill, sift)", {"zipf": 0.0, "n_dimensions": 100}, "", 5),
        ("build_seconds(mill) * 2", UNIFORM, "", 14),
        ("fact('sizes', 'a', 'bytes')", UNIFORM, "", 12),
        ("first(scan)", FIRST_LINE, "n_dimensions", 100),
        ("last(scan / mill)", FIRST_LINE, "n_dimensions", 40),
        ("where(scan, 100)", FIRST_LINE, "n_dimensions", 200),
        ("highest(mill)", FIRST_LINE, "n_dimensions", 10),
        ("lowest(mill)", FIRST_LINE, "n_dimensions", 5),
        ("step_most(scan)", FIRST_LINE, "n_dimensions", 2),
        ("step_least(mill)", FIRST_LINE, "n_dimensions", 0.5),
        ("exponent(mill)", SECOND_LINE, "n_dimensions", 0.602),
        ("build_seconds(last(scan))", FIRST_LINE, "n_dimensions", 7),
    ],
)
def test_values(value: str, at: dict[str, float], along: str, expected: float) -> None:
    found = outcome(value, "~", 1, at=at, along=along).value
    assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("relation", "number", "holds"),
    [
        ("<=", 0.1, True), ("<=", 0.0908, False), ("<=", 0.092, True), ("<=", 1, True),
        (">=", 0.1, True), (">=", 0.109, True), (">=", 0.12, False), (">=", 1, False),
        ("<", 0.092, True), ("<", 0.09, False), (">", 0.109, True), (">", 0.112, False),
        ("~", 0.109, True), ("~", 0.092, True), ("~", 0.12, False), ("~", 0.08, False),
    ],
)  # fmt: skip
def test_numbers_of_the_paper_count_within_a_tenth(
    relation: str, number: float, holds: bool
) -> None:
    assert outcome("mill / scan", relation, number, at=UNIFORM).holds is holds


def test_an_order_and_a_reading_of_ours_hold_as_they_are() -> None:
    at = {"zipf": 1.0, "n_dimensions": 100}
    assert outcome("mill / sift", "<=", 1, at=at).holds is True
    assert outcome("mill / sift", "<", 1, at=at).holds is False
    assert outcome("mill / 39", "<=", 1, at=at).holds is False
    assert outcome("mill / 39", "<=", 1, at=at, tolerance=0.05).holds is True
    ours = [{"says": "s", "value": "mill", "is": "<=", "ours": 39, "at": at}]
    (part,) = read_parts(ours, ["match"], "here")
    (found,) = judge(results(), [part], FACTS, "here")
    assert found.holds is False
    assert part.paper_text == "at most 39 (our reading)"


def test_a_part_holds_only_if_it_holds_everywhere_and_the_worst_point_is_shown() -> None:
    found = outcome("mill", "<=", 20)
    assert (found.holds, found.value, found.n_points, found.n_good) == (False, 40, 4, 3)
    assert found.labels == {"zipf": 1.0, "n_dimensions": 100}
    found = outcome("last(mill) / first(mill)", "<=", 1, along="n_dimensions")
    assert (found.holds, found.value, found.n_points) == (False, 4, 2)
    assert found.labels == {"zipf": 1.0}
    assert outcome("mill", "<=", 20, at={"n_dimensions": [10]}).n_points == 2


def test_a_number_of_facts_alone_has_no_points() -> None:
    found = outcome("fact('sizes', 'a', 'bytes') / 2", "<=", 6)
    assert (found.holds, found.value, found.n_points, found.labels) == (True, 6, 1, {})


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"value": "be_tree"}, "there is no contender 'be_tree'"),
        ({"value": "sift"}, "sift has no us_per_event at"),
        ({"value": "open('x')"}, "there is no function 'open'"),
        ({"value": "mill.real"}, "'mill.real' is not of the language"),
        ({"value": "mill ** 2"}, "is not of the language"),
        ({"value": "least(mill, key=scan)"}, "is not of the language"),
        ({"value": "mill / 0"}, "divides by zero"),
        ({"value": "mill /"}, "invalid syntax"),
        ({"value": "first(mill)"}, "first needs `along`"),
        ({"value": "mill", "along": "n_dimensions"}, "mill has 2 values along n_dimensions"),
        ({"value": "where(mill, 11)", "along": "n_dimensions"}, "takes a place of n_dimensions"),
        ({"value": "fact('sizes', 'b', 'bytes')"}, "there is no 'b', 'bytes'"),
        ({"value": "fact('none', 'b', 'bytes')"}, "has no table 'none'"),
        ({"at": {"zipf": 3}}, "there is no point"),
        ({"at": {"size": 3}}, "'size' is no label"),
        ({"value": "first(mill)", "along": "size"}, "'size' is no label"),
    ],
)
def test_what_cannot_be_compared_is_an_error(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=re.escape(complaint)):
        outcome(**{"value": "mill", "relation": "<=", "number": 1, **change})


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([], "at least one part"),
        ([{"value": "mill"}], "`says` is missing"),
        ([{"says": "s", "value": "mill", "is": "=", "paper": 1}], "`is` is one of"),
        ([{"says": "s", "value": "mill", "is": "<="}], "`paper` is the paper's number"),
        ([{"says": "s", "is": "<=", "paper": 1}], "`value` is missing"),
        ([{"says": "s", "value": "m", "is": "<", "paper": 1, "ours": 2}], "one or the other"),
        ([{"says": "s", "values": "m", "is": "<", "paper": 1}], "values is unknown"),
        ([{"says": "s", "of": "time"}], "`of` is one of"),
        ([{"says": "s", "undecided": "w", "paper": 1}], "`says` and `undecided` alone"),
    ],
)
def test_what_is_not_a_check_is_an_error(rows: list[dict[str, Any]], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        read_parts(rows, ["match"], "here")


def test_verdicts_follow() -> None:
    good = outcome("mill", "<=", 1000)
    bad = outcome("mill", "<=", 1)
    (open_part,) = judge(
        results(), read_parts([{"says": "s", "undecided": "w"}], ["match"], ""), FACTS, ""
    )
    assert verdict_of([good, good]) == "holds"
    assert verdict_of([good, bad]) == "holds in part"
    assert verdict_of([good, open_part]) == "holds in part"
    assert verdict_of([bad, open_part]) == "does not hold"
    assert verdict_of([bad]) == "does not hold"
    assert verdict_of([open_part]) == "cannot be decided"
