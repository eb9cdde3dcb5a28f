"""The second pass of a build, one task per shard: clauses become an index, all arrays are written.

Clauses get the keys that all shards share first. Each attempt of a task writes to a folder of its
own, so attempts that run twice do not meet; the driver publishes the one that reported to it, and
removes the others.
"""

from __future__ import annotations

import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.dimension_arrays import dimensions_from_arrays
from matchmill.encoding.dimension_union import into_shared
from matchmill.engine.sharded_folder import FolderEntry, map_folder
from matchmill.errors import FolderError
from matchmill.index.base import Statistics
from matchmill.index.mixed import build_index
from matchmill.index.registry import index_class
from matchmill.spark.building.array_rows import Gatherer, byte_rows, json_row
from matchmill.spark.published.locations import ShardTarget
from matchmill.spark.published.worker_files import WorkerFiles
from matchmill.storage.array_folder import sync_folder, write_array

__all__ = ["ShardPlan", "shard_builder", "write_arrays"]


class ShardPlan(NamedTuple):
    """What all tasks need."""

    index_name: str
    options: dict[str, Any]
    dimensions: WorkerFiles
    dimensions_entry: FolderEntry
    target: str | None  # the folder of shards, if workers write to it
    store: ShardTarget | None  # or who takes shards; without both, rows go to the driver


def shard_builder(
    plan: ShardPlan,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow` on the rows of the first pass."""

    def build(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gatherer, shard = Gatherer(), -1
        for batch in batches:
            shards, *columns = (column.to_pylist() for column in batch.columns)
            for row in zip(*columns, strict=True):
                gatherer.add(*row)
            shard = shards[-1] if shards else shard
        if "table" not in gatherer.arrays:
            return
        start = time.perf_counter()
        arrays = _built(plan, gatherer)
        folder_name = f"{shard}-{uuid4().hex[:12]}"
        if plan.store is not None:
            with tempfile.TemporaryDirectory(prefix="matchmill-shard-") as folder:
                entries = write_arrays(Path(folder) / folder_name, arrays)
                plan.store.take(Path(folder) / folder_name)
        elif plan.target is None:
            with tempfile.TemporaryDirectory(prefix="matchmill-shard-") as folder:
                entries = write_arrays(Path(folder) / folder_name, arrays)
                for file in sorted((Path(folder) / folder_name).iterdir()):
                    yield from byte_rows(
                        shard,
                        "file",
                        f"{folder_name}/{file.name}",
                        "raw",
                        memoryview(file.read_bytes()),
                    )
        else:
            entries = write_arrays(Path(plan.target) / folder_name, arrays)
        summary = gatherer.documents["summary"]
        meta = {
            "encode_seconds": summary["encode_seconds"],
            "encode_bytes": summary["encode_bytes"],
            "build_seconds": time.perf_counter() - start,
            "build_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
        entry = FolderEntry(f"shards/{folder_name}", summary["n_subscriptions"], entries, meta)
        yield json_row(shard, "entry", entry._asdict())

    return build


def _built(plan: ShardPlan, gatherer: Gatherer) -> dict[str, np.ndarray]:
    with plan.dimensions.opened() as folder:  # what is mapped stays readable
        shared_arrays = map_folder(folder, ".", plan.dimensions_entry, verify=False)
    own = dimensions_from_arrays(gatherer.arrays["dimensions"])
    table = ConjunctionTable(**gatherer.arrays["table"])
    table = into_shared(table, own, dimensions_from_arrays(shared_arrays))
    index = build_index(
        index_class(plan.index_name), table, _statistics(shared_arrays), **plan.options
    )
    # The table itself is left out: it is for merging, and a shard never changes.
    arrays = {f"index_{name}": array for name, array in index.arrays().items()}
    return gatherer.arrays["subscriptions"] | arrays


def _statistics(arrays: dict[str, np.ndarray]) -> Statistics | None:
    if "statistics_n_events" not in arrays:
        return None
    n_events, *others = (arrays[f"statistics_{name}"] for name in Statistics._fields)
    return Statistics(int(n_events[0]), *others)


def write_arrays(folder: Path, arrays: dict[str, np.ndarray]) -> dict[str, dict[str, int]]:
    """Write a new folder and sync it; remove it if that fails."""
    try:
        folder.mkdir()
        entries = {name: write_array(folder, name, array) for name, array in arrays.items()}
        sync_folder(folder)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise FolderError(
            f"{folder} cannot be written: {error.strerror or error}; make room or choose another"
            " place, and build again: the current version is unchanged"
        ) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return entries
