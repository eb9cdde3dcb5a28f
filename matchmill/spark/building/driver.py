"""Subscriptions in, a published index out, built in shards by tasks in parallel.

    subscriptions ─► by hash of the id ─► encode_shard.py ─► staged rows, on the workers' disks
                                                │
                           cut points of all ───┘──► shared dimensions (here, in the driver)
                                                                │
    staged rows ──────────────────────────────────► build_shard.py ─► folders of arrays
                                                                            │
                                              manifest.json, then MANIFEST.json, in one step each

Every expression is parsed once. A task holds one shard and nothing of the others; the driver holds
the cut points. Whatever fails or is killed before the last step leaves the current version as it
was.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from pyspark import StorageLevel
from pyspark.sql import functions as F

from matchmill.encoding.dimension_arrays import dimensions_from_arrays, dimensions_to_arrays
from matchmill.encoding.dimension_union import DimensionUnion
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.encoding.events.read import read_events
from matchmill.engine.subexpressions import EncodingState, encode_with_subexpressions, is_asked_for
from matchmill.errors import FolderError, InputError
from matchmill.index.event_sample import EventSample
from matchmill.index.registry import DEFAULT_INDEX, index_class
from matchmill.settings import DEFAULT_SETTINGS, Settings
from matchmill.spark.building.array_rows import SCHEMA, Gatherer
from matchmill.spark.building.build_shard import ShardPlan, shard_builder, write_arrays
from matchmill.spark.building.encode_shard import shard_encoder
from matchmill.spark.building.subscription_columns import (
    checked_subscriptions,
    duplicate_error,
    refusal_error,
)
from matchmill.spark.errors import plain_errors
from matchmill.spark.imports import import_operators, module_names
from matchmill.spark.layouts import EventLayout, layout_of, prepared
from matchmill.spark.published.locations import Place, place_of
from matchmill.spark.published.versions import (
    HOLDS,
    MANIFEST,
    Catalogue,
    FolderEntry,
    PublishedIndex,
    Refusal,
    VersionManifest,
    catalogue_bytes,
    needed_versions,
    new_name,
    open_index,
    read_catalogue,
    version_bytes,
)
from matchmill.spark.sessions import is_connect
from matchmill.storage.folder_lock import LOCK_NAME

__all__ = ["build"]

_SHARD_ROWS = 500_000  # what a worker encodes in about a gigabyte
_FEWEST_ROWS = 20_000  # of a shard, where shards are only made to have work for all cores
_MOST_REFUSALS = 100
_SAMPLE_EVENTS = 2048
_OWN_NAMES = re.compile(rf"{LOCK_NAME}|versions|{HOLDS}|\.?{re.escape(MANIFEST)}.*")
_VERSION_NAME = re.compile(r"\d{6,}-[0-9a-f]{12}")


def build(
    subscriptions: Any,
    path: str | os.PathLike[str],
    *,
    shards: int | None = None,
    statistics: Any = None,
    index: str = DEFAULT_INDEX,
    keep: int = 2,
    id_column: str = "subscription_id",
    expression_column: str = "expression",
    layout: str | EventLayout = "wide",
    operators: str | Sequence[str] | None = None,
    settings: Settings | None = None,
    strict: bool = False,
    **options: Any,
) -> PublishedIndex:
    """Build an index of a DataFrame of subscriptions and publish it as the current version.

    `path` is a folder that the driver and all workers share, or a path that Hadoop knows.
    `statistics` are events like those to come, which the index is then built for: a DataFrame in
    the given `layout`, or anything that `Engine.learn` takes. `keep` versions stay, and more if
    they are open in this process or held. A subscription that cannot be read is set aside with
    its reason (`refused` of the result), or is an error if `strict`; ids that occur twice always
    are.
    `operators` names modules that register operators; workers import them. `options` are the
    index's own.
    """
    if type(keep) is not int or keep < 1:
        raise InputError(f"keep is the number of versions that stay, at least 1, not {keep!r}")
    if shards is not None and (type(shards) is not int or shards < 1):
        raise InputError(f"shards is a number of at least 1, not {shards!r}")
    index_class(index)
    modules = module_names(operators)
    import_operators(modules)
    rows, id_type = checked_subscriptions(subscriptions, id_column, expression_column)
    spark = subscriptions.sparkSession
    place = place_of(path, spark)
    with plain_errors(), place.locked():
        before = read_catalogue(place)
        _remove_rubbish(place, before)
        n_shards = shards or _n_shards(spark, rows.count())
        job = _Build(place, before, id_type, modules, settings or DEFAULT_SETTINGS, n_shards)
        with job.working():
            job.run(rows, _sample(statistics, layout), index, options, strict)
            job.publish(keep)
    return open_index(path, job.name, spark=spark)


def _n_shards(spark: Any, n_rows: int) -> int:
    """As many as memory asks for, and work for all cores if there is enough of it."""
    n_cores = 4 if is_connect(spark) else spark.sparkContext.defaultParallelism
    return max(1, -(-n_rows // _SHARD_ROWS), min(n_cores, n_rows // _FEWEST_ROWS))


def _sample(statistics: Any, layout: str | EventLayout) -> Any:
    """Events to learn from, or None."""
    if statistics is None or not hasattr(statistics, "sparkSession"):
        return statistics
    cells = prepared(statistics, layout_of(layout, None, None)).limit(_SAMPLE_EVENTS)
    column = cells.toArrow().column("event").combine_chunks()
    return read_cells(column)


class _Build:
    """One build on its way; `name` is that of the version."""

    def __init__(
        self,
        place: Place,
        before: Catalogue | None,
        id_type: str,
        modules: tuple[str, ...],
        settings: Settings,
        n_shards: int,
    ) -> None:
        self.name = new_name(before)
        self._place = place
        self._before = before
        self._id_type = id_type
        self._modules = modules
        self._settings = settings
        self._n_shards = n_shards
        self._folder = f"versions/{self.name}"
        self._work = Path()
        self._manifest: VersionManifest | None = None

    @contextmanager
    def working(self) -> Iterator[None]:
        """Around the work: a folder for it, of which nothing is left if it fails."""
        self._work = self._place.work_folder(self._folder)
        try:
            (self._work / "shards").mkdir()
            yield
        except BaseException:
            with suppress(Exception):  # the error that led here is the one to tell
                self._place.remove(self._folder)
            raise
        finally:
            if not self._place.workers_write:
                shutil.rmtree(self._work, ignore_errors=True)

    # -- the two passes ---------------------------------------------------------------------------

    def run(
        self, rows: Any, sample: Any, index: str, options: dict[str, Any], strict: bool
    ) -> None:
        settings = dataclasses.asdict(self._settings)
        shard = F.pmod(F.xxhash64("id"), F.lit(self._n_shards)).cast("int")
        divided = rows.select(shard.alias("shard"), "id", "expression")
        staged = (
            divided.repartitionById(self._n_shards, "shard")
            .mapInArrow(shard_encoder(settings, self._modules), SCHEMA)
            .persist(StorageLevel.DISK_ONLY)
        )
        try:
            staged.count()  # all shards in parallel; what follows reads what they left
            first = _first_pass(staged, strict)
            entry = self._write_dimensions(first.dimensions, sample)
            self._place.keep(self._work, self._folder)
            plan = ShardPlan(
                index,
                options,
                self._place.shipped(f"{self._folder}/{entry.folder}"),
                entry,
                str(self._work / "shards") if self._place.workers_write else None,
            )
            shards = self._second_pass(staged, plan)
        finally:
            staged.unpersist()
        self._manifest = VersionManifest(
            self.name,
            index,
            "int" if self._id_type == "bigint" else "str",
            sum(shard.n_subscriptions for shard in shards),
            first.n_refused,
            first.refused,
            settings,
            list(self._modules),
            first.operators,
            self._n_shards,
            entry,
            shards,
        )

    def _write_dimensions(self, dimensions: Dimensions, sample: Any) -> FolderEntry:
        arrays = dimensions_to_arrays(dimensions)
        if sample is not None:
            arrays |= _statistics(dimensions, sample, self._settings)
        name = f"dimensions-{uuid4().hex[:12]}"
        return FolderEntry(name, 0, write_arrays(self._work / name, arrays), {})

    def _second_pass(self, staged: Any, plan: ShardPlan) -> list[FolderEntry]:
        built = staged.mapInArrow(shard_builder(plan), SCHEMA)
        entries: dict[int, FolderEntry] = {}
        if plan.target is not None:
            for row in built.collect():
                entries[row.shard] = _entry(row)
        else:
            built = built.persist(StorageLevel.DISK_ONLY)
            try:
                built.count()
                for row in built.toLocalIterator(prefetchPartitions=True):
                    if row.kind == "entry":
                        entries[row.shard] = _entry(row)
                    else:
                        self._append(row.name, row.content)
            finally:
                built.unpersist()
        return [entries[shard] for shard in sorted(entries)]

    def _append(self, name: str, content: bytes) -> None:
        """Some more of a file that a worker has written."""
        file = self._work / "shards" / name
        file.parent.mkdir(exist_ok=True)
        with file.open("ab") as stream:
            stream.write(content)

    # -- the last steps ---------------------------------------------------------------------------

    def publish(self, keep: int) -> None:
        assert self._manifest is not None
        named = {shard.folder for shard in self._manifest.shards}
        for folder in (self._work / "shards").iterdir():
            if f"shards/{folder.name}" not in named:
                shutil.rmtree(folder)  # of an attempt that was made twice
        self._place.keep(self._work, self._folder)
        self._place.publish(f"{self._folder}/manifest.json", version_bytes(self._manifest))
        older = [] if self._before is None else self._before.versions
        needed = needed_versions(self._place)
        recent = older[len(older) - keep + 1 :] if keep > 1 else []
        kept = [name for name in older if name in recent or name in needed]
        after = Catalogue(self.name, [*kept, self.name])
        self._place.publish(MANIFEST, catalogue_bytes(after))
        _remove_rubbish(self._place, after)


class _FirstPass(NamedTuple):
    dimensions: Dimensions
    operators: list[str]
    n_refused: int
    refused: list[Refusal]


def _first_pass(staged: Any, strict: bool) -> _FirstPass:
    """What the shards tell of themselves; errors that no index is built in spite of."""
    union = DimensionUnion()
    summaries: list[dict[str, Any]] = []
    gatherer = Gatherer()
    wanted = staged.filter(F.col("kind").isin("dimensions", "summary"))
    for row in wanted.toLocalIterator(prefetchPartitions=True):
        gatherer.add(row.kind, row.name, row.header, bytes(row.content))
        if row.kind == "summary":  # the last row of a shard
            summaries.append(gatherer.documents["summary"])
            if "dimensions" in gatherer.arrays:
                union.add(dimensions_from_arrays(gatherer.arrays["dimensions"]))
            gatherer = Gatherer()
    duplicates = [i for summary in summaries for i in summary["duplicates"]]
    if duplicates:
        raise duplicate_error(sorted(set(duplicates)))
    refused = [Refusal(*r) for summary in summaries for r in summary["refused"]]
    n_refused = sum(summary["n_refused"] for summary in summaries)
    n_good = sum(summary["n_subscriptions"] for summary in summaries)
    if n_refused and (strict or not n_good):
        raise refusal_error(n_refused, *refused[0])
    operators = sorted({name for summary in summaries for name in summary["operators"]})
    return _FirstPass(union.finish(), operators, n_refused, refused[:_MOST_REFUSALS])


def _statistics(dimensions: Dimensions, sample: Any, settings: Settings) -> dict[str, np.ndarray]:
    events = read_events(sample, settings)
    encoding = EncodingState.of(dimensions)
    columns = events.columns(is_asked_for(encoding))
    seen = EventSample(_SAMPLE_EVENTS)
    seen.add(encode_with_subexpressions(encoding, columns), everything=True)
    learned = seen.statistics(len(dimensions))
    if learned is None:  # too few events to tell anything
        return {}
    arrays = learned._asdict() | {"n_events": np.array([learned.n_events], np.int64)}
    return {f"statistics_{name}": array for name, array in arrays.items()}


def _entry(row: Any) -> FolderEntry:
    gatherer = Gatherer()
    gatherer.add(row.kind, row.name, row.header, bytes(row.content))
    return FolderEntry(**gatherer.documents["entry"])


def _remove_rubbish(place: Place, catalogue: Catalogue | None) -> None:
    """Remove what builds left that were cut short, and versions that are not kept."""
    names = place.folders("")
    if catalogue is None:
        for name in names:
            if not _OWN_NAMES.fullmatch(name):
                raise FolderError(
                    f"{place.root} holds other files, as {name}; give a new or empty folder"
                )
    for name in names:
        if _OWN_NAMES.fullmatch(name) and name not in (LOCK_NAME, MANIFEST, "versions", HOLDS):
            place.remove(name)
    known = () if catalogue is None else catalogue.versions
    for name in place.folders("versions"):
        if _VERSION_NAME.fullmatch(name) and name not in known:
            place.remove(f"versions/{name}")
