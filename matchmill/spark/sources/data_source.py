"""`spark.read.format("matchmill")`: subscriptions of a saved engine, matches of a live service.

    ms.register_source(spark)
    spark.read.format("matchmill").load("alerts.mill")                 subscription_id, expression
    spark.read.format("matchmill").option("url", "http://…")           seq, event_id, event,
         .option("subscription_id", "u42").option("ticket", "…").load()   matched_at
    spark.readStream.format("matchmill").option("url", …)              the same, as it comes

The offsets of a stream are the numbers in the mailbox; what Spark has committed is acknowledged, so
the service need not keep it. A batch read acknowledges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    InputPartition,
    SimpleDataSourceStreamReader,
)

from matchmill.errors import InputError
from matchmill.spark.sources.mailbox import MATCH_SCHEMA, Mailbox, Match, mailbox_of
from matchmill.spark.sources.saved_subscriptions import Part, SavedParts, read_part, saved_parts

__all__ = ["MatchmillSource", "register_source"]


def register_source(spark: Any) -> None:
    """Make the format "matchmill" known to a session.

    Parameters
    ----------
    spark
        A classic session, or one of Spark Connect.

    Examples
    --------
    >>> ms.register_source(spark)  # doctest: +SKIP
    >>> spark.read.format("matchmill").load("alerts.mill")  # doctest: +SKIP
    """
    spark.dataSource.register(MatchmillSource)


class MatchmillSource(DataSource):
    """Options: path, partitions; or url, subscription_id, ticket, after, limit, wait."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "matchmill"

    def schema(self) -> str:
        """Return the columns."""
        if "url" in self.options:
            return MATCH_SCHEMA
        kind = "bigint" if _saved(self.options).has_integer_ids else "string"
        return f"subscription_id {kind}, expression string"

    def reader(self, schema: Any) -> DataSourceReader:
        """Return the reader of a batch."""
        if "url" in self.options:
            return _MailboxReader(mailbox_of(self.options), _first(self.options))
        return _SavedReader(_saved(self.options).parts)

    def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:
        """Return the reader of a stream."""
        if "url" not in self.options:
            raise InputError(
                "only a service can be read as a stream: give option('url', …); a saved engine is"
                " read with spark.read"
            )
        return _MailboxStream(mailbox_of(self.options), _first(self.options))


def _saved(options: Mapping[str, str]) -> SavedParts:
    if "path" not in options:
        raise InputError("give a saved engine's folder, load('alerts.mill'), or option('url', …)")
    n_parts = options.get("partitions", "8")
    if not n_parts.isdigit() or int(n_parts) < 1:
        raise InputError(f"partitions must be a whole number of at least 1, not {n_parts!r}")
    return saved_parts(options["path"], int(n_parts))


def _first(options: Mapping[str, str]) -> int:
    after = options.get("after", "0")
    if not after.isdigit():
        raise InputError(f"after must be a whole number of at least 0, not {after!r}")
    return int(after)


class _SavedReader(DataSourceReader):
    def __init__(self, parts: list[Part]) -> None:
        self._parts = parts

    def __getstate__(self) -> dict[str, list[Part]]:
        return {"_parts": []}  # goes to every task, which also gets its own part

    def partitions(self) -> Sequence[InputPartition]:
        """List the parts."""
        return [InputPartition(part) for part in self._parts] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part."""
        if partition.value is None:  # there are no subscriptions, but Spark wants a partition
            return iter(())
        return read_part(partition.value)


class _MailboxReader(DataSourceReader):
    """All matches there are, in one partition."""

    def __init__(self, mailbox: Mailbox, after: int) -> None:
        self._mailbox = mailbox
        self._after = after

    def read(self, partition: InputPartition) -> Iterator[Match]:
        """Read one part."""
        return self._mailbox.matches_until(self._after, None)


class _MailboxStream(SimpleDataSourceStreamReader):
    """A mailbox holds what one subscriber reads, so the driver alone can read it."""

    def __init__(self, mailbox: Mailbox, after: int) -> None:
        self._mailbox = mailbox
        self._after = after

    def initialOffset(self) -> dict[str, int]:
        """Return where a new stream begins."""
        return {"seq": self._after}

    def read(self, start: dict[str, int]) -> tuple[Iterator[Match], dict[str, int]]:
        """Read what there is behind an offset."""
        found = self._mailbox.matches(start["seq"], self._mailbox.wait)
        return iter(found), {"seq": found[-1].seq if found else start["seq"]}

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[Match]:
        """Read the matches of a batch again."""
        return self._mailbox.matches_until(start["seq"], end["seq"])

    def commit(self, end: dict[str, int]) -> None:
        """Acknowledge what Spark has committed."""
        self._mailbox.acknowledge(end["seq"])
