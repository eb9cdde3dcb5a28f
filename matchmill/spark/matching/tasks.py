"""What is done with the events of a batch: pairs, lists, or the reasons why events are rejected.

Workers do it with an engine that they map, the driver of a small job with one that it has built.
All of it takes cells, (event_id, event), as `layouts.event_cells` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.errors import EventError
from matchmill.settings import Settings
from matchmill.spark.published.open_version import EventSlice, Matcher, open_matcher
from matchmill.spark.published.worker_files import WorkerFiles

__all__ = ["Task", "lists_of", "match_task", "matched", "rejection_reasons", "rejection_task"]

Task: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_PAIRS = ["event_id", "subscription_id"]
_LISTS = ["event_id", "subscription_ids"]


def match_task(files: WorkerFiles, verify: bool, *, per_event: bool, strict: bool) -> Task:
    """Return the function for `mapInArrow` on cells that matches them."""

    def match_cells(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = open_matcher(files, verify)
        for batch in batches:
            yield from matched(
                matcher, batch.column(0), batch.column(1), per_event=per_event, strict=strict
            )

    return match_cells


def matched(
    matcher: Matcher, event_ids: pa.Array, cells: pa.Array, *, per_event: bool, strict: bool
) -> Iterator[pa.RecordBatch]:
    """Match cells: one row per match, or one row per good event with the list of its matches."""
    for part in matcher.slices(cells):
        if strict and part.rejected:
            row, reason = next(iter(part.rejected.items()))
            raise EventError(f"event {event_ids[part.start + row].as_py()!r}: {reason}")
        if per_event:
            owners = event_ids.slice(part.start, part.n_events)
            lists = pa.RecordBatch.from_arrays([owners, lists_of(matcher, part)], _LISTS)
            yield lists.filter(_good(part)) if part.rejected else lists
            continue
        for events, ids in part.matches:
            owners = event_ids.take(pa.array(events + part.start))
            yield pa.RecordBatch.from_arrays([owners, ids], _PAIRS)


def lists_of(matcher: Matcher, part: EventSlice, *, mark_rejected: bool = False) -> pa.ListArray:
    """List the subscriptions of each event; an event that is rejected has none, or null."""
    matches = list(part.matches)
    nothing = pa.array([], matcher.id_type)
    ids = pa.concat_arrays([nothing, *(m.ids for m in matches)])
    events = np.concatenate([np.empty(0, np.int64), *(m.events for m in matches)])
    if len(matches) > 1:  # from several shards
        order = np.argsort(events, kind="stable")
        events, ids = events[order], ids.take(pa.array(order))
    offsets = np.searchsorted(events, np.arange(part.n_events + 1)).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), ids)
    return pc.if_else(_good(part), lists, None) if mark_rejected and part.rejected else lists


def _good(part: EventSlice) -> pa.Array:
    good = np.ones(part.n_events, bool)
    good[list(part.rejected)] = False
    return pa.array(good)


def rejection_task(settings: Settings) -> Task:
    """Return the function for `mapInArrow` on cells: (event_id, event, reason) of rejected ones."""

    def find(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            reasons = rejection_reasons(batch.column(1), settings)
            rows = pa.array(list(reasons), pa.int64())
            texts = pa.array(list(reasons.values()), pa.string())
            owners, cells = batch.column(0).take(rows), batch.column(1).take(rows)
            yield pa.RecordBatch.from_arrays(
                [owners, cells, texts], ["event_id", "event", "reason"]
            )

    return find


def rejection_reasons(cells: pa.Array, settings: Settings) -> dict[int, str]:
    """Say why events are rejected, by their rows.

    No attribute is read: whether an event is rejected does not depend on that.
    """
    return read_cells(cells, settings).columns(lambda _: False).rejected
