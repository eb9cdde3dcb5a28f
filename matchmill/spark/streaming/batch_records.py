"""What a stream remembers of its batches: which version of the engine answers which, and more.

    CHECKPOINT/matchmill/batch-000000012.json     the record of batch 12
    CHECKPOINT/matchmill/written-000000012.json   the files of its answer, before they are revealed
    CHECKPOINT/matchmill/delta-000000012-…/       changes since the version was built
    CHECKPOINT/matchmill/expiries-000000009-…/    when subscriptions in the version itself end

A record is published in one step before its batch is answered, and what it names is written before
that. So a batch that is run again is answered by the same version, changes and time. What no record
names was cut short.
"""

from __future__ import annotations

import io
import json
import os
import re
import zlib
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from matchmill.errors import FolderError, InputError
from matchmill.spark.published.locations import (
    Location,
    location_of,
    read_published,
    spare_name,
)

__all__ = ["BatchRecord", "Records", "progress", "record_location"]

_FORMAT = "matchmill stream batch 2"
_WRITTEN_FORMAT = "matchmill stream files 1"
_KEPT = 10  # Spark runs only the last one again; the others are for people
_RECORD = re.compile(r"batch-(\d{9,})\.json(?:\.next)?")
_WRITTEN = re.compile(r"written-(\d{9,})\.json(?:\.next)?")
_TABLES = re.compile(r"(delta|expiries)-\d{9,}-[0-9a-f]{12}")
_CUT_SHORT = re.compile(
    r"\.?(?:batch|written)-\d{9,}\.json-[0-9a-f]{12}"
)  # as written before the rename


class BatchRecord(NamedTuple):
    """What a batch of a stream was answered with.

    Examples
    --------
    >>> ms.progress("checkpoint").version  # doctest: +SKIP
    '000003-9f31c2a07e55'
    """

    batch_id: int
    version: str
    takes_changes: bool  # whether the stream ever had changes: it then chooses the version
    time: int  # that ends go by: microseconds since 1970 in UTC
    delta: str | None  # a folder beside the record
    expiries: str | None  # likewise
    n_changed: int  # subscriptions that differ from the version's: new, replaced or gone
    n_fresh: int  # of those, new or replaced
    n_expiring: int  # subscriptions that have an end
    n_changes: int  # of this batch
    n_rejected: int  # changes of this batch
    compaction: str  # idle, running, or why the last one failed
    output: str  # columns and types of what is written


def record_location(checkpoint: str | os.PathLike[str], spark: Any) -> Location:
    """Find the records of a checkpoint."""
    return location_of(f"{os.fspath(checkpoint).rstrip('/')}/matchmill", spark)


def progress(checkpoint: str | os.PathLike[str], *, spark: Any = None) -> BatchRecord | None:
    """Return the record of a stream's latest batch, from any process.

    Parameters
    ----------
    checkpoint
        The folder, or Hadoop path, that the stream was started with.
    spark
        The session; needed for paths that only Hadoop knows.

    Returns
    -------
    BatchRecord or None
        The batch may be running. None if there is none yet.

    Examples
    --------
    >>> ms.progress("checkpoint").batch_id  # doctest: +SKIP
    12
    """
    return Records(record_location(checkpoint, spark)).latest()


