"""What workers do with the events of a stream: a version's shards, and what has changed since.

A worker keeps an engine of the changed subscriptions, and of a new delta it takes only what
differs: parsing thousands of expressions anew for each batch would take longer than the batch.
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
from matchmill.engine.engine import Engine
from matchmill.engine.subscription_table import Id
from matchmill.settings import Settings
from matchmill.spark.matching.tasks import Task
from matchmill.spark.published.open_version import OpenVersion, opened
from matchmill.spark.published.worker_files import Shipped

__all__ = ["stream_matcher"]

_MOST_OPEN = 4


class OpenDelta:
    """The changed subscriptions of one stream, as this process has them."""

    def __init__(self, settings: Settings) -> None:
        self._folder = ""
        self._texts: dict[Id, str] = {}
        self.engine = Engine(settings=settings)
        self.ids: pa.Array = pa.array([], pa.string())

    def update(self, shipped: Shipped) -> None:
        if self._folder == shipped.where:
            return
        self._folder = ""  # until all of it is taken
        table = pq.read_table(shipped.folder() / "rows.parquet")
        ids, texts = table.column("id"), table.column("expression")
        pairs = zip(ids.to_pylist(), texts.to_pylist(), strict=True)
        wanted = {i: text for i, text in pairs if text is not None}
        self.engine.unsubscribe_many([i for i in self._texts if i not in wanted])
        new = {i: text for i, text in wanted.items() if self._texts.get(i) != text}
        report = self.engine.subscribe_many(new, replace=True)
        if report.rejected:
            raise RuntimeError(f"{shipped.where}: {report.rejected[0]}")  # the driver has read it
        self._texts = wanted
        self.ids = ids.combine_chunks()
        self._folder = shipped.where


_cache: dict[tuple[str, Settings], OpenDelta] = {}  # least recently used first
_lock = Lock()


def _opened_delta(key: str, shipped: Shipped, settings: Settings) -> OpenDelta:
    with _lock:
        known = _cache.pop((key, settings), None) or OpenDelta(settings)
        known.update(shipped)  # one that fails is not kept
        _cache[key, settings] = known
        while len(_cache) > _MOST_OPEN:
            _cache.pop(next(iter(_cache))).engine.close()
        return known


def stream_matcher(
    stream: str, shipped: Shipped, verify: bool, delta: Shipped | None, names: list[str]
) -> Task:
    """(id, event) → (id, subscription, null), a row a match, and (id, null, reason), a row an event
    that cannot be read."""

    def match_stream(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        version = opened(shipped, verify)
        changed = None if delta is None else _opened_delta(stream, delta, version.settings)
        for batch in batches:
            yield from _matched(version, changed, batch.column(0), batch.column(1), names)

    return match_stream


def _matched(
    version: OpenVersion,
    changed: OpenDelta | None,
    event_ids: pa.Array,
    cells: pa.Array,
    names: list[str],
) -> Iterator[pa.RecordBatch]:
    no_reason = pa.scalar(None, pa.string())

    def rows(events: np.ndarray, ids: Any) -> pa.RecordBatch:
        reasons = pa.repeat(no_reason, len(ids))
        return pa.RecordBatch.from_arrays([event_ids.take(pa.array(events)), ids, reasons], names)

    for part in version.slices(cells):
        for events, ids in part.matches:
            if changed is not None:
                known = pc.is_in(ids, value_set=changed.ids)
                stays = ~known.to_numpy(zero_copy_only=False)
                events, ids = events[stays], ids.filter(pa.array(stays))
            yield rows(events + part.start, ids)
        if changed is not None:
            some = cells.slice(part.start, part.n_events)
            found = changed.engine.match_many(read_cells(some, version.settings), threads=1)
            events = np.repeat(np.arange(found.n_events), found.counts) + part.start
            yield rows(events, found.subscription_ids().cast(version.id_type))
        if part.rejected:
            places = pa.array([part.start + row for row in part.rejected], pa.int64())
            nobody = pa.nulls(len(places), version.id_type)
            reasons = pa.array(list(part.rejected.values()), pa.string())
            yield pa.RecordBatch.from_arrays([event_ids.take(places), nobody, reasons], names)
