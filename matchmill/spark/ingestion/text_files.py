"""Files of text as DataFrames: CSV with a header, and JSON lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from matchmill.errors import InputError
from matchmill.spark.errors import naming_files

__all__ = ["BAD_LINE", "CsvRows", "format_of", "read_csv", "read_lines", "session_of"]

BAD_LINE = "_bad_line"


class CsvRows(NamedTuple):
    """The rows of CSV files; of a line that is no row, `_bad_line` has the text."""

    rows: Any
    names: list[str]

    @property
    def problem(self) -> str:
        """Why a line is no row."""
        return f"the line does not have {len(self.names)} columns, or a quote is not closed"

    @property
    def raw_line(self) -> Any:
        """The column that shows a bad line as JSON."""
        return F.to_json(F.struct(F.col(BAD_LINE).alias("line")))


def read_csv(
    spark: Any, path: str, *, infer_types: bool, options: Mapping[str, Any] | None = None
) -> CsvRows:
    """Read CSV files: a header, quotes inside quotes are doubled; all columns are text or inferred.

    Spark's own defaults would cut a line with too many columns, and read a file with another header
    as if it had the first one's.
    """
    # Without columns cut off, a line is as good or as bad whatever is selected.
    reader = (
        spark.read.options(**dict(options or {}))
        .option("header", True)
        .option("escape", '"')
        .option("columnPruning", False)
    )
    with naming_files():
        found = reader.option("inferSchema", infer_types).csv(path).schema
        schema = StructType([*found.fields, StructField(BAD_LINE, StringType())])
        rows = (
            reader.schema(schema)
            .option("enforceSchema", False)  # files with other headers are an error
            .option("mode", "PERMISSIVE")
            .option("columnNameOfCorruptRecord", BAD_LINE)
            .csv(path)
        )
    return CsvRows(rows, list(found.names))


def read_lines(spark: Any, path: str, options: Mapping[str, Any] | None = None) -> Any:
    """Read lines of text as a column `value`; lines without text are left out."""
    with naming_files():
        lines = spark.read.options(**dict(options or {})).text(path)
    return lines.where(F.trim("value") != "")


def format_of(path: str, format: str | None, known: tuple[str, ...]) -> str:
    """Return the format of files, by default what the path ends in."""
    chosen = format or path.rstrip("/").removesuffix(".gz").rpartition(".")[2]
    chosen = "jsonl" if chosen == "ndjson" else chosen
    if chosen not in known:
        raise InputError(f"unknown format {chosen!r}; give format=…, one of: {', '.join(known)}")
    return chosen


def session_of(spark: Any) -> Any:
    """Return the session to read files with: the given one, or the active one."""
    found = spark or SparkSession.getActiveSession()
    if found is None:
        raise InputError("there is no Spark session to read files with: give it as spark=…")
    return found
