"""`match`: subscriptions and events in, matches out.

plan "driver"    few subscriptions and few events: the driver matches them with the library, which
                 takes less time than Spark needs to start a job
plan "events"    `mapInArrow` over the events; each worker maps all shards and loops over them, so
                 that no event is ever shuffled
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from matchmill.errors import InputError
from matchmill.operators.modules import import_operators, module_names
from matchmill.settings import Settings
from matchmill.spark.building.driver import build
from matchmill.spark.building.subscription_columns import warn_of_rejected
from matchmill.spark.layouts import EventLayout, asked_cells, event_cells, layout_of
from matchmill.spark.matching.small_job import collected_job
from matchmill.spark.matching.tasks import match_task
from matchmill.spark.published.sharded_engine import ShardedEngine
from matchmill.spark.published.sharded_engine import open as open_engine
from matchmill.spark.worker_memory import worker_task

__all__ = ["PLANS", "Plan", "match", "matcher"]

Plan: TypeAlias = Literal["auto", "driver", "events"]
PLANS = ("auto", "driver", "events")


def match(
    subscriptions: Any,
    events: Any,
    *,
    layout: str | EventLayout = "wide",
    event_id: str = "event_id",
    attributes: str | Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    subscription_id: str = "subscription_id",
    expression: str = "expression",
    per_event: bool = False,
    plan: Plan = "auto",
    strict: bool = False,
    operators: str | Sequence[str] | None = None,
    settings: Settings | None = None,
    workspace: str | os.PathLike[str] | None = None,
) -> Any:
    """Find all subscriptions that each event satisfies.

    Parameters
    ----------
    subscriptions
        A `ShardedEngine`, the path of an engine that `build` or `Engine.save` made, or a DataFrame
        with the columns `subscription_id` and `expression`.
    events
        A DataFrame of events.
    layout, event_id, attributes
        How the events stand in their DataFrame: "wide" (one column per attribute), "map", "json" or
        "long", or an `EventLayout`; the column of ids; the columns of attributes, or the one column
        with the events.
    types
        What attributes are read as: "timestamp", "date", "number", "text" or "boolean", as
        in ``{"ts": "timestamp"}``. The types of a saved engine hold, too.
    subscription_id, expression
        The names of the columns of a DataFrame of subscriptions.
    per_event
        Return one row per event with the list of its subscriptions, empty lists too, and not one
        row per match.
    plan
        For subscriptions in a DataFrame: "driver" matches in this process, "events" builds an
        engine and lets workers match; "auto" decides by the sizes.
    strict
        Raise an error for a subscription, or an event, that cannot be read. By default both match
        nothing: a warning counts such subscriptions, and `quarantine` lists such events.
    operators
        Modules that register operators, for subscriptions in a DataFrame or a saved engine.
    settings
        Limits of expressions and events, for subscriptions in a DataFrame.
    workspace
        Where to build the engine of one job: a folder that all workers share, or a Hadoop path. On
        one machine it need not be given.

    Returns
    -------
    DataFrame
        Columns `event_id` and `subscription_id`; with `per_event`, `event_id` and
        `subscription_ids`.

    Examples
    --------
    >>> ms.match(subscriptions, events)  # doctest: +SKIP
    >>> ms.match("alerts.mill", flights, event_id="flight", per_event=True)  # doctest: +SKIP
    """
    if plan not in PLANS:
        raise InputError(f"no plan {plan!r}; there are: {', '.join(PLANS)}")
    chosen = layout_of(layout, event_id, attributes, types)
    cells = event_cells(events, chosen)
    spark = events.sparkSession
    if isinstance(subscriptions, (ShardedEngine, str, os.PathLike)):
        if plan == "driver":
            raise InputError("plan='driver' is for subscriptions in a DataFrame, not for an engine")
        modules = module_names(operators)
        import_operators(modules)
        engine = opened(subscriptions, spark)
        return _by_workers(engine, cells, chosen, per_event, strict, modules)
    names = (subscription_id, expression)
    if plan != "events" and not events.isStreaming:
        job = collected_job(subscriptions, cells, names, force=plan == "driver")
        found = None if job is None else job.run(
            per_event=per_event, strict=strict, operators=operators, settings=settings,
            types=dict(chosen.types), force=plan == "driver",
        )  # fmt: skip
        if job is not None and found is not None:
            schema = _schema(cells, job.id_type, per_event)
            table = pa.Table.from_batches(found) if found else None
            return spark.createDataFrame([] if table is None else table, schema)
    engine = build(
        subscriptions, workspace or _own_workspace(spark), subscription_id=subscription_id,
        expression=expression, operators=operators, settings=settings, strict=strict,
    )  # fmt: skip
    if engine.rejected:
        first = engine.rejected[0]
        warn_of_rejected(engine.stats().n_rejected, first.id, first.reason)
    return _by_workers(engine, cells, chosen, per_event, strict, ())


def matcher(
    engine: ShardedEngine | str | os.PathLike[str],
    *,
    layout: str | EventLayout = "wide",
    event_id: str = "event_id",
    attributes: str | Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    per_event: bool = False,
    strict: bool = False,
    operators: str | Sequence[str] | None = None,
) -> Callable[[Any], Any]:
    """Return a function from events to matches, for `DataFrame.transform`.

    Parameters
    ----------
    engine
        A `ShardedEngine`, or the path of an engine.
    layout, event_id, attributes, types, per_event, strict, operators
        As in `match`.

    Examples
    --------
    >>> events.transform(ms.matcher(engine, event_id="flight"))  # doctest: +SKIP
    """
    return lambda events: match(
        engine, events, layout=layout, event_id=event_id, attributes=attributes,
        types=types, per_event=per_event, strict=strict, operators=operators,
    )  # fmt: skip


def opened(engine: ShardedEngine | str | os.PathLike[str], spark: Any) -> ShardedEngine:
    """Open an engine that is given by its path."""
    return engine if isinstance(engine, ShardedEngine) else open_engine(engine, spark=spark)


def _by_workers(
    engine: ShardedEngine,
    cells: Any,
    layout: EventLayout,
    per_event: bool,
    strict: bool,
    modules: tuple[str, ...],
) -> Any:
    task = match_task(
        engine.worker_files(modules),
        engine.verify,
        per_event=per_event,
        strict=strict,
        types=dict(layout.types),
    )
    cells = asked_cells(cells, layout, engine.manifest.attributes)
    return cells.mapInArrow(worker_task(task), _schema(cells, engine.id_type, per_event))


def _schema(cells: Any, id_type: str, per_event: bool) -> StructType:
    element = LongType() if id_type == "bigint" else StringType()
    found = (
        StructField("subscription_ids", ArrayType(element))
        if per_event
        else StructField("subscription_id", element)
    )
    return StructType([cells.schema["event_id"], found])


def _own_workspace(spark: Any) -> str:
    """Make a folder for one job, there until this process ends: a plan may run at any time."""
    master = spark.conf.get("spark.master", "")
    if not master.startswith("local"):
        raise InputError(
            "the workers may be on other machines: give workspace=…, a folder that all share or a"
            " Hadoop path, or build the engine first"
        )
    folder = tempfile.mkdtemp(prefix="matchmill-engine-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
