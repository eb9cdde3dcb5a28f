"""Spark: DataFrames of subscriptions and events in, DataFrames of matches out.

    from matchmill import spark as ms

    spark = ms.session()
    engine = ms.build(subscriptions, "alerts.mill")      # subscription_id, expression
    matches = ms.match(engine, events)                   # event_id, subscription_id

Every name loads what it needs at its first use, so that reading a pipeline's config needs no Spark.
No module of this package has the name of a public function: importing it would hide the function.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from matchmill.errors import MissingDependencyError

if TYPE_CHECKING:
    from matchmill.io.reports import Rejected
    from matchmill.spark.building.driver import build
    from matchmill.spark.errors import plain_errors
    from matchmill.spark.event_statistics import statistics
    from matchmill.spark.explaining import explain, near_misses
    from matchmill.spark.functions import match_udf
    from matchmill.spark.ingestion.events import ingest_events
    from matchmill.spark.ingestion.ingested import Counts, Ingested
    from matchmill.spark.ingestion.subscriptions import ingest_subscriptions
    from matchmill.spark.layouts import EventLayout
    from matchmill.spark.matching.driver import match, matcher
    from matchmill.spark.matching.quarantined import quarantine
    from matchmill.spark.published.sharded_engine import ShardedEngine, ShardedStats, open
    from matchmill.spark.sessions import session
    from matchmill.spark.sources.data_source import register_source
    from matchmill.spark.streaming.batch_records import BatchRecord, progress
    from matchmill.spark.streaming.query import stream

__all__ = [
    "BatchRecord",
    "Counts",
    "EventLayout",
    "Ingested",
    "Rejected",
    "ShardedEngine",
    "ShardedStats",
    "build",
    "explain",
    "ingest_events",
    "ingest_subscriptions",
    "match",
    "match_udf",
    "matcher",
    "near_misses",
    "open",
    "plain_errors",
    "progress",
    "quarantine",
    "register_source",
    "session",
    "statistics",
    "stream",
]

_MODULES = {
    "BatchRecord": "spark.streaming.batch_records",
    "Counts": "spark.ingestion.ingested",
    "EventLayout": "spark.layouts",
    "Ingested": "spark.ingestion.ingested",
    "Rejected": "io.reports",
    "ShardedEngine": "spark.published.sharded_engine",
    "ShardedStats": "spark.published.sharded_engine",
    "build": "spark.building.driver",
    "explain": "spark.explaining",
    "ingest_events": "spark.ingestion.events",
    "ingest_subscriptions": "spark.ingestion.subscriptions",
    "match": "spark.matching.driver",
    "match_udf": "spark.functions",
    "matcher": "spark.matching.driver",
    "near_misses": "spark.explaining",
    "open": "spark.published.sharded_engine",
    "plain_errors": "spark.errors",
    "progress": "spark.streaming.batch_records",
    "quarantine": "spark.matching.quarantined",
    "register_source": "spark.sources.data_source",
    "session": "spark.sessions",
    "statistics": "spark.event_statistics",
    "stream": "spark.streaming.query",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import pyspark  # noqa: F401 - only to say in time that it is missing
    except ImportError as error:
        raise MissingDependencyError(
            "PySpark is not installed: pip install 'matchmill[spark]'"
        ) from error
    found = getattr(import_module(f"matchmill.{_MODULES[name]}"), name)
    globals()[name] = found  # the next use does not come here
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
