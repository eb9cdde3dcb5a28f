"""`build`: subscriptions in, a published engine out, built in shards by parallel tasks.

    subscriptions ─► by hash of the id ─► encode_shard.py ─► staged rows, on the workers' disks
                                                │
                           cut points of all ───┘──► shared dimensions (here, in the driver)
                                                                │
    staged rows ──────────────────────────────────► build_shard.py ─► folders of arrays
                                                                            │
                                               manifest.json, then current.json, in one step each

Every expression is parsed once. A task holds one shard and nothing of the others; the driver holds
the cut points. A build that fails or is killed before the last step leaves the current version
unchanged.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
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
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.encoding.events.read import read_events
from matchmill.encoding.pattern_work import read_columns
from matchmill.engine.sharded_folder import (
    VERSION_NAME,
    Catalogue,
    FolderEntry,
    VersionManifest,
    catalogue_bytes,
    version_bytes,
)
from matchmill.errors import FolderError, InputError
from matchmill.index.event_sample import EventSample
from matchmill.index.registry import DEFAULT_INDEX, check_index_options
from matchmill.io.reports import Rejected
from matchmill.language.dialects.registry import MATCHMILL, check_dialect
from matchmill.operators.modules import import_operators, module_names
from matchmill.settings import DEFAULT_SETTINGS, Settings
from matchmill.spark.building.array_rows import SCHEMA, Gatherer
from matchmill.spark.building.build_shard import ShardPlan, shard_builder, write_arrays
from matchmill.spark.building.encode_shard import MOST_ATTRIBUTES, shard_encoder
from matchmill.spark.building.subscription_columns import (
    checked_subscriptions,
    duplicate_error,
    rejected_error,
    rejected_row,
)
from matchmill.spark.errors import plain_errors
from matchmill.spark.event_statistics import is_statistics, sample_events
from matchmill.spark.layouts import EventLayout, event_cells, layout_of
from matchmill.spark.published.locations import Location, local_folder, location_of
from matchmill.spark.published.sharded_engine import ShardedEngine, needed_versions
from matchmill.spark.published.sharded_engine import open as open_engine
from matchmill.spark.published.versions import (
    HOLDS,
    MANIFEST,
    complete_versions,
    new_name,
    read_catalogue,
)
from matchmill.spark.sessions import is_connect
from matchmill.spark.worker_memory import worker_task
from matchmill.storage.array_folder import is_saved_engine
from matchmill.storage.folder_lock import LOCK_NAME

__all__ = ["build"]

_SHARD_ROWS = 500_000  # what a worker encodes in about a gigabyte
_FEWEST_ROWS = 20_000  # of a shard, where shards are only made to have work for all cores
_MAX_REJECTED = 100
_SAMPLE_EVENTS = 2048
_OWN_NAMES = re.compile(rf"{LOCK_NAME}|versions|{HOLDS}|\.?{re.escape(MANIFEST)}.*")


def build(
    subscriptions: Any,
    path: str | os.PathLike[str],
    *,
    subscription_id: str = "subscription_id",
    expression: str = "expression",
    dialect: str = MATCHMILL,
    index: str = DEFAULT_INDEX,
    index_options: Mapping[str, object] | None = None,
    shards: int | None = None,
    keep: int = 2,
    learn: Any = None,
    layout: str | EventLayout = "wide",
    event_id: str = "event_id",
    attributes: str | Sequence[str] | None = None,
    operators: str | Sequence[str] | None = None,
    settings: Settings | None = None,
    strict: bool = False,
) -> ShardedEngine:
    """Build an engine from a DataFrame of subscriptions and publish it as the current version.

    Parameters
    ----------
    subscriptions
        A DataFrame with the columns `subscription_id` (strings or integers) and `expression`.
    path
        A folder that the driver and all workers share, or a path that Hadoop knows.
    subscription_id, expression
        The names of the two columns.
    dialect
        The language of text and patterns, as for `Engine.subscribe_many`.
    index, index_options
        The algorithm and its own options.
    shards
        The number of shards; by default one per 500,000 subscriptions, and work for all cores.
    keep
        How many versions stay. Versions that are open in this process, or held, stay too.
    learn
        Events like those to come, which the index is then built for: a DataFrame in the given
        `layout`, a table of `statistics`, or anything that `Engine.learn` takes. Answers do not
        depend on it.
    layout, event_id, attributes
        How the events of `learn` stand in their DataFrame.
    operators
        Modules that register operators; workers import them.
    settings
        Limits of expressions and events.
    strict
        Raise InputError if a subscription cannot be read. By default it is left out, and `rejected`
        of the result has the reason. Ids that occur twice are always an error.

    Returns
    -------
    ShardedEngine
        The new version.

    Examples
    --------
    >>> rows = [("u42", "origin = 'JFK' and delay > 60")]
    >>> subscriptions = spark.createDataFrame(  # doctest: +SKIP
    ...     rows, "subscription_id string, expression string"
    ... )
    >>> engine = ms.build(subscriptions, "alerts.mill")  # doctest: +SKIP
    """
    if type(keep) is not int or keep < 1:
        raise InputError(f"keep is the number of versions that stay, at least 1, not {keep!r}")
    if shards is not None and (type(shards) is not int or shards < 1):
        raise InputError(f"shards is a number of at least 1, not {shards!r}")
    check_dialect(dialect)
    options = dict(index_options or {})
    check_index_options(index, options)
    modules = module_names(operators)
    import_operators(modules)
    rows, id_type = checked_subscriptions(subscriptions, subscription_id, expression)
    spark = subscriptions.sparkSession
    location = location_of(path, spark)
    sample = _sample(learn, layout_of(layout, event_id, attributes))
    with plain_errors(), location.locked():
        before = read_catalogue(location, repairs=True)
        if before is None or location.excludes_others:
            _remove_leftovers(location, before)
        n_shards = shards or _n_shards(spark, rows.count())
        job = _Build(location, before, id_type, modules, settings or DEFAULT_SETTINGS, n_shards)
        with job.working():
            job.run(rows, dialect, sample, index, options, strict)
            job.publish(keep)
    return open_engine(path, version=job.name, spark=spark)


def _n_shards(spark: Any, n_rows: int) -> int:
    """Choose as many as memory needs, and work for all cores if there is enough of it."""
    n_cores = 4 if is_connect(spark) else spark.sparkContext.defaultParallelism
    return max(1, -(-n_rows // _SHARD_ROWS), min(n_cores, n_rows // _FEWEST_ROWS))


def _sample(learn: Any, layout: EventLayout) -> Any:
    """Return events to learn from, or None."""
    if learn is None or not hasattr(learn, "sparkSession"):
        return learn
    if is_statistics(learn):
        return sample_events(learn, _SAMPLE_EVENTS)
    cells = event_cells(learn, layout).limit(_SAMPLE_EVENTS)
    return read_cells(cells.toArrow().column("event").combine_chunks())


class _Build:
    """One build; `name` is that of the version."""

    def __init__(
        self,
        location: Location,
        before: Catalogue | None,
        id_type: str,
        modules: tuple[str, ...],
        settings: Settings,
        n_shards: int,
    ) -> None:
        self.name = new_name(before or Catalogue("", complete_versions(location)))
        self._location = location
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
        """Make a folder for the work, and remove it if the work fails."""
        self._work = self._location.work_folder(self._folder)
        try:
            (self._work / "shards").mkdir()
            yield
        except BaseException:
            with suppress(Exception):  # the error that led here is the one to raise
                self._location.remove(self._folder)
            raise
        finally:
            if not self._location.workers_write:
                shutil.rmtree(self._work, ignore_errors=True)

    # -- the two passes ---------------------------------------------------------------------------

    def run(
        self,
        rows: Any,
        dialect: str,
        sample: Any,
        index: str,
        options: dict[str, Any],
        strict: bool,
    ) -> None:
        settings = dataclasses.asdict(self._settings)
        shard = F.pmod(F.xxhash64("id"), F.lit(self._n_shards)).cast("int")
        divided = rows.select(shard.alias("shard"), "id", "expression")
        staged = (
            divided.repartitionById(self._n_shards, "shard")
            .mapInArrow(worker_task(shard_encoder(settings, dialect, self._modules)), SCHEMA)
            .persist(StorageLevel.DISK_ONLY)
        )
        try:
            staged.count()  # all shards in parallel; the rest reads what they wrote
            first = _first_pass(staged, strict)
            entry = self._write_dimensions(first.dimensions, sample)
            self._location.store(self._work, self._folder)
            plan = ShardPlan(
                index,
                options,
                self._location.worker_files(f"{self._folder}/{entry.folder}"),
                entry,
                str(self._work / "shards") if self._location.workers_write else None,
                self._location.shard_target(self._folder),
            )
            shards = self._second_pass(staged, plan)
        finally:
            staged.unpersist()
        self._manifest = VersionManifest(
            self.name,
            index,
            "int" if self._id_type == "bigint" else "str",
            sum(shard.n_subscriptions for shard in shards),
            first.n_rejected,
            first.rejected,
            settings,
            list(self._modules),
            first.operators,
            first.attributes,
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
        built = staged.mapInArrow(worker_task(shard_builder(plan)), SCHEMA)
        entries: dict[int, FolderEntry] = {}
        if plan.target is not None or plan.store is not None:
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
        """Append to a file that a worker has written."""
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
        if self._location.shard_target(self._folder) is not None:
            for name in self._location.names(f"{self._folder}/shards"):
                if f"shards/{name}" not in named:
                    self._location.remove(f"{self._folder}/shards/{name}")
        self._location.store(self._work, self._folder)
        self._location.publish(f"{self._folder}/manifest.json", version_bytes(self._manifest))
        if self._before is None:  # nobody knows which of them were published
            kept = [n for n in complete_versions(self._location) if n != self.name]
        else:
            older = self._before.versions
            needed = needed_versions(self._location)
            recent = older[len(older) - keep + 1 :] if keep > 1 else []
            kept = [name for name in older if name in recent or name in needed]
        after = Catalogue(self.name, [*kept, self.name])
        self._location.publish(MANIFEST, catalogue_bytes(after))
        _remove_leftovers(self._location, after)


class _FirstPass(NamedTuple):
    dimensions: Dimensions
    operators: list[str]
    attributes: list[str] | None
    n_rejected: int
    rejected: list[Rejected]


def _first_pass(staged: Any, strict: bool) -> _FirstPass:
    """Gather what the shards report; raise what no engine is built in spite of."""
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
    rejected = [rejected_row(*r) for summary in summaries for r in summary["rejected"]]
    n_rejected = sum(summary["n_rejected"] for summary in summaries)
    n_good = sum(summary["n_subscriptions"] for summary in summaries)
    if n_rejected and (strict or not n_good):
        raise rejected_error(n_rejected, rejected[0].id, rejected[0].reason)
    operators = sorted({name for summary in summaries for name in summary["operators"]})
    return _FirstPass(
        union.finish(), operators, _attributes(summaries), n_rejected, rejected[:_MAX_REJECTED]
    )


def _attributes(summaries: list[dict[str, Any]]) -> list[str] | None:
    """Return all attributes that subscriptions mention; None if that is not known, or too many."""
    known: set[str] = set()
    for summary in summaries:
        if summary["attributes"] is None:
            return None
        known.update(summary["attributes"])
    return sorted(known) if len(known) <= MOST_ATTRIBUTES else None


def _statistics(dimensions: Dimensions, sample: Any, settings: Settings) -> dict[str, np.ndarray]:
    events = read_events(sample, settings)
    columns = read_columns(dimensions, events, settings.max_pattern_work)
    seen = EventSample(_SAMPLE_EVENTS)
    seen.add(encode_events(dimensions, columns), everything=True)
    learned = seen.statistics(len(dimensions))
    if learned is None:  # too few events
        return {}
    arrays = learned._asdict() | {"n_events": np.array([learned.n_events], np.int64)}
    return {f"statistics_{name}": array for name, array in arrays.items()}


def _entry(row: Any) -> FolderEntry:
    gatherer = Gatherer()
    gatherer.add(row.kind, row.name, row.header, bytes(row.content))
    return FolderEntry(**gatherer.documents["entry"])


def _remove_leftovers(location: Location, catalogue: Catalogue | None) -> None:
    """Remove what builds that were cut short left, and versions that are not kept."""
    names = location.names("")
    if catalogue is None:
        for name in names:
            if not _OWN_NAMES.fullmatch(name):
                what = f"other files, such as {name}"
                if (folder := local_folder(location.root)) and is_saved_engine(folder):
                    what = "an engine that Engine.save made"
                raise FolderError(f"{location.root} holds {what}; give a new or empty folder")
        return  # what is there may be all that is left of what was published
    for name in names:
        if _OWN_NAMES.fullmatch(name) and name not in (LOCK_NAME, MANIFEST, "versions", HOLDS):
            location.remove(name)
    known = catalogue.versions
    for name in location.names("versions"):
        if VERSION_NAME.fullmatch(name) and name not in known:
            location.remove(f"versions/{name}")
