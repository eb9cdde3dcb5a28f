"""`statistics`: a history of events, counted into one table.

    kind         attribute  other  type    value    place   n         meaning
    events                                                  n         how many events
    attribute    a                                          n         events that have it
    distinct     a                                          n         values that it has
    value        a                 number  '5'              n         the most frequent values
    other        a                 string  'x'              n         some that stand for the rest
    quantile     a                 number  '12.5'   0.25              of its numbers
    pair         a          b                               n         events that have both
    condition                              text             n         events for which it is true

A table is a DataFrame: look at it, write it, read it back, or give it to `build` as `learn`.
Indexes know how often each dimension occurs and which keys it has, one dimension at a time. So
events drawn from the table, each attribute independently, tell them as much as real ones would, and
more exactly: `sample_events` makes such events. How attributes depend on each other is not in them;
pairs are in the table for people.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F

from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.engine.distinct_conditions import Conditions
from matchmill.engine.engine import Engine
from matchmill.errors import InputError
from matchmill.spark.layouts import EventLayout, check_columns, event_cells, layout_of
from matchmill.spark.value_counts import read_value, value_counts
from matchmill.spark.worker_memory import worker_task

__all__ = ["is_statistics", "sample_events", "statistics"]

_COLUMNS = (
    ("kind", "string"), ("attribute", "string"), ("other", "string"), ("type", "string"),
    ("value", "string"), ("place", "double"), ("n", "bigint"),
)  # fmt: skip
_STEPS = 20  # of the quantiles


def statistics(
    events: Any,
    subscriptions: Any = None,
    *,
    layout: str | EventLayout = "wide",
    event_id: str = "event_id",
    attributes: str | Sequence[str] | None = None,
    max_values: int = 100,
    max_attributes: int = 32,
    max_conditions: int = 200,
) -> Any:
    """Count a history of events into one table.

    Parameters
    ----------
    events
        A DataFrame of events.
    subscriptions
        A DataFrame with a column `expression`. With it the table also has pairs of the attributes
        that the subscriptions use most, and how often their conditions are true.
    layout, event_id, attributes
        How the events stand in their DataFrame, as in `match`.
    max_values
        Count so many values of each attribute one by one, and half as many of the rest.
    max_attributes
        Count pairs of so many attributes.
    max_conditions
        Count so many conditions.

    Returns
    -------
    DataFrame
        Columns `kind`, `attribute`, `other`, `type`, `value`, `place` and `n`; kinds are "events",
        "attribute", "distinct", "value", "other", "quantile", "pair" and "condition".

    Examples
    --------
    >>> table = ms.statistics(history, subscriptions)  # doctest: +SKIP
    >>> engine = ms.build(subscriptions, "alerts.mill", learn=table)  # doctest: +SKIP
    """
    found = event_cells(events, layout_of(layout, event_id, attributes))
    counts = value_counts(found).persist()
    tables = [
        _table(found.agg(F.count(F.lit(1)).alias("n")), "events"),
        _table(counts.groupBy("attribute").agg(F.sum("n").alias("n")), "attribute"),
        _table(counts.groupBy("attribute").agg(F.count(F.lit(1)).alias("n")), "distinct"),
        _values(counts, max_values),
        _table(_quantiles(counts, _STEPS).drop("n"), "quantile"),
    ]
    if subscriptions is not None:
        used = _used(subscriptions, max_attributes, max_conditions)
        tables.append(_pairs_and_conditions(found, *used))
    table = tables[0]
    for more in tables[1:]:
        table = table.unionByName(more)
    table = table.localCheckpoint()  # small, and now computed; the counts are large
    counts.unpersist()
    return table


def _table(df: Any, kind: str) -> Any:
    """Make a part of the table: what it lacks is null."""
    given = {"kind": F.lit(kind), **{name: F.col(name) for name in df.columns}}
    return df.select(*(given.get(name, F.lit(None)).cast(t).alias(name) for name, t in _COLUMNS))


def _values(counts: Any, max_values: int) -> Any:
    """Find the most frequent values, and some that stand for the rest.

    Of numbers these are quantiles, of everything else a sample in which each distinct value is
    equally likely.
    """
    ranked = Window.partitionBy("attribute").orderBy(F.desc("n"), "type", "value")
    placed = counts.withColumn("rank", F.row_number().over(ranked))
    top = placed.where(F.col("rank") <= max_values).drop("rank")
    rest = placed.where(F.col("rank") > max_values).drop("rank")
    n_others = max_values // 2 + 1
    mixed = Window.partitionBy("attribute").orderBy(F.xxhash64("type", "value"), "type", "value")
    sampled = rest.where("type != 'number'").withColumn("rank", F.row_number().over(mixed))
    return (
        _table(top, "value")
        .unionByName(_table(sampled.where(F.col("rank") <= n_others).drop("rank"), "other"))
        .unionByName(_table(_quantiles(rest, n_others), "other"))
    )


def _quantiles(counts: Any, n_steps: int) -> Any:
    """Find numbers at so many equal steps of their distribution.

    A number that occurs n times counts n times. `n` is the share of a step.
    """
    numbers = counts.where("type = 'number'").withColumn("x", F.col("value").cast("double"))
    running = Window.partitionBy("attribute").orderBy("x")
    placed = numbers.withColumn("up_to", F.sum("n").over(running)).withColumn(
        "total", F.sum("n").over(Window.partitionBy("attribute"))
    )
    steps = F.lit(n_steps) / F.col("total")
    first = F.ceil((F.col("up_to") - F.col("n")) * steps).cast("int")
    last = F.floor(F.col("up_to") * steps).cast("int")
    stepped = placed.where(first <= last).withColumn("step", F.explode(F.sequence(first, last)))
    return (
        stepped.groupBy("attribute", "type", "step")
        .agg(
            F.min_by("value", "x").alias("value"),
            (F.first("step") / n_steps).alias("place"),
            F.ceil(F.first("total") / (n_steps + 1)).alias("n"),
        )
        .drop("step")
    )


# -- what subscriptions use -------------------------------------------------------------------


def _used(
    subscriptions: Any, max_attributes: int, max_conditions: int
) -> tuple[list[str], list[str]]:
    """Find the attributes and the conditions that most subscriptions use."""
    check_columns(subscriptions, ["expression"], "the DataFrame of subscriptions")
    counted = subscriptions.select("expression").mapInArrow(
        worker_task(_read_uses), "kind string, text string, n bigint"
    )
    total = counted.groupBy("kind", "text").agg(F.sum("n").alias("n"))
    ranked = Window.partitionBy("kind").orderBy(F.desc("n"), "text")
    top = total.withColumn("rank", F.row_number().over(ranked)).where(
        F.col("rank")
        <= F.when(F.col("kind") == "attribute", max_attributes).otherwise(max_conditions)
    )
    rows = [(row["kind"], row["text"]) for row in top.collect()]
    attributes = sorted(text for kind, text in rows if kind == "attribute")
    return attributes, sorted(text for kind, text in rows if kind == "condition")


def _read_uses(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count attributes and conditions. A condition that was read before is only looked up."""
    known = Conditions()
    counts = np.zeros(0, np.int64)
    attributes: Counter[str] = Counter()
    for batch in batches:
        found: list[int] = []
        names: Counter[tuple[int, ...]] = Counter()
        for text in batch.column(0).to_pylist():
            asked = known.read(text)
            found += set(asked.conditions)
            if asked.others:
                mentioned = {known.predicates[number].name for number in asked.conditions}
                attributes.update(mentioned.union(asked.others))
            else:
                names[tuple(asked.conditions)] += 1
        for numbers, n in names.items():
            for name in {known.predicates[number].name for number in numbers}:
                attributes[name] += n
        counted = np.bincount(found, minlength=len(known.predicates))
        counted[: len(counts)] += counts
        counts = counted
    yield _counts_batch(
        ("kind", ["attribute"] * len(attributes) + ["condition"] * len(counts)),
        ("text", [*attributes, *map(str, known.predicates)]),
        n=[*attributes.values(), *counts.tolist()],
    )


