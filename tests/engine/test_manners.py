"""What a newcomer tries, and what a careful library does with it."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matchmill as mm
from matchmill.io.progress import reporting

PAIRS = [("u1", "x > 1"), ("u2", "x > 2 and origin = 'JFK'")]
COLUMNS = {"subscription_id": ["u1", "u2"], "expression": [text for _, text in PAIRS]}
EVENTS: list[dict[str, Any]] = [{"x": 2, "origin": None}, {"x": 3, "origin": "JFK"}, {"x": 0}]


@pytest.fixture
def engine() -> Iterator[mm.Engine]:
    with mm.Engine(PAIRS) as made:
        yield made


# -- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"max_clauses": 16}, TypeError, "unexpected keyword argument 'max_clauses'"),
        ({"nonsense": 42}, TypeError, "unexpected keyword argument 'nonsense'"),
        ({"index": "nonsense"}, mm.InputError, "unknown index 'nonsense'"),
        ({"index_options": {"kernal": "auto"}}, mm.InputError, "did you mean 'kernel'"),
        ({"index_options": {"kernel": 5}}, mm.InputError, "kernel"),
        ({"index_options": [1]}, mm.InputError, "index_options is a mapping"),
        ({"index": "scan", "index_options": {"a": 1}}, mm.InputError, "it has none"),
        ({"settings": {"max_clauses": 16}}, mm.InputError, "settings must be a Settings"),
    ],
)
def test_unknown_options_are_errors(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        mm.Engine(**options)


def test_index_options_survive_save_and_open(tmp_path: Path) -> None:
    options = {"segments": False}
    engine = mm.Engine(PAIRS, index="op_index", index_options=options)
    assert (engine.index, engine.index_options) == ("op_index", options)
    engine.save(tmp_path / "e.mill")
    with mm.Engine.open(tmp_path / "e.mill") as again:
        assert (again.index, again.index_options) == ("op_index", options)
        assert again.match({"x": 2}) == {"u1"}
    with mm.Engine.open(tmp_path / "e.mill", index="scan") as other:
        assert (other.index, other.index_options) == ("scan", {})
        other.save()
    with pytest.raises(mm.InputError, match="has no option 'segments'"):
        mm.Engine.open(tmp_path / "e.mill", index_options=options)
    new = mm.Engine.open(tmp_path / "n", create=True, index="op_index", index_options=options)
    assert new.index_options == options
    new.close()


# -- a collection ---------------------------------------------------------------------------------


def test_an_engine_is_a_collection(engine: mm.Engine) -> None:
    assert (len(engine), "u1" in engine, "u3" in engine, 1 in engine) == (2, True, False, False)
    assert list(engine) == ["u1", "u2"]
    assert engine["u1"] == mm.Subscription("u1", "x > 1")
    assert str(engine["u1"]) == "u1: x > 1"
    assert engine.get("u3") is None
    assert engine.get("u3", 5) == 5
    assert dict(engine.items())["u2"].expression == PAIRS[1][1]
    with pytest.raises(mm.UnknownIdError, match="no subscription 'u3'"):
        engine["u3"]
    with pytest.raises(KeyError):
        engine[7]  # type: ignore[index]
    assert bool(mm.Engine())


def test_who_mentions_an_attribute() -> None:
    texts = {
        "a": "origin = 'JFK'",
        "b": "x = 'origin'",
        "c": 'not ("origin" is null or y > 1)',
        "d": "geo.origin = 'x'",
        "e": "z > 1",
    }
    engine = mm.Engine(texts)
    assert [one.id for one in engine.subscriptions(attribute="origin")] == ["a", "c"]
    assert [one.id for one in engine.subscriptions(attribute="geo.origin")] == ["d"]
    assert [one.id for one in engine.subscriptions()] == list(texts)
    with pytest.raises(mm.InputError, match="attribute is a name"):
        engine.subscriptions(attribute=5)  # type: ignore[arg-type]


def test_subscriptions_are_a_source_of_subscriptions(engine: mm.Engine) -> None:
    other = mm.Engine(engine.subscriptions())
    assert dict(other.items()) == dict(engine.items())


# -- subscribing ----------------------------------------------------------------------------------


class Stream:
    """Any object that offers Arrow's stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


