"""Changes of subscriptions as rows of a stream: their columns, and how they are read.

    change             subscribe, update or unsubscribe
    subscription_id    of the type that the engine's ids have
    expression         null for unsubscribe
    expires_at         a timestamp; the column may be missing
    sequence           orders the changes of one id in one batch; the column may be missing

Events and changes come from two sources and become one stream. A batch is what Spark takes from
both at a time:

    event: struct | change: struct      one of them null
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StringType, StructType, TimestampType

from matchmill.engine.subscription_table import Id
from matchmill.errors import InputError
from matchmill.spark.layouts import check_columns
from matchmill.spark.matching.quarantined import QUARANTINE

__all__ = ["Change", "RejectedChange", "changes_of", "rejected_rows", "with_changes"]


class Change(NamedTuple):
    """One change of a subscription."""

    change: str | None
    id: Id | None
    expression: str | None
    expires_at: int | None  # microseconds since 1970 in UTC
    sequence: Any


class RejectedChange(NamedTuple):
    """A change that was not made, and why."""

    change: Change
    reason: str


def with_changes(events: Any, changes: Any, id_type: str) -> Any:
    """Unite events and the changes of another source to one stream."""
    if not changes.isStreaming:
        raise InputError("changes are a streaming DataFrame, as of spark.readStream")
    packed = changes.select(
        F.lit(None).cast(events.schema).alias("event"), _change(changes, id_type)
    )
    kind = packed.schema["change"].dataType
    return events.select(
        F.struct("*").alias("event"), F.lit(None).cast(kind).alias("change")
    ).union(packed)


def _change(source: Any, id_type: str) -> Any:
    schema = source.schema
    check_columns(source, ("change", "subscription_id", "expression"), "the DataFrame of changes")
    for name in ("change", "expression"):
        _check(schema, name, StringType, "string")
    is_text = id_type == "string"
    _check(schema, "subscription_id", StringType if is_text else IntegralType, id_type)
    ends: Any = F.lit(None).cast("bigint")
    if "expires_at" in source.columns:
        _check(schema, "expires_at", TimestampType, "timestamp")
        ends = F.unix_micros("expires_at")
    sequence: Any = F.col("sequence") if "sequence" in source.columns else F.lit(0)
    return F.struct(
        "change",
        F.col("subscription_id").cast(id_type).alias("id"),
        "expression",
        ends.alias("expires_at"),
        sequence.alias("sequence"),
    ).alias("change")


def _check(schema: StructType, name: str, kind: type, wanted: str) -> None:
    found = schema[name].dataType
    if not isinstance(found, kind):
        raise InputError(
            f"the column {name!r} of changes is {found.simpleString()}, and must be {wanted}; cast"
            " it"
        )


def changes_of(batch: Any) -> tuple[list[Change], list[RejectedChange]]:
    """Read the changes of a batch, in their order.

    Changes that are equal count once. Those whose order cannot be known are rejected.
    """
    table = batch.filter("change is not null").select("change.*").toArrow()
    by_sequence: dict[Any, set[Change]] = defaultdict(set)
    for row in table.to_pylist():
        change = Change(**row)
        by_sequence[change.id, change.sequence].add(change)
    good: list[Change] = []
    rejected: list[RejectedChange] = []
    for (_, sequence), some in by_sequence.items():
        reason = ""
        if sequence is None:
            reason = "its sequence is null"
        elif len(some) > 1:
            reason = (
                "several changes of this id came in one batch, and which is the last cannot be"
                " known: give them different numbers in a column `sequence`"
            )
        if reason:
            rejected += [RejectedChange(change, reason) for change in some]
        else:
            good += some
    return sorted(good, key=lambda change: change.sequence), sorted(rejected, key=repr)


def rejected_rows(spark: Any, rejected: Sequence[RejectedChange]) -> Any:
    """Return a DataFrame of rejected changes, in the schema of every quarantine."""
    rows = []
    for change, reason in rejected:
        raw = {
            "change": change.change, "subscription_id": change.id, "expression": change.expression,
        }  # fmt: skip
        known = None if change.id is None else str(change.id)
        rows.append(("change", None, None, None, known, reason, json.dumps(raw)))
    return spark.createDataFrame(rows, QUARANTINE).coalesce(1)
