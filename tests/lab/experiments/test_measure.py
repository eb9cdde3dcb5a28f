"""A bench that can be believed: wrong answers are found, and one bad contender harms no other."""

from __future__ import annotations

import numpy as np
import pytest

from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches
from matchmill.index.event_sample import build_statistics
from matchmill.lab.experiments.match_digests import judge, summarize
from matchmill.lab.experiments.measure import measure
from matchmill.lab.experiments.measurement import Budget, Clock, Measurement
from matchmill.lab.experiments.spec import Contender, Point
from matchmill.lab.workloads.spec import WorkloadSpec
from tests.support.toy_experiments import toys  # noqa: F401

pytestmark = pytest.mark.usefixtures("toys")

SMALL = WorkloadSpec("toy", n_subscriptions=200, n_events=32, n_training_events=16)


def run(
    *names: str,
    workload: WorkloadSpec = SMALL,
    rounds: int = 3,
    seconds: float = 20.0,
    n_bytes: int = 1 << 30,
    clock: Clock = "wall",
) -> dict[str, Measurement]:
    point = Point(workload, {}, {})
    contenders = [Contender(name, name, {}) for name in names]
    budget = Budget(seconds, n_bytes, 10.0, clock)
    found = measure(point, contenders, rounds=rounds, budget=budget)
    assert [m.contender.name for m in found] == list(names)
    return {m.contender.name: m for m in found}


def test_figures_of_good_contenders() -> None:
    found = run("scan", "reversed", "counting")
    assert {m.status for m in found.values()} == {"ok"}
    assert len({(m.digest, m.n_matches, m.n_events) for m in found.values()}) == 1
    scan = found["scan"]
    assert len(scan.rounds) == 3
    assert min(scan.rounds) > 0
    assert scan.n_matches
    assert scan.candidates_per_event == scan.n_clauses == 200
    assert scan.reference == "scan"
    assert scan.build_seconds is not None
    assert scan.index_bytes
    assert {m.race for m in found.values()} == {0}


def test_one_missing_match_in_a_million_is_found() -> None:
    many = WorkloadSpec("toy", 2000, 520, 8, parameters={"cardinality": 4, "width": 4})
    found = run("wrapped", "drops_one", workload=many, rounds=1)
    assert found["wrapped"].status == "ok"
    assert found["wrapped"].n_matches == 2000 * 520 >= 1_000_000
    assert found["drops_one"].status == "wrong"
    assert found["drops_one"].n_matches == 2000 * 520 - 1
    assert "event 519: 1,999 instead of 2,000" in found["drops_one"].reason


def test_wrong_answers_of_every_kind_are_found() -> None:
    found = run("swaps_one", "gives_twice", "moody", "reversed")
    assert {name: m.status for name, m in found.items()} == {
        "swaps_one": "wrong",
        "gives_twice": "wrong",
        "moody": "wrong",
        "reversed": "ok",
    }
    assert "event 4" in found["swaps_one"].reason
    assert "and not the same" in found["swaps_one"].reason
    assert found["gives_twice"].reason == "event 31: a clause is given twice"
    assert "differently" in found["moody"].reason


def test_two_clauses_of_one_subscription_are_one_match() -> None:
    pairs = SMALL.changed(pairs=True, width=10)
    found = run("scan", "wrapped", workload=pairs)
    (n_matches,) = {m.n_matches for m in found.values()}
    assert n_matches is not None
    assert n_matches <= 200 * 32
    assert found["scan"].n_clauses == 400


def test_one_bad_contender_harms_no_other() -> None:
    found = run(
        "scan", "fails", "slow_to_build", "hungry", "dies", "fails_late", "be_bush", "wrapped",
        seconds=0.7,
    )  # fmt: skip
    assert {name: m.status for name, m in found.items()} == {
        "scan": "ok",
        "fails": "failed",
        "slow_to_build": "slow",
        "hungry": "memory",
        "dies": "failed",
        "fails_late": "failed",
        "be_bush": "absent",
        "wrapped": "ok",
    }
    assert "building: ValueError: no more than 64 clauses" in found["fails"].reason
    assert found["slow_to_build"].reason == "building took more than 0.7 s"
    assert "1 GiB" in found["hungry"].reason
    assert "SIGSEGV" in found["dies"].reason
    assert "ZeroDivisionError: in a later round" in found["fails_late"].reason
    assert "be_bush" in found["be_bush"].reason
    assert len(found["scan"].rounds) == len(found["wrapped"].rounds) == 3


@pytest.mark.slow
def test_a_slow_one_is_measured_on_fewer_events() -> None:
    found = run("scan", "slow_to_match", seconds=3.0)
    assert found["scan"].n_events == 32
    assert 4 <= found["slow_to_match"].n_events < 32
    assert found["slow_to_match"].status == "ok"
    assert found["slow_to_match"].rounds[0] > 40_000