SOURCES: dict[str, Any] = {
    "tuples": PAIRS,
    "lists": [list(pair) for pair in PAIRS],
    "an iterator": lambda: iter(PAIRS),
    "a mapping": dict(PAIRS),
    "mappings": [dict(zip(COLUMNS, pair, strict=True)) for pair in PAIRS],
    "subscriptions": [mm.Subscription(*pair) for pair in PAIRS],
    "arrow": pa.table(COLUMNS),
    "a record batch": pa.record_batch(COLUMNS),
    "a reader": lambda: pa.table(COLUMNS).to_reader(),
    "pandas": pd.DataFrame(COLUMNS),
    "polars": pl.DataFrame(COLUMNS),
    "a lazy frame": pl.LazyFrame(COLUMNS),
    "duckdb": lambda: duckdb.sql("select * from (values ('u1', 'x > 1'), ('u2', $$x > 2 and origin = 'JFK'$$)) t(subscription_id, expression)"),  # noqa: E501
    "a stream": Stream(pa.table(COLUMNS)),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_subscriptions_come_from_any_source(name: str) -> None:
    source = SOURCES[name]
    engine = mm.Engine(source() if callable(source) else source)
    assert dict(engine.items()) == {id: mm.Subscription(id, text) for id, text in PAIRS}


def test_several_files_and_unused_columns(tmp_path: Path) -> None:
    paths = [tmp_path / "a.csv", tmp_path / "b.jsonl", tmp_path / "c.parquet"]
    paths[0].write_text("subscription_id,owner,expression\na,me,x = 1\nb,me,x =\n")
    line = {"subscription_id": "c", "expression": "x = 2", "bid": 1}
    paths[1].write_text("\n" + json.dumps(line) + '\n{"expression": "y"}\n')
    pq.write_table(pa.table({**COLUMNS, "bid": [1, 2]}), paths[2])
    engine = mm.Engine()
    report = engine.subscribe_many(paths)
    assert list(engine) == ["a", "c", "u1", "u2"]
    assert report.ignored_columns == ["owner", "bid"]
    assert [(one.source, one.row, one.line, one.id) for one in report.rejected] == [
        (str(paths[0]), 1, 3, "b"),
        (str(paths[1]), 1, 3, None),
    ]
    assert str(report.rejected[0]).startswith(f"{paths[0]}:3: b: ")
    assert "\n" not in report.rejected[0].reason


def test_a_missing_column_names_the_option_that_mends_it(tmp_path: Path) -> None:
    path = tmp_path / "alerts.csv"
    path.write_text("id,expression,owner,bid\nu1,x = 1,me,1\n")
    with pytest.raises(mm.FileFormatError) as caught:
        mm.Engine(path)
    assert caught.value.hint == 'name the right one with subscription_id="id"'
    with pytest.raises(mm.FileFormatError) as caught:
        mm.Engine().subscribe_many(pd.read_csv(path))
    assert caught.value.hint == 'name the right one with subscription_id="id"'
    assert mm.Engine().subscribe_many(path, subscription_id="id").n_accepted == 1


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (("u1", "x = 1", 0.7), "a pair of id and expression is needed, not 3 values"),
        (["u1"], "not 1 values"),
        ((), "not 0 values"),
        ({"id": "u1", "expression": "x"}, "there is no 'subscription_id'; it has: id, expression"),
        (5, "not a pair of id and expression, but int: 5"),
        ((None, "x = 1"), "a subscription's id is a string or an integer, not NoneType"),
    ],
)
def test_items_that_are_no_subscription_say_why(item: object, reason: str) -> None:
    report = mm.Engine().subscribe_many([("good", "x = 1"), item])
    assert (report.n_accepted, report.n_rejected) == (1, 1)
    assert report.rejected[0].row == 1
    assert reason in report.rejected[0].reason


@pytest.mark.parametrize("source", [5, b"u1", None, 1.5, object()])
def test_wrong_sources_of_subscriptions(source: object) -> None:
    with pytest.raises(mm.InputError, match="subscriptions come from a path"):
        mm.Engine().subscribe_many(source)


