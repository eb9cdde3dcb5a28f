"""Small jobs, matched by the driver: Spark needs more time to start a job than they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from matchmill.encoding.events.arrow import combined
from matchmill.engine.engine import Engine
from matchmill.operators.modules import import_operators, module_names
from matchmill.settings import Settings
from matchmill.spark.building.subscription_columns import (
    checked_subscriptions,
    duplicate_error,
    rejected_error,
    warn_of_rejected,
)
from matchmill.spark.matching.tasks import matched
from matchmill.spark.published.open_version import OpenEngine

__all__ = ["MAX_EVENTS", "MAX_SUBSCRIPTIONS", "SmallJob", "collected_job"]

# A job of this size takes the library less than the half second that Spark takes to run one.
MAX_SUBSCRIPTIONS = 5_000
MAX_EVENTS = 20_000
MAX_BYTES = 32 << 20  # of either side, as text
_MAX_RESULT_BYTES = 256 << 20


class SmallJob(NamedTuple):
    """Both sides of a match, collected."""

    events: pa.Table  # event_id, event
    subscriptions: pa.Table  # id, expression
    id_type: str

    def run(
        self,
        *,
        per_event: bool,
        strict: bool,
        operators: str | Sequence[str] | None,
        settings: Settings | None,
        types: Mapping[str, str],
        force: bool = True,
    ) -> list[pa.RecordBatch] | None:
        """Find all matches; None if they are too many for the driver and that is not forced."""
        import_operators(module_names(operators))
        ids, texts = self.subscriptions.columns
        _check_distinct(ids)
        engine = Engine(settings=settings)
        report = engine.subscribe_many(zip(ids.to_pylist(), texts.to_pylist(), strict=True))
        if report.rejected:
            first = report.rejected[0]
            tell = _raise if strict else warn_of_rejected
            tell(len(report.rejected), first.id, first.reason)
        id_type = pa.int64() if self.id_type == "bigint" else pa.string()
        event_ids, cells = (combined(column) for column in self.events.columns)
        batches, n_bytes = [], 0
        for batch in matched(
            OpenEngine(engine, id_type), event_ids, cells, per_event=per_event, strict=strict,
            types=types,
        ):  # fmt: skip
            batches.append(batch)
            n_bytes += batch.nbytes
            if n_bytes > _MAX_RESULT_BYTES and not force:
                return None
        return batches


def _raise(n_rejected: int, example_id: Any, reason: str) -> None:
    raise rejected_error(n_rejected, example_id, reason)


def _check_distinct(ids: pa.ChunkedArray) -> None:
    counts = ids.value_counts()
    twice = pc.filter(counts.field("values"), pc.greater(counts.field("counts"), 1))
    if len(twice):
        raise duplicate_error(twice.to_pylist())


def collected_job(
    subscriptions: Any, cells: Any, names: tuple[str, str], *, force: bool
) -> SmallJob | None:
    """Collect both sides, if they are small or small is forced; else None.

    `names` are the columns of ids and expressions.
    """
    checked, id_type = checked_subscriptions(subscriptions, *names)
    if force:
        return SmallJob(cells.toArrow(), checked.toArrow(), id_type)
    rows = _collected(checked, MAX_SUBSCRIPTIONS)
    events = None if rows is None else _collected(cells, MAX_EVENTS)
    return None if rows is None or events is None else SmallJob(events, rows, id_type)


def _collected(frame: Any, max_rows: int) -> pa.Table | None:
    """Collect a DataFrame if it has few rows and bytes; else None.

    Spark adds up the bytes while it reads: rows beyond the limit do not reach the driver.
    """
    sizes = [
        F.coalesce(F.octet_length(F.col(name).cast("string")), F.lit(0)) for name in _texts(frame)
    ]
    size = reduce(lambda a, b: a + b, sizes, F.lit(0)).cast("bigint")
    so_far = F.sum("_size").over(Window.orderBy("_row").rowsBetween(Window.unboundedPreceding, 0))
    numbered = (
        frame.limit(max_rows + 1)
        .withColumn("_row", F.monotonically_increasing_id())
        .withColumn("_size", size)
        .withColumn("_so_far", so_far)
        .where(F.col("_so_far") - F.col("_size") <= MAX_BYTES)  # the first too many tells of it,
    )
    fits = F.col("_so_far") <= MAX_BYTES  # but comes without its values
    columns = [F.when(fits, F.col(name)).alias(name) for name in frame.columns]
    limited = numbered.select(*columns, "_so_far")
    try:
        table = limited.toArrow()
    except PySparkException as error:
        if "maxResultSize" not in str(error):
            raise
        return None
    n_bytes = pc.max(table.column("_so_far")).as_py() or 0
    if table.num_rows > max_rows or n_bytes > MAX_BYTES:
        return None
    return table.select(frame.columns)


def _texts(frame: Any) -> list[str]:
    """Name the columns whose values may be of any size."""
    return [f.name for f in frame.schema.fields if not isinstance(f.dataType, NumericType)]
