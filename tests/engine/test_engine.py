"""The engine: what users call, against the oracle and against itself after every kind of change."""

from __future__ import annotations

import datetime as dt
import json
import threading
import uuid
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchmill as mm
from matchmill.index.segments import Segmented, Snapshot
from tests.support.generators import cases, random_event, random_expression
from tests.support.strategies import events, expressions
from tests.support.tiers import first_cases

# The conformance kit has all of them; here they only have to be wired up.
by_index = pytest.mark.parametrize("index", ["counting", "mill", "scan", "sql_pivot"])


def small(index: str = "mill", **settings: Any) -> mm.Engine:
    """An engine that builds and merges segments all the time."""
    return mm.Engine(index=index, settings=mm.Settings(fresh_clauses=4, merge_factor=2, **settings))


def expected(subscriptions: dict[Any, mm.Expression], event: dict[str, Any]) -> set[Any]:
    return {key for key, e in subscriptions.items() if mm.evaluate(e, event) is True}


def test_the_example() -> None:
    engine = mm.Engine()
    engine.subscribe("u42", "origin = 'JFK' and dep_delay > 60")
    assert engine.match({"origin": "JFK", "dep_delay": 75}) == {"u42"}
    assert engine.match({"origin": "JFK", "dep_delay": 45}) == set()
    assert "u42" in engine
    assert len(engine) == 1
    assert list(engine) == ["u42"]
    assert mm.parse(engine["u42"].expression) == mm.parse("origin = 'JFK' and dep_delay > 60")
    assert "45" in str(engine.explain("u42", {"origin": "JFK", "dep_delay": 45}))
    engine.unsubscribe("u42")
    assert engine.match({"origin": "JFK", "dep_delay": 75}) == set()
    assert len(engine) == 0


@by_index
def test_generated_pairs(index: str) -> None:
    some, happened = cases(7, 150, 60)
    engine = small(index)
    report = engine.subscribe_many(enumerate(some))
    assert (report.n_accepted, report.rejected) == (150, [])
    matches = engine.match_many(happened)
    subscriptions = dict(enumerate(some))
    for event, got in zip(happened, matches, strict=True):
        assert got == expected(subscriptions, event)


@given(
    st.lists(expressions(max_leaves=6), min_size=1, max_size=5),
    st.lists(events(), min_size=1, max_size=3),
    st.integers(1, 4),
)
def test_shrinking_cases(
    some: list[mm.Expression], happened: list[dict[str, Any]], max_clauses: int
) -> None:
    """Beyond the clause limit the answers stay exact."""
    engine = small(max_clauses=max_clauses)
    for number, expression in enumerate(some):
        engine.subscribe(number, expression)
    subscriptions = dict(enumerate(some))
    for event in happened:
        assert engine.match(event) == expected(subscriptions, event)


@by_index
@pytest.mark.parametrize("seed", first_cases(1, range(3)))
def test_random_lives(index: str, seed: int, tmp_path: Path) -> None:
    """Subscribe, replace, unsubscribe, compact, save and open in any order; match after each."""
    rng = Random(seed)
    engine = small(index, background=seed != 0)
    subscriptions: dict[str, mm.Expression] = {}
    for _ in range(120):
        action = rng.random()
        key = f"s{rng.randrange(25)}"
        if action < 0.5:
            expression = random_expression(rng)
            engine.subscribe(key, expression, replace=True)
            subscriptions[key] = expression
        elif action < 0.85 and subscriptions:
            gone = rng.sample(sorted(subscriptions), min(len(subscriptions), rng.choice((1, 1, 4))))
            engine.unsubscribe_many(gone)
            for g in gone:
                del subscriptions[g]
        elif action < 0.92:
            engine.compact()
        elif action < 0.97:
            engine.save(tmp_path / "engine")
            engine.close()
            engine = mm.Engine.open(tmp_path / "engine", verify=rng.random() < 0.5)
        event = random_event(rng)
        assert engine.match(event) == expected(subscriptions, event)
        assert len(engine) == len(subscriptions)
        assert set(engine) == set(subscriptions)


def test_every_source_of_events_gives_the_same() -> None:
    engine = mm.Engine()
    engine.subscribe_many(
        {"a": "x > 1", "b": "s like 'a%' or x is null", "c": "day = date '2020-01-01'"}
    )
    table = pa.table(
        {
            "x": [1.5, None, 3.0],
            "s": ["abc", "b", None],
            "day": pa.array([18262, 18263, None], pa.date32()),
        }
    )
    wanted = [{"a", "b", "c"}, {"b"}, {"a"}]
    for source in (table, table.to_pylist(), table.to_pandas(), pl.from_arrow(table)):
        assert list(engine.match_many(source)) == wanted
    assert list(engine.match_many(table.to_batches()[0])) == wanted
    assert list(engine.match_many(iter(table.to_pylist()))) == wanted