class Records:
    """The records of one stream."""

    def __init__(self, location: Location) -> None:
        self.location = location

    def known(self) -> list[int]:
        """List the batches that have a record, ascending."""
        found = map(_RECORD.fullmatch, self.location.names(""))
        return sorted({int(match[1]) for match in found if match})

    def latest(self) -> BatchRecord | None:
        """Read the record of the last batch that has one."""
        for batch_id in reversed(self.known()):
            if (record := self.read(batch_id)) is not None:
                return record
        return None

    def where(self, batch_id: int) -> str:
        """Name the file of a record."""
        return f"{self.location.root}/{_name(batch_id)}"

    def read(self, batch_id: int) -> BatchRecord | None:
        """Read a record; None if there is none."""
        return read_published(
            self.location, _name(batch_id), lambda content: self._parsed(batch_id, content)
        )

    def _parsed(self, batch_id: int, content: bytes) -> BatchRecord:
        try:
            return BatchRecord(**self._body(_name(batch_id), _FORMAT, content))
        except TypeError as error:
            raise self._damaged(_name(batch_id)) from error

    def _body(self, name: str, kind: str, content: bytes) -> dict[str, Any]:
        """Read what `_publish` wrote."""
        try:
            document = json.loads(content)
            body: dict[str, Any] = document["body"]
            if document["format"] == kind and document["crc32"] == _checksum(body):
                return body
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged(name) from error
        raise self._damaged(name)

    def _publish(self, name: str, kind: str, body: dict[str, Any]) -> None:
        document = {"format": kind, "crc32": _checksum(body), "body": body}
        self.location.publish(name, json.dumps(document).encode())

    def _damaged(self, name: str) -> FolderError:
        return FolderError(
            f"{self.location.root}/{name} is damaged, or of another matchmill: restore it, or"
            " start again with an empty checkpoint and output"
        )

    def publish(self, record: BatchRecord) -> None:
        """Write a record."""
        self._publish(_name(record.batch_id), _FORMAT, record._asdict())

    def publish_written(self, record: BatchRecord, folder: str, files: list[str]) -> None:
        """Note that the answer to a batch is written, before it is revealed."""
        body = {"record": _checksum(record._asdict()), "folder": folder, "files": files}
        self._publish(_written_name(record.batch_id), _WRITTEN_FORMAT, body)

    def written(self, record: BatchRecord) -> tuple[str, list[str]] | None:
        """Return folder and files of the answer to a batch; None if it is not written yet."""
        body = self._written_body(record.batch_id)
        if body is None or body["record"] != _checksum(record._asdict()):
            return None
        return body["folder"], body["files"]

    def all_written(self) -> set[str]:
        """Name the folders of all answers that may still have to be revealed."""
        found = map(_WRITTEN.fullmatch, self.location.names(""))
        bodies = [self._written_body(int(match[1])) for match in found if match]
        return {body["folder"] for body in bodies if body is not None}

    def _written_body(self, batch_id: int) -> dict[str, Any] | None:
        name = _written_name(batch_id)
        return read_published(
            self.location, name, lambda content: self._body(name, _WRITTEN_FORMAT, content)
        )

    def write_table(self, kind: str, batch_id: int, table: pa.Table) -> str:
        """Write a table to a folder of its own and sync it; return the folder's name."""
        name = f"{kind}-{batch_id:09d}-{uuid4().hex[:12]}"
        work = self.location.work_folder(name)
        with (work / "rows.parquet").open("wb") as stream:
            pq.write_table(table, stream)
            stream.flush()
            os.fsync(stream.fileno())
        self.location.store(work, name)
        return name

    def read_table(self, name: str) -> pa.Table:
        """Read a table that a record names."""
        content = self.location.read(f"{name}/rows.parquet")
        if content is None:
            raise FolderError(
                f"{self.location.root}/{name} is missing: restore it, or start again with an empty"
                " checkpoint and output"
            )
        return pq.read_table(io.BytesIO(content))

    def check_output(self, output: str) -> None:
        """Raise InputError if earlier batches were written with other columns."""
        record = self.latest()
        if record is not None and record.output != output:
            raise InputError(
                f"earlier batches of this checkpoint were written as ({record.output}), and this"
                f" stream writes ({output}): keep the types, or give a new checkpoint and output"
            )

    def prune(self) -> None:
        """Remove old records, and whatever no record names."""
        known = self.known()
        kept = [record for n in known[-_KEPT:] if (record := self.read(n)) is not None]
        for batch_id in known[:-_KEPT]:
            for name in (_name(batch_id), _written_name(batch_id)):
                self.location.remove(name)
                self.location.remove(spare_name(name))
        named = {name for record in kept for name in (record.delta, record.expiries)}
        for name in self.location.names(""):
            if (_TABLES.fullmatch(name) and name not in named) or _CUT_SHORT.fullmatch(name):
                self.location.remove(name)


def _checksum(body: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())


def _written_name(batch_id: int) -> str:
    return f"written-{batch_id:09d}.json"


def _name(batch_id: int) -> str:
    return f"batch-{batch_id:09d}.json"
