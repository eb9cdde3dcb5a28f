"""What workers do with events: pairs, arrays, or the reasons why events are no good."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.settings import Settings
from matchmill.spark.published.open_version import EventSlice, OpenVersion, opened
from matchmill.spark.published.worker_files import Shipped

__all__ = ["Task", "array_matcher", "bad_events", "lists_of", "pair_matcher"]

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def pair_matcher(shipped: Shipped, verify: bool, names: tuple[str, str]) -> Task:
    """(id, event) → (id, subscription), a row a match."""

    def match_pairs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        version = opened(shipped, verify)
        for batch in batches:
            yield from pairs_of(version, batch.column(0), batch.column(1), names)

    return match_pairs


def pairs_of(
    version: OpenVersion, event_ids: pa.Array, cells: pa.Array, names: tuple[str, str]
) -> Iterator[pa.RecordBatch]:
    for part in version.slices(cells):
        for events, ids in part.matches:
            owners = event_ids.take(pa.array(events + part.start))
            yield pa.RecordBatch.from_arrays([owners, ids], list(names))


def array_matcher(shipped: Shipped, verify: bool, names: tuple[str, str], keep_empty: bool) -> Task:
    """(id, event) → (id, array of subscriptions), a row an event."""

    def match_arrays(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        version = opened(shipped, verify)
        for batch in batches:
            yield from arrays_of(version, batch.column(0), batch.column(1), names, keep_empty)

    return match_arrays


def arrays_of(
    version: OpenVersion,
    event_ids: pa.Array,
    cells: pa.Array,
    names: tuple[str, str],
    keep_empty: bool,
) -> Iterator[pa.RecordBatch]:
    for part in version.slices(cells):
        lists = lists_of(version, part)
        owners = event_ids.slice(part.start, part.n_events)
        found = pa.RecordBatch.from_arrays([owners, lists], list(names))
        if part.rejected:
            good = np.ones(part.n_events, bool)
            good[list(part.rejected)] = False
            found = found.filter(pa.array(good))
        if not keep_empty:
            lengths = found.column(1).value_lengths().to_numpy(zero_copy_only=False)
            found = found.filter(pa.array(lengths > 0))
        yield found


def lists_of(version: OpenVersion, part: EventSlice) -> pa.ListArray:
    """The subscriptions of each event; an empty list if there are none."""
    matches = list(part.matches)
    nothing = pa.array([], version.id_type)
    ids = pa.concat_arrays([nothing, *(m.ids for m in matches)])
    events = np.concatenate([np.empty(0, np.int64), *(m.events for m in matches)])
    if len(matches) > 1:  # from several shards
        order = np.argsort(events, kind="stable")
        events, ids = events[order], ids.take(pa.array(order))
    offsets = np.searchsorted(events, np.arange(part.n_events + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), ids)


def bad_events(names: tuple[str, str], settings: Settings) -> Task:
    """(id, event) → (id, reason) of the events that are set aside."""

    def find(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield rejected_of(batch.column(0), batch.column(1), names, settings)

    return find


def rejected_of(
    event_ids: pa.Array, cells: pa.Array, names: tuple[str, str], settings: Settings
) -> pa.RecordBatch:
    rejected = read_cells(cells, settings).columns(lambda _: False).rejected
    owners = event_ids.take(pa.array(list(rejected), pa.int64()))
    reasons = pa.array(list(rejected.values()), pa.string())
    return pa.RecordBatch.from_arrays([owners, reasons], list(names))