def _counts_batch(*texts: tuple[str, Sequence[str | None]], n: Sequence[int]) -> pa.RecordBatch:
    columns = [pa.array(column, pa.string()) for _, column in texts]
    return pa.record_batch([*columns, pa.array(n, pa.int64())], [*(name for name, _ in texts), "n"])


def _pairs_and_conditions(found: Any, attributes: list[str], conditions: list[str]) -> Any:
    """Count pairs of these attributes and truths of these conditions, by workers."""
    counted = found.select("event").mapInArrow(
        worker_task(lambda batches: _count_used(batches, attributes, conditions)),
        "kind string, attribute string, other string, value string, n bigint",
    )
    total = counted.groupBy("kind", "attribute", "other", "value").agg(F.sum("n").alias("n"))
    total = total.localCheckpoint()  # read twice, and small
    return _table(total.where("kind = 'pair'"), "pair").unionByName(
        _table(total.where("kind = 'condition'"), "condition")
    )


def _count_used(
    batches: Iterable[pa.RecordBatch], attributes: list[str], conditions: list[str]
) -> Iterator[pa.RecordBatch]:
    engine = Engine()
    engine.subscribe_many(list(enumerate(conditions)))
    together = np.zeros((len(attributes), len(attributes)), np.int64)
    truths = np.zeros(len(conditions), np.int64)
    places = {name: place for place, name in enumerate(attributes)}
    for batch in batches:
        events = read_cells(batch.column("event"))
        present = np.zeros((len(attributes), batch.num_rows), np.float32)
        for column in events.columns(places.__contains__).columns:
            present[places[column.attribute], column.rows] = 1
        together += np.rint(present @ present.T).astype(np.int64)
        matches = engine.match_many(events)
        truths += np.bincount(matches.subscription_ids().to_numpy(), minlength=len(conditions))
    above = np.triu(together, 1)
    first, second = np.nonzero(above)
    nothing: list[str | None] = [None]
    n_pairs, n_conditions = len(first), len(conditions)
    yield _counts_batch(
        ("kind", ["pair"] * n_pairs + ["condition"] * n_conditions),
        ("attribute", [attributes[i] for i in first] + nothing * n_conditions),
        ("other", [attributes[i] for i in second] + nothing * n_conditions),
        ("value", [*nothing * n_pairs, *conditions]),
        n=[*above[first, second].tolist(), *truths.tolist()],
    )


