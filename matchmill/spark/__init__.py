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

from matchmill.spark.build import build
from matchmill.spark.failures import plain_errors
from matchmill.spark.functions import match_column, match_function, register_match
from matchmill.spark.layouts import EventLayout
from matchmill.spark.match import match
from matchmill.spark.quarantine import quarantine
from matchmill.spark.session import session
from matchmill.spark.stream import stream_matches
from matchmill.spark.stream_changes import ChangeColumns
from matchmill.spark.stream_records import BatchRecord, stream_progress
from matchmill.spark.versions import PublishedIndex, Refusal, open_index

__all__ = [
    "BatchRecord",
    "ChangeColumns",
    "EventLayout",
    "PublishedIndex",
    "Refusal",
    "build",
    "match",
    "match_column",
    "match_function",
    "open_index",
    "plain_errors",
    "quarantine",
    "register_match",
    "session",
    "stream_matches",
    "stream_progress",
]