@pytest.mark.slow
def test_cpu_time_does_not_count_waiting() -> None:
    found = run("scan", "slow_to_match", seconds=3.0, clock="cpu")
    assert found["slow_to_match"].status == "ok"
    assert 0 < found["slow_to_match"].rounds[0] < 40_000


def test_one_too_slow_for_a_few_events_is_left_out() -> None:
    found = run("scan", "slow_to_match", seconds=0.5)
    assert found["slow_to_match"].status == "slow"
    assert "one event takes" in found["slow_to_match"].reason


def test_a_workload_that_cannot_be_made() -> None:
    found = run("scan", "be_bush", workload=SMALL.changed(colour="red"))
    assert found["scan"].status == "no workload"
    assert "no parameter 'colour'" in found["scan"].reason
    assert found["be_bush"].status == "absent"


def test_a_contender_may_go_without_statistics() -> None:
    contenders = [
        Contender("with", "needs_statistics", {}),
        Contender("without", "needs_statistics", {}, statistics=False),
    ]
    point = Point(SMALL, {}, {})
    found = measure(point, contenders, rounds=1, budget=Budget(20.0, 1 << 30))
    assert [m.status for m in found] == ["ok", "failed"]
    assert "there are no statistics" in found[1].reason
    found = measure(point, contenders, rounds=1, budget=Budget(20.0, 1 << 30), statistics=False)
    assert [m.status for m in found] == ["failed", "failed"]


def test_the_majority_decides_where_the_scan_has_stopped() -> None:
    owners = np.arange(10)
    right = summarize(ClauseMatches(np.array([0, 2, 3]), np.array([1, 2, 3])), owners, 2)
    wrong = summarize(ClauseMatches(np.array([0, 2, 3]), np.array([1, 2, 4])), owners, 2)
    scan = summarize(ClauseMatches(np.array([0, 2]), np.array([2, 1])), owners, 1)
    verdicts = judge({"c": wrong, "a": right, "b": right}, scan)
    assert verdicts["a"] == verdicts["b"] == ("", "scan for 1 of 2 events, then majority")
    assert "the majority" in verdicts["c"].problem
    assert right.total != wrong.total


def test_events_that_change_places_change_the_digest() -> None:
    owners = np.arange(10)
    one = summarize(ClauseMatches(np.array([0, 1, 2]), np.array([1, 2])), owners, 2)
    other = summarize(ClauseMatches(np.array([0, 1, 2]), np.array([2, 1])), owners, 2)
    assert one.total != other.total


@pytest.mark.parametrize(
    ("matches", "problem"),
    [
        (ClauseMatches(np.array([0, 1]), np.array([1])), "2 offsets do not fit 2 events"),
        (ClauseMatches(np.array([0, 1, 1]), np.array([10])), "does not exist"),
        (ClauseMatches(np.array([0, 1, 1]), np.array([-1])), "does not exist"),
    ],
)
def test_answers_without_form(matches: ClauseMatches, problem: str) -> None:
    assert problem in summarize(matches, np.arange(10), 2).problem


def test_statistics_of_training_events() -> None:
    events = EventBatch(np.array([0, 2, 3]), np.array([0, 2, 2], np.int32), np.array([5, 9, 3]))
    statistics = build_statistics(events, 4)
    assert statistics.n_events == 2
    assert statistics.dimension_counts.tolist() == [1, 0, 2, 0]
    assert statistics.sample_offsets.tolist() == [0, 1, 1, 3, 3]
    assert statistics.sample_keys.tolist() == [5, 3, 9]


# -- predicate indexes ---------------------------------------------------------------------------


def test_predicate_indexes_are_measured_like_indexes() -> None:
    names = ("scan", "interval_tree", "segment_tree", "ordered_list", "domain_table", "be_bush")
    contenders = [Contender(name, name, {}, is_predicate_index=True) for name in names]
    contenders.append(
        Contender("narrow", "domain_table", {"max_values": 8}, is_predicate_index=True)
    )
    workload = SMALL.changed(width=3)
    budget = Budget(20.0, 1 << 30, 10.0)
    found = measure(Point(workload, {}, {}), contenders, rounds=1, budget=budget)
    assert [m.status for m in found] == ["ok"] * 5 + ["absent", "ok"]
    assert found[5].reason == "there is no predicate index 'be_bush' in the registry"
    measured = [m for m in found if m.status == "ok"]
    (index,) = run("counting", workload=workload).values()
    assert {m.digest for m in measured} == {index.digest}
    assert {m.reference for m in measured} == {"scan"}
    assert all(m.index_bytes for m in measured)


def test_predicate_indexes_reject_what_is_not_one_predicate() -> None:
    several = Point(WorkloadSpec("two_stage", 100, 8, 8, parameters=SUBSCRIPTIONS), {}, {})
    (found,) = measure(several, [Contender("scan", "scan", {}, is_predicate_index=True)], rounds=1)
    assert found.status == "failed"
    assert "clauses of one predicate" in found.reason


SUBSCRIPTIONS = {"workload": "subscriptions"}
