"""What workers do with the events of a stream: match a version's shards and what has changed since.

A worker keeps an engine of the changed subscriptions, and from a new delta it takes only what
differs: parsing thousands of expressions again for each batch would take longer than the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.encoding.events.typed import typed_events
from matchmill.engine.engine import Engine
from matchmill.engine.subscription_table import Id
from matchmill.language.attribute_types import AttributeTypes
from matchmill.settings import Settings
from matchmill.spark.matching.batch_sizes import byte_sizes, pair_cuts
from matchmill.spark.matching.tasks import Task
from matchmill.spark.published.open_version import OpenVersion, open_version
from matchmill.spark.published.worker_files import WorkerFiles

__all__ = ["stream_matcher"]

_MAX_OPEN = 4


class OpenDelta:
    """The changed subscriptions of one stream, as this process has them."""

    def __init__(self, settings: Settings) -> None:
        self._folder = ""
        self._texts: dict[Id, str] = {}
        self.engine = Engine(settings=settings)
        self.ids: pa.Array = pa.array([], pa.string())

    def update(self, files: WorkerFiles) -> None:
        """Take the state of a delta."""
        if self._folder == files.where:
            return
        self._folder = ""  # until the update is complete
        with files.opened() as folder:
            table = pq.read_table(folder / "rows.parquet")
        ids, texts = table.column("id"), table.column("expression")
        pairs = zip(ids.to_pylist(), texts.to_pylist(), strict=True)
        wanted = {i: text for i, text in pairs if text is not None}
        self.engine.unsubscribe_many([i for i in self._texts if i not in wanted])
        new = {i: text for i, text in wanted.items() if self._texts.get(i) != text}
        report = self.engine.subscribe_many(new, replace=True)
        if report.rejected:
            raise RuntimeError(f"{files.where}: {report.rejected[0]}")  # the driver has read it
        self._texts = wanted
        self.ids = ids.combine_chunks()
        self._folder = files.where


_cache: dict[tuple[str, Settings], OpenDelta] = {}  # least recently used first
_lock = Lock()


def _opened_delta(key: str, files: WorkerFiles, settings: Settings) -> OpenDelta:
    with _lock:
        known = _cache.pop((key, settings), None) or OpenDelta(settings)
        known.update(files)  # one that fails is not kept
        _cache[key, settings] = known
        while len(_cache) > _MAX_OPEN:
            _cache.pop(next(iter(_cache))).engine.close()
        return known


def stream_matcher(
    stream: str,
    files: WorkerFiles,
    verify: bool,
    delta: WorkerFiles | None,
    names: list[str],
    types: AttributeTypes,
) -> Task:
    """Return the function for `mapInArrow` on cells.

    It gives (event_id, subscription_id, null) per match, and (event_id, null, reason) per rejected
    event.
    """

    def match_stream(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        version = open_version(files, verify)
        changed = None if delta is None else _opened_delta(stream, delta, version.settings)
        for batch in batches:
            yield from _matched(version, changed, batch.column(0), batch.column(1), names, types)

    return match_stream


def _matched(
    version: OpenVersion,
    changed: OpenDelta | None,
    event_ids: pa.Array,
    cells: pa.Array,
    names: list[str],
    types: AttributeTypes,
) -> Iterator[pa.RecordBatch]:
    no_reason = pa.scalar(None, pa.string())

    event_sizes = byte_sizes(event_ids)

    def rows(events: np.ndarray, ids: Any) -> Iterator[pa.RecordBatch]:
        for begin, end in pair_cuts(events, event_sizes, ids):
            owners = event_ids.take(pa.array(events[begin:end]))
            reasons = pa.repeat(no_reason, end - begin)
            some = [owners, ids.slice(begin, end - begin), reasons]
            yield pa.RecordBatch.from_arrays(some, names)

    for part in version.slices(cells, types):
        for some_matches in part.matches:
            events, ids = some_matches.events, some_matches.ids
            if changed is not None:
                known = pc.is_in(ids, value_set=changed.ids)
                stays = ~known.to_numpy(zero_copy_only=False)
                events, ids = events[stays], ids.filter(pa.array(stays))
            yield from rows(events + part.start, ids)
        if changed is not None:
            some = cells.slice(part.start, part.n_events)
            events_of = typed_events(read_cells(some, version.settings), types, version.settings)
            found = changed.engine.match_many(events_of, threads=1)
            events = np.repeat(np.arange(found.n_events), found.counts) + part.start
            yield from rows(events, found.subscription_ids().cast(version.id_type))
        if part.rejected:
            rows_of = pa.array([part.start + row for row in part.rejected], pa.int64())
            nothing = pa.nulls(len(rows_of), version.id_type)
            reasons = pa.array(list(part.rejected.values()), pa.string())
            yield pa.RecordBatch.from_arrays([event_ids.take(rows_of), nothing, reasons], names)
