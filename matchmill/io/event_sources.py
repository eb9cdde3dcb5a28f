"""Events from any source: files, open files, bytes; and all that `encoding/events` reads.

read_events      all events of a source, for one call of match_many
event_batches    some events at a time, for a source that is larger than memory
"""

from __future__ import annotations

import io
import os
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    ValuesView,
)
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from matchmill.encoding.events import read as in_memory
from matchmill.encoding.events.columns import ChainedEvents, Events
from matchmill.encoding.events.json_lines import JsonEvents
from matchmill.encoding.events.typed import TypedEvents, typed_events
from matchmill.errors import FileFormatError
from matchmill.io.event_files import EventChunk, read_event_chunks
from matchmill.io.formats import (
    Kind,
    Source,
    check_file,
    folder_files,
    format_of,
    source_of_bytes,
)
from matchmill.io.reports import Rejected
from matchmill.language.attribute_types import AttributeTypes, checked_types
from matchmill.language.flatten import is_record
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = [
    "ChunkedEvents",
    "FileEvents",
    "event_batches",
    "file_source",
    "is_file_source",
    "read_events",
    "rejected_events",
]

BatchSize: TypeAlias = Callable[[], int]


class Place(NamedTuple):
    """Where an event stands."""

    source: str | None
    row: int  # in its source, from 0
    line: int | None  # in a text file, from 1


class FileEvents(ChainedEvents):
    """The events of one or more files, in order."""

    def __init__(self, chunks: Iterable[EventChunk]) -> None:
        self.chunks = [chunk for chunk in chunks if chunk.events.n_events]
        super().__init__(chunk.events for chunk in self.chunks)

    def __len__(self) -> int:
        return self.n_events

    def __repr__(self) -> str:
        names = dict.fromkeys(chunk.source for chunk in self.chunks if chunk.source is not None)
        where = f" from {', '.join(names)}" if names else ""
        return f"<Events: {self.n_events:,} events{where}>"

    def place(self, i: int) -> Place:
        """Return where an event stands."""
        k = int(np.searchsorted(self._offsets, i, side="right")) - 1
        return _place(self.chunks[k], i - int(self._offsets[k]))


def _place(chunk: EventChunk, i: int) -> Place:
    line = None if chunk.lines is None else int(chunk.lines[i])
    return Place(chunk.source, chunk.first + i, line)


class ChunkedEvents:
    """Events that the caller reads, some at a time, for `Engine.match_batches`."""

    def __init__(self, chunks: Callable[[BatchSize, Settings], Iterator[EventChunk]]) -> None:
        self.chunks = chunks


def is_file_source(source: object) -> bool:
    """Tell whether a source is a path, several paths, an open file or bytes."""
    if isinstance(source, (list, tuple)):
        return bool(source) and all(isinstance(one, (str, os.PathLike)) for one in source)
    return isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)) or _is_file(source)


def _is_file(source: object) -> bool:
    return isinstance(source, io.IOBase) or (
        hasattr(source, "read") and hasattr(source, "readline")
    )


def read_events(
    source: Any,
    *,
    format: Kind | None = None,
    types: Mapping[str, str] | None = None,
    null_values: Collection[str] = (),
    settings: Settings = DEFAULT_SETTINGS,
) -> Events:
    r"""Read events from files, for `match_many` and `learn`.

    Parameters
    ----------
    source
        A path (CSV, JSON lines or Parquet by suffix, ``.gz`` and ``.zst`` allowed), a folder of
        such files, several paths, an open file, bytes, or the text of JSON lines. Also what
        `Engine.match_many` takes itself: records and tables.
    format
        ``"csv"``, ``"jsonl"`` or ``"parquet"``, if the name of the file does not say it. Bytes and
        files without a name are Parquet or JSON lines by default.
    types
        What attributes are read as, as for `Engine`: ``{"ts": "timestamp"}``.
    null_values
        In CSV, a cell with one of these texts is null, as an empty one is.
    settings
        Limits for events.

    Returns
    -------
    Events
        All events of the source. A bad one is rejected when it is matched, with its place and the
        reason.

    Raises
    ------
    FileFormatError
        If a file cannot be read.
    InputError
        If the source does not hold events.

    Examples
    --------
    >>> import matchmill as mm
    >>> events = mm.read_events(b'{"price": 12}\n{"price": 30}\n')
    >>> len(events)
    2
    >>> mm.Engine({"u1": "price < 20"}).match_many(events)[0]
    {'u1'}
    """
    declared = checked_types(types)
    if isinstance(source, Events) or not is_file_source(source):
        return typed_events(in_memory.read_events(source, settings), declared, settings)
    return FileEvents(
        chunk
        for file in _file_sources(source, format)
        for chunk in read_event_chunks(
            file, types=declared, null_values=null_values, settings=settings
        )
    )


def _file_sources(source: Any, kind: Kind | None = None) -> list[Source]:
    """Return all files of a source; those in a folder are taken in the order of their names."""
    found = []
    for one in source if isinstance(source, (list, tuple)) else [source]:
        is_folder = isinstance(one, (str, os.PathLike)) and os.path.isdir(one)
        found += [file_source(path, kind) for path in (folder_files(one) if is_folder else [one])]
    return found