def test_results_of_a_batch() -> None:
    engine = mm.Engine()
    engine.subscribe_many([(10, "x > 0"), (20, "x > 1")])
    matches = engine.match_many([{"x": 1}, {"x": 2}, {}])
    assert (len(matches), matches.n_matches) == (3, 3)
    assert matches.counts.tolist() == [1, 2, 0]
    assert matches.to_arrow().to_pydict() == {
        "event_id": [0, 1, 1],
        "subscription_id": [10, 10, 20],
    }
    assert matches[1] == {10, 20}
    assert matches[-1] == set()
    with pytest.raises(IndexError):
        matches[3]
    assert "3 matches" in repr(matches)


def test_no_duplicates_when_several_clauses_hold() -> None:
    engine = mm.Engine()
    engine.subscribe("a", "x > 0 or y > 0 or z > 0")
    matches = engine.match_many([{"x": 1, "y": 1, "z": 1}])
    assert matches.to_arrow().num_rows == 1


def test_bad_events_are_set_aside() -> None:
    engine = mm.Engine(settings=mm.Settings(max_event_values=3))
    engine.subscribe_many({"a": "x is null", "b": "x > 0"})
    matches = engine.match_many([{"x": 1}, {"x": [1, 2, 3]}, {}, {"y": [1, 2, 3]}])
    assert list(matches) == [{"b"}, set(), {"a"}, {"a"}]  # nobody asks for y
    assert [one.row for one in matches.rejected] == [1]
    assert "max_event_values" in matches.rejected[0].reason
    with pytest.raises(mm.EventError, match=r"max_event_values"):
        engine.match({"x": [1, 2, 3]})


ODD = [float("inf"), 2**70, -(2**64), "\ud800", b"x", {1}, uuid.uuid4(), dt.timedelta(1), 1j]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_a_value_that_cannot_be_compared_rejects_no_event(odd: Any) -> None:
    """Neither where nobody asks for it nor where somebody does: then conditions are unknown."""
    engine = mm.Engine({"a": "x > 0", "b": "y > 0 or y < 1 or y like '%'", "c": "y is not null"})
    deep: Any = odd
    for _ in range(100):
        deep = {"y": deep}
    for event, more in (
        ({"x": 1, "y": odd}, {"c"}),
        ({"x": 1, "y": [odd]}, {"c"}),
        ({"x": 1, "z": odd, 5: odd}, set()),
        ({"x": 1, "z": {"y": odd}, "z.y": 1, "deep": deep, "y": deep}, set()),
    ):
        assert mm.evaluate("x > 0", event) is True
        assert engine.match(event) == {"a"} | more
        for several in ([event], [event] * 40, [*[{"x": 0}] * 40, event]):
            matches = engine.match_many(several)
            assert not matches.rejected
            assert matches[len(several) - 1] == {"a"} | more
    reason = str(engine.explain("b", {"y": odd}))
    assert "which" in reason


# -- subscribing ----------------------------------------------------------------------------------


def test_a_second_subscription_needs_replace() -> None:
    engine = mm.Engine()
    engine.subscribe("a", "x = 1")
    with pytest.raises(mm.DuplicateIdError, match="replace=True"):
        engine.subscribe("a", "x = 2")
    assert engine.match({"x": 1}) == {"a"}
    engine.subscribe("a", "x = 2", replace=True)
    assert engine.match({"x": 1}) == set()
    assert engine.match({"x": 2}) == {"a"}
    assert len(engine) == 1


def test_a_failed_call_changes_nothing() -> None:
    engine = mm.Engine()
    engine.subscribe("a", "x = 1")
    for call in (
        lambda: engine.subscribe("b", "x ="),
        lambda: engine.subscribe(None, "x = 1"),  # type: ignore[arg-type]
        lambda: engine.subscribe("", "x = 1"),
        lambda: engine.subscribe(7, "x = 1"),
        lambda: engine.subscribe("b", 5),
        lambda: engine.subscribe("b\ud800", "x = 1"),
        lambda: engine.unsubscribe("b"),
        lambda: engine.unsubscribe_many(["a", "b"]),
        lambda: engine.subscribe_many(7),
        lambda: engine.subscribe_many("no_such_file.csv"),
        lambda: engine.match({"x": [0] * 1_000_001}),
        lambda: engine.match(5),  # type: ignore[arg-type]
    ):
        with pytest.raises(mm.MatchmillError):
            call()
        assert list(engine) == ["a"]
        assert engine.match({"x": 1}) == {"a"}


