"""Why some events of a pipeline match some subscriptions, or do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as F

from matchmill import spark as ms
from matchmill.spark.pipeline.config import Config
from matchmill.spark.pipeline.job import Job, Messages

__all__ = ["explained_pairs"]


def explained_pairs(
    config: Config, messages: Messages, pairs: Sequence[Sequence[str]], limit: int
) -> list[dict[str, Any]]:
    """Explain pairs (event_id, subscription_id); without any, some matches."""
    job = Job(config, messages)
    try:
        with job.stage("explaining"):
            events = job.read("events", "accepted")
            subscriptions = job.read("subscriptions", "accepted")
            asked = (
                _given(job, pairs, events, subscriptions) if pairs else _some_matches(job, limit)
            )
            found = ms.explain(
                subscriptions, events, asked, layout=job.accepted_layout(),
                operators=config["subscriptions"]["operators"],
            )  # fmt: skip
            return [row.asDict(recursive=True) for row in found.collect()]
    finally:
        job.close()


def _given(job: Job, pairs: Sequence[Sequence[str]], events: Any, subscriptions: Any) -> Any:
    rows = job.spark().createDataFrame(
        [tuple(pair) for pair in pairs], "event_id string, subscription_id string"
    )
    kinds = (events.schema["event_id"], subscriptions.schema["subscription_id"])
    # An id of another type becomes null, and is then reported as not there.
    return rows.select(*(F.col(k.name).try_cast(k.dataType).alias(k.name) for k in kinds))


def _some_matches(job: Job, limit: int) -> Any:
    matches = job.read("match")
    if job.config["match"]["per_event"]:
        matches = matches.select("event_id", F.explode("subscription_ids").alias("subscription_id"))
    return matches.limit(limit)
