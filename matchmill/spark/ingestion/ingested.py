"""What ingestion gives: the rows that are good, those that are not, and proof that none is lost."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from matchmill.errors import MatchmillError
from matchmill.spark.read_errors import naming_files

__all__ = ["Counts", "Ingested", "came_in", "keep", "source_column"]


class Counts(NamedTuple):
    """Rows that came in, and where they went."""

    n_in: int
    n_accepted: int
    n_quarantined: int


class Ingested:
    """`accepted` and `quarantine`, both DataFrames over rows that were checked once.

    What was checked is kept by Spark, or in the folder given as `work`; `release`, or leaving a
    `with` block, lets go of it. `quarantine` has columns id, reason, raw (the row as JSON) and
    source (the file, where it is known)."""

    def __init__(
        self, checked: Any, accepted: Any, quarantine: Any, kept: Sequence[Any] = ()
    ) -> None:
        self.accepted = accepted
        self.quarantine = quarantine
        self._checked = checked
        self._kept = (checked, *kept)

    def counts(self) -> Counts:
        """How many rows came in, were accepted and set aside; an error if they do not add up."""
        with naming_files():
            n_accepted, n_quarantined = self.accepted.count(), self.quarantine.count()
            n_in = self._checked.agg(F.sum("n_in").alias("n")).first()["n"] or 0
        counts = Counts(n_in, n_accepted, n_quarantined)
        if counts.n_in != counts.n_accepted + counts.n_quarantined:
            raise MatchmillError(
                f"{counts.n_in:,} rows came in, but {counts.n_accepted:,} were accepted and"
                f" {counts.n_quarantined:,} set aside: the input was not the same when Spark read a"
                " part of it again; give a folder as `work`, so that it is read once"
            )
        return counts

    def write(self, path: str) -> Counts:
        """Write both as Parquet, to `path`/quarantine and `path`/accepted; neither may exist.

        The input is not read again. Where there is an `accepted`, there is the whole quarantine."""
        with naming_files():
            self.quarantine.write.parquet(f"{path}/quarantine")
            self.accepted.write.parquet(f"{path}/accepted")
        return self.counts()

    def release(self) -> None:
        """Free what Spark has kept. The DataFrames still work, but read the input again."""
        for frame in self._kept:
            frame.unpersist()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def came_in(n_rows: int) -> pa.Array:
    """Column `n_in` of a batch of checked rows: how many rows it had, in the first of them.

    (Spark's own observations would count before the workers do, but give no number, or an error,
    where Spark finds out that there are no rows.)"""
    return pa.array([n_rows, *[0] * (n_rows - 1)][:n_rows], pa.int64())


def source_column(df: Any) -> Any:
    """The file that a row comes from, as column `source`; null where that is not known."""
    source = F.input_file_name()
    try:
        df.select(source).schema  # noqa: B018 - has Spark look at it
    except AnalysisException:  # of several files, such as a join has, Spark knows none
        return F.lit(None).cast("string").alias("source")
    return F.when(source != "", source).alias("source")


def keep(df: Any, work: str | None) -> Any:
    """The same rows, computed once: now, into a folder, or by Spark when they are first needed."""
    if work is None:
        return df.persist()
    with naming_files():
        df.write.parquet(work)
    return df.sparkSession.read.parquet(work)