@pytest.mark.parametrize("method", ["apply", "relabel"])
def test_a_load_that_fails_at_the_last_step_changes_nothing(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = small()
    engine.subscribe("a", "x > 0 and x < 1")
    high = 1.0
    for n in range(200):  # until the labels between 0 and 1 run out, for relabel
        high /= 2

        def full(*_: object) -> None:
            raise MemoryError

        if method == "apply" or n > 20:
            monkeypatch.setattr(Segmented, method, full)
        try:
            engine.subscribe("b", f"x < {high!r}", replace=True)
        except MemoryError:
            break
        finally:
            monkeypatch.undo()
    else:
        pytest.fail(f"{method} was never called")
    assert ("b" in engine) == (method == "relabel")
    assert engine.match({"x": 0.75}) == {"a"}
    if method == "apply":
        assert list(engine) == ["a"]
        assert engine.match({"x": 0.25}) == {"a"}
    else:  # the version before the one that failed
        assert mm.parse(engine["b"].expression) == mm.parse(f"x < {2 * high!r}")
        assert engine.match({"x": 1.5 * high}) == {"a", "b"}
    engine.subscribe("c", "x > 0.5")
    assert engine.match({"x": 0.75}) == {"a", "c"}


def test_bulk_sets_bad_rows_aside() -> None:
    engine = mm.Engine()
    report = engine.subscribe_many(
        [
            ("a", "x = 1"),
            ("b", "x == = 1"),
            ("a", "x = 2"),
            (3, "x = 3"),
            {"subscription_id": "c", "expression": {"x": [4]}},
            {"subscription_id": "d"},
            ("e", None),
            "nonsense",
            ("never", "x = 1 and x = 2"),
            ("always", "x is null or x is not null"),
        ]
    )
    assert report.n_accepted == 4
    assert [r.row for r in report.rejected] == [1, 2, 3, 5, 6, 7]
    assert all(r.reason for r in report.rejected)
    assert "occurs twice" in report.rejected[1].reason
    assert [(one.id, one.kind) for one in report.warnings] == [(w, w) for w in ("never", "always")]
    assert "4 accepted, 6 rejected" in str(report)
    assert engine.match({"x": 4}) == {"c", "always"}
    assert engine.match({"x": [4]}) == {"c", "always"}


def test_bulk_from_tables_and_frames() -> None:
    frame = {"subscription_id": ["a", "b"], "expression": ["x = 1", "x = 2"], "other": [0, 0]}
    for source in (pa.table(frame), pd.DataFrame(frame), pl.DataFrame(frame)):
        engine = mm.Engine()
        assert engine.subscribe_many(source).n_accepted == 2
        assert engine.match({"x": 2}) == {"b"}
    with pytest.raises(mm.InputError, match="no column 'who'"):
        mm.Engine().subscribe_many(pa.table(frame), subscription_id="who")


def test_progress_is_told() -> None:
    calls: list[tuple[int, int | None]] = []
    rows = [(n, "x = 1") for n in range(5000)]
    mm.Engine().subscribe_many(iter(rows), progress=lambda *both: calls.append(both))
    assert calls == [(2000, None), (4000, None), (5000, None)]
    calls.clear()
    mm.Engine().subscribe_many(rows, progress=lambda *both: calls.append(both))
    assert calls == [(2000, 5000), (4000, 5000), (5000, 5000)]


def test_builder_and_json_patterns_are_expressions() -> None:
    engine = mm.Engine()
    engine.subscribe("builder", (mm.attr("price") <= 580) & mm.attr("model").is_in("a", "b"))
    engine.subscribe("json", '{"price": [{"numeric": ["<=", 580]}], "model": ["a", "b"]}')
    engine.subscribe("flag", mm.attr("sale"))
    assert engine.match({"price": 580, "model": "b", "sale": True}) == {"builder", "json", "flag"}


def test_json_patterns_through_the_index() -> None:
    path = Path(__file__).parents[1] / "cases" / "json_patterns.json"
    named = json.loads(path.read_text(encoding="utf-8"))
    engine = small()
    report = engine.subscribe_many((case["name"], case["pattern"]) for case in named)
    assert report.rejected == []
    for case in named:
        assert (case["name"] in engine.match(case["event"])) == case["matches"], case["name"]


def test_unknown_things_are_named() -> None:
    with pytest.raises(
        mm.InputError, match="unknown index 'nope'; there are: auto, be_tree, bitmaps"
    ):
        mm.Engine(index="nope")
    with pytest.raises(mm.UnknownIdError, match="no subscription 'x'"):
        mm.Engine().explain("x", {})
    with pytest.raises(mm.InputError, match="max_depth"):
        mm.Settings(max_depth=0)


def test_beyond_the_clause_limit() -> None:
    engine = mm.Engine(settings=mm.Settings(max_clauses=8))
    text = " and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(20))
    engine.subscribe("wide", text)
    assert engine.stats().n_inexact == 0
    assert engine.stats().n_clauses <= 8
    assert engine.match({f"a{i}": 1 for i in range(20)}) == {"wide"}
    assert engine.match({f"a{i}": 1 for i in range(19)}) == set()
    table = pa.table({f"a{i}": [1, 1] for i in range(19)} | {"b19": [1, 0]})
    assert list(engine.match_many(table)) == [{"wide"}, set()]


def test_statistics_add_up() -> None:
    engine = mm.Engine()
    engine.subscribe_many((n, f"x = {n} and s like '%{n}%'") for n in range(100))
    stats = engine.stats()
    assert (stats.n_subscriptions, stats.n_clauses, stats.n_dimensions) == (100, 100, 101)
    assert stats.n_cut_points == 100
    assert stats.n_bytes == sum(stats.bytes.values()) == sum(stats.to_dict()["bytes"].values())


# -- threads --------------------------------------------------------------------------------------


def test_any_number_of_threads_gives_the_same() -> None:
    some, happened = cases(17, 60, 700)
    engine = small(max_clauses=3)  # some clauses are nested
    engine.subscribe_many(enumerate(some))
    engine.unsubscribe_many(range(0, 60, 7))
    happened[100] = {"x": [{}] * 1_000_001}
    once = engine.match_many(happened)
    assert once.n_matches > 1000
    assert engine._store.state.snapshot.segments[0].table.has_lists
    for threads in (1, 2, 3, 7, 64):
        again = engine.match_many(happened, threads=threads)
        assert np.array_equal(again.offsets, once.offsets)
        assert list(again) == list(once)  # within an event, the order is not defined
        assert again.rejected == once.rejected
    for few in (0, 1, 63, 130):
        assert list(engine.match_many(happened[:few], threads=4)) == list(once)[:few]
    for wrong in (0, -1, 1.5, "2", True):
        with pytest.raises(mm.InputError, match="threads is a number"):
            engine.match_many(happened, threads=wrong)  # type: ignore[arg-type]


def test_what_a_thread_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = mm.Engine()
    engine.subscribe("a", "x = 1")

    def full(*_: object) -> None:
        raise MemoryError("no room for matches")

    monkeypatch.setattr(Snapshot, "match_batch", full)
    with pytest.raises(MemoryError, match="no room"):
        engine.match_many([{"x": 1}] * 1000, threads=2)


def test_readers_never_see_half_of_a_change() -> None:
    """A writer replaces pairs of subscriptions in one step; a reader sees exactly one of each.

    Cut points arrive in descending order inside a gap, which also forces relabelling."""
    engine = small()
    engine.subscribe_many([(1, "x >= 0 and x <= 1000"), (2, "x >= 0 and x <= 1000")])
    stop = threading.Event()
    problems: list[object] = []
    n_reads = 0

    def read() -> None:
        nonlocal n_reads
        while not stop.is_set():
            got = engine.match_many([{"x": 0}, {"x": 5000}])
            if list(got) != [{1, 2}, set()]:
                problems.append(list(got))
                return
            n_reads += 1

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    high = 1000.0
    for step in range(120):
        high *= 0.93
        engine.subscribe_many(
            [(n, f"x >= {-step} and x <= {high!r}") for n in (1, 2)], replace=True
        )
        if step % 50 == 49:
            engine.compact()
    stop.set()
    for reader in readers:
        reader.join(60)
    assert not problems
    assert n_reads > 10


# -- files ----------------------------------------------------------------------------------------


def saved_engine(tmp_path: Path) -> Path:
    engine = small()
    some, _ = cases(11, 60, 1)
    engine.subscribe_many((f"s{i}", e) for i, e in enumerate(some))
    engine.unsubscribe("s3")
    engine.save(tmp_path / "engine")
    return tmp_path / "engine"


@pytest.mark.kernels
def test_save_and_open(tmp_path: Path) -> None:
    folder = saved_engine(tmp_path)
    engine = mm.Engine.open(folder)
    some, happened = cases(11, 60, 40)
    subscriptions = {f"s{i}": e for i, e in enumerate(some) if i != 3}
    for event in happened:
        assert engine.match(event) == expected(subscriptions, event)
    engine.subscribe("new", "true")
    assert engine.match({}) >= {"new"}
    engine.save(folder)
    assert "new" in mm.Engine.open(folder, read_only=True)
    assert len(list(folder.glob("data-*"))) == 1
    other = mm.Engine.open(folder, read_only=True, index="scan")
    assert other.index == "scan"
    assert other.match(happened[0]) == engine.match(happened[0])


def test_integer_ids_survive(tmp_path: Path) -> None:
    engine = mm.Engine()
    engine.subscribe_many([(-(2**63), "x = 1"), (2**63 - 1, "x = 1"), (0, "x = 2")])
    engine.save(tmp_path / "e")
    assert mm.Engine.open(tmp_path / "e").match({"x": 1}) == {-(2**63), 2**63 - 1}


def test_an_empty_engine_can_be_saved(tmp_path: Path) -> None:
    mm.Engine().save(tmp_path / "e")
    engine = mm.Engine.open(tmp_path / "e")
    assert engine.match({"x": 1}) == set()
    engine.subscribe("a", "x = 1")
    assert engine.match({"x": 1}) == {"a"}


def test_a_mapped_engine_outlives_a_new_version(tmp_path: Path) -> None:
    folder = saved_engine(tmp_path)
    old = mm.Engine.open(folder, read_only=True)
    newer = mm.Engine.open(folder)
    newer.subscribe("new", "true")
    newer.save(folder)
    assert "new" not in old.match({})
    assert "new" in mm.Engine.open(folder, read_only=True).match({})


def test_every_damaged_file_is_named(tmp_path: Path) -> None:
    """Truncate, and flip one bit of, each file in turn: always an error, never an answer."""
    folder = saved_engine(tmp_path)
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.stat().st_size)
    assert len(files) > 20
    rng = Random(5)
    for file in files:
        whole = file.read_bytes()
        at = rng.randrange(len(whole))
        damaged = whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :]
        for content in (whole[: len(whole) // 2], damaged, b"", whole + b"x"):
            if content == whole + b"x" and not file.name.endswith(".npy"):
                continue  # white space after a manifest, a torn end of a log
            file.write_bytes(content)
            with pytest.raises(mm.FolderError, match="damaged"):
                mm.Engine.open(folder)
        file.unlink()
        with pytest.raises(mm.FolderError):
            mm.Engine.open(folder)
        file.write_bytes(whole)
    assert len(mm.Engine.open(folder)) == 59


def test_large_files_are_read_by_verify_alone(tmp_path: Path) -> None:
    engine = mm.Engine()
    engine.subscribe_many((n, f"x = {n} and y > {n}") for n in range(10_000))
    engine.save(tmp_path / "e")
    file = next((tmp_path / "e").glob("data-*/text_data.npy"))
    whole = bytearray(file.read_bytes())
    assert len(whole) > 1 << 16
    whole[-1] ^= 1
    file.write_bytes(whole)
    assert len(mm.Engine.open(tmp_path / "e", read_only=True)) == 10_000
    with pytest.raises(mm.FolderError, match=r"text_data\.npy is damaged: its checksum"):
        mm.Engine.open(tmp_path / "e", read_only=True, verify=True)
    file.write_bytes(whole[:-1])
    with pytest.raises(mm.FolderError, match=r"text_data\.npy is damaged: it has"):
        mm.Engine.open(tmp_path / "e", read_only=True)


def test_folders_that_are_no_engine(tmp_path: Path) -> None:
    with pytest.raises(mm.FolderError, match=r"no manifest\.json"):
        mm.Engine.open(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(mm.FolderError, match="holds other files"):
        mm.Engine().save(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    with pytest.raises(mm.FolderError, match="is a file"):
        mm.Engine().save(tmp_path / "notes.txt")


def test_a_failed_save_keeps_the_old_version(tmp_path: Path, monkeypatch: Any) -> None:
    folder = saved_engine(tmp_path)
    engine = mm.Engine.open(folder)
    engine.subscribe("new", "true")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(mm.FolderError, match="No space left"):
        engine.save(folder)
    with pytest.raises(mm.FolderError, match="No space left"):
        engine.save(tmp_path / "elsewhere")
    monkeypatch.undo()
    assert len(list(folder.glob("data-*"))) == 1
    assert not list((tmp_path / "elsewhere").glob("data-*"))
    engine.subscribe("newer", "true")
    again = mm.Engine.open(folder, read_only=True)  # the old version and all its changes
    assert {"new", "newer"} <= again.match({})
    engine.save()
    assert {"new", "newer"} <= mm.Engine.open(folder, read_only=True).match({})
    assert len(list(folder.glob("log-*"))) == 1
