"""Spark: DataFrames of events and subscriptions in, DataFrames of matches out.

    from matchmill import spark as ms

    spark = ms.session()
    index = ms.build(subscriptions, "alerts.index")      # (subscription_id, expression)
    matches = ms.match(events, index)                    # (event_id, subscription_id)

Nothing of this is loaded by `import matchmill`.
"""

from matchmill.errors import MissingDependencyError

try:
    import pyspark as pyspark
except ImportError as error:
    raise MissingDependencyError(
        "PySpark is not installed: pip install 'matchmill[spark]'"
    ) from error

from matchmill.spark.building.driver import build
from matchmill.spark.errors import plain_errors
from matchmill.spark.event_statistics import event_statistics, sample_events, to_statistics
from matchmill.spark.explaining import explain, near_misses
from matchmill.spark.functions import match_column, match_function, register_match
from matchmill.spark.ingestion.event_files import EventFiles, read_event_files
from matchmill.spark.ingestion.events import ingest_events
from matchmill.spark.ingestion.ingested import Counts, Ingested
from matchmill.spark.ingestion.subscriptions import ingest_subscriptions, read_subscriptions
from matchmill.spark.layouts import EventLayout
from matchmill.spark.matching.driver import match
from matchmill.spark.matching.quarantined import quarantine
from matchmill.spark.published.versions import PublishedIndex, Refusal, open_index
from matchmill.spark.sessions import session
from matchmill.spark.sources.data_source import register
from matchmill.spark.streaming.batch_records import BatchRecord, stream_progress
from matchmill.spark.streaming.changes import ChangeColumns
from matchmill.spark.streaming.query import stream_matches

__all__ = [
    "BatchRecord",
    "ChangeColumns",
    "Counts",
    "EventFiles",
    "EventLayout",
    "Ingested",
    "PublishedIndex",
    "Refusal",
    "build",
    "event_statistics",
    "explain",
    "ingest_events",
    "ingest_subscriptions",
    "match",
    "match_column",
    "match_function",
    "near_misses",
    "open_index",
    "plain_errors",
    "quarantine",
    "read_event_files",
    "read_subscriptions",
    "register",
    "register_match",
    "sample_events",
    "session",
    "stream_matches",
    "stream_progress",
    "to_statistics",
]
