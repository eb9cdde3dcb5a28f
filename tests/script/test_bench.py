"""What `script/bench` measures with: engines from flat arrays, rules of others, its own checks."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from benchmarks import files, mixed, one, threads
from benchmarks.standard import chosen
from benchmarks.support.flat_engine import encode_workload, save_engine, take_subscriptions
from benchmarks.support.rules import PYTHON, RULE_ENGINE, written
from benchmarks.support.timing import Spread, Target, interleaved, ratio
from benchmarks.support.workers import Worker
from matchmill.encoding.clause_encoder import ClauseEncoder
from matchmill.errors import InputError
from matchmill.index.registry import INDEXES
from matchmill.lab.experiments.spec import load_experiment, points
from matchmill.lab.workloads.flat import Workload, event_dicts, subscription_texts
from matchmill.lab.workloads.flight_alerts import flight_alerts, load_flights
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.lab.workloads.standard import standard
from matchmill.language.evaluate import evaluate
from matchmill.language.normal_form import normalize
from tests.support.toy_experiments import Wrapped

# -- engines from flat arrays ---------------------------------------------------------------------

WORKLOADS = {
    "be01": standard("be01").changed(n_subscriptions=1500, n_events=40),
    "every operator": standard("be1").changed(n_subscriptions=1500, n_events=40, operators="high"),
    "few values": standard("be1").changed(
        n_subscriptions=800, n_events=40, cardinality=4, n_dimensions=30, operators="high"
    ),
    "ads": standard("ads").changed(n_subscriptions=1500, n_events=40),
}
every_workload = pytest.mark.parametrize("spec", WORKLOADS.values(), ids=WORKLOADS)


@every_workload
def test_flat_arrays_are_encoded_as_their_texts_are(spec: WorkloadSpec) -> None:
    """All values are cut points already, so the texts add none, and the tables must be equal."""
    workload = generate(spec)
    dimensions, table = encode_workload(workload)
    n_cuts = dimensions.n_cuts
    encoder = ClauseEncoder(dimensions)
    for _, text in subscription_texts(workload):
        encoder.add(normalize(mm.parse(text), 64).clauses)
    encoded = encoder.finish(table.clause_ids)
    assert encoded.dimensions.n_cuts == n_cuts
    assert encoded.relabellings == {}
    for name, ours, theirs in zip(table._fields, table, encoded.table, strict=True):
        assert np.array_equal(ours, theirs), name


@every_workload
def test_a_saved_engine_answers_as_one_that_was_given_texts(
    spec: WorkloadSpec, tmp_path: Path
) -> None:
    workload = generate(spec)
    rows = np.arange(0, spec.n_subscriptions, 2)
    some = take_subscriptions(workload, rows)
    save_engine(some, tmp_path / "engine", ids=rows.tolist())
    opened = mm.Engine.open(tmp_path / "engine", verify=True)
    given = mm.Engine()
    given.subscribe_many((i, text) for i, text in subscription_texts(workload) if i % 2 == 0)
    assert list(opened) == list(given) == rows.tolist()
    assert all(opened[i].expression == given[i].expression for i in rows.tolist())
    events = list(event_dicts(workload))
    assert list(opened.match_many(events)) == list(given.match_many(events))
    assert sum(opened.match_many(events).counts) > 0
    opened.subscribe(-1, "a0 = 1")
    opened.unsubscribe(0)
    assert -1 in opened.match({"a0": 1})
    assert 0 not in opened
    opened.close()


def test_disjunctions_are_refused(tmp_path: Path) -> None:
    workload = generate(WORKLOADS["be01"].changed(n_subscriptions=10))
    flat = workload.subscriptions
    pairs = workload._replace(subscriptions=flat._replace(owners=flat.owners // 2))
    with pytest.raises(InputError, match="not plain conjunctions"):
        save_engine(pairs, tmp_path / "engine")


# -- rules of others ------------------------------------------------------------------------------


def flights_with_gaps() -> list[dict[str, Any]]:
    """Every 20th flight of a day is enough for cancelled ones among them."""
    flights = load_flights()
    cancelled = np.flatnonzero(flights["dep_time"].is_null().to_numpy())[:20]
    rows = np.concatenate((np.arange(0, flights.num_rows, flights.num_rows // 60), cancelled))
    events: list[dict[str, Any]] = flights.take(rows).to_pylist()
    return events


def test_python_functions_mean_what_the_alerts_mean() -> None:
    assert_same_meaning(PYTHON, lambda text: eval(f"lambda e: {text}"), n_alerts=400)


def test_rules_mean_what_the_alerts_mean() -> None:
    rule_engine = pytest.importorskip("rule_engine")
    assert_same_meaning(RULE_ENGINE, lambda text: rule_engine.Rule(text).matches, n_alerts=60)


def assert_same_meaning(dialect: Any, compiled: Callable[[str], Any], n_alerts: int) -> None:
    events = flights_with_gaps()
    nullable = frozenset(name for event in events for name in event if event[name] is None)
    assert "dep_time" in nullable
    for _, text in flight_alerts(n_alerts):
        expression = mm.parse(text)
        holds = compiled(written(expression, dialect, nullable))
        for event in events:
            assert bool(holds(event)) == (evaluate(expression, event) is True), (text, event)


# -- contenders and figures -----------------------------------------------------------------------


def test_any_index_of_the_registry_can_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(INDEXES, "wrapped", Wrapped)
    experiment = load_experiment("matchmill/standard")
    got = chosen(experiment, ["wrapped", "mill_no_statistics"], ["ads", "be1"], 0.01, 100)
    assert [(c.name, c.index, c.statistics) for c in got.contenders] == [
        ("mill", "mill", True),
        ("wrapped", "wrapped", True),
        ("mill_no_statistics", "mill", False),
    ]
    todo = points(got, "full")
    assert [p.labels["case"] for p in todo] == ["ads", "be1"]
    assert [p.workload.n_subscriptions for p in todo] == [30_000, 10_000]
    assert {p.workload.n_events for p in todo} == {100}
    assert got.text != experiment.text
    for contenders, cases, problem in (
        (["bush"], None, "no contender 'bush'; there are: auto, be_tree, be_tree_plain, bitmaps"),
        (["scan"], ["be2"], "no workload 'be2'; there are: be1"),
    ):
        with pytest.raises(InputError, match=problem):
            chosen(experiment, contenders, cases, 1, None)


def test_spreads_ratios_and_targets() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)
    assert str(Spread.of([1234.5, 0.01234, 12.345])) == "12.3 (0.0123 … 1,234)"
    assert ratio([2.0, 6.0, 4.0], [1.0, 2.0, 4.0]) == (2.0, 1.0, 3.0)
    assert Target("≥", 6, "x").verdict(6.0) == "≥ 6x met"
    assert Target("≤", 1.5, "x").verdict(1.6) == "≤ 1.5x MISSED"
    calls: list[str] = []
    seconds = interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 3)
    assert calls[:2] == ["a", "b"]
    assert sorted(calls) == ["a"] * 4 + ["b"] * 4
    assert [len(values) for values in seconds.values()] == [3, 3]


# -- updates --------------------------------------------------------------------------------------


class Here:
    """In the place of a worker: the same calls, in this process."""

    def __init__(self, made: object) -> None:
        self.made = made

    def call(self, method: str, *arguments: object) -> Any:
        return getattr(self.made, method)(*arguments)


class Forgetful(mixed.Player):
    """Does not take anything back."""

    def play(self, operations: Any) -> Any:
        return super().play([o for o in operations if isinstance(o, int) or o[1] is not None])


@pytest.mark.parametrize(("player", "is_right"), [(mixed.Player, True), (Forgetful, False)])
def test_wrong_answers_after_updates_are_found(
    player: Any, is_right: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = generate(
        standard("be1").changed(
            n_subscriptions=340, n_events=30, n_dimensions=30, matching_probability=0.1
        )
    )
    first: Workload = take_subscriptions(workload, np.arange(300))
    save_engine(first, tmp_path / "engine")
    events = list(event_dicts(workload))
    newcomers = list(subscription_texts(workload, 300))
    assert len(newcomers) == 40
    pure = Here(mixed.Player(tmp_path / "engine", events, None))
    other = Here(player(tmp_path / "engine", events, "never"))
    game = mixed.Game(pure, other, workload, 300, newcomers)  # type: ignore[arg-type]
    for operations in mixed.operations_of(300, newcomers, 4000, 2, 30):
        game.play(operations)
        game.check()
    assert game.n_checked == 60
    assert (game.n_wrong == 0) == is_right
    game.check_at_end(tmp_path / "fresh")
    game.report()
    assert (game.n_wrong == 0) == is_right
    assert f"90 answers compared, {game.n_wrong} differ" in capsys.readouterr().out


def test_a_worker_hands_back_results_and_errors() -> None:
    with Worker(list, [3, 1, 2]) as worker:
        worker.call("sort")
        assert worker.call("pop") == 3
        with pytest.raises(RuntimeError, match="pop index out of range"):
            worker.call("pop", 99)
        assert worker.call("copy") == [1, 2]


# -- the commands ---------------------------------------------------------------------------------


def run(command: Any, *words: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return int(command.run(parser.parse_args(words)))


@pytest.mark.long
def test_commands_run_at_small_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(mixed, "-n", "2000", "--operations", "1000", "--slices", "4") == 0
    assert "0 differ" in capsys.readouterr().out
    assert run(files, "-n", "3000", "--processes", "2", "--rounds", "2") == 0
    assert "PSS added up" in capsys.readouterr().out
    assert run(threads, "-n", "3000", "--events", "200", "--rounds", "2") == 0
    assert "times as fast as one" in capsys.readouterr().out


@pytest.mark.slow
def test_one_event(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rule_engine")
    assert run(one, "-n", "50", "--events", "100", "--rounds", "2") == 0
    assert "rule-engine" in capsys.readouterr().out
