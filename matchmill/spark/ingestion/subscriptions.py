"""`ingest_subscriptions`: a DataFrame or files in, checked rows and rejected ones out.

    df ──► id, expression, raw, source ──► mapInArrow: parse, check ──► kept ─┬─► accepted
                                                                             └─► quarantine

Every row is parsed once; both results, the counts and `write` read what was kept.

Of several good rows with one id one is accepted: the one that is greatest in `latest_by`, where
that is given, else the one whose expression comes first in the order of texts. Both are the same
however Spark divides the rows. The others are rejected.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F

from matchmill.errors import InputError
from matchmill.language.dialects.registry import MATCHMILL, check_dialect
from matchmill.operators.modules import import_operators, module_names
from matchmill.settings import DEFAULT_SETTINGS, Settings
from matchmill.spark.errors import naming_files
from matchmill.spark.ingestion.ingested import Ingested, keep, source_column
from matchmill.spark.ingestion.subscription_rows import CHECKED, Checks, checked_batches
from matchmill.spark.ingestion.text_files import (
    BAD_LINE,
    format_of,
    read_csv,
    read_lines,
    session_of,
)
from matchmill.spark.layouts import check_columns, quoted
from matchmill.spark.matching.quarantined import quarantine_rows
from matchmill.spark.worker_memory import worker_task

__all__ = ["SUBSCRIPTION_FORMATS", "ingest_subscriptions"]

SUBSCRIPTION_FORMATS = ("csv", "jsonl", "parquet")

_INTEGERS = ("byte", "short", "integer", "long")
_TEXTS = ("string", "char", "varchar", "void")
_CONDITION_COLUMNS = ("attribute", "operator", "values")


def ingest_subscriptions(
    subscriptions: Any,
    *,
    subscription_id: str = "subscription_id",
    expression: str = "expression",
    dialect: str = MATCHMILL,
    format: str | None = None,
    integer_ids: bool = False,
    latest_by: str | None = None,
    operators: str | Sequence[str] | None = None,
    work: str | None = None,
    settings: Settings = DEFAULT_SETTINGS,
    spark: Any = None,
) -> Ingested:
    """Check subscriptions; accept those that can be read, and keep the others with their reasons.

    Rows hold an id and an expression (text, or a JSON pattern as text). A DataFrame without that
    column but with `attribute`, `operator` and `values` holds one condition per row, and the rows
    of one id are one conjunction; values are an array, or JSON.

    Parameters
    ----------
    subscriptions
        A DataFrame, or the path of a file, a folder or a pattern.
    subscription_id, expression
        The names of the columns.
    dialect
        The language of text and patterns, as for `Engine.subscribe_many`. What is
        accepted says its dialect itself.
    format
        Of files: "csv" (with a header; quotes inside quotes are doubled), "jsonl" or "parquet"; by
        default what the path ends in.
    integer_ids
        Ids in CSV and JSON lines are integers, not texts. In a DataFrame they keep their type.
    latest_by
        Of rows with one id, accept the one that is greatest in this column.
    operators
        Modules that register the operators that expressions call.
    work
        A folder for what was checked; without it Spark keeps that.
    settings
        Limits of expressions.
    spark
        The session to read files with; by default the active one.

    Returns
    -------
    Ingested
        `accepted` has `subscription_id` and `expression`.

    Examples
    --------
    >>> with ms.ingest_subscriptions("alerts.csv") as ingested:  # doctest: +SKIP
    ...     engine = ms.build(ingested.accepted, "alerts.mill")
    """
    check_dialect(dialect)
    names = (subscription_id, expression)
    modules = module_names(operators)
    import_operators(modules)
    if isinstance(subscriptions, (str, os.PathLike)):
        path = os.fspath(subscriptions)
        chosen = format_of(path, format, SUBSCRIPTION_FORMATS)
        given = _read(session_of(spark), path, chosen, names, integer_ids, latest_by)
    elif expression not in subscriptions.columns and "attribute" in subscriptions.columns:
        if latest_by is not None:
            raise InputError("latest_by is for rows that hold whole expressions, not conditions")
        given = _conditions(subscriptions, subscription_id)
    else:
        given = _expressions(subscriptions, names, latest_by)
    if given.form == "conditions":
        dialect = MATCHMILL
    checks = Checks(given.form, given.integer_ids, names, dialect, modules, settings)
    return _ingested(given.rows, checks, latest_by is not None, work)


# -- rows for the workers -------------------------------------------------------------------------


class _Given(NamedTuple):
    """Rows as `subscription_rows.py` takes them."""

    rows: Any
    form: str  # "expressions", "lines" or "conditions"
    integer_ids: bool


def _read(
    spark: Any,
    path: str,
    form: str,
    names: tuple[str, str],
    integer_ids: bool,
    latest_by: str | None,
) -> _Given:
    if form == "parquet":
        with naming_files():
            df = spark.read.parquet(path)
        return _expressions(df, names, latest_by)
    if form == "csv":
        return _Given(_csv_rows(spark, path, names, latest_by), "expressions", integer_ids)
    if latest_by is not None:
        raise InputError("latest_by needs columns: read the lines with spark.read.json first")
    lines = read_lines(spark, path)
    rows = lines.select(F.col("value").alias("line"), *_source_and_latest(lines, None))
    return _Given(rows, "lines", integer_ids)


def _expressions(df: Any, names: tuple[str, str], latest_by: str | None) -> _Given:
    subscription_id, expression = names
    check_columns(df, [*names, *([latest_by] if latest_by else [])])
    kind = df.schema[expression].dataType.typeName()
    if kind not in _TEXTS:
        raise InputError(
            f"an expression is text, but {expression!r} is of type {kind}; JSON patterns are text,"
            " too: to_json makes it"
        )
    rows = df.select(
        F.col(quoted(subscription_id)).alias("id"),
        F.col(quoted(expression)).cast("string").alias("expression"),
        F.lit(None).cast("string").alias("problem"),
        _raw(df.columns).alias("raw"),
        *_source_and_latest(df, latest_by),
    )
    return _Given(rows, "expressions", _has_integer_ids(df, subscription_id))


def _raw(columns: Sequence[str]) -> Any:
    return F.to_json(F.struct(*map(quoted, columns)), {"ignoreNullFields": "false"})


def _has_integer_ids(df: Any, subscription_id: str) -> bool:
    kind = df.schema[subscription_id].dataType.typeName()
    if kind not in (*_INTEGERS, *_TEXTS):
        raise InputError(
            f"an id is a text or an integer, but {subscription_id!r} is of type {kind}; cast it"
        )
    return kind in _INTEGERS


def _source_and_latest(df: Any, latest_by: str | None) -> list[Any]:
    columns = [source_column(df)]
    return columns if latest_by is None else [*columns, F.col(quoted(latest_by)).alias("latest")]


def _conditions(df: Any, subscription_id: str) -> _Given:
    """Collect all conditions of an id in one row. Rows without an id stay apart from each other."""
    check_columns(df, [subscription_id, *_CONDITION_COLUMNS])
    source = source_column(df)
    rows = df.select(
        F.col(quoted(subscription_id)).alias("id"),
        F.when(F.col(quoted(subscription_id)).isNull(), F.monotonically_increasing_id()).alias(
            "apart"
        ),
        F.struct(*_CONDITION_COLUMNS).alias("c"),
        source,
    )
    grouped = rows.groupBy("id", "apart").agg(
        F.collect_list("c").alias("conditions"), F.min("source").alias("source")
    )
    rows = grouped.select("id", "conditions", _raw(["id", "conditions"]).alias("raw"), "source")
    return _Given(rows, "conditions", _has_integer_ids(df, subscription_id))


def _csv_rows(spark: Any, path: str, names: tuple[str, str], latest_by: str | None) -> Any:
    found = read_csv(spark, path, infer_types=False)
    df = found.rows
    check_columns(df.drop(BAD_LINE), [*names, *([latest_by] if latest_by else [])], path)
    is_bad = F.col(BAD_LINE).isNotNull()
    return df.select(
        F.col(quoted(names[0])).alias("id"),
        F.col(quoted(names[1])).alias("expression"),
        F.when(is_bad, found.problem).alias("problem"),
        F.when(is_bad, found.raw_line).otherwise(_raw(found.names)).alias("raw"),
        *_source_and_latest(df, latest_by),
    )


# -- the result -----------------------------------------------------------------------------------


def _ingested(rows: Any, checks: Checks, has_latest: bool, work: str | None) -> Ingested:
    schema = f"id {'bigint' if checks.integer_ids else 'string'}, {CHECKED}"
    if has_latest:
        schema += f", latest {rows.schema['latest'].dataType.simpleString()}"
    checked = rows.mapInArrow(worker_task(lambda batches: checked_batches(batches, checks)), schema)
    kept = keep(checked.withColumn("row", F.monotonically_increasing_id()), work)
    good, bad = kept.where("reason is null"), kept.where("reason is not null")
    surplus = _surplus(good, has_latest).persist()
    accepted = good.join(surplus, "row", "left_anti").select(
        F.col("id").alias("subscription_id"), "expression"
    )
    columns = ("shown_id", "reason", "raw", "source")
    rejected = bad.select(*columns).unionByName(
        kept.drop("reason").join(surplus, "row").select(*columns)
    )
    quarantine = quarantine_rows(
        rejected, "subscription", id="shown_id", raw="raw", source="source"
    )
    return Ingested(kept, accepted, quarantine, kept=[surplus])


def _surplus(good: Any, has_latest: bool) -> Any:
    """Find good rows whose id another row has, as (row, reason).

    Only ids go through the first shuffle, and mostly none is left for the second.
    """
    repeated = good.groupBy("id").count().where("count > 1").drop("count")
    order = [F.col("expression"), F.col("raw"), F.col("row")]
    rule = "the one whose expression comes first in order was accepted"
    if has_latest:
        order = [F.col("latest").desc_nulls_last(), *order]
        rule = "the latest was accepted"
    ranked = good.join(repeated, "id").withColumn(
        "rank", F.row_number().over(Window.partitionBy("id").orderBy(*order))
    )
    reason = F.concat(F.lit("the id "), F.col("shown_id"), F.lit(f" occurs more than once; {rule}"))
    return ranked.where("rank > 1").select("row", reason.alias("reason"))