# -- from the table to an index -------------------------------------------------------------------


def is_statistics(frame: Any) -> bool:
    """Return whether a DataFrame is a table of statistics, and not one of events."""
    return list(frame.columns) == [name for name, _ in _COLUMNS]


def sample_events(table: Any, n: int = 1024, *, seed: int = 1) -> list[dict[str, Any]]:
    """Draw events with attributes and values as frequent as in the table, for `Engine.learn`.

    Attributes are drawn independently. Shares are kept as exactly as n events allow: an attribute
    of 12.3 events in n is in 12 or 13 of them, and its values divide these in the same way.
    """
    rows = table.where("kind in ('events', 'attribute', 'value', 'other')").collect()
    n_history = sum(row["n"] for row in rows if row["kind"] == "events")
    if not n_history:
        raise InputError("the table is of no events: it has no row of kind 'events' above 0")
    present = {row["attribute"]: row["n"] for row in rows if row["kind"] == "attribute"}
    values: dict[str, list[Any]] = {name: [] for name in present}
    for row in rows:
        if row["kind"] in ("value", "other"):
            values[row["attribute"]].append(row)
    random = np.random.Generator(np.random.PCG64(seed))
    events: list[dict[str, Any]] = [{} for _ in range(n)]
    for name in sorted(present):
        share = present[name] / n_history * n
        size = min(n, int(share) + int(random.random() < share % 1))
        own = sorted(values[name], key=lambda row: (row["kind"], row["type"], row["value"]))
        drawn = _drawn(random, own, present[name], size)
        for place, value in zip(random.permutation(n)[:size].tolist(), drawn, strict=True):
            events[place][name] = value
    return events


def _drawn(random: np.random.Generator, rows: list[Any], n_present: int, size: int) -> list[Any]:
    """Draw so many values, each as often as its count says; others stand for all of the rest."""
    counts = np.array([row["n"] for row in rows], np.float64)
    is_other = np.array([row["kind"] == "other" for row in rows])
    n_rest = n_present - counts[~is_other].sum()
    if is_other.any():
        counts[is_other] *= n_rest / counts[is_other].sum()
    bounds = np.cumsum(counts)
    at = (np.arange(size) + random.random()) / max(size, 1) * bounds[-1]
    chosen = np.minimum(np.searchsorted(bounds, at, side="right"), len(rows) - 1).tolist()
    values = [read_value(rows[k]["type"], rows[k]["value"]) for k in chosen]
    between = [i for i, k in enumerate(chosen) if rows[k]["place"] is not None]
    for i, number in zip(between, _numbers(random, rows, len(between)), strict=True):
        values[i] = number
    return [values[k] for k in random.permutation(size)]


def _numbers(random: np.random.Generator, rows: list[Any], size: int) -> list[int] | list[float]:
    """Draw numbers between the quantiles of these rows; integers if the quantiles are."""
    quantiles = sorted((row["place"], row["value"]) for row in rows if row["place"] is not None)
    if not quantiles:
        return []
    places, texts = zip(*quantiles, strict=True)
    known = [read_value("number", text) for text in texts]
    at = (np.arange(size) + random.random(size)) / max(size, 1)
    found = np.interp(at, places, np.array(known, np.float64))
    if all(isinstance(number, int) for number in known):
        return [int(number) for number in np.rint(found).tolist()]
    return list(found.tolist())