def file_source(source: Any, kind: Kind | None = None) -> Source:
    """Return a path, an open file, bytes or the text of JSON lines as a source."""
    if isinstance(source, str) and (source.lstrip()[:1] == "{" or "\n" in source):
        return source_of_bytes(source.encode("utf-8", "surrogatepass"), kind or "jsonl")
    if isinstance(source, (str, os.PathLike)):
        return check_file(source, kind)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return source_of_bytes(bytes(source), kind or _kind_of_bytes(source))
    data = source.read()
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    name = getattr(source, "name", None)
    name = name if isinstance(name, str) else None
    if kind is None:
        try:
            kind = format_of(name or "").kind
        except FileFormatError:  # standard input, for example
            kind = _kind_of_bytes(data)
    return source_of_bytes(data, kind, name)


def _kind_of_bytes(data: Any) -> Kind:
    return "parquet" if bytes(data[:4]) == b"PAR1" else "jsonl"


# -- some at a time -------------------------------------------------------------------------------


def event_batches(
    source: Any,
    batch_size: BatchSize,
    settings: Settings = DEFAULT_SETTINGS,
    types: AttributeTypes | None = None,
) -> Iterator[EventChunk]:
    """Read a source some events at a time; `batch_size` is called before each batch."""
    declared = types or {}
    if is_file_source(source):
        for file in _file_sources(source):
            yield from read_event_chunks(
                file, chunk_rows=batch_size, types=declared, settings=settings
            )
        return
    for chunk in _chunks_in_memory(source, batch_size, settings):
        yield chunk._replace(events=typed_events(chunk.events, declared, settings))


def _chunks_in_memory(
    source: Any, batch_size: BatchSize, settings: Settings
) -> Iterator[EventChunk]:
    if isinstance(source, FileEvents):
        yield from source.chunks
    elif isinstance(source, Events):
        yield EventChunk(0, source)
    elif isinstance(source, ChunkedEvents):
        yield from source.chunks(batch_size, settings)
    else:
        first = 0
        for some in _pieces(source, batch_size):
            events = in_memory.read_events(some, settings)
            if events.n_events:
                yield EventChunk(first, events)
            first += events.n_events


def _pieces(source: Any, batch_size: BatchSize) -> Iterator[Any]:
    """Cut a source in memory into sources of at most so many events."""
    package = type(source).__module__.partition(".")[0]
    if is_record(source):
        yield [source]
    elif isinstance(source, (pa.Table, pa.RecordBatch)):
        yield from _slices(source.num_rows, source.slice, batch_size)
    elif package == "polars" and hasattr(source, "collect"):
        yield from _pieces(source.collect(), batch_size)
    elif package == "polars" and hasattr(source, "height"):
        yield from _slices(source.height, source.slice, batch_size)
    elif package == "pandas" and hasattr(source, "iloc"):
        yield from _slices(len(source), lambda a, n: source.iloc[a : a + n], batch_size)
    elif (reader := in_memory.dataset_reader(source)) is not None:
        yield from _pieces(reader, batch_size)
    elif hasattr(source, "__arrow_c_stream__"):
        for batch in in_memory.stream_reader(source):
            yield from _pieces(batch, batch_size)
    elif hasattr(source, "__arrow_c_array__"):
        yield source  # one batch, which is in memory
    elif isinstance(source, Sequence):
        yield from _slices(len(source), lambda a, n: source[a : a + n], batch_size)
    elif isinstance(source, (Iterator, ValuesView)):
        items = iter(source)
        while some := list(islice(items, batch_size())):
            yield some
    else:
        yield source  # which is an error, and says so


def _slices(n_events: int, cut: Callable[[int, int], Any], batch_size: BatchSize) -> Iterator[Any]:
    start = 0
    while start < n_events:
        n = batch_size()
        yield cut(start, n)
        start += n


# -- rejected events ------------------------------------------------------------------------------


def rejected_events(
    reasons: Mapping[int, str],
    chunk: EventChunk,
    ids: Sequence[Any] | None = None,
) -> list[Rejected]:
    """Return a record for each rejected event of a chunk, in order."""
    found = []
    for i in sorted(reasons):
        place = _place_in(chunk, i)
        reason = reasons[i]
        if place.line is not None:
            reason = reason.removeprefix(f"line {place.line}: ")
        found.append(
            Rejected(
                "event",
                place.row,
                place.line,
                place.source,
                None if ids is None else ids[i],
                " ".join(reason.split("\n")),
            )
        )
    return found


def _place_in(chunk: EventChunk, i: int) -> Place:
    events = chunk.events
    while isinstance(events, TypedEvents):
        events = events.events
    if isinstance(events, FileEvents):
        return events.place(i)
    if isinstance(events, JsonEvents) and chunk.lines is None:
        return Place(chunk.source, chunk.first + i, int(events.line_numbers[i]))
    return _place(chunk, i)
