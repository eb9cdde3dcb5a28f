"""Events and subscriptions in, pairs out.

small jobs     few subscriptions and few events: the driver matches them with the library, which
               takes less time than Spark needs to start a job
all others     `mapInArrow` over the events; each worker maps all shards and loops over them, so
               that no event is ever shuffled
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from matchmill.errors import InputError
from matchmill.settings import Settings
from matchmill.spark.building.driver import build
from matchmill.spark.layouts import EventLayout, layout_of, prepared
from matchmill.spark.matching.driver_match import SmallJob, collected_job
from matchmill.spark.matching.tasks import array_matcher, pair_matcher
from matchmill.spark.published.versions import PublishedIndex, open_index

__all__ = ["match"]


def match(
    events: Any,
    index: Any,
    *,
    layout: str | EventLayout = "wide",
    event_id: str | None = None,
    columns: str | Sequence[str] | None = None,
    id_column: str = "subscription_id",
    expression_column: str = "expression",
    as_arrays: bool = False,
    keep_empty: bool = False,
    distributed: bool | None = None,
    strict: bool = True,
    operators: str | Sequence[str] | None = None,
    settings: Settings | None = None,
    workspace: str | os.PathLike[str] | None = None,
) -> Any:
    """A DataFrame (event_id, subscription_id) with a row for each match.

    `index` is what `build` or `open_index` returned, the path of a published index, or a DataFrame
    (subscription_id, expression). With `as_arrays` there is a row for each event that matches
    (with `keep_empty`, for each good event) and an array `subscription_ids`. Events that cannot be
    read match nothing; `quarantine` has them.

    The rest is for subscriptions in a DataFrame: `distributed` forces, or forbids, matching by
    workers; else the sizes decide. With `strict` a subscription that cannot be read is an error.
    `workspace` is where the index is built for this one job: a folder that all workers share or a
    Hadoop path; on one machine it need not be given.
    """
    chosen = layout_of(layout, event_id, columns)
    cells = prepared(events, chosen)
    names = (chosen.event_id, "subscription_ids" if as_arrays else id_column)
    if not isinstance(index, (PublishedIndex, str, os.PathLike)):
        if distributed is not True and not events.isStreaming:
            job = collected_job(
                index, cells, id_column, expression_column, force=distributed is False
            )
            if job is not None:
                return _by_driver(job, names, as_arrays, keep_empty, strict, operators, settings)
        index = build(
            index, workspace or _own_workspace(events.sparkSession), id_column=id_column,
            expression_column=expression_column, operators=operators, settings=settings,
            strict=strict,
        )  # fmt: skip
    elif not isinstance(index, PublishedIndex):
        index = open_index(index, spark=events.sparkSession)
    shipped, verify = index.shipped(), index.verify
    schema = _schema(cells, names, index.id_type, as_arrays)
    if as_arrays:
        return cells.mapInArrow(array_matcher(shipped, verify, names, keep_empty), schema)
    return cells.mapInArrow(pair_matcher(shipped, verify, names), schema)


def _schema(cells: Any, names: tuple[str, str], id_type: str, as_arrays: bool) -> StructType:
    element = LongType() if id_type == "bigint" else StringType()
    subscription = ArrayType(element) if as_arrays else element
    return StructType([cells.schema[names[0]], StructField(names[1], subscription)])


def _by_driver(
    job: SmallJob,
    names: tuple[str, str],
    as_arrays: bool,
    keep_empty: bool,
    strict: bool,
    operators: str | Sequence[str] | None,
    settings: Settings | None,
) -> Any:
    found = job.matched(names, as_arrays, keep_empty, strict, operators, settings)
    schema = _schema(job.cells, names, job.id_type, as_arrays)
    return job.cells.sparkSession.createDataFrame(pa.Table.from_batches(found), schema)


def _own_workspace(spark: Any) -> str:
    """A folder for one job, there until this process ends: a plan may run at any time."""
    master = spark.conf.get("spark.master", "")
    if not master.startswith("local"):
        raise InputError(
            "the workers may be on other machines: give workspace=…, a folder that all share or a"
            " Hadoop path, or build the index first"
        )
    folder = tempfile.mkdtemp(prefix="matchmill-index-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
