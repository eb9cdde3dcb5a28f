"""Why pairs of events and subscriptions match or do not, for many pairs at once.

    pairs (event_id, subscription_id) ──► joined with events and expressions ──► language/explain.py

Only the pairs asked about are explained: explaining is slow and obvious, as the oracle is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.encoding.events.columns import Events
from matchmill.engine.expression_input import read_expression
from matchmill.errors import EventError, ExpressionError, InputError
from matchmill.language.explanation import Explanation
from matchmill.language.expression import Expression, Predicate
from matchmill.operators.explain import explain_with_operators
from matchmill.settings import UNLIMITED
from matchmill.spark.event_forms import event_frame
from matchmill.spark.layouts import EventLayout

__all__ = ["explain", "near_misses"]

_PREDICATE = (
    "struct<predicate: string, truth: boolean, is_needed: boolean, attribute: string,"
    " value: string, note: string, distance: double>"
)
_COLUMNS = (
    f"matched boolean, missing int, explanation string, predicates array<{_PREDICATE}>,"
    " problem string"
)
_PREDICATE_TYPE = pa.struct(
    [
        ("predicate", pa.string()),
        ("truth", pa.bool_()),
        ("is_needed", pa.bool_()),
        ("attribute", pa.string()),
        ("value", pa.string()),
        ("note", pa.string()),
        ("distance", pa.float64()),
    ]
)
_TYPES = (pa.bool_(), pa.int32(), pa.string(), pa.list_(_PREDICATE_TYPE), pa.string())


def explain(
    pairs: Any,
    events: Any,
    subscriptions: Any,
    layout: str | EventLayout = "wide",
    *,
    operators: Sequence[str] = (),
) -> Any:
    """Each pair (event_id, subscription_id) with columns that tell why it matches or does not.

    matched, explanation (the tree as text), missing (how many predicates would have to change),
    and predicates: of each its truth (null: unknown), whether it is_needed, which is to say that
    it keeps the whole from being true, the attribute and its value as JSON, a note, and how far
    the value is from what is needed. `problem` says why a pair could not be explained.
    """
    for frame, what, columns in (
        (pairs, "pairs", ("event_id", "subscription_id")),
        (subscriptions, "subscriptions", ("subscription_id", "expression")),
    ):
        if missing := [column for column in columns if column not in frame.columns]:
            raise InputError(
                f"the {what} have no column {missing[0]!r}; they have: {', '.join(frame.columns)}"
            )
    found = event_frame(events, layout)
    found = found.select("event_id", "event", F.lit(True).alias("has_event"))
    known = subscriptions.select("subscription_id", "expression")
    asked = pairs.select("event_id", "subscription_id")
    joined = asked.join(found, "event_id", "left").join(known, "subscription_id", "left")
    kinds = {field.name: field.dataType.simpleString() for field in asked.schema.fields}
    modules = tuple(operators)
    return joined.mapInArrow(
        lambda batches: _explained(batches, modules),
        f"event_id {kinds['event_id']}, subscription_id {kinds['subscription_id']}, {_COLUMNS}",
    )


def near_misses(
    pairs: Any,
    events: Any,
    subscriptions: Any,
    layout: str | EventLayout = "wide",
    *,
    most_missing: int | None = None,
    operators: Sequence[str] = (),
) -> Any:
    """Of pairs that do not match, one row for each predicate that keeps them from it.

    `most_missing` leaves out pairs that lack more than so many predicates. A pair that cannot be
    explained has one row, with its problem.
    """
    told = explain(pairs, events, subscriptions, layout, operators=operators)
    missed = told.where("not matched or matched is null")
    if most_missing is not None:
        missed = missed.where(F.col("missing").isNull() | (F.col("missing") <= most_missing))
    needed = F.filter("predicates", lambda p: p["is_needed"])
    return missed.select(
        "event_id", "subscription_id", "missing", "problem", F.explode_outer(needed).alias("p")
    ).select(
        "event_id",
        "subscription_id",
        "missing",
        *(f"p.{name}" for name in ("predicate", "attribute", "value", "note", "distance")),
        "problem",
    )


# -- in a worker ----------------------------------------------------------------------------------


def _explained(
    batches: Iterator[pa.RecordBatch], modules: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    for module in modules:
        import_module(module)
    for batch in batches:
        events = read_cells(batch.column("event"))
        names = ("event_id", "subscription_id", "has_event", "expression")
        ids, subscribers, has_event, texts = (batch.column(n).to_pylist() for n in names)
        rows = []
        for i, text in enumerate(texts):
            if not has_event[i]:
                rows.append(_problem(f"there is no event {ids[i]!r}"))
            elif text is None:
                rows.append(_problem(f"there is no subscription {subscribers[i]!r}"))
            else:
                rows.append(_row(text, events, i))
        columns = list(zip(*rows, strict=True)) or [()] * len(_TYPES)
        arrays = [pa.array(c, kind) for c, kind in zip(columns, _TYPES, strict=True)]
        yield pa.record_batch(
            [batch.column("event_id"), batch.column("subscription_id"), *arrays],
            ["event_id", "subscription_id", *_COLUMN_NAMES],
        )


_COLUMN_NAMES = ("matched", "missing", "explanation", "predicates", "problem")


def _problem(text: str) -> tuple[Any, ...]:
    return None, None, None, None, text


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Expression:
    return read_expression(text, UNLIMITED)


def _row(text: str, events: Events, i: int) -> tuple[Any, ...]:
    try:
        event = events.event(i)
        expression = _parsed(text)
        told = explain_with_operators(expression, event)
    except EventError as error:
        return _problem(f"the event cannot be read: {error}")
    except ExpressionError as error:
        return _problem(f"the expression cannot be read: {error.summary}")
    needed = {id(part) for part in told.failures}
    predicates = [
        {
            "predicate": leaf.text,
            "truth": leaf.truth,
            "is_needed": id(leaf) in needed,
            "attribute": node.name if isinstance(node, Predicate) else None,
            "value": _json(event, node),
            "note": leaf.note,
            "distance": None if leaf.distance is None else float(leaf.distance),
        }
        for leaf, node in _leaves(told, expression)
    ]
    return told.truth is True, told.n_missing, str(told), predicates, None


def _leaves(told: Explanation, node: Expression) -> Iterator[tuple[Explanation, Expression]]:
    """The leaves of both trees, which have one shape."""
    if not told.parts:
        yield told, node
    for part, inner in zip(told.parts, node.parts, strict=bool(told.parts)):
        yield from _leaves(part, inner)


def _json(event: dict[str, Any], node: Expression) -> str | None:
    if not isinstance(node, Predicate) or node.name not in event:
        return None
    return json.dumps(event[node.name], ensure_ascii=False, default=str)
