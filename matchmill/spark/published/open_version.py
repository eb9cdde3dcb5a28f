"""A version of a published index as a process has it open: mapped once, asked many times.

Workers are processes that go on from task to task. Each keeps what it has opened, one version of
an index at a time; the files of an older one are closed when the next is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from matchmill.encoding.conjunction_table import empty_table
from matchmill.encoding.dimension_arrays import dimensions_from_arrays
from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.encoding.events.columns import Events
from matchmill.engine.match_many import ChunkSize, match_encoded
from matchmill.engine.state import State
from matchmill.engine.subexpressions import EncodingState, encode_with_subexpressions, is_asked_for
from matchmill.engine.subscription_table import Subscriptions
from matchmill.errors import FolderError
from matchmill.index.registry import index_class
from matchmill.index.segments import Segment, Snapshot
from matchmill.index.tombstones import NO_TOMBSTONES
from matchmill.operators.matcher import OperatorMatcher
from matchmill.operators.registry import require_operators
from matchmill.settings import Settings
from matchmill.spark.imports import import_operators
from matchmill.spark.published.folders import map_folder
from matchmill.spark.published.versions import FolderEntry, VersionManifest, read_local_version
from matchmill.spark.published.worker_files import Shipped

__all__ = ["OpenVersion", "SliceMatches", "opened"]

_MOST_OPEN = 8


class Shard(NamedTuple):
    state: State
    operators: OperatorMatcher


class SliceMatches(NamedTuple):
    """Matches of some events with one shard: the event of each pair, counted from the first of
    the slice, ascending, and the subscription."""

    events: np.ndarray
    ids: pa.Array


class EventSlice(NamedTuple):
    """Events `start` to `start + n_events` of an array of cells."""

    start: int
    n_events: int
    rejected: dict[int, str]
    matches: Iterator[SliceMatches]


class OpenVersion:
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
        self._encoding = EncodingState.of(self.dimensions)
        self.shards = [self._shard(folder, shard, manifest, verify) for shard in manifest.shards]
        most = max((shard.n_subscriptions for shard in manifest.shards), default=0)
        self._chunk_size = ChunkSize(most)

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
            index = index_class(manifest.index_name).from_arrays(parts)
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise FolderError(
                f"{folder / entry.folder} is not a complete shard: {error}; build anew"
            ) from error
        segment = Segment(index, empty_table(), NO_TOMBSTONES)
        state = State(
            self.dimensions, Snapshot((segment,)), subscriptions, self._encoding.subexpressions
        )
        return Shard(state, OperatorMatcher(self.settings))

    def slices(self, cells: pa.Array) -> Iterator[EventSlice]:
        """Match an array of events, so many at a time that their matches fit into memory.

        The matches of a slice are made while they are taken, shard by shard."""
        start = 0
        while start < len(cells):
            some = cells.slice(start, self._chunk_size())
            yield self._slice(start, read_cells(some, self.settings))
            start += len(some)

    def _slice(self, start: int, events: Events) -> EventSlice:
        columns = events.columns(is_asked_for(self._encoding))
        batch = encode_with_subexpressions(self._encoding, columns)

        def matches() -> Iterator[SliceMatches]:
            most = 0
            for shard in self.shards:
                found = match_encoded(shard.state, events, columns, batch, shard.operators)
                most = max(most, found.n_matches)
                if found.n_matches:
                    rows = np.repeat(np.arange(found.n_events), found.counts)
                    yield SliceMatches(rows, found.subscription_ids().cast(self.id_type))
            self._chunk_size.learn(events.n_events, most)

        return EventSlice(start, events.n_events, columns.rejected, matches())


_cache: dict[Path, tuple[Path, bool, OpenVersion]] = {}  # by index, least recently used first
_lock = Lock()


def opened(shipped: Shipped, verify: bool = False) -> OpenVersion:
    """A version, which this process opens at its first use."""
    folder = shipped.folder()
    # Versions of a shared index lie beside each other; one that Spark brought is alone.
    key = folder.parent if shipped.is_shared else folder
    with _lock:
        known = _cache.pop(key, None)
        if known is None or known[0] != folder or (verify and not known[1]):
            known = None  # closes the files of the older version before others are mapped
            known = (folder, verify, OpenVersion(folder, verify=verify))
        _cache[key] = known
        while len(_cache) > _MOST_OPEN:
            del _cache[next(iter(_cache))]
        return known[2]
