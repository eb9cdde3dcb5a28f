"""Files of subscriptions, events and matches: CSV, JSON lines and Parquet, by suffix."""

from matchmill.io.event_files import (
    CsvColumns,
    EventChunk,
    event_columns,
    infer_csv_columns,
    read_event_chunks,
)
from matchmill.io.event_ids import EventIds
from matchmill.io.formats import format_of, missing_column
from matchmill.io.subscription_files import SubscriptionRow, read_subscriptions
from matchmill.io.writers import STDOUT, MatchWriter, RefusedWriter

__all__ = [
    "STDOUT",
    "CsvColumns",
    "EventChunk",
    "EventIds",
    "MatchWriter",
    "RefusedWriter",
    "SubscriptionRow",
    "event_columns",
    "format_of",
    "infer_csv_columns",
    "missing_column",
    "read_event_chunks",
    "read_subscriptions",
]
