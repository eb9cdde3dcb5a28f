"""What ingestion gives: the rows that are good, those that are not, and proof that none is lost."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from matchmill.errors import MatchmillError
from matchmill.spark.errors import naming_files

__all__ = ["Counts", "Ingested", "came_in", "keep", "source_column"]


class Counts(NamedTuple):
    """Count the rows that came in, and where they went.

    Examples
    --------
    >>> from matchmill import spark as ms
    >>> ms.Counts(n_in=5, n_accepted=3, n_rejected=2).n_rejected
    2
    """

    n_in: int
    n_accepted: int
    n_rejected: int


class Ingested:
    """Hold the accepted rows and the quarantine, two DataFrames over rows that were checked once.

    What was checked is kept by Spark, or in the folder given as `work`; `release`, or leaving a
    `with` block, frees it. `quarantine` has the columns `kind`, `row`, `line`, `source` (the file,
    where Spark knows it), `id` (as text), `reason` and `raw` (the row as JSON). Rows of a DataFrame
    have no position, so `row` and `line` are null.

    Examples
    --------
    >>> with ms.ingest_subscriptions(rows) as ingested:  # doctest: +SKIP
    ...     ingested.accepted.show()
    ...     ingested.quarantine.select("id", "reason").show()
    """

    def __init__(
        self,
        checked: Any,
        accepted: Any,
        quarantine: Any,
        *,
        bad_rows: Any = None,
        kept: Sequence[Any] = (),
    ) -> None:
        """`bad_rows` are rejected rows, in the schema of the quarantine, beside those checked."""
        self.accepted = accepted
        self._checked = checked
        self._bad_rows = None if bad_rows is None else bad_rows.persist()
        more = () if self._bad_rows is None else (self._bad_rows,)
        self.quarantine = quarantine if not more else quarantine.unionByName(self._bad_rows)
        self._kept = (checked, *kept, *more)

    def counts(self) -> Counts:
        """Count the rows that came in, were accepted and were rejected.

        Raises MatchmillError if they do not add up.

        Examples
        --------
        >>> ingested.counts()  # doctest: +SKIP
        Counts(n_in=5, n_accepted=3, n_rejected=2)
        """
        with naming_files():
            n_accepted, n_rejected = self.accepted.count(), self.quarantine.count()
            n_in = self._checked.agg(F.sum("n_in").alias("n")).first()["n"] or 0
            if self._bad_rows is not None:
                n_in += self._bad_rows.count()
        counts = Counts(n_in, n_accepted, n_rejected)
        if counts.n_in != counts.n_accepted + counts.n_rejected:
            raise MatchmillError(
                f"{counts.n_in:,} rows came in, but {counts.n_accepted:,} were accepted and"
                f" {counts.n_rejected:,} rejected: the input was not the same when Spark read a"
                " part of it again; give a folder as `work`, so that it is read once"
            )
        return counts

    def write(self, path: str) -> Counts:
        """Write both as Parquet, to `path`/quarantine and `path`/accepted; neither may exist.

        The input is not read again. Where there is an `accepted`, there is the whole quarantine.

        Parameters
        ----------
        path
            The folder, or Hadoop path, for both.

        Examples
        --------
        >>> ingested.write("checked")  # doctest: +SKIP
        Counts(n_in=5, n_accepted=3, n_rejected=2)
        """
        with naming_files():
            self.quarantine.write.parquet(f"{path}/quarantine")
            self.accepted.write.parquet(f"{path}/accepted")
        return self.counts()

    def release(self) -> None:
        """Free what Spark has kept. The DataFrames still work, but read the input again.

        Examples
        --------
        >>> ingested.release()  # doctest: +SKIP
        """
        for frame in self._kept:
            frame.unpersist()

    def __enter__(self) -> Self:
        """Begin a block at whose end `release` is called."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Call `release`."""
        self.release()


def came_in(n_rows: int) -> pa.Array:
    """Make the column `n_in` of a batch of checked rows: how many there are, in the first of them.

    (Spark's own observations would count before the workers do, but give no number, or an error,
    where Spark finds out that there are no rows.)
    """
    return pa.array([n_rows, *[0] * (n_rows - 1)][:n_rows], pa.int64())


def source_column(df: Any) -> Any:
    """Return the file that a row comes from, as column `source`; null where it is not known."""
    source = F.input_file_name()
    try:
        df.select(source).schema  # noqa: B018 - makes Spark analyse it
    except AnalysisException:  # of several files, such as a join has, Spark knows none
        return F.lit(None).cast("string").alias("source")
    return F.when(source != "", source).alias("source")


def keep(df: Any, work: str | None) -> Any:
    """Return the same rows, computed once: now, into a folder, or by Spark at their first use."""
    if work is None:
        return df.persist()
    with naming_files():
        df.write.parquet(work)
    return df.sparkSession.read.parquet(work)
