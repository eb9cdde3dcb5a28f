"""Opening what `matchmill.spark.build` published as an engine of the library.

Its shards have indexes of their own, so the subscriptions are read from the current version and
indexed again, as in any bulk load: 5 to 15 s per million. The folder belongs to Spark, which
publishes whole versions, so the engine cannot be changed; `Engine.save` makes a copy that can.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from matchmill.engine.sharded_folder import (
    FolderEntry,
    VersionManifest,
    is_sharded_engine,
    map_folder,
    read_local_version,
    version_folder,
)
from matchmill.engine.subscription_table import Subscriptions, text_array
from matchmill.errors import FolderError
from matchmill.operators.registry import require_operators
from matchmill.settings import Settings

__all__ = ["ShardedSubscriptions", "is_sharded_engine", "read_sharded"]

_COLUMNS = ["subscription_id", "expression"]


class ShardedSubscriptions(NamedTuple):
    """What an engine is made of."""

    index_name: str
    settings: Settings
    rows: pa.Table  # subscription_id, expression


def read_sharded(root: Path, *, verify: bool) -> ShardedSubscriptions:
    """Read the current version; again if another one has taken its place meanwhile."""
    while True:
        folder = version_folder(root)
        try:
            return _read(folder, verify)
        except FolderError:
            if version_folder(root) == folder:
                raise


def _read(folder: Path, verify: bool) -> ShardedSubscriptions:
    manifest = read_local_version(folder)
    require_operators(str(folder), manifest.operators)
    tables = list(_tables(folder, manifest, verify))
    rows = pa.concat_tables(tables) if tables else pa.table({name: [] for name in _COLUMNS})
    return ShardedSubscriptions(manifest.index_name, Settings(**manifest.settings), rows)


def _tables(folder: Path, manifest: VersionManifest, verify: bool) -> Iterator[pa.Table]:
    for shard in manifest.shards:
        known = _subscriptions(folder, shard, manifest, verify)
        numbers = known.live_numbers()
        ids = known.ids_of_numbers(numbers)
        texts = text_array(known).take(pa.array(known.row_of_number.data[numbers]))
        yield pa.table([ids, texts], _COLUMNS)


def _subscriptions(
    folder: Path, shard: FolderEntry, manifest: VersionManifest, verify: bool
) -> Subscriptions:
    arrays = map_folder(folder, shard.folder, shard, verify=verify)
    try:
        return Subscriptions.from_arrays(arrays, manifest.id_type, shard.n_subscriptions)
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise FolderError(
            f"{folder / shard.folder} is not a complete shard: {error}; build again"
        ) from error
