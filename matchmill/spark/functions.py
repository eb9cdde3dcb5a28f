"""Matching as a function of columns, in `select` and in SQL.

    events.select("event_id", match_column(index, "origin", "delay"))
    register_match(spark, "alerts_of", index)
    spark.sql("select event_id, alerts_of(struct(origin, delay)) from events")

The function takes one value that is an event: a struct, a map, an array of (name, value) structs,
or a JSON text; it returns an array of subscription ids, and null for an event that cannot be read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from matchmill.errors import InputError
from matchmill.spark.matching.tasks import lists_of
from matchmill.spark.published.open_version import opened
from matchmill.spark.published.versions import PublishedIndex

__all__ = ["match_column", "match_function", "register_match"]


def match_function(index: PublishedIndex) -> Any:
    """A user-defined function of one column of events."""
    shipped, verify = index.shipped(), index.verify

    def match_events(cells: pa.Array) -> pa.Array:
        version = opened(shipped, verify)
        parts = [pa.array([], pa.list_(version.id_type))]
        for part in version.slices(cells):
            lists = lists_of(version, part)
            if part.rejected:
                good = np.ones(part.n_events, bool)
                good[list(part.rejected)] = False
                lists = pa.compute.if_else(pa.array(good), lists, None)
            parts.append(lists)
        return pa.concat_arrays(parts)

    return F.arrow_udf(match_events, f"array<{index.id_type}>")


def match_column(index: PublishedIndex, *columns: Any, layout: str = "wide") -> Any:
    """The ids of all subscriptions that the event in these columns satisfies, as an array.

    `layout` is "wide" for columns that are attributes, "map" or "json" for one with events.
    """
    if layout == "wide":
        if not columns:
            raise InputError("name the columns that are attributes of an event")
        return match_function(index)(F.struct(*columns))
    if layout not in ("map", "json") or len(columns) != 1:
        raise InputError(
            'match_column takes layout="wide" and the attributes, or "map" or "json" and one column'
        )
    return match_function(index)(columns[0])


def register_match(spark: Any, name: str, index: PublishedIndex) -> None:
    """Give the function of an index a name in SQL; the same name again replaces it."""
    spark.udf.register(name, match_function(index))
