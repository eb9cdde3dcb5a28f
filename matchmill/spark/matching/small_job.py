"""Small jobs, matched by the driver: Spark needs more time to start a job than they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

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
    ) -> list[pa.RecordBatch]:
        """Find all matches."""
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
        found = matched(
            OpenEngine(engine, id_type), event_ids, cells, per_event=per_event, strict=strict
        )
        return list(found)


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
    if not force:
        checked = checked.limit(MAX_SUBSCRIPTIONS + 1)
    rows = checked.toArrow()
    if not force and rows.num_rows > MAX_SUBSCRIPTIONS:
        return None
    events = cells.toArrow() if force else cells.limit(MAX_EVENTS + 1).toArrow()
    if not force and events.num_rows > MAX_EVENTS:
        return None
    return SmallJob(events, rows, id_type)
