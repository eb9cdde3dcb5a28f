"""The batches of a stream, one after the other: what Spark calls for each of them.

    batch N ─► changes of subscriptions ─► record of N ─► match ─► written ─► revealed ─► Spark's
               (delta.py)                  (batch_records.py)      (output.py)            commit

The record says which version of the engine, which changes and which time answer the batch, and is
on the disk before anything is answered. Whatever is killed, Spark runs the last batch again with
the same rows; the record makes its answers the same, and they replace the earlier ones.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from pyspark.sql import Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from matchmill.errors import BackgroundError, FolderError, InputError
from matchmill.spark.layouts import EventLayout, event_cells
from matchmill.spark.matching.quarantined import quarantine_of_batch
from matchmill.spark.published.sharded_engine import ShardedEngine
from matchmill.spark.published.sharded_engine import open as open_engine
from matchmill.spark.streaming.batch_records import BatchRecord, Records
from matchmill.spark.streaming.changes import changes_of, rejected_rows
from matchmill.spark.streaming.compaction import Compaction
from matchmill.spark.streaming.delta import Delta
from matchmill.spark.streaming.output import StreamOutput, Written
from matchmill.spark.streaming.tasks import stream_matcher
from matchmill.spark.worker_memory import worker_task

__all__ = ["Batches", "Compacting", "StreamPlan", "as_text"]


class Compacting(NamedTuple):
    """When and how changes are built into a new version."""

    at: int
    limit: int
    in_background: bool
    options: dict[str, Any]


class StreamPlan(NamedTuple):
    """What stays the same from batch to batch."""

    spark: Any
    records: Records
    output: StreamOutput
    layout: EventLayout
    schema: StructType  # of the output
    has_changes: bool
    compacting: Compacting
    now: Callable[[], datetime] | None


def as_text(schema: StructType) -> str:
    """Write columns and types as text."""
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)


class Batches:
    """The function that Spark calls, and its state: the version and the changes since."""

    def __init__(self, plan: StreamPlan, engine: ShardedEngine) -> None:
        self._plan = plan
        self._engine = engine  # held, so that no build in this process removes the version
        self._delta = Delta(engine.id_type, engine.settings)
        self._record: BatchRecord | None = None  # whose state this object has
        self._compaction: Compaction | None = None
        self._held: dict[int, str] = {}
        self._failed_at = 0  # the size of the delta when a compaction failed
        self._compaction_error = ""

    def __call__(self, batch: Any, batch_id: int) -> None:
        """Answer a batch."""
        record = self._plan.records.read(batch_id)
        if record is None:
            self._be_after(batch_id - 1)
            record = self._next_record(batch, batch_id)
            self._hold(batch_id)
            self._plan.records.publish(record)
            self._record = record
        else:
            self._be_after(batch_id)
            written = self._plan.records.written(record)
            if written is not None and self._plan.output.reveal(Written(*written), batch_id):
                return  # the answer was complete before the crash
            self._open(record)
        self._answer(batch, record)
        self._plan.records.prune()

    # -- the state after a batch ------------------------------------------------------------------

    def _be_after(self, batch_id: int) -> None:
        """Load the state after a batch: its version, and the changes since."""
        known, self._record = self._record, None  # nothing, if this fails
        if known is not None and known.batch_id == batch_id:
            self._record = known
            return
        self._compaction = None
        if batch_id < 0:
            return
        records = self._plan.records
        record = records.read(batch_id)
        if record is None:
            raise FolderError(
                f"{records.where(batch_id)} is missing: the checkpoint is of another query, or was"
                " not restored as a whole; give the one that belongs to the output, or start again"
                " with an empty checkpoint and output"
            )
        if record.takes_changes:  # else the version of that batch may be long gone
            self._open(record)
            self._delta = Delta(self._engine.id_type, self._engine.settings)
            self._delta.load(
                None if record.delta is None else records.read_table(record.delta),
                None if record.expiries is None else records.read_table(record.expiries),
            )
        self._record = record

    def _open(self, record: BatchRecord) -> None:
        if self._engine.version == record.version:
            return
        try:
            self._engine = open_engine(
                self._engine.path, version=record.version, spark=self._plan.spark
            )
        except InputError:
            way_out = "restore it"
            if not record.takes_changes:
                way_out += (
                    f", or remove {self._plan.records.where(record.batch_id)} to have the batch"
                    " answered by the current version"
                )
            raise FolderError(
                f"batch {record.batch_id} must be answered by version {record.version} of"
                f" {self._engine.path}, which is gone: {way_out}"
            ) from None

    def _hold(self, batch_id: int) -> None:
        """Keep builds from removing the version of this batch and of the one before.

        A crash may bring both back. So there are two holds, used in turn.
        """
        turn = batch_id % 2
        if self._held.get(turn) != self._engine.version:
            key = zlib.crc32(self._plan.records.location.root.encode())
            self._engine.hold(f"stream-{key:08x}-{turn}")
            self._held[turn] = self._engine.version

    # -- a new batch ------------------------------------------------------------------------------

    def _next_record(self, batch: Any, batch_id: int) -> BatchRecord:
        """Make the changes of a batch, and write all that its record names."""
        before, self._record = self._record, None
        expiries = None if before is None else before.expiries
        if before is None or not before.takes_changes:
            self._take_current()
        elif self._compact():
            self._delta.rebase()
            expiries = None
            if self._delta.ends:
                table = self._delta.ends_to_arrow()
                expiries = self._plan.records.write_table("expiries", batch_id, table)
        at = self._time(before)
        changes, rejected = changes_of(batch) if self._plan.has_changes else ([], [])
        n_changes = len(changes) + len(rejected)
        rejected += self._delta.apply(changes, at)
        rows = None
        if rejected:
            rows = rejected_rows(self._plan.spark, rejected)
        self._plan.output.quarantine("changes", rows, batch_id)
        delta = None if before is None else before.delta
        if not self._delta.is_saved:
            delta = None
            if len(self._delta):
                delta = self._plan.records.write_table("delta", batch_id, self._delta.to_arrow())
            self._delta.is_saved = True
        return BatchRecord(
            batch_id=batch_id,
            version=self._engine.version,
            takes_changes=self._plan.has_changes or (before is not None and before.takes_changes),
            time=at,
            delta=delta,
            expiries=expiries,
            n_changed=len(self._delta),
            n_fresh=self._delta.n_fresh,
            n_expiring=self._delta.n_expiring,
            n_changes=n_changes,
            n_rejected=len(rejected),
            compaction="running" if self._compaction else self._compaction_error or "idle",
            output=as_text(self._plan.schema),
        )

    def _take_current(self) -> None:
        current = open_engine(self._engine.path, spark=self._plan.spark)
        if current.version != self._engine.version:
            self._engine = current
        self._delta = Delta(self._engine.id_type, self._engine.settings)

    def _time(self, before: BatchRecord | None) -> int:
        """Return microseconds since 1970 in UTC; never less than those of the batch before."""
        seconds = time.time() if self._plan.now is None else self._plan.now().timestamp()
        return max(round(seconds * 1e6), 0 if before is None else before.time)

    # -- compaction -------------------------------------------------------------------------------

    def _compact(self) -> bool:
        """Start or finish a compaction; return whether the stream has a new version."""
        must_wait = len(self._delta) >= self._plan.compacting.limit
        due = max(self._plan.compacting.at, self._failed_at + self._plan.compacting.at // 4)
        if self._compaction is None and (must_wait or len(self._delta) >= due):
            self._compaction = Compaction(
                self._plan.spark, self._engine, self._delta.mark(), self._plan.compacting.options
            )
            must_wait = must_wait or not self._plan.compacting.in_background
        if self._compaction is None or (self._compaction.is_running and not must_wait):
            return False
        compaction, self._compaction = self._compaction, None
        error = compaction.error()
        if error is not None:
            self._delta.forget_mark()
            self._compaction_error = f"{type(error).__name__}: {error}"
            self._failed_at = len(self._delta)
            if must_wait:
                raise BackgroundError(
                    f"{len(self._delta):,} subscriptions have changed, which is as many as"
                    " delta_limit and compact_at allow, and a new version cannot be built from"
                    f" them: {error}; correct that and start the stream again, nothing is lost"
                )
            return False
        self._engine = compaction.result()
        self._failed_at, self._compaction_error = 0, ""
        return True

    # -- answers ----------------------------------------------------------------------------------

    def _answer(self, batch: Any, record: BatchRecord) -> None:
        if self._plan.has_changes:
            batch = batch.filter("event is not null").select("event.*")
        cells = event_cells(batch, self._plan.layout, warns=False)
        location = self._plan.records.location
        delta = None if record.delta is None else location.worker_files(record.delta)
        with_reasons = StructType([*self._plan.schema, StructField("reason", StringType())])
        task = stream_matcher(
            location.root,
            self._engine.worker_files(),
            self._engine.verify,
            delta,
            with_reasons.names,
            dict(self._plan.layout.types),
        )
        seen = Observation()
        found = cells.mapInArrow(worker_task(task), with_reasons).observe(
            seen, F.count("reason").alias("n_rejected")
        )
        matches = found.filter("reason is null").drop("reason")
        written = self._plan.output.write(matches, record.batch_id)
        rejected = None
        if seen.get.get("n_rejected"):
            rejected = quarantine_of_batch(batch, self._plan.layout, self._engine.settings)
        self._plan.output.quarantine("events", rejected, record.batch_id)
        self._plan.output.remove_batch(record.batch_id)
        self._plan.records.publish_written(record, *written)
        if not self._plan.output.reveal(written, record.batch_id):
            raise FolderError(
                f"files of batch {record.batch_id} are missing from {self._plan.output.root}: does"
                " somebody else write there? Start the stream again; the batch is run again"
            )
