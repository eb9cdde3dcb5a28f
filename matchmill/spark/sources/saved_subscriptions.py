"""The subscriptions of a saved engine, or of a sharded one, read in parts from mapped files.

    part      numbers start … stop of the ids in the arrays, but for those in `changed`
    changes   what the logs say since, the latest state of each id; a part of its own
    shard     of a sharded engine: one part each, without changes

Nothing of the index is opened, and each reader of a part maps what it needs. The parts are those of
one moment: if the folder is saved again while they are read, that is an error and not a mixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from matchmill.engine.subscription_table import Id, Subscriptions, text_array
from matchmill.errors import FolderError
from matchmill.spark.published.sharded_engine import open as open_engine
from matchmill.spark.published.versions import MANIFEST
from matchmill.storage.array_folder import (
    Manifest,
    is_saved_engine,
    map_arrays,
    read_manifest,
    retried,
)
from matchmill.storage.change_log import find_end, read_changes

__all__ = ["ArrayPart", "ChangePart", "Part", "SavedParts", "read_part", "saved_parts"]

_ROWS_PER_BATCH = 1 << 14
_ARRAYS = (
    "id_offsets", "id_data", "id_slots", "row_of_number", "number_of_row", "first_clause",
    "is_exact", "text_offsets", "text_data", "row_of_clause",
)  # fmt: skip


class ArrayPart(NamedTuple):
    """Some of the subscriptions in the arrays."""

    root: str
    manifest: Manifest
    start: int
    stop: int
    changed: np.ndarray  # numbers, ascending, whose subscriptions the logs have replaced


class ChangePart(NamedTuple):
    """Subscriptions that the logs have."""

    rows: list[tuple[Id, str]]


Part: TypeAlias = ArrayPart | ChangePart


class SavedParts(NamedTuple):
    """All parts of an engine."""

    has_integer_ids: bool
    parts: list[Part]


def saved_parts(path: str, n_parts: int) -> SavedParts:
    """Divide all subscriptions of a folder into about so many parts."""
    root = Path(path.removeprefix("file://").removeprefix("file:"))
    if (root / MANIFEST).is_file():
        return _sharded(root)
    if is_saved_engine(root):
        return retried(root, lambda manifest: _planned(root, manifest, n_parts))
    raise FolderError(
        f"{root} holds no engine: there is neither manifest.json of Engine.save nor {MANIFEST} of"
        " matchmill.spark.build"
    )


def _sharded(root: Path) -> SavedParts:
    """Make a part for each shard of the current version; a version never changes."""
    engine = open_engine(root)
    id_type = engine.manifest.id_type
    version = root / "versions" / engine.version
    parts: list[Part] = []
    for shard in engine.manifest.shards:
        meta = {"id_type": id_type, "n_subscriptions": shard.n_subscriptions}
        manifest = Manifest(shard.folder, shard.arrays, [], meta)
        nothing = np.empty(0, np.int64)
        parts.append(ArrayPart(str(version), manifest, 0, shard.n_subscriptions, nothing))
    return SavedParts(id_type == "int", parts)


def _planned(root: Path, manifest: Manifest, n_parts: int) -> SavedParts:
    known = _mapped(root, manifest)
    latest: dict[Id, str | None] = {}
    for log in manifest.logs:
        for change in read_changes(root / log, find_end(root / log)):
            if change.texts is None:
                latest.update(dict.fromkeys(change.ids))
            else:
                latest.update(zip(change.ids, change.texts, strict=True))
    same_type = [i for i in latest if known.id_type is type(i)]
    rows = known.current_rows(same_type)
    changed = np.unique(known.number_of_row.data[rows[rows >= 0]])
    n = known.row_of_number.n
    bounds = np.linspace(0, n, max(1, n_parts) + 1).astype(np.int64).tolist()
    parts: list[Part] = []
    for start, stop in pairwise(bounds):
        if start < stop:
            inside = changed[(changed >= start) & (changed < stop)]
            parts.append(ArrayPart(str(root), manifest, start, stop, inside))
    if stored := [(i, text) for i, text in latest.items() if text is not None]:
        parts.append(ChangePart(stored))
    id_type = known.id_type or type(next(iter(latest), ""))
    return SavedParts(id_type is int, parts)


def _mapped(root: Path, manifest: Manifest) -> Subscriptions:
    try:
        entries = {name: manifest.arrays[name] for name in _ARRAYS}
        arrays = map_arrays(root, manifest._replace(arrays=entries), verify=False)
        meta = manifest.meta
        return Subscriptions.from_arrays(arrays, meta["id_type"], meta["n_subscriptions"])
    except KeyError as error:
        raise FolderError(f"{root} is not a complete saved engine: {error}") from error


def read_part(part: Part) -> Iterator[pa.RecordBatch]:
    """Read the (subscription_id, expression) of a part."""
    if isinstance(part, ChangePart):
        ids, texts = zip(*part.rows, strict=True)
        yield _batch(pa.array(ids), pa.array(texts, pa.string()))
        return
    root = Path(part.root)
    try:
        known = _mapped(root, part.manifest)
    except FolderError as error:
        is_engine = bool(part.manifest.logs)  # shards have none
        if not is_engine or read_manifest(root) != part.manifest:
            raise FolderError(
                f"{root} was replaced while it was read, or is damaged; read it again"
            ) from error
        raise
    texts = text_array(known)
    for start in range(part.start, part.stop, _ROWS_PER_BATCH):
        numbers = np.arange(start, min(start + _ROWS_PER_BATCH, part.stop))
        numbers = numbers[~np.isin(numbers, part.changed)]
        rows = known.row_of_number.data[numbers]
        numbers, rows = numbers[rows >= 0], rows[rows >= 0]
        yield _batch(known.ids_of_numbers(numbers), texts.take(pa.array(rows)))


def _batch(ids: pa.Array, texts: pa.Array) -> pa.RecordBatch:
    if not pa.types.is_integer(ids.type):
        ids = ids.cast(pa.string())
    return pa.record_batch([ids, texts.cast(pa.string())], ["subscription_id", "expression"])