def test_strict_stores_nothing_and_says_where(tmp_path: Path) -> None:
    engine = mm.Engine()
    rows = [("a", "x = 1"), ("b", "x ="), ("c", "x = 2")]
    with pytest.raises(mm.ExpressionError, match="row 1: b: ") as caught:
        engine.subscribe_many(rows, strict=True)
    assert caught.value.position == 3
    assert len(engine) == 0
    with pytest.raises(mm.ExpressionError):
        mm.Engine(rows)
    path = tmp_path / "a.csv"
    path.write_text("subscription_id,expression\na,x = 1\na,x = 2\n")
    with pytest.raises(mm.DuplicateIdError, match=r"a\.csv:3: a: the id 'a' occurs twice"):
        mm.Engine(path)


def test_updating(engine: mm.Engine) -> None:
    engine.update("u1", expression="x > 100")
    assert engine.match({"x": 3}) == set()
    with pytest.raises(mm.UnknownIdError, match="no subscription 'u3'"):
        engine.update("u3", expression="x = 1")
    with pytest.raises(mm.ExpressionError):
        engine.update("u1", expression="x =")
    assert engine["u1"].expression == "x > 100"
    report = engine.update_many([("u1", "x > 1"), ("u3", "x = 1"), ("u2", "x = 3")])
    assert (report.n_accepted, report.n_replaced, report.n_rejected) == (2, 2, 1)
    assert report.rejected[0].reason == "there is no subscription 'u3'"
    assert engine.match({"x": 3}) == {"u1", "u2"}
    replaced = engine.subscribe_many({"u2": "x = 4", "u3": "x = 5"}, replace=True)
    assert (replaced.n_accepted, replaced.n_replaced) == (2, 1)


def test_removing_takes_an_iterable_of_ids(engine: mm.Engine) -> None:
    with pytest.raises(mm.InputError, match="unsubscribe takes one"):
        engine.unsubscribe_many("u1")
    with pytest.raises(mm.UnknownIdError):
        engine.unsubscribe_many(["u1", "u3"])
    assert len(engine) == 2


def test_progress_may_be_a_bar_or_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(n, "x = 1") for n in range(3000)]
    mm.Engine().subscribe_many(rows, progress=True)
    assert capsys.readouterr().out == ""
    with pytest.raises(mm.InputError, match="progress is True, False or a function"):
        mm.Engine().subscribe_many(rows, progress=5)  # type: ignore[arg-type]
    with reporting(False, "nothing") as report:
        assert report is None


# -- events and matches ---------------------------------------------------------------------------


def test_length_iteration_and_items_go_by_event(engine: mm.Engine) -> None:
    matches = engine.match_many(EVENTS)
    assert (len(matches), matches.n_events, matches.n_matches) == (3, 3, 3)
    assert list(matches) == [matches[i] for i in range(3)] == [{"u1"}, {"u1", "u2"}, set()]
    assert matches.counts.tolist() == [1, 2, 0]
    assert repr(matches) == "<Matches: 3 events, 3 matches>"
    assert str(matches).splitlines()[:2] == ["3 events, 3 matches", "0: u1"]
    assert "<td>1</td><td>u1, u2</td>" in matches._repr_html_()


def test_results_go_into_other_libraries(engine: mm.Engine) -> None:
    m = engine.match_many(EVENTS)
    wanted = {"event_id": [0, 1, 1], "subscription_id": ["u1", "u1", "u2"]}
    assert m.to_arrow().to_pydict() == pa.table(m).to_pydict() == wanted
    assert pl.DataFrame(m).to_dict(as_series=False) == wanted
    assert m.to_polars().to_dict(as_series=False) == wanted
    assert m.to_pandas().to_dict("list") == wanted
    assert duckdb.sql("select * from m").fetchall() == list(zip(*wanted.values(), strict=True))
    lists = {"event_id": [0, 1, 2], "subscription_ids": [["u1"], ["u1", "u2"], []]}
    assert m.to_arrow(per_event=True).to_pydict() == lists
    assert m.to_polars(per_event=True).to_dict(as_series=False) == lists
    assert (
        m.to_pandas(per_event=True)["subscription_ids"].map(list).tolist()
        == lists["subscription_ids"]
    )


