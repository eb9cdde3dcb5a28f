"""Subscriptions from frames and files: all rows are accounted for, read as the library does."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import matchmill as mm
from matchmill.errors import FileFormatError, InputError, MatchmillError
from matchmill.settings import DEFAULT_SETTINGS
from matchmill.spark import Counts, Ingested, Rejected, build, ingest_subscriptions
from matchmill.spark.ingestion.subscription_rows import Checks, checked_batches, condition_text

JFK = str(mm.parse({"origin": ["JFK"]}))


def accepted(ingested: Ingested) -> dict[Any, str]:
    rows = ingested.accepted.collect()
    assert len({row["subscription_id"] for row in rows}) == len(rows)
    return {row["subscription_id"]: row["expression"] for row in rows}


def quarantined(ingested: Ingested) -> list[tuple[str | None, str, Any]]:
    rows = ingested.quarantine.collect()
    found = [(row["id"], row["reason"], json.loads(row["raw"])) for row in rows]
    return sorted(found, key=str)


@pytest.mark.slow
def test_texts_and_patterns(spark: Any) -> None:
    df = spark.createDataFrame(
        [
            ("a", " price <= 5   and x = 'é' ", 1),
            ("b", '{"origin": ["JFK"]}', 2),
            ("c", "price <=", 3),
            (None, "x = 1", 4),
            ("d", None, 5),
            ("", "x = 2", 6),
            ("e", "x \ufffd 1", 7),
        ],
        "subscription_id string, expression string, n int",
    )
    with ingest_subscriptions(df) as ingested:
        assert accepted(ingested) == {"a": "price <= 5   and x = 'é'", "b": JFK}
        bad = {raw["n"]: (identifier, reason) for identifier, reason, raw in quarantined(ingested)}
        assert set(bad) == {3, 4, 5, 6, 7}
        assert bad[3][0] == "c"
        assert "column" in bad[3][1]
        assert bad[4] == (None, "the id is missing")
        assert bad[6] == ("", "the id is missing")
        assert "expression is missing" in bad[5][1]
        assert "UTF-8" in bad[7][1]
        assert ingested.counts() == Counts(7, 2, 5)


@pytest.mark.slow
def test_the_first_in_order_wins_whatever_the_partitions(spark: Any) -> None:
    rows = [(7, "y = 2"), (7, "x = 1"), (7, "not an expression"), (8, "x = 1"), (8, "x  =  1")]
    for n_partitions in (1, 4):
        df = spark.createDataFrame(rows, "subscription_id int, expression string").repartition(
            n_partitions
        )
        with ingest_subscriptions(df) as ingested:
            assert accepted(ingested) == {7: "x = 1", 8: "x  =  1"}
            reasons = [(i, r.partition(" (")[0]) for i, r, _ in quarantined(ingested)]
            assert sorted(i for i, _ in reasons) == ["7", "7", "8"]
            assert sum("occurs more than once" in r for _, r in reasons) == 2
            assert ingested.counts() == Counts(5, 2, 3)


@pytest.mark.slow
def test_the_latest_wins_where_asked(spark: Any) -> None:
    rows = [
        ("u", "a = 1", dt.date(2026, 1, 1)),
        ("u", "b = 2", dt.date(2026, 1, 2)),
        ("u", "c", None),
    ]
    df = spark.createDataFrame(rows, "subscription_id string, expression string, day date")
    with ingest_subscriptions(df, latest_by="day") as ingested:
        assert accepted(ingested) == {"u": "b = 2"}
        assert {raw["day"] for _, _, raw in quarantined(ingested)} == {"2026-01-01", None}


@pytest.mark.slow
def test_conditions_become_conjunctions(spark: Any) -> None:
    rows = [
        (1, "origin", "in", '["JFK", "LGA"]'),
        (1, "delay", ">", "60"),
        (2, "gate", "IS  NULL", None),
        (3, "delay", "between", "[1]"),
        (3, "origin", "=", '"JFK"'),
        (4, "origin", "=", "JFK"),
        (None, "a", "=", "1"),
        (None, "b", "=", "1"),
    ]
    df = spark.createDataFrame(
        rows, "subscription_id long, attribute string, operator string, values string"
    )
    with ingest_subscriptions(df) as ingested:
        assert accepted(ingested) == {
            1: "delay > 60 and origin in ('JFK', 'LGA')",
            2: "gate is null",
        }
        bad = {identifier: reason for identifier, reason, _ in quarantined(ingested)}
        assert "takes 2 values" in bad["3"]
        assert 'double quotes: ["JFK"]' in bad["4"]
        assert [len(raw["conditions"]) for i, _, raw in quarantined(ingested) if i == "3"] == [2]
        assert ingested.counts() == Counts(6, 2, 4)  # ids, and two rows without one


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (("a", "=", [dt.date(2026, 1, 2)]), "a = date '2026-01-02'"),
        (("a b", "Not  In", [1, 2.5]), '"a b" not in (1, 2.5)'),
        (("a", "contains all", '["x", "y"]'), "a contains all ('x', 'y')"),
        (("a", "not between", "[1, 3]"), "a not between 1 and 3"),
        (("a", "ilike", '"it\'s%"'), "a ilike 'it''s%'"),
        (("a", "==", "true"), "a == true"),
    ],
)
def test_a_condition_is_text(condition: tuple[Any, Any, Any], text: str) -> None:
    assert condition_text(*condition) == text
    mm.parse(text)


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ((None, "=", "1"), "attribute is missing"),
        (("a", "equals", "1"), "unknown operator"),
        (("a", "in", "[]"), "at least 1"),
        (("a", "=", '{"x": 1}'), "a:"),
    ],
)
def test_a_bad_condition_says_what(condition: tuple[Any, Any, Any], problem: str) -> None:
    with pytest.raises(MatchmillError, match=problem):
        condition_text(*condition)


@pytest.mark.slow
def test_csv_loses_nothing(spark: Any, tmp_path: Path) -> None:
    lines = [
        "subscription_id,expression,note",
        '1,"name = \'a, ""b""\'",plain',
        "2,b > 3",
        "3,c = 1,x,y",
        ",e = 1,no id",
        "four,d = 1,no number",
        '6,"a = 1,open quote',
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.csv").write_text("\n".join(lines), encoding="utf-8")
    with ingest_subscriptions(tmp_path / "in", format="csv", integer_ids=True) as ingested:
        assert accepted(ingested) == {1: "name = 'a, \"b\"'"}
        assert ingested.counts() == Counts(6, 1, 5)
        bad = [raw for _, _, raw in quarantined(ingested)]
        assert all({"line": lines[n]} in bad for n in (2, 3, 6))
        assert {"subscription_id": None, "expression": "e = 1", "note": "no id"} in bad
        assert {"subscription_id": "four", "expression": "d = 1", "note": "no number"} in bad
        sources = {row["source"] for row in ingested.quarantine.collect()}
        assert [source.rpartition("/")[2] for source in sources] == ["one.csv"]


def test_csv_files_must_have_one_header(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("subscription_id,expression\n1,x = 1\n", encoding="utf-8")
    with pytest.raises(
        InputError, match="no single column 'ident'; it has: subscription_id, expression"
    ):
        ingest_subscriptions(tmp_path / "a.csv", subscription_id="ident", spark=spark)


@pytest.mark.slow
def test_json_lines_are_read_as_the_library_reads_them(spark: Any, tmp_path: Path) -> None:
    lines = [
        '{"subscription_id": 7, "expression": "x = 1", "more": [1]}',
        '{"subscription_id": "8", "expression": {"origin": ["JFK"]}}',
        "",
        '{"subscription_id": "9", "expression": ',
        '{"expression": "x = 1"}',
        '{"subscription_id": "10", "subscription_id": "11", "expression": "x = 1"}',
        '{"subscription_id": "12", "expression": ["x"]}',
        "[1]",
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with ingest_subscriptions(tmp_path / "a.jsonl") as ingested:
        assert accepted(ingested) == {"7": "x = 1", "8": JFK}
        assert ingested.counts() == Counts(7, 2, 5)
        raws = [raw for _, _, raw in quarantined(ingested)]
        assert {"line": lines[3]} in raws
        assert [1] in raws
        assert {"subscription_id": "12", "expression": ["x"]} in raws


@pytest.mark.slow
def test_parquet_and_a_damaged_file(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "p.parquet"
    rows = [(str(n), f"x = {n}") for n in range(20)]
    df = spark.createDataFrame(rows, "subscription_id string, expression string")
    df.repartition(2).write.parquet(str(folder))
    with ingest_subscriptions(folder) as ingested:
        assert ingested.counts() == Counts(20, 20, 0)
    damaged = max(folder.glob("*.parquet"))
    with damaged.open("r+b") as file:
        file.truncate(100)
    with pytest.raises(FileFormatError, match=damaged.name):
        ingest_subscriptions(folder).counts()
    with pytest.raises(FileFormatError, match="no such file"):
        ingest_subscriptions(tmp_path / "nothing.parquet")


@pytest.mark.slow
def test_rows_are_read_once(spark: Any, tmp_path: Path) -> None:
    """The input is gone before the results are asked for, except for what was kept."""
    source = tmp_path / "in"
    spark.createDataFrame(
        [("a", "x = 1"), ("b", "x")], "subscription_id string, expression string"
    ).write.parquet(str(source))
    work = str(tmp_path / "work")
    ingested = ingest_subscriptions(spark.read.parquet(str(source)), work=work)
    for file in source.iterdir():
        file.unlink()
    assert ingested.write(str(tmp_path / "out")) == Counts(2, 2, 0)
    written = spark.read.parquet(str(tmp_path / "out" / "accepted"))
    assert {tuple(row) for row in written.collect()} == {("a", "x = 1"), ("b", "x")}
    assert spark.read.parquet(str(tmp_path / "out" / "quarantine")).columns == [
        *Rejected._fields, "raw",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_join_of_files_has_no_source(spark: Any, tmp_path: Path) -> None:
    for name in ("ids", "texts"):
        spark.sql("select 1 as subscription_id, 'x =' as expression").write.parquet(
            str(tmp_path / name)
        )
    ids, texts = (spark.read.parquet(str(tmp_path / name)) for name in ("ids", "texts"))
    with ingest_subscriptions(
        ids.select("subscription_id").join(texts, "subscription_id")
    ) as ingested:
        (row,) = ingested.quarantine.collect()
        assert (row["id"], row["source"]) == ("1", None)


@pytest.mark.slow
def test_no_rows(spark: Any) -> None:
    empty = spark.createDataFrame([], "subscription_id string, expression string")
    with ingest_subscriptions(empty) as ingested:
        assert ingested.counts() == Counts(0, 0, 0)


def test_wrong_types_are_named_at_once(spark: Any) -> None:
    with pytest.raises(InputError, match="'subscription_id' is of type double"):
        ingest_subscriptions(spark.sql("select 1.0D as subscription_id, 'x = 1' as expression"))
    with pytest.raises(InputError, match="to_json"):
        ingest_subscriptions(spark.sql("select 'a' as subscription_id, array(1) as expression"))
    with pytest.raises(InputError, match="no single column 'expression'"):
        ingest_subscriptions(spark.sql("select 'a' as subscription_id, 'x' as expr"))
    with pytest.raises(InputError, match="no single column 'operator'"):
        ingest_subscriptions(spark.sql("select 'a' as subscription_id, 'x' as attribute"))


@pytest.mark.slow
def test_what_is_accepted_is_what_build_and_the_library_take(spark: Any, tmp_path: Path) -> None:
    """One name of the id column, through all of them."""
    (tmp_path / "a.csv").write_text("subscription_id,expression\nu1,x = 1\n", encoding="utf-8")
    with ingest_subscriptions(tmp_path / "a.csv", spark=spark) as ingested:
        assert len(build(ingested.accepted, tmp_path / "i")) == 1
        engine = mm.Engine()
        assert engine.subscribe_many(ingested.accepted.toArrow()).n_accepted == 1


@pytest.mark.slow
def test_a_dialect(spark: Any) -> None:
    rows = [("a", '{"x": [null]}'), ("b", "x = 1")]
    df = spark.createDataFrame(rows, "subscription_id string, expression string")
    with ingest_subscriptions(df, dialect="eventbridge") as ingested:
        assert accepted(ingested) == {"a": """eventbridge '{"x":[null]}'"""}
        assert [name for name, _, _ in quarantined(ingested)] == ["b"]
    with pytest.raises(InputError, match="did you mean 'eventbridge'"):
        ingest_subscriptions(df, dialect="eventbrigde")


ODD_ROWS: list[tuple[Any, Any, Any]] = [
    (None, "x = 1", None),
    ("", "x = 1", None),
    ("é\ufffd", "x = 1", None),
    ("i1", None, None),
    ("i2", "", None),
    ("i3", "   ", None),
    ("i4", "x = '\ufffd'", None),
    ("i5", "x >", None),
    ("i6", "x = 1", "a bad line"),
    ("i7", '{"origin": ["JFK"]}', None),
    ("i8", "x = 1 and not (y in ('a', 'b') or z like '%q%')", None),
    ("i9", "\u00a0x = 1", None),
    ("i" * 300, "\tx = 1\n", None),
    ("7", "x = 1 and x = 2", None),
    ("-8", "x is null", None),
    ("+9", "true", None),
    ("123456789012345678901", "x = 1", None),
]


@pytest.mark.parametrize("integer_ids", [False, True])
@pytest.mark.parametrize("dialect", ["matchmill", "eventbridge"])
def test_rows_that_are_good_at_a_glance_are_those_that_are_good(
    integer_ids: bool, dialect: str
) -> None:
    """In a large batch most rows are read by kernels; in small ones each is looked at."""
    plain = [(str(100 + i), f"a{i % 9} < {i} and b = 't{i % 5}'", None) for i in range(2400)]
    rows = plain[:1000] + ODD_ROWS + plain[1000:]
    ids, expressions, problems = (pa.array(c, pa.string()) for c in zip(*rows, strict=True))
    nothing = pa.nulls(len(rows), pa.string())
    batch = pa.record_batch(
        [ids, expressions, problems, ids, nothing], ["id", "expression", "problem", "raw", "source"]
    )
    names = ("subscription_id", "expression")
    checks = Checks("expressions", integer_ids, names, dialect, (), DEFAULT_SETTINGS)
    (large,) = checked_batches([batch], checks)
    pieces = [batch.slice(start, 100) for start in range(0, len(rows), 100)]
    small = list(checked_batches(pieces, checks))
    columns = ["id", "shown_id", "expression", "reason", "raw"]
    found = pa.table(large.select(columns))
    assert found == pa.Table.from_batches(small).select(columns).combine_chunks()
    n_good = large.column("reason").null_count
    assert n_good > 2300 if dialect == "matchmill" else n_good == (not integer_ids)
