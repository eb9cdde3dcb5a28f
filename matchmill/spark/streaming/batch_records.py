"""What a stream remembers of its batches: which version of the index answers which, and what else.

    CHECKPOINT/matchmill/batch-000000012.json     the record of batch 12
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
from matchmill.spark.published.locations import Place, place_of

__all__ = ["BatchRecord", "Records", "record_place", "stream_progress"]

_FORMAT = "matchmill stream batch 1"
_KEPT = 10  # Spark runs only the last one again; the others are for the curious
_RECORD = re.compile(r"batch-(\d{9,})\.json")
_TABLES = re.compile(r"(delta|expiries)-\d{9,}-[0-9a-f]{12}")
_CUT_SHORT = re.compile(r"\.?batch-\d{9,}\.json-[0-9a-f]{12}")  # as places write before they rename


class BatchRecord(NamedTuple):
    """What a batch of a stream was answered with."""

    batch_id: int
    version: str
    takes_changes: bool  # whether the stream ever took changes: it then decides on the version
    time: int  # that expiry goes by: microseconds since 1970 in UTC
    delta: str | None  # a folder beside the record
    expiries: str | None  # likewise
    n_changed: int  # subscriptions that differ from the version's: new, replaced or gone
    n_fresh: int  # of those, that are there
    n_expiring: int  # subscriptions that carry an end
    n_changes: int  # of this batch
    n_refused: int  # of this batch
    compaction: str  # idle, running, or why the last one failed
    output: str  # columns and types of what is written


def record_place(checkpoint: str | os.PathLike[str], spark: Any) -> Place:
    return place_of(f"{os.fspath(checkpoint).rstrip('/')}/matchmill", spark)


def stream_progress(checkpoint: str | os.PathLike[str], *, spark: Any = None) -> BatchRecord | None:
    """The record of a stream's latest batch, which may be under way; None if there is none yet."""
    records = Records(record_place(checkpoint, spark))
    known = records.known()
    return records.read(known[-1]) if known else None


class Records:
    def __init__(self, place: Place) -> None:
        self.place = place

    def known(self) -> list[int]:
        """The batches that there are records of, ascending."""
        found = map(_RECORD.fullmatch, self.place.folders(""))
        return sorted(int(match[1]) for match in found if match)

    def where(self, batch_id: int) -> str:
        return f"{self.place.root}/{_name(batch_id)}"

    def read(self, batch_id: int) -> BatchRecord | None:
        content = self.place.read(_name(batch_id))
        if content is None:
            return None
        try:
            document = json.loads(content)
            body = document["body"]
            if document["format"] == _FORMAT and document["crc32"] == _checksum(body):
                return BatchRecord(**body)
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged(batch_id) from error
        raise self._damaged(batch_id)

    def _damaged(self, batch_id: int) -> FolderError:
        return FolderError(
            f"{self.where(batch_id)} is damaged, or of another matchmill: restore it, or"
            " start anew with an empty checkpoint and output"
        )

    def publish(self, record: BatchRecord) -> None:
        body = record._asdict()
        document = {"format": _FORMAT, "crc32": _checksum(body), "body": body}
        self.place.publish(_name(record.batch_id), json.dumps(document).encode())

    def write_table(self, kind: str, batch_id: int, table: pa.Table) -> str:
        """A table in a folder of its own, on the disk when this returns; the folder's name."""
        name = f"{kind}-{batch_id:09d}-{uuid4().hex[:12]}"
        work = self.place.work_folder(name)
        with (work / "rows.parquet").open("wb") as stream:
            pq.write_table(table, stream)
            stream.flush()
            os.fsync(stream.fileno())
        self.place.keep(work, name)
        return name

    def read_table(self, name: str) -> pa.Table:
        content = self.place.read(f"{name}/rows.parquet")
        if content is None:
            raise FolderError(
                f"{self.place.root}/{name} is missing: restore it, or start anew with an empty"
                " checkpoint and output"
            )
        return pq.read_table(io.BytesIO(content))

    def check_output(self, output: str) -> None:
        """InputError if earlier batches were written with other columns."""
        known = self.known()
        record = self.read(known[-1]) if known else None
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
            self.place.remove(_name(batch_id))
        named = {name for record in kept for name in (record.delta, record.expiries)}
        for name in self.place.folders(""):
            if (_TABLES.fullmatch(name) and name not in named) or _CUT_SHORT.fullmatch(name):
                self.place.remove(name)


def _checksum(body: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())


def _name(batch_id: int) -> str:
    return f"batch-{batch_id:09d}.json"
