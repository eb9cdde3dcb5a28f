"""DataFrames of subscriptions: the columns that are needed, of types that are allowed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StringType

from matchmill.errors import DuplicateIdError, InputError
from matchmill.io.reports import Rejected
from matchmill.spark.layouts import check_columns, quoted

__all__ = [
    "checked_subscriptions",
    "duplicate_error",
    "rejected_error",
    "rejected_row",
    "warn_of_rejected",
]


def checked_subscriptions(
    subscriptions: Any, subscription_id: str, expression: str
) -> tuple[Any, str]:
    """Return (id, expression) and Spark's name of the ids' type, which is bigint or string."""
    if not hasattr(subscriptions, "sparkSession"):
        raise InputError(
            "subscriptions are a DataFrame, a ShardedEngine or the path of an engine, not a"
            f" {type(subscriptions).__name__}"
        )
    names = (subscription_id, expression)
    check_columns(subscriptions, names, "the DataFrame of subscriptions")
    kind = subscriptions.schema[subscription_id].dataType
    if not isinstance(kind, (IntegralType, StringType)):
        raise InputError(
            f"ids of subscriptions are strings or integers, and {subscription_id!r} is"
            f" {kind.simpleString()}; cast it"
        )
    if not isinstance(subscriptions.schema[expression].dataType, StringType):
        found = subscriptions.schema[expression].dataType.simpleString()
        raise InputError(f"expressions are strings, and {expression!r} is {found}")
    id_type = "bigint" if isinstance(kind, IntegralType) else "string"
    return (
        subscriptions.select(
            F.col(quoted(subscription_id)).cast(id_type).alias("id"),
            F.col(quoted(expression)).cast("string").alias("expression"),
        ),
        id_type,
    )


def duplicate_error(ids: Sequence[Any]) -> DuplicateIdError:
    """Return the error about ids that occur twice."""
    some = ", ".join(repr(i) for i in list(ids)[:10])
    return DuplicateIdError(
        f"several subscriptions have the same id: {some}{' …' if len(ids) > 10 else ''};"
        " keep one of each: matchmill.spark.ingest_subscriptions does"
    )


def rejected_row(subscription_id: Any, reason: str) -> Rejected:
    """Return the record of a rejected subscription; rows of a DataFrame have no position."""
    return Rejected("subscription", -1, None, None, subscription_id, reason)


def rejected_error(n_rejected: int, example_id: Any, reason: str) -> InputError:
    """Return the error about subscriptions that cannot be read."""
    return InputError(
        f"{n_rejected:,} subscriptions cannot be read, such as {example_id!r}: {reason}; correct"
        " them, or leave them out by strict=False"
    )


def warn_of_rejected(n_rejected: int, example_id: Any, reason: str) -> None:
    """Warn the caller of `match` that some subscriptions are left out."""
    warnings.warn(
        f"{n_rejected:,} subscriptions cannot be read and match nothing, such as {example_id!r}:"
        f" {reason}; matchmill.spark.ingest_subscriptions lists them, strict=True raises",
        stacklevel=3,
    )
