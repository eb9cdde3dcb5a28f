"""The state of an engine as a folder of arrays, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.dimension_arrays import dimensions_from_arrays, dimensions_to_arrays
from matchmill.encoding.flat_dictionary import FlatDictionary, TextPool
from matchmill.encoding.texts import Texts
from matchmill.engine.replay import replay
from matchmill.engine.saved_checks import check_saved
from matchmill.engine.state import State, Store, checked_options
from matchmill.engine.subscription_table import Subscriptions
from matchmill.errors import FolderError
from matchmill.index.registry import index_class
from matchmill.index.segment_arrays import open_segments, segments_to_arrays
from matchmill.index.segments import Snapshot
from matchmill.io.progress import Report
from matchmill.language.attribute_types import checked_types
from matchmill.language.operator_calls import required_names
from matchmill.language.parser import parse
from matchmill.operators.registry import require_operators
from matchmill.settings import UNLIMITED, Settings
from matchmill.storage.array_folder import Manifest, SavedFolder, map_arrays
from matchmill.storage.change_log import LogEnd, find_end, read_changes
from matchmill.storage.directory import Directory, opened

__all__ = ["Captured", "Opened", "capture", "open_store"]


class Captured(NamedTuple):
    """A store at one moment. Taking it is quick; turning it into arrays takes longer."""

    state: State
    subscription_arrays: dict[str, Any]
    meta: dict[str, Any]

    def to_saved(self) -> SavedFolder:
        """Return everything as arrays."""
        arrays = self.subscription_arrays | dimensions_to_arrays(self.state.dimensions)
        segment_arrays, names = segments_to_arrays(self.state.snapshot)
        meta = {"segments": names, "operators": self._operators()}
        return SavedFolder(arrays | segment_arrays, self.meta | meta)

    def _operators(self) -> list[str]:
        """Return the names of the operators that subscriptions call."""
        current = self.subscription_arrays["row_of_number"]
        rows = current[current >= 0]
        inexact = rows[self.subscription_arrays["is_exact"][rows] == 0].tolist()
        texts = self.state.subscriptions.texts
        parsed = (parse(texts[row], UNLIMITED) for row in inexact)
        return sorted({name for expression in parsed for name in required_names(expression)})


def capture(store: Store) -> Captured:
    """Take the store as it is now."""
    with store.lock:
        state = store.state
        subscriptions = state.subscriptions
        meta = {
            "index": store.segmented.index_class.name,
            "index_options": store.index_options,
            "types": store.types,
            "id_type": subscriptions.id_type.__name__ if subscriptions.id_type else "none",
            "n_subscriptions": subscriptions.n_live,
            "settings": dataclasses.asdict(store.settings),
        }
        frozen = state._replace(
            dimensions=state.dimensions.copy(), snapshot=store.segmented.frozen(state.snapshot)
        )
        return Captured(frozen, subscriptions.arrays(), meta)


class Opened(NamedTuple):
    """An engine that was read from a folder."""

    store: Store
    log_ends: list[LogEnd]  # of each log that the manifest names


def open_store(
    folder: Directory | Path,
    manifest: Manifest,
    *,
    verify: bool,
    index: str | None,
    index_options: Mapping[str, object] | None,
    settings: Settings | None,
    types: Mapping[str, str] | None,
    progress: Report | None,
) -> Opened:
    """Map the arrays of a version and bring them up to date from its logs."""
    root = folder.path if isinstance(folder, Directory) else folder
    meta = manifest.meta
    require_operators(str(root), meta.get("operators", ()))
    arrays = map_arrays(folder, manifest, verify=verify)
    name = index or meta["index"]
    if index_options is None:  # those of another index make no sense
        index_options = meta.get("index_options") if name == meta["index"] else {}
    options = checked_options(name, index_options)
    try:
        known_types = checked_types(meta.get("types") if types is None else types)
        saved = settings or Settings(**meta["settings"])
        store = Store(index_class(name), saved, options, known_types)
        check_saved(arrays, meta, every_value=verify)
        if verify:  # what cannot be checked is made again
            arrays["id_slots"] = _slots_of_distinct(Texts(arrays["id_offsets"], arrays["id_data"]))
        subscriptions = Subscriptions.from_arrays(arrays, meta["id_type"], meta["n_subscriptions"])
        dimensions = dimensions_from_arrays(arrays)
        segments = open_segments(store.segmented, arrays, meta["segments"], build=verify)
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        raise FolderError(f"{root} is not a complete saved engine: {error}") from error
    store.segmented.snapshot = Snapshot(tuple(segments))
    store.publish(dimensions=dimensions, subscriptions=subscriptions)
    with opened(folder) as place:
        log_ends = _ends_of_logs(place, manifest)
        changes = (
            change
            for log, end in zip(manifest.logs, log_ends, strict=True)
            for change in read_changes(place.path / log, end, place)
        )
        replay(store, changes, progress)
    return Opened(store, log_ends)


def _slots_of_distinct(ids: Texts) -> np.ndarray:
    """Return the hash table of ids; ValueError if one is there twice."""
    known = FlatDictionary(TextPool(ids))
    if (known.lookup(ids) != np.arange(len(known))).any():
        raise ValueError("an id is there twice")
    return known.slots


def _ends_of_logs(folder: Directory, manifest: Manifest) -> list[LogEnd]:
    """Find where each log ends. Only the newest one may have a torn end, or be shorter than it was.

    It may be followed by logs without any record, which a checkpoint has made ready.
    """
    ends = [find_end(folder.path / log, folder) for log in manifest.logs]
    for n, (log, end) in enumerate(zip(manifest.logs, ends, strict=True)):
        if end.n_torn_bytes and any(later.n_records for later in ends[n + 1 :]):
            raise _cut_log(folder.path / log, "its end is missing, and a later log goes on there")
        finished = manifest.finished.get(log)
        if finished not in (None, [end.n_bytes, end.n_records]) or (finished and end.n_torn_bytes):
            n_bytes, n_records = finished or (0, 0)
            raise _cut_log(
                folder.path / log,
                f"it has {end.n_records:,} whole records in {end.n_bytes:,} bytes instead of"
                f" {n_records:,} in {n_bytes:,}",
            )
    return ends


def _cut_log(path: Path, what: str) -> FolderError:
    return FolderError(f"{path} is damaged: {what}; restore the folder from a copy")
