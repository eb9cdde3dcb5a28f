"""What is done with the events of a batch: pairs, lists, or the reasons why events are rejected.

Workers do it with an engine that they map, the driver of a small job with one that it has built.
All of it takes cells, (event_id, event), as `layouts.event_cells` makes them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.errors import EventError
from matchmill.language.attribute_types import AttributeTypes
from matchmill.settings import Settings
from matchmill.spark.matching.batch_sizes import MOST_BYTES, byte_sizes, cuts, pair_cuts
from matchmill.spark.published.open_version import (
    EventSlice,
    Matcher,
    open_matcher,
)
from matchmill.spark.published.worker_files import WorkerFiles

__all__ = ["Task", "lists_of", "match_task", "matched", "rejection_reasons", "rejection_task"]

Task: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_PAIRS = ["event_id", "subscription_id"]
_LISTS = ["event_id", "subscription_ids"]
_MOST_OFFSET = 2**31 - 1


def match_task(
    files: WorkerFiles, verify: bool, *, per_event: bool, strict: bool, types: AttributeTypes
) -> Task:
    """Return the function for `mapInArrow` on cells that matches them."""

    def match_cells(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = open_matcher(files, verify)
        for batch in batches:
            yield from matched(
                matcher,
                batch.column(0),
                batch.column(1),
                per_event=per_event,
                strict=strict,
                types=types,
            )

    return match_cells


def matched(
    matcher: Matcher,
    event_ids: pa.Array,
    cells: pa.Array,
    *,
    per_event: bool,
    strict: bool,
    types: AttributeTypes | None = None,
) -> Iterator[pa.RecordBatch]:
    """Match cells: one row per match, or one row per good event with the list of its matches."""
    event_sizes = byte_sizes(event_ids)
    for part in matcher.slices(cells, types):
        if strict and part.rejected:
            row, reason = next(iter(part.rejected.items()))
            raise EventError(f"event {event_ids[part.start + row].as_py()!r}: {reason}")
        if per_event:
            good, start = _good(part), part.start
            for lists in lists_of(matcher, part):
                owners = event_ids.slice(start, len(lists))
                rows = pa.RecordBatch.from_arrays([owners, lists], _LISTS)
                is_good = good.slice(start - part.start, len(lists))
                yield rows.filter(is_good) if part.rejected else rows
                start += len(lists)
            continue
        for found in part.matches:
            events, ids = found.events, found.ids
            for begin, end in pair_cuts(events + part.start, event_sizes, ids):
                owners = event_ids.take(pa.array(events[begin:end] + part.start))
                yield pa.RecordBatch.from_arrays([owners, ids.slice(begin, end - begin)], _PAIRS)


def lists_of(
    matcher: Matcher, part: EventSlice, *, mark_rejected: bool = False, most: int = MOST_BYTES
) -> Iterator[pa.ListArray]:
    """List the subscriptions of each event; an event that is rejected has none, or null.

    The arrays follow each other, and each has a limited number of bytes.
    """
    matches = [(found.events, found.ids) for found in part.matches]
    sizes = np.zeros(part.n_events, np.int64)
    for events, ids in matches:
        some = np.bincount(events, byte_sizes(ids), part.n_events)
        sizes += some.astype(np.int64)
    good = _good(part)
    bounds = cuts(sizes, most)
    for start, stop in itertools.pairwise(bounds):
        if sizes[start:stop].sum() > _MOST_OFFSET:
            raise EventError(
                f"an event has matches whose ids take {sizes[start]:,} bytes, more than an array of"
                " Spark can hold: leave out per_event=True, or use match in place of a function"
            )
        lists = _lists(matcher.id_type, matches, start, stop)
        if mark_rejected and part.rejected:
            lists = pc.if_else(good.slice(start, stop - start), lists, None)
        yield lists


def _lists(
    id_type: pa.DataType, matches: list[tuple[np.ndarray, pa.Array]], start: int, stop: int
) -> Any:
    """List the subscriptions of the events from start to stop."""
    parts = [pa.array([], id_type)]
    rows = [np.empty(0, np.int64)]
    for events, ids in matches:
        begin, end = np.searchsorted(events, (start, stop)).tolist()
        rows.append(events[begin:end] - start)
        parts.append(ids.slice(begin, end - begin))
    found, owners = pa.concat_arrays(parts), np.concatenate(rows)
    if len(matches) > 1:  # from several shards
        order = np.argsort(owners, kind="stable")
        owners, found = owners[order], found.take(pa.array(order))
    offsets = np.searchsorted(owners, np.arange(stop - start + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), found)


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
