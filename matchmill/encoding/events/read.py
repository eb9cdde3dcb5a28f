"""Where events come in: any source of events becomes an `Events` object.

    a mapping, or a sequence or iterator of them   ──►  DictEvents
    an Arrow table or record batch                 ──►  TableEvents
    a pandas or polars DataFrame                   ──►  TableEvents
    JSON lines (`read_json_lines`)                 ──►  JsonEvents

What an event means is said in one place, `flatten_event`; every source agrees with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, ValuesView
from typing import Any

import pyarrow as pa

from matchmill.encoding.events.arrow import Source, TableEvents, combined, read_table
from matchmill.encoding.events.columns import Column, EventColumns, Events, Wanted
from matchmill.encoding.events.dicts import DictEvents
from matchmill.encoding.events.json_lines import JsonEvents, read_json_lines
from matchmill.encoding.numbers import split_floats
from matchmill.errors import InputError
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = [
    "Column",
    "EventColumns",
    "Events",
    "JsonEvents",
    "Wanted",
    "read_events",
    "read_json_lines",
    "split_floats",
]


def read_events(source: Any, settings: Settings = DEFAULT_SETTINGS) -> Events:
    """Events from a mapping, several mappings, an Arrow table, or a DataFrame.

    A bad event is no error here: it is rejected, with a reason, by `columns`."""
    if isinstance(source, Events):
        return source
    if isinstance(source, Mapping):
        return DictEvents([source], settings)
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        return read_table(source, settings)
    if _is_frame(source, "pandas"):
        return TableEvents(_pandas_columns(source), len(source), settings)
    if _is_frame(source, "polars"):
        return TableEvents(_polars_columns(source), source.height, settings)
    if isinstance(source, (list, tuple)):
        return DictEvents(source, settings)
    is_text = isinstance(source, (str, bytes, bytearray, memoryview))
    if isinstance(source, (Sequence, Iterator, ValuesView)) and not is_text:
        return DictEvents(list(source), settings)
    hint = "; JSON text goes through read_json_lines" if is_text else ""
    raise InputError(
        "events come as a mapping, a sequence or an iterator of mappings, a pyarrow Table or"
        " RecordBatch, a pandas or a polars DataFrame, not as"
        f" {type(source).__module__}.{type(source).__qualname__}{hint}"
    )


def _is_frame(source: object, package: str) -> bool:
    """Whether this is a DataFrame of a package that need not be installed."""
    return any(
        base.__name__ == "DataFrame" and base.__module__.partition(".")[0] == package
        for base in type(source).__mro__
    )


def _pandas_columns(frame: Any) -> list[Source]:
    for name in frame.columns:
        if not isinstance(name, str):
            raise InputError(
                f"attribute names are strings, not {name!r} ({type(name).__name__});"
                " rename the DataFrame's column"
            )
    columns = (frame.iloc[:, k] for k in range(len(frame.columns)))
    return [
        (str(name), _series(column)) for name, column in zip(frame.columns, columns, strict=True)
    ]


def _series(column: Any) -> pa.Array | list[Any]:
    """A pandas column. One of objects stays what it is: Arrow makes dates out of datetimes, or
    doubles out of integers, when it sees both."""
    values = column.cat.categories if str(column.dtype) == "category" else column
    if values.dtype == object and (values is column or not all(type(v) is str for v in values)):
        return list(column)
    try:
        return combined(pa.array(column, from_pandas=True))
    except (pa.ArrowException, ValueError, TypeError):
        return list(column)


def _polars_columns(frame: Any) -> list[Source]:
    return [(column.name, _polars_series(column)) for column in frame.get_columns()]


def _polars_series(column: Any) -> pa.Array | list[Any]:
    if str(column.dtype) == "Object":  # Arrow would get the addresses of the objects
        return list(column.to_list())
    try:
        return combined(column.to_arrow())
    except (pa.ArrowException, ValueError, TypeError):  # integers of 128 bits
        return list(column.to_list())
