"""Subscriptions into Spark: any DataFrame or files in, checked rows out, bad ones set aside.

    df ──► id, expression, raw, source ──► mapInArrow: parse, check ──► kept ─┬─► accepted
                                                                             └─► quarantine

Every row is parsed once; both results, the counts and `write` read what was kept.

Of several good rows with one id one is accepted: the one that is greatest in `latest_by`, where
that is given, else the one whose expression comes first in the order of texts. Both are the same
however Spark divides the rows. The others are set aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from pyspark.sql import Window
from pyspark.sql import functions as F

from matchmill.errors import InputError
from matchmill.settings import DEFAULT_SETTINGS, Settings
from matchmill.spark.ingestion.ingested import Counts, Ingested, keep, source_column
from matchmill.spark.ingestion.subscription_rows import CHECKED, Checks, checked_batches
from matchmill.spark.read_errors import naming_files

__all__ = ["Counts", "Ingested", "ingest_subscriptions", "read_subscriptions"]

Format: TypeAlias = Literal["csv", "jsonl", "parquet"]

_INTEGERS = ("byte", "short", "integer", "long")
_BAD_LINE = "_bad_line"


def ingest_subscriptions(
    df: Any,
    *,
    id_column: str = "id",
    expression_column: str | None = None,
    attribute_column: str = "attribute",
    operator_column: str = "operator",
    values_column: str = "values",
    latest_by: str | None = None,
    operators: Sequence[str] = (),
    work: str | None = None,
    settings: Settings = DEFAULT_SETTINGS,
) -> Ingested:
    """Check the subscriptions of a DataFrame. `accepted` has subscription_id and expression.

    Rows hold an id and an expression (text, or a JSON pattern as text), in `expression_column`,
    by default "expression". Without such a column, each row is a condition: (id, attribute,
    operator, values), and the rows of one id are one conjunction; values are an array, or JSON.
    Ids are texts or integers and stay so. `operators` are modules that register the operators
    which expressions call. `work` is a folder for what was checked; without it Spark keeps that.
    """
    column = expression_column or "expression"
    if expression_column is None and column not in df.columns:
        needed = [id_column, attribute_column, operator_column, values_column]
        _check_columns(df, needed)
        if latest_by is not None:
            raise InputError("latest_by is for rows that hold whole expressions, not conditions")
        rows = _grouped_conditions(df, needed)
        form = "conditions"
    else:
        _check_columns(df, [id_column, column, *([latest_by] if latest_by else [])])
        kind = df.schema[column].dataType.typeName()
        if kind not in ("string", "char", "varchar", "void"):
            raise InputError(
                f"an expression is text, but {column!r} is of type {kind}; JSON patterns are text,"
                " too: to_json makes it"
            )
        everything = F.to_json(F.struct(*map(_name, df.columns)), {"ignoreNullFields": "false"})
        rows = df.select(
            F.col(_name(id_column)).alias("id"),
            F.col(_name(column)).cast("string").alias("expression"),
            F.lit(None).cast("string").alias("problem"),
            everything.alias("raw"),
            *_source_and_latest(df, latest_by),
        )
        form = "expressions"
    checks = Checks(form, _has_integer_ids(df, id_column), ("", ""), tuple(operators), settings)
    return _ingested(rows, checks, latest_by is not None, work)


def read_subscriptions(
    spark: Any,
    path: str,
    format: Format | None = None,
    *,
    id_column: str = "id",
    expression_column: str = "expression",
    integer_ids: bool = False,
    latest_by: str | None = None,
    operators: Sequence[str] = (),
    work: str | None = None,
    settings: Settings = DEFAULT_SETTINGS,
) -> Ingested:
    """Check the subscriptions in files: `path` is a file, a folder or a pattern.

    `format` is "csv" (with a header; quotes inside quotes are doubled), "jsonl" or "parquet", by
    default what the path ends in. In CSV and JSON lines ids are texts, with `integer_ids` integers.
    Rows with too many or too few columns and lines that are no JSON are set aside as well.
    """
    chosen = format or path.rstrip("/").removesuffix(".gz").rpartition(".")[2]
    if chosen == "parquet":
        with naming_files():
            df = spark.read.parquet(path)
        return ingest_subscriptions(
            df,
            id_column=id_column,
            expression_column=expression_column,
            latest_by=latest_by,
            operators=operators,
            work=work,
            settings=settings,
        )
    names = (id_column, expression_column)
    if chosen == "csv":
        rows, form = _csv_rows(spark, path, names, latest_by), "expressions"
    elif chosen == "jsonl":
        if latest_by is not None:
            raise InputError("latest_by needs columns: read the lines with spark.read.json first")
        lines = spark.read.text(path).where(F.trim("value") != "")
        rows = lines.select(F.col("value").alias("line"), *_source_and_latest(lines, None))
        form = "lines"
    else:
        raise InputError(f"unknown format {chosen!r}; give format='csv', 'jsonl' or 'parquet'")
    checks = Checks(form, integer_ids, names, tuple(operators), settings)
    return _ingested(rows, checks, latest_by is not None, work)


# -- rows for the workers -------------------------------------------------------------------------


def _name(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _check_columns(df: Any, needed: Sequence[str]) -> None:
    for column in needed:
        if df.columns.count(column) != 1:
            raise InputError(
                f"there is no single column {column!r}; there are: {', '.join(df.columns)}"
            )


def _has_integer_ids(df: Any, id_column: str) -> bool:
    kind = df.schema[id_column].dataType.typeName()
    if kind not in (*_INTEGERS, "string", "char", "varchar", "void"):
        raise InputError(
            f"an id is a text or an integer, but {id_column!r} is of type {kind}; cast it"
        )
    return kind in _INTEGERS


def _source_and_latest(df: Any, latest_by: str | None) -> list[Any]:
    columns = [source_column(df)]
    return columns if latest_by is None else [*columns, F.col(_name(latest_by)).alias("latest")]


def _grouped_conditions(df: Any, needed: Sequence[str]) -> Any:
    """All conditions of an id in one row. Rows without an id stay apart from each other."""
    identifier, *parts = map(_name, needed)
    apart = F.when(F.col(identifier).isNull(), F.monotonically_increasing_id())
    source = source_column(df)
    rows = df.select(
        F.col(identifier).alias("id"), apart.alias("apart"), F.struct(*parts).alias("c"), source
    )
    grouped = rows.groupBy("id", "apart").agg(
        F.collect_list("c").alias("conditions"), F.min("source").alias("source")
    )
    raw = F.to_json(F.struct("id", "conditions"), {"ignoreNullFields": "false"})
    return grouped.select("id", "conditions", raw.alias("raw"), "source")


def _csv_rows(spark: Any, path: str, names: tuple[str, str], latest_by: str | None) -> Any:
    with naming_files():
        reader = spark.read.option("header", True).option("escape", '"')
        header = reader.csv(path)
        _check_columns(header, [*names, *([latest_by] if latest_by else [])])
        schema = ", ".join(f"{_name(column)} string" for column in (*header.columns, _BAD_LINE))
        df = (
            reader.schema(schema)
            .option("enforceSchema", False)  # files with other headers are an error
            .option("mode", "PERMISSIVE")
            .option("columnNameOfCorruptRecord", _BAD_LINE)
            .csv(path)
        )
    bad = F.col(_BAD_LINE)
    columns = [_name(column) for column in header.columns]
    problem = F.when(
        bad.isNotNull(), f"the line does not have {len(columns)} columns, or a quote is not closed"
    )
    keep_nulls = {"ignoreNullFields": "false"}
    raw = F.when(bad.isNotNull(), F.to_json(F.struct(bad.alias("line")))).otherwise(
        F.to_json(F.struct(*columns), keep_nulls)
    )
    return df.select(
        F.col(_name(names[0])).alias("id"),
        F.col(_name(names[1])).alias("expression"),
        problem.alias("problem"),
        raw.alias("raw"),
        *_source_and_latest(df, latest_by),
    )


# -- the result -----------------------------------------------------------------------------------


def _ingested(rows: Any, checks: Checks, has_latest: bool, work: str | None) -> Ingested:
    schema = f"id {'bigint' if checks.integer_ids else 'string'}, {CHECKED}"
    if has_latest:
        schema += f", latest {rows.schema['latest'].dataType.simpleString()}"
    checked = rows.mapInArrow(lambda batches: checked_batches(batches, checks), schema)
    kept = keep(checked.withColumn("row", F.monotonically_increasing_id()), work)
    good, bad = kept.where("reason is null"), kept.where("reason is not null")
    surplus = _surplus(good, has_latest).persist()
    accepted = good.join(surplus, "row", "left_anti").select(
        F.col("id").alias("subscription_id"), "expression"
    )
    set_aside = bad.select("shown_id", "reason", "raw", "source").unionByName(
        kept.drop("reason").join(surplus, "row").select("shown_id", "reason", "raw", "source")
    )
    quarantine = set_aside.withColumnRenamed("shown_id", "id")
    return Ingested(kept, accepted, quarantine, [surplus])


def _surplus(good: Any, has_latest: bool) -> Any:
    """(row, reason) of good rows whose id another row has. Only ids go through the first shuffle,
    and mostly none is left for the second."""
    repeated = good.groupBy("id").count().where("count > 1").drop("count")
    order = [F.col("expression"), F.col("raw"), F.col("row")]
    rule = "the one whose expression comes first in order was accepted"
    if has_latest:
        order = [F.col("latest").desc_nulls_last(), *order]
        rule = "the latest was accepted"
    ranked = good.join(repeated, "id").withColumn(
        "place", F.row_number().over(Window.partitionBy("id").orderBy(*order))
    )
    reason = F.concat(F.lit("the id "), F.col("shown_id"), F.lit(f" occurs more than once; {rule}"))
    return ranked.where("place > 1").select("row", reason.alias("reason"))
