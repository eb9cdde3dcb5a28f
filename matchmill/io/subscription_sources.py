"""Subscriptions from any source: files, tables and frames, mappings, pairs."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from matchmill.errors import InputError, did_you_mean, shown
from matchmill.io.formats import check_file, missing_column
from matchmill.io.subscription_chunks import RowBatches, RowItems, RowReader
from matchmill.io.subscription_files import (
    SubscriptionRow,
    checked_row,
    read_subscription_batches,
    read_subscriptions,
)

__all__ = ["SubscriptionSource", "subscription_sources"]

_MISSING = object()
_ROWS_AT_ONCE = 256


@dataclass(slots=True)
class SubscriptionSource:
    """The rows of one file, or of one object in memory."""

    reader: RowReader
    name: str | None = None  # the path of a file
    n_rows: int | None = None  # if that is known before reading
    ignored_columns: list[str] = field(default_factory=list)  # complete when all rows are read

    @property
    def rows(self) -> Iterator[SubscriptionRow]:
        """The rows that are not read yet, one by one."""
        while (chunk := self.reader.take(_ROWS_AT_ONCE)).n_rows:
            yield from map(chunk.row, range(chunk.n_rows))


def subscription_sources(
    source: Any, *, subscription_id: str, expression: str
) -> list[SubscriptionSource]:
    """Find out what a source is; a row that cannot be used carries its problem.

    Raises
    ------
    InputError
        If it is no source of subscriptions, or a table without the columns.
    """
    for option, name in (("subscription_id", subscription_id), ("expression", expression)):
        if not isinstance(name, str):
            raise InputError(f"{option} is the name of a column, not {type(name).__name__}")
    names = (subscription_id, expression)
    if _is_path(source):
        return [_file(source, names)]
    if isinstance(source, (list, tuple)) and source and all(map(_is_path, source)):
        return [_file(path, names) for path in source]
    if _is_table(source):
        return [_table(source, names)]
    if isinstance(source, Mapping):
        return [_items(source.items(), names)]
    if isinstance(source, Iterable) and not isinstance(source, (bytes, bytearray, memoryview)):
        return [_items(source, names)]
    raise InputError(
        "subscriptions come from a path, an Arrow, pandas, polars or DuckDB table, a mapping of id"
        " to expression, or an iterable of (id, expression) pairs, not from"
        f" {type(source).__name__}"
    )


def _is_path(source: object) -> bool:
    return isinstance(source, (str, os.PathLike))


def _file(path: Any, names: tuple[str, str]) -> SubscriptionSource:
    ignored: list[str] = []
    columns: dict[str, Any] = dict(zip(("subscription_id", "expression"), names, strict=True))
    columns["ignored_columns"] = ignored
    source = check_file(path)
    reader: RowReader
    if source.format.kind == "parquet":
        reader = RowBatches(read_subscription_batches(source, **columns), names)
    else:
        reader = RowItems(read_subscriptions(source, **columns))
    return SubscriptionSource(reader, os.fspath(path), ignored_columns=ignored)


# -- tables ---------------------------------------------------------------------------------------


def _is_table(source: Any) -> bool:
    return (
        hasattr(source, "__arrow_c_stream__")
        or isinstance(source, pa.RecordBatch)
        or (_package(source) in ("pandas", "polars") and hasattr(type(source), "columns"))
    )


def _package(source: object) -> str:
    return type(source).__module__.partition(".")[0]


def _table(source: Any, names: tuple[str, str]) -> SubscriptionSource:
    if _package(source) == "polars" and hasattr(source, "collect"):  # a LazyFrame
        source = source.collect()
    if _package(source) == "pandas":
        return _pandas(source, names)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    n_rows = len(source) if isinstance(source, Sized) else None
    reader = pa.RecordBatchReader.from_stream(source)
    ignored = _check_columns(reader.schema.names, names)
    return SubscriptionSource(
        RowBatches(iter(reader), names), n_rows=n_rows, ignored_columns=ignored
    )


def _pandas(frame: Any, names: tuple[str, str]) -> SubscriptionSource:
    ignored = _check_columns([str(name) for name in frame.columns], names)
    # As objects: Arrow would refuse a column of texts and JSON patterns.
    columns = (_without_nan(frame[name].tolist()) for name in names)
    rows = itertools.starmap(checked_row, zip(*columns, strict=True))
    return SubscriptionSource(RowItems(rows), n_rows=len(frame), ignored_columns=ignored)


def _without_nan(values: list[Any]) -> list[Any]:
    return [None if value is None or value != value else value for value in values]


def _check_columns(columns: list[str], names: tuple[str, str]) -> list[str]:
    """Raise unless both columns are there, once; return the others."""
    for option, name in zip(("subscription_id", "expression"), names, strict=True):
        if columns.count(name) != 1:
            raise missing_column("the table", name, columns, option)
    return [name for name in columns if name not in names]


# -- items ----------------------------------------------------------------------------------------


def _items(items: Iterable[Any], names: tuple[str, str]) -> SubscriptionSource:
    try:
        given = iter(items)
        n_rows = len(items) if isinstance(items, Sized) else None
    except Exception as error:
        raise InputError(f"subscriptions cannot be read from {shown(items)}") from error
    return SubscriptionSource(RowItems(given, lambda item: _row(item, names)), n_rows=n_rows)


def _row(item: Any, names: tuple[str, str]) -> SubscriptionRow:
    if isinstance(item, SubscriptionRow):
        return item
    if isinstance(item, (tuple, list)):
        if len(item) == 2:
            return SubscriptionRow(item[0], item[1])
        problem = f"a pair of id and expression is needed, not {len(item)} values"
        return SubscriptionRow(item[0] if item else None, None, problem)
    if isinstance(item, Mapping):
        return _mapping_row(item, names)
    if hasattr(item, "id") and hasattr(item, "expression"):  # a Subscription of engine or client
        return SubscriptionRow(item.id, item.expression)
    return SubscriptionRow(
        None, None, f"not a pair of id and expression, but {type(item).__name__}: {shown(item, 60)}"
    )


def _mapping_row(item: Mapping[Any, Any], names: tuple[str, str]) -> SubscriptionRow:
    identifier, expression = (item.get(name, _MISSING) for name in names)
    missing = [
        name for name, v in zip(names, (identifier, expression), strict=True) if v is _MISSING
    ]
    if not missing:
        return SubscriptionRow(identifier, expression)
    has = ", ".join(map(str, list(item)[:20])) or "nothing"
    near = did_you_mean(missing[0], map(str, item))
    problem = f"there is no {' and no '.join(map(repr, missing))}; it has: {has}{near}"
    return SubscriptionRow(None if identifier is _MISSING else identifier, None, problem)
