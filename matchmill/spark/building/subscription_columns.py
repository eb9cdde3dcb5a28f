"""DataFrames of subscriptions: the columns that are needed, of types that are allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StringType

from matchmill.errors import DuplicateIdError, InputError
from matchmill.spark.layouts import quoted

__all__ = ["checked_subscriptions", "duplicate_error", "refusal_error"]


def checked_subscriptions(
    subscriptions: Any, id_column: str, expression_column: str
) -> tuple[Any, str]:
    """(id, expression) and Spark's name of the ids' type, which is bigint or string."""
    for name in (id_column, expression_column):
        if subscriptions.columns.count(name) != 1:
            raise InputError(
                f"the DataFrame of subscriptions has no single column {name!r}; it has:"
                f" {', '.join(subscriptions.columns)}"
            )
    kind = subscriptions.schema[id_column].dataType
    if not isinstance(kind, (IntegralType, StringType)):
        raise InputError(
            f"ids of subscriptions are strings or integers, and {id_column!r} is"
            f" {kind.simpleString()}; cast it"
        )
    if not isinstance(subscriptions.schema[expression_column].dataType, StringType):
        found = subscriptions.schema[expression_column].dataType.simpleString()
        raise InputError(f"expressions are strings, and {expression_column!r} is {found}")
    id_type = "bigint" if isinstance(kind, IntegralType) else "string"
    return (
        subscriptions.select(
            F.col(quoted(id_column)).cast(id_type).alias("id"),
            F.col(quoted(expression_column)).cast("string").alias("expression"),
        ),
        id_type,
    )


def duplicate_error(ids: Sequence[Any]) -> DuplicateIdError:
    some = ", ".join(repr(i) for i in list(ids)[:10])
    return DuplicateIdError(
        f"several subscriptions have the same id: {some}{' …' if len(ids) > 10 else ''};"
        " keep one of each, for which is meant cannot be known"
    )


def refusal_error(n_refused: int, identifier: Any, reason: str) -> InputError:
    return InputError(
        f"{n_refused:,} subscriptions cannot be read, as {identifier!r}: {reason}; mend them, or"
        " set such aside by strict=False"
    )