@pytest.mark.parametrize("ids", [{"a": "x > 1", 'b",': "x > 2"}, {1: "x > 1", 2: "x > 2"}])
@pytest.mark.parametrize("per_event", [False, True])
def test_results_are_written(ids: Any, per_event: bool, tmp_path: Path) -> None:
    engine = mm.Engine(ids)
    matches = engine.match_many(EVENTS)
    wanted = matches.to_arrow(per_event=per_event)
    for suffix in ("parquet", "csv", "jsonl"):
        path = tmp_path / f"m.{suffix}"
        matches.write(path, per_event=per_event)
        if suffix == "parquet":
            assert pq.read_table(path).to_pydict() == wanted.to_pydict()
        elif suffix == "jsonl":
            assert [json.loads(line) for line in path.read_text().splitlines()] == (
                wanted.to_pylist()
            )
        else:
            found = pd.read_csv(path)
            if per_event:
                found["subscription_ids"] = found["subscription_ids"].map(json.loads)
            assert found.to_dict("list") == wanted.to_pydict()
    with pytest.raises(mm.FileFormatError, match="must end in one of"):
        matches.write(tmp_path / "m.xlsx")


def test_the_event_id_stays_an_attribute() -> None:
    engine = mm.Engine({"u1": "flight > 1", "u2": "flight > 2"})
    rows = {"flight": [1, 2, 3]}
    wanted = {"event_id": [2, 3, 3], "subscription_id": ["u1", "u1", "u2"]}
    sources: list[Any] = [
        [{"flight": n} for n in rows["flight"]],
        pa.table(rows),
        pd.DataFrame(rows),
        mm.read_events(b'{"flight": 1}\n{"flight": 2}\n{"flight": 3}\n'),
    ]
    for source in sources:
        assert engine.match_many(source, event_id="flight").to_arrow().to_pydict() == wanted
    names = [{"flight": n, "who": f"e{n}"} for n in rows["flight"]]
    found = engine.match_many(names, event_id="who").to_arrow(per_event=True).to_pydict()
    assert found["event_id"] == ["e1", "e2", "e3"]


def test_events_without_the_event_id(engine: mm.Engine) -> None:
    too_large = {"x": [1] * 1_000_001}
    matches = engine.match_many([{"x": 2, "no": 1}, {"x": 2}, too_large], event_id="no")
    assert matches.to_arrow().to_pydict() == {"event_id": [1], "subscription_id": ["u1"]}
    assert [one.row for one in matches.rejected] == [1, 2]
    assert "there is no event id" in matches.rejected[0].reason
    assert "max_event_values" in matches.rejected[1].reason
    with pytest.raises(mm.InputError, match="no event has an attribute 'No'"):
        engine.match_many(EVENTS, event_id="No")
    with pytest.raises(mm.InputError, match="event_id is the name of an attribute"):
        engine.match_many(EVENTS, event_id=3)  # type: ignore[arg-type]


def event_files(folder: Path) -> list[Path]:
    paths = [folder / "a.jsonl", folder / "b.csv", folder / "c.parquet"]
    paths[0].write_text('{"x": 2}\n\nnonsense\n')
    paths[1].write_text("x,origin\n3,JFK\n")
    pq.write_table(pa.table({"x": [0, 5]}), paths[2])
    return paths


def test_events_come_from_files(engine: mm.Engine, tmp_path: Path) -> None:
    paths = event_files(tmp_path)
    matches = engine.match_many(paths)
    assert list(matches) == [{"u1"}, set(), {"u1", "u2"}, set(), {"u1"}]
    (bad,) = matches.rejected
    assert (bad.kind, bad.row, bad.line, bad.source) == ("event", 1, 3, str(paths[0]))
    assert "line 3" not in bad.reason
    assert list(engine.match_many(str(paths[1]))) == [{"u1", "u2"}]
    with pytest.raises(mm.FileFormatError, match="there is no such file"):
        engine.match_many(tmp_path / "absent.csv")
    engine.learn(paths)


