"""Rows of subscriptions from things in memory: pairs, mappings, Arrow tables, frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from matchmill.errors import InputError
from matchmill.io.subscription_files import SubscriptionRow

__all__ = ["subscription_rows"]

_MISSING = object()


def subscription_rows(
    source: Any, *, id_column: str, expression_column: str
) -> Iterator[SubscriptionRow]:
    """One row for each subscription; a row that makes no sense carries its problem."""
    module = type(source).__module__.partition(".")[0]
    if module == "polars":
        source = source.to_arrow()
    elif module == "pandas":
        source = pa.Table.from_pandas(source, preserve_index=False)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return _from_arrow(source, id_column, expression_column)
    if isinstance(source, Mapping):
        return _from_items(source.items(), id_column, expression_column)
    if isinstance(source, Iterable) and not isinstance(source, (str, bytes)):
        return _from_items(source, id_column, expression_column)
    raise InputError(
        "subscriptions come from a path, an Arrow table, a pandas or polars frame, a mapping, or"
        f" an iterable of (id, expression) pairs, not from {type(source).__name__}"
    )


def _from_arrow(
    table: pa.Table, id_column: str, expression_column: str
) -> Iterator[SubscriptionRow]:
    for name in (id_column, expression_column):
        if table.column_names.count(name) != 1:
            raise InputError(
                f"the table has no single column {name!r}; it has: {', '.join(table.column_names)}"
            )
    return _arrow_rows(table.select([id_column, expression_column]))


def _arrow_rows(table: pa.Table) -> Iterator[SubscriptionRow]:
    for batch in table.to_batches(max_chunksize=65536):
        for identifier, expression in zip(
            batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True
        ):
            yield SubscriptionRow(identifier, expression)


def _from_items(
    items: Iterable[Any], id_column: str, expression_column: str
) -> Iterator[SubscriptionRow]:
    for item in items:
        if isinstance(item, SubscriptionRow):
            yield item
        elif isinstance(item, tuple) and len(item) == 2:
            yield SubscriptionRow(item[0], item[1])
        elif isinstance(item, Mapping):
            identifier = item.get(id_column, _MISSING)
            expression = item.get(expression_column, _MISSING)
            missing = [
                name
                for name, value in ((id_column, identifier), (expression_column, expression))
                if value is _MISSING
            ]
            problem = f"there is no {' and no '.join(map(repr, missing))}" if missing else None
            yield SubscriptionRow(
                None if identifier is _MISSING else identifier, expression, problem
            )
        else:
            problem = f"not a pair of id and expression: {str(item)[:60]!r}"
            yield SubscriptionRow(None, None, problem)
