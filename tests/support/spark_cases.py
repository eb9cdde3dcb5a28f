"""Generated subscriptions and events as DataFrames in every layout, and what the oracle says."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pyarrow as pa

from matchmill.language.evaluate import evaluate
from matchmill.language.expression import Expression
from tests.support.generators import HOMES, cases

__all__ = ["Case", "case_of", "oracle", "pairs"]

Pairs = set[tuple[Any, Any]]

ARROW_TYPES = {
    "string": pa.string(),
    "address": pa.string(),
    "float": pa.float64(),
    "number": pa.float64(),
    "int": pa.int64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


class Case(NamedTuple):
    """Events as a table, and how it is laid out; `events` is what they mean."""

    expressions: list[Expression]
    events: list[dict[str, Any]]
    table: pa.Table
    layout: dict[str, Any]


def case_of(layout: str, seed: int, n_expressions: int, n_events: int) -> Case:
    """A case of one layout; ids of events are texts, e0, e1, …"""
    expressions, events = cases(seed, n_expressions, n_events, mixed=layout == "json")
    ids = pa.array([f"e{i}" for i in range(n_events)])
    if layout == "wide":
        fields = {name: pa.array([_typed(e.get(name), HOMES[name]) for e in events], _type(name))
                  for name in HOMES}  # fmt: skip
        table = pa.table({"event_id": ids, **fields})
        return Case(expressions, table.drop_columns(["event_id"]).to_pylist(), table, {})
    if layout == "json":
        texts = [json.dumps(event, default=lambda time: time.isoformat()) for event in events]
        table = pa.table({"event_id": ids, "event": texts})
        return Case(expressions, [json.loads(t) for t in texts], table, {"layout": "json"})
    texts_only = [{k: v for k, v in e.items() if type(v) is str} for e in events]
    if layout == "map":
        cells = pa.array([list(e.items()) for e in texts_only], pa.map_(pa.string(), pa.string()))
        table = pa.table({"event_id": ids, "attributes": cells})
        return Case(expressions, texts_only, table, {"layout": "map"})
    rows = [(f"e{i}", name, value) for i, e in enumerate(texts_only) for name, value in e.items()]
    table = pa.table(list(map(list, zip(*rows, strict=True))), ["event_id", "attribute", "value"])
    return Case(expressions, texts_only, table, {"layout": "long"})


def _type(name: str) -> pa.DataType:
    kind = HOMES[name]
    scalar = ARROW_TYPES[kind.removeprefix("list:")]
    return pa.list_(scalar) if kind.startswith("list:") else scalar


def _typed(value: Any, kind: str) -> Any:
    if kind == "number" and value is not None:
        return float(value)
    if kind == "list:number" and value is not None:
        return [None if v is None else float(v) for v in value]
    return value


def oracle(case: Case) -> Pairs:
    """All (event, subscription) pairs, by the slow and obvious way."""
    return {
        (f"e{i}", f"s{k}")
        for i, event in enumerate(case.events)
        for k, expression in enumerate(case.expressions)
        if evaluate(expression, event) is True
    }


def subscriptions(spark: Any, expressions: list[Expression]) -> Any:
    table = pa.table(
        {
            "subscription_id": [f"s{k}" for k in range(len(expressions))],
            "expression": list(map(str, expressions)),
        }
    )
    return spark.createDataFrame(table)


def pairs(matches: Any) -> Pairs:
    """The rows of a DataFrame, each of which must occur once."""
    columns = [column.to_pylist() for column in matches.toArrow().columns]
    rows = list(zip(*columns, strict=True))
    assert len(set(rows)) == len(rows)
    return set(rows)


def check_all(spark: Any, folder: str) -> None:
    """Build, publish twice, match by every way, in any session and location."""
    from pyspark.sql import functions as F

    from matchmill import spark as ms

    case = case_of("wide", 3, 100, 40)
    wanted = oracle(case)
    rows = subscriptions(spark, case.expressions)
    events = spark.createDataFrame(case.table).repartition(3)
    first = ms.build(rows.limit(1), folder)
    index = ms.build(rows, folder, shards=3)
    assert len(index) == len(case.expressions)
    assert pairs(ms.match(index, events)) == wanted
    assert pairs(ms.match(ms.open(folder, spark=spark, verify=True), events)) == wanted
    assert len(pairs(ms.match(first, events))) < len(wanted)
    names = [f"`{name}`" for name in case.table.column_names if name != "event_id"]
    column = ms.match_udf(index)(F.struct(*names)).alias("found")
    found = events.select("event_id", column).collect()
    assert {(row.event_id, s) for row in found for s in row.found} == wanted
    spark.udf.register("subscriptions_of", ms.match_udf(index))
    events.createOrReplaceTempView("all_events")
    counted = spark.sql("select sum(size(subscriptions_of(struct(*)))) as n from all_events")
    assert counted.collect()[0].n == len(wanted)
    assert ms.quarantine(events).collect() == []