def test_read_events(engine: mm.Engine, tmp_path: Path) -> None:
    path = event_files(tmp_path)[0]
    with path.open("rb") as binary, path.open() as text:
        forms: list[Any] = [path, str(path), binary, text, path.read_bytes(), path.read_text()]
        for form in forms:
            events = mm.read_events(form)
            assert list(engine.match_many(events)) == [{"u1"}, set()], form
    assert repr(mm.read_events(path)) == f"<Events: 2 events from {path}>"
    assert len(mm.read_events('{"x": 1}')) == 1
    assert mm.read_events(b"x\n5\n", format="csv").event(0) == {"x": 5}
    assert mm.read_events(BytesIO(b"x\n5\n"), format="csv").event(0) == {"x": 5}
    other = tmp_path / "events.log"
    other.write_text('{"x": 1}\n')
    assert len(mm.read_events(other, format="jsonl")) == 1
    with pytest.raises(mm.FileFormatError, match="must end in one of"):
        mm.read_events(other)
    with pytest.raises(mm.FileFormatError, match="a format is csv, jsonl or parquet"):
        mm.read_events(b"", format="xml")  # type: ignore[arg-type]
    parquet = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1]}), parquet)
    assert len(mm.read_events(parquet.getvalue().to_pybytes(), format="parquet")) == 1


def test_match_in_one_call(tmp_path: Path) -> None:
    alerts, events = tmp_path / "alerts.csv", tmp_path / "events.jsonl"
    alerts.write_text("subscription_id,expression\nu1,x > 1\nbad,x >\n")
    events.write_text('{"x": 2}\n{"x": }\n')
    matches = mm.match(alerts, events)
    assert list(matches) == [{"u1"}, set()]
    assert [(one.kind, one.line) for one in matches.rejected] == [("subscription", 3), ("event", 2)]
    matches.write(tmp_path / "matches.parquet")
    assert pq.read_table(tmp_path / "matches.parquet").num_rows == 1
    with pytest.raises(mm.ExpressionError):
        mm.match(alerts, events, strict=True)
    with pytest.raises(mm.EventError, match=r"events\.jsonl:2: "):
        mm.match({"u1": "x > 1"}, events, strict=True)
    assert list(mm.match(mm.Engine(PAIRS), EVENTS[:1])) == [{"u1"}]


