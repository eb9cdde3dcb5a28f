"""How often each value of each attribute occurs, as rows (attribute, type, value, n).

    structs, maps and pairs of plain scalars    explode, groupBy: Spark does it all
    everything else                             a worker reads the events as the matcher does

Values are texts, and the type says how to read them back (`read_value`). A list is one value, as
JSON.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.encoding.events.columns import Column
from matchmill.language.values import Region
from matchmill.spark.worker_memory import worker_task

__all__ = ["read_value", "value_counts"]

_SCHEMA = "attribute string, type string, value string, n bigint"
_TYPES = {
    **dict.fromkeys(("byte", "short", "integer", "long", "float", "double"), "number"),
    "boolean": "boolean",
    "date": "date",
    "string": "string",
}
_EPOCH = dt.datetime(1970, 1, 1)


def value_counts(events: Any) -> Any:
    """Count the values of cells that `layouts.event_cells` made."""
    kind = events.schema["event"].dataType
    if kind.typeName() == "struct":
        found = {field.name: _TYPES.get(field.dataType.typeName()) for field in kind.fields}
        if all(found.values()):
            cells = [_cell(name, t, events["event"][name]) for name, t in found.items()]
            return _counted(events.select(F.explode(F.array(*cells)).alias("p")).select("p.*"))
    elif kind.typeName() == "map":
        name = _TYPES.get(kind.valueType.typeName())
        if name is not None:
            pairs = events.select(F.explode("event").alias("attribute", "v"))
            typed = F.lit(name).alias("type")
            return _counted(pairs.select("attribute", typed, _text(name, F.col("v"))))
    elif kind.typeName() == "array" and kind.elementType.typeName() == "struct":
        name_field, value_field = kind.elementType.fields
        name = _TYPES.get(value_field.dataType.typeName())
        if name is not None:
            names = events["event"][name_field.name]
            good = events.where(  # others are rejected by the matcher
                ~F.exists(names, lambda n: n.isNull())
                & (F.size(F.array_distinct(names)) == F.size(names))
            )
            pairs = good.select(F.inline("event").alias("attribute", "v"))
            typed = F.lit(name).alias("type")
            return _counted(pairs.select("attribute", typed, _text(name, F.col("v"))))
    return (
        events.select("event")
        .mapInArrow(worker_task(_read), _SCHEMA)
        .groupBy("attribute", "type", "value")
        .agg(F.sum("n").alias("n"))
    )


def _cell(name: str, kind: str | None, value: Any) -> Any:
    return F.struct(F.lit(name).alias("attribute"), F.lit(kind).alias("type"), _text(kind, value))


def _text(kind: str | None, value: Any) -> Any:
    text = value.cast("string")
    if kind == "number":
        number = value.cast("double")
        text = F.when(~(F.isnan(number) | (F.abs(number) == float("inf"))), text)
    return text.alias("value")


def _counted(pairs: Any) -> Any:
    rows = pairs.where("value is not null")
    return rows.groupBy("attribute", "type", "value").agg(F.count(F.lit(1)).alias("n"))


# -- in a worker ----------------------------------------------------------------------------------


def _read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count each batch: far fewer rows than there are pairs."""
    for batch in batches:
        events = read_cells(batch.column("event"))
        found = events.columns()
        names: list[str] = []
        kinds: list[str] = []
        texts: list[str] = []
        counts: list[int] = []
        for column in found.columns:
            counted = _lists(column) if column.region == Region.LIST else _scalars(column)
            names += [column.attribute] * len(counted)
            kinds += [column.region.name.lower()] * len(counted)
            texts += counted.keys()
            counts += counted.values()
        columns = [
            *(pa.array(c, pa.string()) for c in (names, kinds, texts)),
            pa.array(counts, pa.int64()),
        ]
        yield pa.record_batch(columns, ["attribute", "type", "value", "n"])


def _scalars(column: Column) -> dict[str, int]:
    if column.text is not None:
        counted = column.text.value_counts()
        return dict(zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True))
    # A number is its whole part and the rest; sorted by both, equal ones are neighbours.
    order = np.lexsort((column.part, column.whole))
    whole, part = column.whole[order], column.part[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = (whole[1:] != whole[:-1]) | (part[1:] != part[:-1])
    starts = np.flatnonzero(is_first)
    counts = np.diff(np.append(starts, len(order))).tolist()
    written = _WRITTEN[column.region]
    values = zip(whole[starts].tolist(), part[starts].tolist(), strict=True)
    return {written(w, p): n for (w, p), n in zip(values, counts, strict=True)}


def _lists(column: Column) -> dict[str, int]:
    """Count lists as JSON. Elements come by type: no condition depends on their order."""
    elements: dict[int, list[Any]] = {row: [] for row in column.rows.tolist()}
    for inner in column.elements:
        for place, row in enumerate(inner.rows.tolist()):
            elements[row].append(_element(inner, place))
    return Counter(json.dumps(values, ensure_ascii=False) for values in elements.values())


def _element(column: Column, place: int) -> Any:
    if column.text is not None:
        return column.text[place].as_py()
    whole, part = int(column.whole[place]), float(column.part[place])
    if column.region == Region.BOOLEAN:
        return bool(whole)
    if column.region == Region.NUMBER:
        return _number(whole, part)
    return {column.region.name.lower(): _WRITTEN[column.region](whole, part)}


def _number(whole: int, part: float) -> int | float:
    if part == 0.0:
        return whole
    return part if abs(part) >= 1.0 else whole + part  # beyond 64 bits the part is all of it


_WRITTEN: dict[Region, Callable[[int, float], str]] = {
    Region.BOOLEAN: lambda whole, part: "true" if whole else "false",
    Region.NUMBER: lambda whole, part: repr(_number(whole, part)),
    Region.DATE: lambda whole, part: str(dt.date(1970, 1, 1) + dt.timedelta(days=whole)),
    Region.OBJECT: lambda whole, part: "an object",
    Region.TIMESTAMP: lambda whole, part: str(_EPOCH + dt.timedelta(microseconds=whole)),
}


# -- and back -------------------------------------------------------------------------------------


def read_value(kind: str, text: str) -> Any:
    """Return the value that a type and a text stand for."""
    if kind == "list":
        return [_read_element(element) for element in json.loads(text)]
    return _READ[kind](text)


def _read_element(element: Any) -> Any:
    if isinstance(element, dict):
        ((kind, text),) = element.items()
        return read_value(kind, text)
    return element


_READ: dict[str, Callable[[str], Any]] = {
    "boolean": lambda text: text == "true",
    "number": lambda text: int(text) if text.lstrip("-").isdigit() else float(text),
    "date": dt.date.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
    "string": str,
    "object": lambda text: b"",  # some object: nothing else is known of it
}
