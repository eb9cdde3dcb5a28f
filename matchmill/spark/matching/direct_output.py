"""`write_matches`: workers write the matches to Parquet files themselves, and count them meanwhile.

    task ─► FOLDER/_work/NAME.parquet    event_id, subscription_id as numbers in a dictionary
         ─► figures                      (kind, id, n, most), a row per subscription that matched

    driver: FOLDER/_work/NAME.parquet ─► FOLDER/part-00000.parquet …, then FOLDER/_SUCCESS

`ms.match(…).write.parquet(…)` gives the same table, but there each pair goes through Arrow to the
JVM, which turns columns into rows and rows into columns, and whoever wants figures reads all pairs
again. Here a pair costs two numbers in a worker.

Each attempt of a task writes to a file of its own and names it in its figures. The driver publishes
the files of the attempts that reported, and removes the others. It needs a folder that the driver
and all workers share.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StringType

from matchmill.engine.matches import Ids
from matchmill.language.attribute_types import AttributeTypes
from matchmill.spark.layouts import EventLayout, asked_cells, event_cells
from matchmill.spark.matching.tasks import Task
from matchmill.spark.published.locations import local_folder
from matchmill.spark.published.open_version import Matcher, SliceMatches, open_matcher
from matchmill.spark.published.sharded_engine import ShardedEngine
from matchmill.spark.published.worker_files import WorkerFiles
from matchmill.spark.sessions import is_connect
from matchmill.spark.worker_memory import worker_task
from matchmill.storage.array_folder import sync_folder

__all__ = ["FILE", "POWER", "SUBSCRIPTION", "can_write_matches", "write_matches"]

FILE, SUBSCRIPTION, POWER = "file", "subscription", "power"
"""Kinds of figures: of a file (`n` pairs, `most` milliseconds of its task), of a subscription (`n`
pairs), and of events with about 2**`id` matches (`n` events, their `pairs`, the `most` of one)."""

_SCHEMA = "kind string, id string, n bigint, pairs bigint, most bigint"
_WORK = "_work"  # Spark and Arrow read nothing in folders named so
_PAIRS_AT_ONCE = 1 << 20  # in memory of a task
_DICTIONARY_BYTES = 64 << 20


def can_write_matches(events: Any, event_id: str, folder: str) -> bool:
    """Return whether `write_matches` can do it; if not, Spark can."""
    kind = events.schema[event_id].dataType
    return (
        isinstance(kind, (IntegralType, StringType))
        and local_folder(folder) is not None
        and not is_connect(events.sparkSession)
    )


def write_matches(engine: ShardedEngine, events: Any, folder: str, *, layout: EventLayout) -> Any:
    """Write the pairs of all events to a new folder, and return figures as a DataFrame.

    The figures have the columns `kind`, `id`, `n`, `pairs` and `most`; they are computed once.
    """
    target = local_folder(folder)
    assert target is not None
    work = target / _WORK
    work.mkdir(parents=True)
    task = _writing_task(
        engine.worker_files(()), engine.verify, str(work), _codec(events.sparkSession),
        dict(layout.types),
    )  # fmt: skip
    cells = asked_cells(event_cells(events, layout), layout, engine.manifest.attributes)
    figures = cells.mapInArrow(worker_task(task), _SCHEMA).localCheckpoint()
    names = sorted(row["id"] for row in figures.where(F.col("kind") == FILE).collect())
    for i, name in enumerate(names):
        (work / name).rename(target / f"part-{i:05d}.parquet")
    shutil.rmtree(work)
    if not names:  # a table without rows has a schema, too
        schema = f"event_id {cells.schema['event_id'].dataType.simpleString()}"
        schema += f", subscription_id {engine.id_type}"
        nothing = events.sparkSession.createDataFrame([], schema)
        nothing.write.mode("append").parquet(folder)
    (target / "_SUCCESS").touch()
    sync_folder(target)
    return figures


def _codec(spark: Any) -> str:
    codec = str(spark.conf.get("spark.sql.parquet.compression.codec", "snappy")).lower()
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(codec, codec)


# -- in a worker ----------------------------------------------------------------------------------


def _writing_task(
    files: WorkerFiles, verify: bool, work: str, codec: str, types: AttributeTypes
) -> Task:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = open_matcher(files, verify)
        output: _Output | None = None
        try:
            for batch in batches:
                if output is None:
                    path = Path(work, f"{uuid4().hex}.parquet")
                    output = _Output(path, codec, batch.column(0).type, matcher.id_type)
                _match_batch(matcher, batch, types, output)
        finally:
            if output is not None:
                output.close()
        if output is not None:
            yield from output.figures()

    return write


def _match_batch(
    matcher: Matcher, batch: pa.RecordBatch, types: AttributeTypes, output: _Output
) -> None:
    event_ids = batch.column(0)
    for part in matcher.slices(batch.column(1), types):
        n_of_event = np.zeros(part.n_events, np.int64)
        for found in part.matches:
            n_of_event += np.bincount(found.events, minlength=part.n_events)
            output.add(event_ids.slice(part.start, part.n_events), found)
        output.add_events(n_of_event)


class _Output:
    """The file of a task, and what is counted meanwhile."""

    def __init__(
        self, path: Path, codec: str, event_type: pa.DataType, id_type: pa.DataType
    ) -> None:
        self._name = path.name
        self._id_type = id_type
        self._writer = pq.ParquetWriter(
            path,
            pa.schema([("event_id", event_type), ("subscription_id", _written_type(id_type))]),
            compression=codec,
            dictionary_pagesize_limit=_DICTIONARY_BYTES,
            store_schema=False,  # a dictionary is how ids are written, not what they are
        )
        self._of: dict[int, _Shard] = {}
        self._n_waiting = 0
        self._n_pairs = 0
        self._start = time.perf_counter()
        self._powers = np.zeros((64, 3), np.int64)  # events, pairs, most

    def add(self, event_ids: pa.Array, found: SliceMatches) -> None:
        """Add pairs; `found.events` are places in `event_ids`."""
        if not len(found.numbers):
            return
        key = id(found.known)  # which is kept, so that no other object gets its key
        shard = self._of.setdefault(key, _Shard(found.known, self._id_type))
        shard.add(event_ids.take(pa.array(found.events)), found.numbers)
        self._n_pairs += len(found.numbers)
        self._n_waiting += len(found.numbers)
        if self._n_waiting >= _PAIRS_AT_ONCE:
            self._write()

    def add_events(self, n_of_event: np.ndarray) -> None:
        """Count events by how many matches they have."""
        some = n_of_event[n_of_event > 0]
        powers = np.frexp(some.astype(np.float64))[1] - 1
        self._powers[:, 0] += np.bincount(powers, minlength=64)
        self._powers[:, 1] += np.bincount(powers, some, minlength=64).astype(np.int64)
        np.maximum.at(self._powers[:, 2], powers, some)

    def _write(self) -> None:
        """Write what waits, the pairs of each shard as row groups with one dictionary."""
        for shard in self._of.values():
            if shard.event_ids:
                self._writer.write_table(shard.taken())
        self._n_waiting = 0

    def close(self) -> None:
        """Write the rest, and close the file."""
        try:
            self._write()
        finally:
            self._writer.close()

    def figures(self) -> Iterator[pa.RecordBatch]:
        """Return what was counted."""
        milliseconds = round(1000 * (time.perf_counter() - self._start))
        yield _figures(FILE, [self._name], [self._n_pairs], most=[milliseconds])
        for shard in self._of.values():
            numbers = np.flatnonzero(shard.counts)
            ids = shard.known.ids_of_numbers(numbers).cast(pa.string())
            yield _figures(SUBSCRIPTION, ids, shard.counts[numbers])
        powers = np.flatnonzero(self._powers[:, 0])
        yield _figures(POWER, list(map(str, powers)), *self._powers[powers].T)


class _Shard:
    """The pairs of one shard: those that are not written yet, and how many there were."""

    def __init__(self, known: Ids, id_type: pa.DataType) -> None:
        self.known = known
        self._id_type = id_type
        self.event_ids: list[pa.Array] = []
        self._numbers: list[np.ndarray] = []
        self.counts = np.zeros(0, np.int64)
        self._dictionary = pa.array([], id_type)

    def add(self, event_ids: pa.Array, numbers: np.ndarray) -> None:
        """Add pairs."""
        self.event_ids.append(event_ids)
        self._numbers.append(numbers)
        counts = np.bincount(numbers, minlength=len(self.counts))
        counts[: len(self.counts)] += self.counts
        self.counts = counts

    def taken(self) -> pa.Table:
        """Return the pairs that are not written yet, and forget them."""
        owners, numbers = pa.concat_arrays(self.event_ids), np.concatenate(self._numbers)
        self.event_ids, self._numbers = [], []
        return pa.table({"event_id": owners, "subscription_id": self._ids(numbers)})

    def _ids(self, numbers: np.ndarray) -> pa.Array:
        if pa.types.is_integer(self._id_type):
            return self.known.ids_of_numbers(numbers).cast(self._id_type)
        if len(self._dictionary) < len(self.counts):
            every = np.arange(len(self.counts))
            self._dictionary = self.known.ids_of_numbers(every).cast(self._id_type)
        return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), self._dictionary)


def _written_type(id_type: pa.DataType) -> pa.DataType:
    return id_type if pa.types.is_integer(id_type) else pa.dictionary(pa.int32(), id_type)


def _figures(kind: str, ids: Any, n: Any, pairs: Any = None, most: Any = None) -> pa.RecordBatch:
    size = len(ids)
    nothing = pa.nulls(size, pa.int64())
    columns = [
        pa.array([kind] * size, pa.string()),
        pa.array(ids, pa.string()),
        *(nothing if c is None else pa.array(c, pa.int64()) for c in (n, pairs, most)),
    ]
    return pa.RecordBatch.from_arrays(columns, ["kind", "id", "n", "pairs", "most"])
