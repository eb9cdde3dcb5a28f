"""`match_udf`: matching as a function of a column, in `select` and in SQL.

events.select("event_id", ms.match_udf(engine)(F.struct("origin", "delay")))
spark.udf.register("alerts_of", ms.match_udf(engine))
spark.sql("select event_id, alerts_of(struct(*)) from events")
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from matchmill.errors import EventError
from matchmill.language.attribute_types import checked_types
from matchmill.spark.matching.tasks import lists_of
from matchmill.spark.published.locations import local_folder
from matchmill.spark.published.open_version import open_matcher
from matchmill.spark.published.sharded_engine import ShardedEngine
from matchmill.spark.published.sharded_engine import open as open_engine
from matchmill.spark.worker_memory import keep_out_of_collections

__all__ = ["match_udf"]

_MOST_BYTES = 2**31 - 1


def match_udf(
    engine: ShardedEngine | str | os.PathLike[str], *, types: Mapping[str, str] | None = None
) -> Any:
    """Return a user-defined function of one column of events.

    It takes a struct, a map, an array of (name, value) structs or a JSON text, and returns an array
    of subscription ids; null for an event that cannot be read.

    Parameters
    ----------
    engine
        A `ShardedEngine`, or the path of an engine.
    types
        What attributes are read as, as in `match`.

    Examples
    --------
    >>> alerts_of = ms.match_udf(engine)  # doctest: +SKIP
    >>> events.select(alerts_of(F.struct("origin", "delay")))  # doctest: +SKIP
    >>> spark.udf.register("alerts_of", alerts_of)  # doctest: +SKIP
    """
    if not isinstance(engine, ShardedEngine):
        is_local = local_folder(engine) is not None
        engine = open_engine(engine, spark=None if is_local else SparkSession.getActiveSession())
    files, verify = engine.worker_files(), engine.verify
    declared = checked_types(types)

    def match_events(cells: pa.Array) -> pa.Array:
        matcher = open_matcher(files, verify)
        parts = [pa.array([], pa.list_(matcher.id_type))]
        for part in matcher.slices(cells, declared):
            parts += lists_of(matcher, part, mark_rejected=True)
        n_bytes = sum(part.nbytes for part in parts)
        if n_bytes > _MOST_BYTES:
            raise EventError(
                f"{len(cells)} events have matches whose ids take {n_bytes:,} bytes, more than one"
                " array can hold: lower spark.sql.execution.arrow.maxRecordsPerBatch, or use match"
            )
        keep_out_of_collections()
        return pa.concat_arrays(parts)

    return F.arrow_udf(match_events, f"array<{engine.id_type}>")
