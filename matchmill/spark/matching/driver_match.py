"""Small jobs, matched where the call is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchmill.encoding.events.arrow import combined
from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.engine.engine import Engine
from matchmill.settings import Settings
from matchmill.spark.building.subscription_columns import (
    checked_subscriptions,
    duplicate_error,
    refusal_error,
)
from matchmill.spark.imports import import_operators, module_names

__all__ = ["MOST_EVENTS", "MOST_SUBSCRIPTIONS", "SmallJob", "collected_job"]

# A job of this size takes the library less than the half second that Spark takes to run one.
MOST_SUBSCRIPTIONS = 5_000
MOST_EVENTS = 20_000
_EVENTS_AT_ONCE = 4096


class SmallJob(NamedTuple):
    cells: Any  # the DataFrame of events
    events: pa.Table
    subscriptions: pa.Table
    id_type: str

    def matched(
        self,
        names: tuple[str, str],
        as_arrays: bool,
        keep_empty: bool,
        strict: bool,
        operators: str | Sequence[str] | None,
        settings: Settings | None,
    ) -> list[pa.RecordBatch]:
        """All matches."""
        import_operators(module_names(operators))
        _check_distinct(self.subscriptions.column(0))
        engine = Engine(settings=settings)
        id_name, expression_name = self.subscriptions.column_names
        report = engine.subscribe_many(
            self.subscriptions, subscription_id=id_name, expression=expression_name
        )
        if report.rejected and strict:
            first = report.rejected[0]
            raise refusal_error(len(report.rejected), first.id, first.reason)
        ids, cells = (combined(column) for column in self.events.columns)
        id_type = pa.int64() if self.id_type == "bigint" else pa.string()
        value_type = pa.list_(id_type) if as_arrays else id_type
        schema = pa.schema([(names[0], ids.type), (names[1], value_type)])
        found = list(_batches(engine, ids, cells, schema, keep_empty))
        return found or [pa.RecordBatch.from_pylist([], schema)]


def _batches(
    engine: Engine, ids: pa.Array, cells: pa.Array, schema: pa.Schema, keep_empty: bool
) -> Iterator[pa.RecordBatch]:
    as_arrays = pa.types.is_list(schema.field(1).type)
    for start in range(0, len(cells), _EVENTS_AT_ONCE):
        some = ids.slice(start, _EVENTS_AT_ONCE)
        matches = engine.match_many(
            read_cells(cells.slice(start, _EVENTS_AT_ONCE), engine.settings)
        )
        if not as_arrays:
            rows = np.repeat(np.arange(matches.n_events), matches.counts)
            found = matches.subscription_ids().cast(schema.field(1).type)
            yield pa.RecordBatch.from_arrays([some.take(pa.array(rows)), found], schema=schema)
            continue
        offsets = pa.array(matches.offsets.astype(np.int32))
        element = schema.field(1).type.value_type
        lists = pa.ListArray.from_arrays(offsets, matches.subscription_ids().cast(element))
        kept = matches.counts >= (0 if keep_empty else 1)
        kept[[one.row for one in matches.rejected]] = False
        batch = pa.RecordBatch.from_arrays([some, lists.cast(schema.field(1).type)], schema=schema)
        yield batch.filter(pa.array(kept))


def _check_distinct(ids: pa.ChunkedArray) -> None:
    counts = ids.value_counts()
    twice = pc.filter(counts.field("values"), pc.greater(counts.field("counts"), 1))
    if len(twice):
        raise duplicate_error(twice.to_pylist())


def collected_job(
    subscriptions: Any, cells: Any, id_column: str, expression_column: str, *, force: bool
) -> SmallJob | None:
    """Both sides, if they are small or small is forced; else None."""
    checked, id_type = checked_subscriptions(subscriptions, id_column, expression_column)
    if not force:
        checked = checked.limit(MOST_SUBSCRIPTIONS + 1)
    rows = checked.toArrow()
    if not force and rows.num_rows > MOST_SUBSCRIPTIONS:
        return None
    events = cells.toArrow() if force else cells.limit(MOST_EVENTS + 1).toArrow()
    if not force and events.num_rows > MOST_EVENTS:
        return None
    return SmallJob(cells, events, rows, id_type)
