"""Changes of subscriptions as rows of a stream: their columns, and how they are read.

    kind        subscribe (a new one, or in the place of the one with that id) or cancel
    subscription_id | expression | expires_at (may be missing) | order (if one is named)

They come from a second source, or among the events, whose kind is then `event`. Both become one
stream, of which a batch is what Spark takes from the sources at a time:

    event: struct | change: struct      one of them null
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StringType, StructType, TimestampType

from matchmill.engine.subscription_table import Id
from matchmill.errors import InputError
from matchmill.spark.layouts import quoted

__all__ = ["Change", "ChangeColumns", "RefusedChange", "changes_of", "mixed_stream", "two_streams"]


@dataclass(frozen=True, slots=True)
class ChangeColumns:
    """`expires_at` may be missing. `order` says which of two changes of one id comes later."""

    kind: str = "kind"
    subscription_id: str = "subscription_id"
    expression: str = "expression"
    expires_at: str = "expires_at"
    order: str | None = None


class Change(NamedTuple):
    kind: str | None
    id: Id | None
    expression: str | None
    expires_at: int | None  # microseconds since 1970 in UTC
    order: Any


class RefusedChange(NamedTuple):
    """A change that was set aside, and why."""

    kind: str | None
    subscription_id: Id | None
    expression: str | None
    reason: str


def two_streams(events: Any, changes: Any, columns: ChangeColumns, id_type: str) -> Any:
    """Events and the changes of another source as one stream."""
    if not changes.isStreaming:
        raise InputError("changes are a streaming DataFrame, as of spark.readStream")
    change = _change(changes, columns, id_type)
    packed = changes.select(F.lit(None).cast(events.schema).alias("event"), change)
    kind = packed.schema["change"].dataType
    return events.select(
        F.struct("*").alias("event"), F.lit(None).cast(kind).alias("change")
    ).union(packed)


def mixed_stream(events: Any, columns: ChangeColumns, id_type: str) -> Any:
    """The same of one source, which has rows of every kind."""
    change = _change(events, columns, id_type)
    own = (columns.kind, columns.subscription_id, columns.expression, columns.expires_at)
    attributes = [F.col(quoted(name)) for name in events.columns if name not in own]
    is_event = F.coalesce(F.col(quoted(columns.kind)) == "event", F.lit(False))
    return events.select(
        F.when(is_event, F.struct(*attributes)).alias("event"),
        F.when(~is_event, change).alias("change"),
    )


def _change(source: Any, columns: ChangeColumns, id_type: str) -> Any:
    schema = source.schema
    needed = [columns.kind, columns.subscription_id, columns.expression]
    for name in [*needed, *([columns.order] if columns.order else [])]:
        if source.columns.count(name) != 1:
            raise InputError(
                f"the DataFrame of changes has no single column {name!r}; it has:"
                f" {', '.join(source.columns)}"
            )
    for name in (columns.kind, columns.expression):
        _check(schema, name, StringType, "string")
    is_text = id_type == "string"
    _check(schema, columns.subscription_id, StringType if is_text else IntegralType, id_type)
    ends: Any = F.lit(None).cast("bigint")
    if columns.expires_at in source.columns:
        _check(schema, columns.expires_at, TimestampType, "timestamp")
        ends = F.unix_micros(F.col(quoted(columns.expires_at)))
    order: Any = F.lit(0) if columns.order is None else F.col(quoted(columns.order))
    return F.struct(
        F.col(quoted(columns.kind)).alias("kind"),
        F.col(quoted(columns.subscription_id)).cast(id_type).alias("id"),
        F.col(quoted(columns.expression)).alias("expression"),
        ends.alias("expires_at"),
        order.alias("order"),
    ).alias("change")


def _check(schema: StructType, name: str, kind: type, wanted: str) -> None:
    found = schema[name].dataType
    if not isinstance(found, kind):
        raise InputError(
            f"the column {name!r} of changes is {found.simpleString()}, and must be {wanted}; cast"
            " it"
        )


def changes_of(batch: Any) -> tuple[list[Change], list[RefusedChange]]:
    """The changes of a batch, in their order; those of which the order cannot be known are refused.

    Changes that are equal count once."""
    table = batch.filter("change is not null").select("change.*").toArrow()
    rows = [Change(**row) for row in table.to_pylist()]
    by_place: dict[Any, set[Change]] = defaultdict(set)
    for change in rows:
        by_place[change.id, change.order].add(change)
    good: list[Change] = []
    refused: list[RefusedChange] = []
    for (_, order), some in by_place.items():
        reason = ""
        if order is None:
            reason = "it has no order: fill the column that ChangeColumns.order names"
        elif len(some) > 1:
            reason = (
                "several changes of this id came in one batch, and which is the last cannot be"
                " known: name a column that tells by ChangeColumns(order=…)"
            )
        if reason:
            refused += [refusal(change, reason) for change in some]
        else:
            good += some
    return sorted(good, key=lambda change: change.order), sorted(refused, key=repr)


def refusal(change: Change, reason: str) -> RefusedChange:
    return RefusedChange(change.kind, change.id, change.expression, reason)


def refusal_rows(spark: Any, refused: Sequence[RefusedChange], id_type: str) -> Any:
    """A DataFrame of them."""
    schema = f"kind string, subscription_id {id_type}, expression string, reason string"
    return spark.createDataFrame(list(refused), schema).coalesce(1)