BATCHES: dict[str, Any] = {
    "records": EVENTS,
    "an iterator": lambda: iter(EVENTS),
    "arrow": pa.Table.from_pylist(EVENTS),
    "a reader": lambda: pa.Table.from_pylist(EVENTS).to_reader(2),
    "pandas": pd.DataFrame(EVENTS),
    "polars": pl.DataFrame(EVENTS),
    "a lazy frame": pl.LazyFrame(EVENTS),
    "a stream": Stream(pa.Table.from_pylist(EVENTS)),
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches_of_a_stream(name: str, engine: mm.Engine) -> None:
    source = BATCHES[name]
    found = list(engine.match_batches(source() if callable(source) else source, batch_size=2))
    assert [matches.n_events for matches in found] == [2, 1]
    joined = pa.concat_tables(matches.to_arrow() for matches in found)
    assert joined.to_pydict() == engine.match_many(EVENTS).to_arrow().to_pydict()


def test_batches_of_files_and_endless_streams(engine: mm.Engine, tmp_path: Path) -> None:
    def endless() -> Iterator[dict[str, int]]:
        n = 0
        while True:
            yield {"x": n}
            n += 1

    batches = engine.match_batches(endless(), batch_size=4)
    assert [next(batches).n_matches for _ in range(3)] == [2, 4, 4]
    paths = event_files(tmp_path)
    found = list(engine.match_batches(paths, batch_size=1))
    assert sum(matches.n_events for matches in found) == 5
    joined = pa.concat_tables(matches.to_arrow() for matches in found)
    assert joined["event_id"].to_pylist() == [0, 2, 2, 4]
    assert [str(one.source) for matches in found for one in matches.rejected] == [str(paths[0])]
    with pytest.raises(mm.InputError, match="batch_size is a number of at least 1"):
        engine.match_batches([], batch_size=0)
    with pytest.raises(mm.EventError, match=r"row 1: "):
        list(engine.match_batches([{"x": 1}, {"x": [0] * 1_000_001}], batch_size=1, strict=True))


@pytest.mark.parametrize("source", [5, None, object(), {1}])
def test_wrong_sources_of_events_are_errors_at_once(source: Any, engine: mm.Engine) -> None:
    with pytest.raises(mm.InputError, match="events come"):
        engine.match_many(source)
    with pytest.raises(mm.InputError, match="events come"):
        mm.read_events(source)


# -- expressions ----------------------------------------------------------------------------------


def test_functions_take_text_patterns_and_expressions() -> None:
    pattern = {"x": [{"numeric": [">", 1]}]}
    for expression in ("x > 1", mm.parse("x > 1"), pattern, json.dumps(pattern), mm.attr("x") > 1):
        assert mm.evaluate(expression, {"x": 2}) is True
        assert not mm.evaluate(expression, {"x": 1})
        assert mm.evaluate(expression, {}) is None
        assert not mm.explain(expression, {"x": 1}).truth
        assert isinstance(mm.parse(expression), mm.Expression)
    with pytest.raises(mm.ExpressionError):
        mm.parse(5)


def test_functions_work_with_operators() -> None:
    near = "within_km(40.7, -74.0, 5) and x > 1"
    event = {"lat": 40.7, "lon": -74.01, "x": 2}
    assert mm.evaluate(near, event) is True
    assert mm.evaluate(near, {**event, "lat": 50}) is False
    assert "within_km" in str(mm.explain(near, event))
    assert mm.evaluate("distance_km(40.7, -74.0, ?km) and ?km < 2", event) is True


def test_an_explanation_names_its_subscription(engine: mm.Engine) -> None:
    explanation = engine.explain("u2", {"x": 2, "origin": "JFK"})
    assert (explanation.id, explanation.matched) == ("u2", False)
    assert "2, needs > 2" in str(explanation)
    with pytest.raises(mm.UnknownIdError):
        engine.explain("u3", {})


def test_operators_are_listed_by_a_function() -> None:
    assert "within_km" in mm.operator_names()
    assert "operators" not in dir(mm)
    with pytest.raises(mm.InputError, match="no operator 'within'"):
        mm.unregister_operator("within")


# -- what a person prints -------------------------------------------------------------------------


def test_stats_are_figures(engine: mm.Engine) -> None:
    engine.match_many(EVENTS)
    stats = engine.stats()
    figures = stats.to_dict()
    assert json.loads(json.dumps(figures)) == figures
    assert (figures["n_subscriptions"], figures["n_attributes"], figures["n_deleted"]) == (2, 2, 0)
    assert figures["n_bytes"] == sum(figures["bytes"].values()) == stats.n_bytes > 0
    assert repr(stats).startswith("<EngineStats: 2 subscriptions, 2 clauses, 1 segments, ")
    for text in (str(stats), stats._repr_html_(), engine._repr_html_()):
        assert "n_subscriptions" in text
        assert "0x" not in text
        assert "array" not in text
    engine.compact()
    assert [segment.index for segment in engine.stats().index] == ["mill"]


def test_short_reprs(engine: mm.Engine, tmp_path: Path) -> None:
    assert repr(engine) == "<matchmill.Engine: 2 subscriptions, index auto>"
    engine.save(tmp_path / "e")
    with mm.Engine.open(tmp_path / "e") as opened:
        assert repr(opened).endswith(f"index auto, in {tmp_path / 'e'}>")
        assert opened.path == tmp_path / "e"


# -- pickling -------------------------------------------------------------------------------------


def test_an_engine_pickles_as_its_folder(engine: mm.Engine, tmp_path: Path) -> None:
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(mm.InputError, match="an engine in memory cannot be pickled"):
            way(engine)
    engine.save(tmp_path / "e.mill")
    with mm.Engine.open(tmp_path / "e.mill") as opened:
        opened.subscribe("u3", "x = 7")
        again = pickle.loads(pickle.dumps(opened))
        assert list(again) == ["u1", "u2", "u3"]
        with pytest.raises(mm.ReadOnlyError, match="read_only=True"):
            again.subscribe("u4", "x = 8")
        assert list(pickle.loads(pickle.dumps(again))) == ["u1", "u2", "u3"]


def test_nothing_is_started_or_printed() -> None:
    program = (
        "import matchmill as mm, psutil, threading;"
        "e = mm.Engine();"
        "e.subscribe('a', 'x = 1');"
        "names = {thread.name for thread in threading.enumerate()};"
        # The one that no signal handler interrupts.
        "assert names <= {'MainThread', 'matchmill calls'}, names;"
        "assert e.match({'x': 1}) == {'a'};"
        "assert psutil.Process().children() == []"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_counts_are_numpy(engine: mm.Engine) -> None:
    assert isinstance(engine.match_many(EVENTS).counts, np.ndarray)
