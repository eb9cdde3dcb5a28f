"""The workloads of `matchmill.lab.workloads` as DataFrames, of any size.

    spark.range(blocks) ──► mapInArrow: one block of 65,536 rows after the other

A block is drawn from the seed and its number (`row_blocks.py`), so the rows do not depend on
how Spark divides them. Nothing is held but the block at hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from matchmill.errors import InputError
from matchmill.lab.workloads.flat import Domain, FlatSubscriptions, Workload
from matchmill.lab.workloads.flat import event_dicts as _event_dicts
from matchmill.lab.workloads.flat import subscription_texts as _subscription_texts
from matchmill.lab.workloads.row_blocks import (
    BLOCK_ROWS,
    block_sizes,
    event_block,
    subscription_block,
)
from matchmill.lab.workloads.spec import WorkloadSpec

__all__ = ["events", "subscriptions"]

SubscriptionForm: TypeAlias = Literal["text", "arrays"]
EventForm: TypeAlias = Literal["map", "json", "arrays"]

_ROWS_A_BATCH = 1 << 13

_SUBSCRIPTION_SCHEMAS = {
    "text": "subscription_id bigint, expression string",
    "arrays": "subscription_id bigint, clauses array<array<struct<attribute: int,"
    " intervals: array<struct<low: bigint, high: bigint>>>>>",
}


def subscriptions(
    spark: Any,
    spec: WorkloadSpec,
    n: int | None = None,
    *,
    form: SubscriptionForm = "text",
    partitions: int | None = None,
) -> Any:
    """Return a DataFrame of `n` subscriptions (default: those of the spec).

    `form="text"` has columns subscription_id and expression. `form="arrays"` has the flat arrays of
    each row instead: its clauses, their predicates, and intervals of codes.
    """
    _check_form(form, _SUBSCRIPTION_SCHEMAS)
    spec = spec if n is None else spec.changed(n_subscriptions=n)
    make = _texts if form == "text" else _clauses

    def block(number: int) -> Iterator[pa.RecordBatch]:
        return make(subscription_block(spec, number), number * BLOCK_ROWS)

    return _blocks(spark, spec.n_subscriptions, block, _SUBSCRIPTION_SCHEMAS[form], partitions)


def events(
    spark: Any,
    spec: WorkloadSpec,
    n: int | None = None,
    *,
    form: EventForm = "map",
    partitions: int | None = None,
) -> Any:
    """Return a DataFrame of `n` events (default: those of the spec).

    `form="map"` has columns event_id and attributes, a map; it needs values of one type.
    `form="json"` has event_id and event, a text. `form="arrays"` has the numbers of attributes, and
    codes.
    """
    _check_form(form, ("map", "json", "arrays"))
    spec = spec if n is None else spec.changed(n_events=n)
    if form == "map":
        kind, arrow_kind = _value_type(event_block(spec, 0).domain)
        schema = f"event_id bigint, attributes map<string, {kind}>"
    elif form == "json":
        schema = "event_id bigint, event string"
    else:
        schema = "event_id bigint, attributes array<int>, codes array<bigint>"

    def block(number: int) -> Iterator[pa.RecordBatch]:
        workload, first = event_block(spec, number), number * BLOCK_ROWS
        if form == "arrays":
            return _codes(workload, first)
        if form == "json":
            return _event_column(workload, first, "event", pa.string(), _compact_json)
        return _event_column(
            workload, first, "attributes", pa.map_(pa.string(), arrow_kind), lambda e: [*e.items()]
        )

    return _blocks(spark, spec.n_events, block, schema, partitions)


def _check_form(form: str, known: Any) -> None:
    if form not in known:
        raise InputError(f"unknown form {form!r}; there are: {', '.join(known)}")


def _blocks(
    spark: Any,
    n_rows: int,
    block: Callable[[int], Iterator[pa.RecordBatch]],
    schema: str,
    partitions: int | None,
) -> Any:
    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from block(number)

    n_blocks = sum(1 for _ in block_sizes(n_rows))
    # A task a block: a block takes seconds, which is what a task should take.
    numbers = spark.range(0, n_blocks, 1, partitions or max(1, n_blocks))
    return numbers.mapInArrow(rows, schema)


# -- rows of one block ----------------------------------------------------------------------------


def _texts(workload: Workload, first: int) -> Iterator[pa.RecordBatch]:
    n_rows = len(np.unique(workload.subscriptions.owners))
    for start in range(0, n_rows, _ROWS_A_BATCH):
        rows = list(_subscription_texts(workload, start, start + _ROWS_A_BATCH))
        numbers = pa.array([first + number for number, _ in rows], pa.int64())
        texts = pa.array([text for _, text in rows], pa.string())
        yield pa.record_batch([numbers, texts], ["subscription_id", "expression"])


def _clauses(workload: Workload, first: int) -> Iterator[pa.RecordBatch]:
    flat = workload.subscriptions
    owners, counts = np.unique(flat.owners, return_counts=True)
    clauses = _lists(np.append(0, np.cumsum(counts)), _predicate_lists(flat))
    numbers = pa.array(first + owners)
    yield pa.record_batch([numbers, clauses], ["subscription_id", "clauses"])


def _predicate_lists(flat: FlatSubscriptions) -> pa.Array:
    ends = [pa.array(flat.lows), pa.array(flat.highs)]
    intervals = pa.StructArray.from_arrays(ends, ["low", "high"])
    predicates = pa.StructArray.from_arrays(
        [pa.array(flat.attributes), _lists(flat.interval_offsets, intervals)],
        ["attribute", "intervals"],
    )
    return _lists(flat.clause_offsets, predicates)


def _lists(offsets: np.ndarray, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def _codes(workload: Workload, first: int) -> Iterator[pa.RecordBatch]:
    flat = workload.events
    yield pa.record_batch(
        [
            pa.array(first + np.arange(flat.n_events)),
            _lists(flat.offsets, pa.array(flat.attributes)),
            _lists(flat.offsets, pa.array(flat.codes)),
        ],
        ["event_id", "attributes", "codes"],
    )


def _event_column(
    workload: Workload,
    first: int,
    name: str,
    kind: pa.DataType,
    written: Callable[[dict[str, Any]], Any],
) -> Iterator[pa.RecordBatch]:
    values = pa.array([written(event) for event in _event_dicts(workload)], kind)
    numbers = pa.array(first + np.arange(len(values)))
    yield pa.record_batch([numbers, values], ["event_id", name])


def _compact_json(event: dict[str, Any]) -> str:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


_VALUE_TYPES: dict[type, tuple[str, pa.DataType]] = {
    bool: ("boolean", pa.bool_()),
    int: ("bigint", pa.int64()),
    float: ("double", pa.float64()),
    str: ("string", pa.string()),
}


def _value_type(domain: Domain) -> tuple[str, pa.DataType]:
    """Return the one type of all values, as Spark and as Arrow name it."""
    attributes = range(domain.n_attributes)
    kinds = {type(domain.value(a, 1)) for a in attributes if domain.n_values(a)}
    if len(kinds) != 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds)) or "none"
        raise InputError(
            f"the values of this workload are of several types ({names}), which a map cannot hold;"
            " ask for form='json'"
        )
    return _VALUE_TYPES[kinds.pop()]
