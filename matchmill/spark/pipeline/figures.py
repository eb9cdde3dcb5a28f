"""Figures of matches, rejected rows and statistics, for the summary."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

from matchmill.spark.matching.direct_output import FILE, POWER, SUBSCRIPTION

__all__ = [
    "match_figures",
    "quarantine_figures",
    "statistics_figures",
    "times_figures",
    "written_figures",
]

_MAX_BUSY = 20
_MAX_REASONS = 20


def match_figures(matches: Any, subscriptions: Any, per_event: bool) -> dict[str, Any]:
    """Count matches in three ways that must agree; find the busiest subscriptions."""
    by_file = (
        matches.groupBy(F.input_file_name().alias("file"))
        .agg(F.sum(F.size("subscription_ids") if per_event else F.lit(1)).alias("n"))
        .orderBy("file")
        .collect()
    )
    pairs = matches
    if per_event:
        pairs = matches.select("event_id", F.explode("subscription_ids").alias("subscription_id"))
    by_subscription = pairs.groupBy("subscription_id").agg(F.count(F.lit(1)).alias("n")).persist()
    totals = by_subscription.agg(F.count(F.lit(1)).alias("n"), F.sum("n").alias("pairs")).first()
    busiest = _busiest(by_subscription, subscriptions)
    by_subscription.unpersist()
    by_event = pairs.groupBy("event_id").agg(F.count(F.lit(1)).alias("n"))
    sizes = by_event.groupBy(F.floor(F.log2("n")).alias("power")).agg(
        F.count(F.lit(1)).alias("events"), F.sum("n").alias("pairs"), F.max("n").alias("most")
    )
    n_by_partition = [row["n"] for row in by_file]
    return _match_figures(n_by_partition, sum(n_by_partition), totals, sizes, busiest)


def _busiest(by_subscription: Any, subscriptions: Any) -> list[Any]:
    found: list[Any] = (
        by_subscription.orderBy(F.desc("n"), "subscription_id")
        .limit(_MAX_BUSY)
        .join(subscriptions, "subscription_id")
        .orderBy(F.desc("n"), "subscription_id")
        .collect()
    )
    return found


def _match_figures(
    n_by_partition: list[int], n_matches: int, totals: Any, powers: Any, busiest: list[Any]
) -> dict[str, Any]:
    """Put figures together; `powers` has (power, events, pairs, most matches of one event)."""
    histogram = sorted((tuple(row) for row in powers.collect()), key=lambda row: row[0])
    return {
        "n_by_partition": n_by_partition,
        "n_matches": n_matches,
        "n_by_subscription": totals["pairs"] or 0,
        "n_by_event": sum(row[2] for row in histogram),
        "n_matched_subscriptions": totals["n"],
        "n_matched_events": sum(row[1] for row in histogram),
        "n_matches_of_one_event": max((row[3] for row in histogram), default=0),
        "histogram": [[2 ** row[0], 2 ** (row[0] + 1) - 1, row[1]] for row in histogram],
        "busiest": [[row["subscription_id"], row["n"], row["expression"]] for row in busiest],
    }


def written_figures(figures: Any, subscriptions: Any, n_written: int) -> dict[str, Any]:
    """Return the same figures from those that the workers counted; `n_written` is in the files."""
    by_file = figures.where(F.col("kind") == FILE).orderBy("id").collect()
    by_subscription = (
        figures.where(F.col("kind") == SUBSCRIPTION)
        .groupBy(F.col("id").cast(subscriptions.schema["subscription_id"].dataType))
        .agg(F.sum("n").alias("n"))
        .toDF("subscription_id", "n")
        .persist()
    )
    totals = by_subscription.agg(F.count(F.lit(1)).alias("n"), F.sum("n").alias("pairs")).first()
    busiest = _busiest(by_subscription, subscriptions)
    by_subscription.unpersist()
    powers = (
        figures.where(F.col("kind") == POWER)
        .groupBy(F.col("id").cast("int").alias("power"))
        .agg(F.sum("n"), F.sum("pairs"), F.max("most"))
    )
    found = _match_figures([row["n"] for row in by_file], n_written, totals, powers, busiest)
    return found | {"tasks": [[row["most"] / 1000, row["n"]] for row in by_file]}


def quarantine_figures(quarantine: Any) -> list[list[Any]]:
    """List [reason, count, an id, a row] for the most frequent reasons."""
    rows = (
        quarantine.groupBy("reason")
        .agg(
            F.count(F.lit(1)).alias("n"),
            F.min("id").alias("id"),
            F.min_by("raw", "id").alias("raw"),
        )
        .orderBy(F.desc("n"), "reason")
        .limit(_MAX_REASONS)
        .collect()
    )
    return [[row["reason"], row["n"], row["id"], (row["raw"] or "")[:300]] for row in rows]


def statistics_figures(table: Any) -> dict[str, Any]:
    """List the attributes that most events have, and the conditions true most often."""
    rows = table.where("kind in ('attribute', 'distinct', 'condition')").collect()
    distinct = {row["attribute"]: row["n"] for row in rows if row["kind"] == "distinct"}
    attributes = [
        [row["attribute"], row["n"], distinct.get(row["attribute"], 0)]
        for row in rows
        if row["kind"] == "attribute"
    ]
    conditions = [[row["value"], row["n"]] for row in rows if row["kind"] == "condition"]
    return {
        "attributes": sorted(attributes, key=lambda row: (-row[1], row[0]))[:50],
        "conditions": sorted(conditions, key=lambda row: (-row[1], row[0]))[:_MAX_BUSY],
    }


def times_figures(times: list[Any]) -> list[list[float]]:
    """List [seconds, rows written] of the tasks that wrote something."""
    return [[round(t.seconds, 3), t.rows_written] for t in times if t.rows_written]
