"""Where events come in: any source of events in memory becomes an `Events` object.

    a record (a mapping, a dataclass, a named tuple, …)     ──►  DictEvents, of one event
    a list, another sequence, or an iterator of records     ──►  DictEvents
    an Arrow table, record batch or reader                  ──►  TableEvents
    an Arrow dataset or scanner                             ──►  TableEvents
    a pandas or polars DataFrame, a polars LazyFrame        ──►  TableEvents
    a DuckDB relation, any object with `__arrow_c_stream__`
    or `__arrow_c_array__`                                  ──►  TableEvents
    a list or an iterator of tables                         ──►  ChainedEvents
    JSON lines as bytes (`read_json_lines`)                 ──►  JsonEvents

What an event means is defined in one place, `language/flatten`; every source agrees with it. A bad
value rejects its event; a source that holds no events at all is an error, at once. Files are read
one level above, by `io`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from matchmill.encoding.events.arrow import Source, TableEvents, combined, read_table
from matchmill.encoding.events.columns import ChainedEvents, Column, EventColumns, Events, Wanted
from matchmill.encoding.events.dicts import DictEvents
from matchmill.encoding.events.json_lines import JsonEvents, read_json_lines
from matchmill.errors import InputError
from matchmill.language.flatten import as_mapping, is_record, is_record_type
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = [
    "Column",
    "EventColumns",
    "Events",
    "JsonEvents",
    "Wanted",
    "dataset_reader",
    "read_events",
    "read_json_lines",
    "stream_reader",
]


def read_events(source: Any, settings: Settings = DEFAULT_SETTINGS) -> Events:
    """Return the events of a source in memory.

    A bad event is no error here: `Events.columns` rejects it, with a reason.

    Raises
    ------
    InputError
        If the source, or one of its elements, is not of a kind that holds events.
    """
    if isinstance(source, Events):
        return source
    if isinstance(source, list):
        return _read_items(source, settings)
    if (table := _read_table(source, settings)) is not None:
        return table
    if is_record(source):
        return DictEvents([as_mapping(source)], settings)
    is_file = isinstance(source, (str, bytes, bytearray, memoryview, os.PathLike, io.IOBase))
    if isinstance(source, (Sequence, Iterator, ValuesView)) and not is_file:
        return _read_items(list(source), settings)
    raise InputError(
        "events come as mappings or other records (dataclasses, named tuples, pydantic models), as"
        " an Arrow, pandas, polars or DuckDB table, or as anything with __arrow_c_stream__, not as"
        f" {_kind(source)}{_advice(source)}"
    )


def _kind(source: object) -> str:
    module, name = type(source).__module__, type(source).__qualname__
    return name if module == "builtins" else f"{module}.{name}"


def _advice(source: object) -> str:
    if isinstance(source, (str, os.PathLike, io.IOBase)):
        return "; a path or an open file goes through matchmill.read_events"
    if isinstance(source, (bytes, bytearray, memoryview)):
        return "; JSON lines in memory go through matchmill.read_events"
    if type(source).__name__ == "DuckDBPyConnection":
        return "; ask for a relation: connection.sql(…)"
    if isinstance(source, Iterable):
        return "; if its elements are events, pass list(…) of it"
    return ""


# -- records --------------------------------------------------------------------------------------


def _read_items(items: Sequence[Any], settings: Settings) -> Events:
    """Return the events of a list of records, or of a list of tables."""
    kinds = set(map(type, items))
    if kinds <= {dict}:
        return DictEvents(items, settings, are_dicts=True)
    others = [kind for kind in kinds if not is_record_type(kind)]
    if not others:
        if not all(issubclass(kind, Mapping) for kind in kinds):
            items = [as_mapping(item) for item in items]
        return DictEvents(items, settings)
    parts = [_read_table(item, settings) for item in items if len(others) == len(kinds)]
    tables = [part for part in parts if part is not None]
    if len(tables) == len(items):
        return ChainedEvents(tables)
    n = next(n for n, item in enumerate(items) if type(item) in others)
    raise InputError(
        f"each event is a mapping of attributes to values, or a dataclass, named tuple or pydantic"
        f" model; event {n} is {_kind(items[n])}{_item_advice(items[n])}"
    )


def _item_advice(item: object) -> str:
    if isinstance(item, (tuple, list)):
        return ", which has no names: make it a dict(zip(names, values)), or pass the table itself"
    if isinstance(item, (str, bytes)):
        return "; JSON lines go through matchmill.read_events, JSON text through json.loads"
    return ""


# -- tables ---------------------------------------------------------------------------------------


def _read_table(source: Any, settings: Settings) -> Events | None:
    """Return the rows of a table, whatever library it is of; None if this is no table."""
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        return read_table(source, settings)
    if _is_a(source, "pandas", "DataFrame"):
        return TableEvents(_pandas_columns(source), len(source), settings)
    if _is_a(source, "polars", "LazyFrame"):
        source = source.collect()
    if _is_a(source, "polars", "DataFrame"):
        return TableEvents(_polars_columns(source), source.height, settings)
    if (reader := dataset_reader(source)) is not None:
        return read_table(reader.read_all(), settings)
    if hasattr(source, "__arrow_c_stream__"):
        return read_table(stream_reader(source).read_all(), settings)
    if hasattr(source, "__arrow_c_array__"):
        with _one_column_is_no_table(source):
            return read_table(pa.record_batch(source), settings)
    return None


def stream_reader(source: Any) -> pa.RecordBatchReader:
    """Return a reader of an object with `__arrow_c_stream__`; InputError if it is one column."""
    with _one_column_is_no_table(source):
        return pa.RecordBatchReader.from_stream(source)


@contextmanager
def _one_column_is_no_table(source: object) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, TypeError) as error:
        raise InputError(
            f"{_kind(source)} is one column, not a table with a column per attribute"
        ) from error


def dataset_reader(source: Any) -> pa.RecordBatchReader | None:
    """Return a reader of an Arrow dataset or of a scanner of one; None if this is neither."""
    if _is_a(source, "pyarrow", "Dataset"):
        return source.scanner().to_reader()
    if _is_a(source, "pyarrow", "Scanner"):
        return source.to_reader()
    return None


def _is_a(source: object, package: str, name: str) -> bool:
    """Whether this is of a class, or derived from it, of a package that need not be installed."""
    return any(
        base.__name__ == name and base.__module__.partition(".")[0] == package
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
    """Return the values of a pandas column.

    A column of objects stays a list: Arrow makes dates out of datetimes, or doubles out of
    integers, when it sees both.
    """
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
