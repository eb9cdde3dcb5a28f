"""An engine as a process has it open: mapped once, used for many batches of events.

    OpenVersion    a version of a sharded engine: all its shards, and dimensions that they share
    OpenEngine     an engine of the library, as of a small job or of a saved folder

Workers are processes that continue from task to task. Each keeps what it has opened, one version of
an engine at a time; the files of an older one are closed when the next is opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Lock
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from matchmill.encoding.conjunction_table import empty_table
from matchmill.encoding.dimension_arrays import dimensions_from_arrays
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.encoding.events.columns import Events
from matchmill.encoding.events.typed import typed_events
from matchmill.encoding.pattern_work import read_columns
from matchmill.engine.engine import Engine
from matchmill.engine.match_many import ChunkSize, lists_in, match_encoded
from matchmill.engine.matches import Ids, Matches
from matchmill.engine.sharded_folder import (
    FolderEntry,
    VersionManifest,
    map_folder,
    read_local_version,
)
from matchmill.engine.state import State
from matchmill.engine.subscription_table import Subscriptions
from matchmill.errors import FolderError
from matchmill.index.mixed import open_index
from matchmill.index.registry import index_class
from matchmill.index.segments import Segment, Snapshot
from matchmill.index.tombstones import NO_TOMBSTONES
from matchmill.language.attribute_types import AttributeTypes
from matchmill.operators.matcher import OperatorMatcher
from matchmill.operators.modules import import_operators
from matchmill.operators.registry import require_operators
from matchmill.settings import Settings
from matchmill.spark.published.host_cache import HeldFolder
from matchmill.spark.published.saved_engine import check_unchanged, id_type_of
from matchmill.spark.published.worker_files import WorkerFiles

__all__ = [
    "EventSlice",
    "Matcher",
    "OpenEngine",
    "OpenVersion",
    "SliceMatches",
    "open_matcher",
    "open_version",
]

_MAX_OPEN = 8
_EVENTS_PER_SLICE = 4096
_PAIRS_AT_ONCE = 1 << 17  # whose ids are in memory together


class Shard(NamedTuple):
    state: State
    operators: OperatorMatcher


class SliceMatches(NamedTuple):
    """Matches of some events with one shard, some at a time.

    `events` has the event of each pair, counted from the first of the slice and ascending;
    `numbers` has the subscriptions, as the shard numbers them.
    """

    events: np.ndarray
    numbers: np.ndarray
    known: Ids
    id_type: pa.DataType

    @property
    def ids(self) -> pa.Array:
        """The ids of the subscriptions."""
        return self.known.ids_of_numbers(self.numbers).cast(self.id_type)


class EventSlice(NamedTuple):
    """Events `start` to `start + n_events` of an array of cells."""

    start: int
    n_events: int
    rejected: dict[int, str]
    matches: Iterator[SliceMatches]


class Matcher(Protocol):
    """What matches the events of an array, slice by slice."""

    id_type: pa.DataType
    settings: Settings

    def slices(self, cells: pa.Array, types: AttributeTypes | None = None) -> Iterator[EventSlice]:
        """Match the events, some at a time; `types` are those that attributes are read as."""
        ...


class OpenEngine:
    """An engine of the library that matches cells."""

    def __init__(self, engine: Engine, id_type: pa.DataType) -> None:
        self.engine = engine
        self.id_type = id_type
        self.settings = engine.settings
        self._chunk_size = ChunkSize(len(engine), _EVENTS_PER_SLICE)

    def slices(self, cells: pa.Array, types: AttributeTypes | None = None) -> Iterator[EventSlice]:
        """Match an array of events, at most some thousands at a time."""
        start = 0
        while start < len(cells):
            some = cells.slice(start, self._chunk_size())
            events = typed_events(read_cells(some, self.settings), types or {}, self.settings)
            found = self.engine.match_many(events)
            rejected = {one.row: one.reason for one in found.rejected}
            yield EventSlice(start, found.n_events, rejected, _pieces(found, self.id_type))
            self._chunk_size.learn(found.n_events, found.n_matches)
            start += len(some)


def _pieces(found: Matches, id_type: pa.DataType) -> Iterator[SliceMatches]:
    """Yield matches some at a time: ids take far more memory than their numbers."""
    rows = np.repeat(np.arange(found.n_events), found.counts)
    for start in range(0, found.n_matches, _PAIRS_AT_ONCE):
        some = slice(start, start + _PAIRS_AT_ONCE)
        yield SliceMatches(rows[some], found.numbers[some], found._ids, id_type)


class OpenVersion:
    """A version of a sharded engine, mapped."""

    def __init__(self, folder: Path, *, verify: bool = False) -> None:
        manifest = read_local_version(folder)
        import_operators(manifest.operator_modules)
        require_operators(str(folder), manifest.operators)
        self.name = manifest.name
        self.settings = Settings(**manifest.settings)
        self.id_type = pa.int64() if manifest.id_type == "int" else pa.string()
        entry = manifest.dimensions
        self.dimensions = dimensions_from_arrays(
            map_folder(folder, entry.folder, entry, verify=verify)
        )
        self.shards = [self._shard(folder, shard, manifest, verify) for shard in manifest.shards]
        self._chunk_size = ChunkSize(manifest.n_subscriptions)

    def _shard(
        self, folder: Path, entry: FolderEntry, manifest: VersionManifest, verify: bool
    ) -> Shard:
        arrays = map_folder(folder, entry.folder, entry, verify=verify)
        try:
            subscriptions = Subscriptions.from_arrays(
                arrays, manifest.id_type, entry.n_subscriptions
            )
            parts = {
                name.removeprefix("index_"): array
                for name, array in arrays.items()
                if name.startswith("index_")
            }
            index = open_index(index_class(manifest.index_name), parts)
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise FolderError(
                f"{folder / entry.folder} is not a complete shard: {error}; build again"
            ) from error
        segment = Segment(index, empty_table(), NO_TOMBSTONES)
        state = State(self.dimensions, Snapshot((segment,)), subscriptions)
        return Shard(state, OperatorMatcher(self.settings))

    def slices(self, cells: pa.Array, types: AttributeTypes | None = None) -> Iterator[EventSlice]:
        """Match an array of events, so many at a time that their matches fit into memory.

        The matches of a slice are made while they are consumed, shard by shard.
        """
        start = 0
        while start < len(cells):
            some = cells.slice(start, self._chunk_size())
            events = typed_events(read_cells(some, self.settings), types or {}, self.settings)
            yield self._slice(start, events)
            start += len(some)

    def _slice(self, start: int, events: Events) -> EventSlice:
        columns = read_columns(self.dimensions, events, self.settings.max_pattern_work)
        batch = encode_events(self.dimensions, columns)
        have_lists = partial(lists_in, columns)

        def matches() -> Iterator[SliceMatches]:
            n_matches = 0
            for shard in self.shards:
                found = match_encoded(
                    shard.state, events, columns.rejected, have_lists, batch, shard.operators
                )
                n_matches += found.n_matches
                yield from _pieces(found, self.id_type)
            self._chunk_size.learn(events.n_events, n_matches)

        return EventSlice(start, events.n_events, columns.rejected, matches())


class _Opened(NamedTuple):
    files: tuple[str, str | None]  # which, and in which state
    is_verified: bool
    folder: HeldFolder
    matcher: Matcher


_cache: dict[str, _Opened] = {}  # oldest use first
_lock = Lock()


def open_version(files: WorkerFiles, verify: bool = False) -> OpenVersion:
    """Open a version of a sharded engine, at its first use in this process."""
    found = open_matcher(files, verify)
    assert isinstance(found, OpenVersion)
    return found


def open_matcher(files: WorkerFiles, verify: bool = False) -> Matcher:
    """Open a version of a sharded engine or a saved engine, at its first use in this process."""
    files.check()
    wanted = (files.where, files.saved_version)
    with _lock:
        known = _cache.pop(files.engine, None)
        if known is None or known.files != wanted or (verify and not known.is_verified):
            known = None  # closes the files of the older version before others are mapped
            folder = files.opened()
            known = _Opened(wanted, verify, folder, _opened(files, folder.path, verify))
        _cache[files.engine] = known
        while len(_cache) > _MAX_OPEN:
            del _cache[next(iter(_cache))]
        return known.matcher


def _opened(files: WorkerFiles, folder: Path, verify: bool) -> Matcher:
    if files.saved_version is None:
        return OpenVersion(folder, verify=verify)
    import_operators(files.operators)
    check_unchanged(folder, files.saved_version)
    engine = Engine.open(folder, read_only=True, verify=verify)
    check_unchanged(folder, files.saved_version)
    return OpenEngine(engine, pa.int64() if id_type_of(engine) == "int" else pa.string())
