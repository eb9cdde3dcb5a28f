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

from matchmill.spark import generate
from matchmill.spark.build import build
from matchmill.spark.data_source import register
from matchmill.spark.event_files import EventFiles, read_event_files
from matchmill.spark.explain import explain, near_misses
from matchmill.spark.failures import plain_errors
from matchmill.spark.functions import match_column, match_function, register_match
from matchmill.spark.ingest import ingest_subscriptions, read_subscriptions
from matchmill.spark.ingest_events import ingest_events
from matchmill.spark.ingested import Counts, Ingested
from matchmill.spark.layouts import EventLayout
from matchmill.spark.match import match
from matchmill.spark.quarantine import quarantine
from matchmill.spark.session import session
from matchmill.spark.statistics import event_statistics, sample_events, to_statistics
from matchmill.spark.stream import stream_matches
from matchmill.spark.stream_changes import ChangeColumns
from matchmill.spark.stream_records import BatchRecord, stream_progress
from matchmill.spark.versions import PublishedIndex, Refusal, open_index

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
    "generate",
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
