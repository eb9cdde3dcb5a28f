"""What there is to tell of matches: how many each event has, who has most, where they lie."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

__all__ = ["match_figures", "quarantine_figures", "statistics_figures", "times_figures"]

_MOST_BUSY = 20
_MOST_REASONS = 20


def match_figures(matches: Any, subscriptions: Any, has_arrays: bool) -> dict[str, Any]:
    """Counts that must agree with each other, a histogram, and the busiest subscriptions."""
    by_file = (
        matches.groupBy(F.input_file_name().alias("file"))
        .agg(F.sum(F.size("subscription_ids") if has_arrays else F.lit(1)).alias("n"))
        .orderBy("file")
        .collect()
    )
    pairs = matches
    if has_arrays:
        pairs = matches.select("event_id", F.explode("subscription_ids").alias("subscription_id"))
    by_subscription = pairs.groupBy("subscription_id").agg(F.count(F.lit(1)).alias("n")).persist()
    totals = by_subscription.agg(F.count(F.lit(1)).alias("n"), F.sum("n").alias("pairs")).first()
    busiest = (
        by_subscription.orderBy(F.desc("n"), "subscription_id")
        .limit(_MOST_BUSY)
        .join(subscriptions, "subscription_id")
        .orderBy(F.desc("n"), "subscription_id")
        .collect()
    )
    by_subscription.unpersist()
    per_event = pairs.groupBy("event_id").agg(F.count(F.lit(1)).alias("n"))
    sizes = per_event.groupBy(F.floor(F.log2("n")).alias("power")).agg(
        F.count(F.lit(1)).alias("events"), F.sum("n").alias("pairs"), F.max("n").alias("most")
    )
    histogram = sorted((tuple(row) for row in sizes.collect()), key=lambda row: row[0])
    return {
        "pairs_by_partition": [row["n"] for row in by_file],
        "pairs": sum(row["n"] for row in by_file),
        "pairs_by_subscription": totals["pairs"] or 0,
        "pairs_by_event": sum(row[2] for row in histogram),
        "subscriptions_that_match": totals["n"],
        "events_that_match": sum(row[1] for row in histogram),
        "most_of_an_event": max((row[3] for row in histogram), default=0),
        "histogram": [[2 ** row[0], 2 ** (row[0] + 1) - 1, row[1]] for row in histogram],
        "busiest": [[row["subscription_id"], row["n"], row["expression"]] for row in busiest],
    }


def quarantine_figures(quarantine: Any) -> list[list[Any]]:
    """[reason, count, an id, a row] for the most frequent reasons."""
    rows = (
        quarantine.groupBy("reason")
        .agg(
            F.count(F.lit(1)).alias("n"),
            F.min("id").alias("id"),
            F.min_by("raw", "id").alias("raw"),
        )
        .orderBy(F.desc("n"), "reason")
        .limit(_MOST_REASONS)
        .collect()
    )
    return [[row["reason"], row["n"], row["id"], (row["raw"] or "")[:300]] for row in rows]


def statistics_figures(table: Any) -> dict[str, Any]:
    """Attributes by the number of events that have them, and the truest predicates."""
    rows = table.where("kind in ('attribute', 'distinct', 'predicate')").collect()
    distinct = {row["attribute"]: row["n"] for row in rows if row["kind"] == "distinct"}
    attributes = [
        [row["attribute"], row["n"], distinct.get(row["attribute"], 0)]
        for row in rows
        if row["kind"] == "attribute"
    ]
    predicates = [[row["value"], row["n"]] for row in rows if row["kind"] == "predicate"]
    return {
        "attributes": sorted(attributes, key=lambda row: (-row[1], row[0]))[:50],
        "predicates": sorted(predicates, key=lambda row: (-row[1], row[0]))[:_MOST_BUSY],
    }


def times_figures(times: list[Any]) -> list[list[float]]:
    """[seconds, rows written] of the tasks that wrote something."""
    return [[round(t.seconds, 3), t.rows_written] for t in times if t.rows_written]
