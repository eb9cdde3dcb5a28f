"""Why pairs of events and subscriptions match or do not, for many pairs at once.

    pairs (event_id, subscription_id) ──► joined with events and expressions ──► language/explain.py

Only the given pairs are explained: explaining is as slow as it is obvious.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.encoding.events.columns import Events
from matchmill.encoding.events.typed import typed_events
from matchmill.engine.expression_input import read_expression
from matchmill.errors import EventError, ExpressionError
from matchmill.language.attribute_types import AttributeTypes
from matchmill.language.explanation import Explanation
from matchmill.language.expression import Expression, Predicate
from matchmill.operators.explain import explain_with_operators
from matchmill.operators.modules import import_operators, module_names
from matchmill.settings import UNLIMITED
from matchmill.spark.layouts import EventLayout, check_columns, event_cells, layout_of
from matchmill.spark.published.version_rows import subscription_frame
from matchmill.spark.worker_memory import worker_task

__all__ = ["COLUMN_NAMES", "explain", "near_misses"]

_CONDITION = (
    "struct<condition: string, truth: boolean, is_needed: boolean, attribute: string,"
    " value: string, note: string, distance: double>"
)
_COLUMNS = (
    f"matched boolean, n_missing int, text string, conditions array<{_CONDITION}>, problem string"
)
COLUMN_NAMES = ("matched", "n_missing", "text", "conditions", "problem")
_CONDITION_TYPE = pa.struct(
    [
        ("condition", pa.string()),
        ("truth", pa.bool_()),
        ("is_needed", pa.bool_()),
        ("attribute", pa.string()),
        ("value", pa.string()),
        ("note", pa.string()),
        ("distance", pa.float64()),
    ]
)
_TYPES = (pa.bool_(), pa.int32(), pa.string(), pa.list_(_CONDITION_TYPE), pa.string())


def explain(
    subscriptions: Any,
    events: Any,
    pairs: Any,
    *,
    layout: str | EventLayout = "wide",
    event_id: str = "event_id",
    attributes: str | Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    subscription_id: str = "subscription_id",
    expression: str = "expression",
    operators: str | Sequence[str] | None = None,
) -> Any:
    """Explain why pairs of events and subscriptions match or do not.

    Parameters
    ----------
    subscriptions
        A DataFrame (subscription_id, expression), a `ShardedEngine` or the path of an engine.
    events
        A DataFrame of events.
    pairs
        A DataFrame (event_id, subscription_id), for example some rows of `match`.
    layout, event_id, attributes, types
        How the events stand in their DataFrame, and what they are read as, as in `match`.
    subscription_id, expression
        The names of the columns of a DataFrame of subscriptions.
    operators
        Modules that register the operators that expressions call.

    Returns
    -------
    DataFrame
        One row per pair: `event_id`, `subscription_id`, `matched`, `n_missing` (how many conditions
        would have to change), `text` (the explanation as a tree), `conditions` and `problem` (why
        the pair could not be explained). Each condition has its `truth` (null: unknown),
        `is_needed` (it keeps the expression from being true), the `attribute` and its `value` as
        JSON, a `note`, and the `distance` of the value from what is needed.

    Examples
    --------
    >>> matches = ms.match(subscriptions, events)  # doctest: +SKIP
    >>> ms.explain(subscriptions, events, matches.limit(5)).select("text")  # doctest: +SKIP
    """
    check_columns(pairs, ("event_id", "subscription_id"), "the DataFrame of pairs")
    chosen = layout_of(layout, event_id, attributes, types)
    cells = event_cells(events, chosen)
    cells = cells.withColumn("has_event", F.lit(True))
    modules = module_names(operators)
    import_operators(modules)
    known = subscription_frame(
        subscriptions, events.sparkSession, subscription_id=subscription_id, expression=expression,
        operators=modules,
    )  # fmt: skip
    asked = pairs.select("event_id", "subscription_id")
    joined = asked.join(cells, "event_id", "left").join(known, "subscription_id", "left")
    kinds = {field.name: field.dataType.simpleString() for field in asked.schema.fields}
    return joined.mapInArrow(
        worker_task(lambda batches: _explained(batches, modules, dict(chosen.types))),
        f"event_id {kinds['event_id']}, subscription_id {kinds['subscription_id']}, {_COLUMNS}",
    )


def near_misses(
    subscriptions: Any,
    events: Any,
    pairs: Any,
    *,
    max_missing: int | None = None,
    layout: str | EventLayout = "wide",
    event_id: str = "event_id",
    attributes: str | Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    subscription_id: str = "subscription_id",
    expression: str = "expression",
    operators: str | Sequence[str] | None = None,
) -> Any:
    """List the conditions that keep pairs from matching.

    Parameters
    ----------
    subscriptions, events, pairs
        As in `explain`. Pairs that match are left out.
    max_missing
        Leave out pairs that miss more conditions than this.
    layout, event_id, attributes, types, subscription_id, expression, operators
        As in `explain`.

    Returns
    -------
    DataFrame
        One row per condition: `event_id`, `subscription_id`, `n_missing`, `condition`, `attribute`,
        `value`, `note`, `distance` and `problem`. A pair that cannot be explained has one row, with
        its problem.

    Examples
    --------
    >>> ms.near_misses(subscriptions, events, pairs, max_missing=1)  # doctest: +SKIP
    """
    explained = explain(
        subscriptions, events, pairs, layout=layout, event_id=event_id, attributes=attributes,
        types=types, subscription_id=subscription_id, expression=expression, operators=operators,
    )  # fmt: skip
    missed = explained.where("not matched or matched is null")
    if max_missing is not None:
        missed = missed.where(F.col("n_missing").isNull() | (F.col("n_missing") <= max_missing))
    needed = F.filter("conditions", lambda c: c["is_needed"])
    return missed.select(
        "event_id", "subscription_id", "n_missing", "problem", F.explode_outer(needed).alias("c")
    ).select(
        "event_id",
        "subscription_id",
        "n_missing",
        *(f"c.{name}" for name in ("condition", "attribute", "value", "note", "distance")),
        "problem",
    )


# -- in a worker ----------------------------------------------------------------------------------


def _explained(
    batches: Iterable[pa.RecordBatch], modules: tuple[str, ...], types: AttributeTypes
) -> Iterator[pa.RecordBatch]:
    import_operators(modules)
    for batch in batches:
        events = typed_events(read_cells(batch.column("event")), types)
        names = ("event_id", "subscription_id", "has_event", "expression")
        ids, subscriptions, has_event, texts = (batch.column(n).to_pylist() for n in names)
        rows = []
        for i, text in enumerate(texts):
            if not has_event[i]:
                rows.append(_problem(f"there is no event {ids[i]!r}"))
            elif text is None:
                rows.append(_problem(f"there is no subscription {subscriptions[i]!r}"))
            else:
                rows.append(_row(text, events, i))
        columns = list(zip(*rows, strict=True)) or [()] * len(_TYPES)
        arrays = [pa.array(c, kind) for c, kind in zip(columns, _TYPES, strict=True)]
        yield pa.record_batch(
            [batch.column("event_id"), batch.column("subscription_id"), *arrays],
            ["event_id", "subscription_id", *COLUMN_NAMES],
        )


def _problem(text: str) -> tuple[Any, ...]:
    return None, None, None, None, text


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Expression:
    return read_expression(text, UNLIMITED)


def _row(text: str, events: Events, i: int) -> tuple[Any, ...]:
    try:
        event = events.event(i)
        expression = _parsed(text)
        found = explain_with_operators(expression, event)
    except EventError as error:
        return _problem(f"the event cannot be read: {error}")
    except ExpressionError as error:
        return _problem(f"the expression cannot be read: {error.summary}")
    needed = {id(part) for part in found.failures}
    conditions = [
        {
            "condition": leaf.text,
            "truth": leaf.truth,
            "is_needed": id(leaf) in needed,
            "attribute": node.name if isinstance(node, Predicate) else None,
            "value": _json(event, node),
            "note": leaf.note,
            "distance": None if leaf.distance is None else float(leaf.distance),
        }
        for leaf, node in _leaves(found, expression)
    ]
    return found.matched, found.n_missing, str(found), conditions, None


def _leaves(found: Explanation, node: Expression) -> Iterator[tuple[Explanation, Expression]]:
    """Walk over the leaves of both trees, which have one shape."""
    if not found.parts:
        yield found, node
    for part, inner in zip(found.parts, node.parts, strict=bool(found.parts)):
        yield from _leaves(part, inner)


def _json(event: dict[str, Any], node: Expression) -> str | None:
    if not isinstance(node, Predicate) or node.name not in event:
        return None
    return json.dumps(event[node.name], ensure_ascii=False, default=str)
