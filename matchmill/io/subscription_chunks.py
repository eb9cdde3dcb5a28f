"""Some rows of a source of subscriptions at a time: one by one, or as columns.

take      the next rows as a chunk
row(i)    what row i says, or why it cannot be read
columns   all ids, and all expressions as one array of Arrow; nothing that needs a look at a row
is in them: its expression is the empty text, which is none
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from matchmill.io.subscription_files import SubscriptionRow, batch_rows

__all__ = ["Columns", "RowBatches", "RowChunk", "RowItems", "RowReader", "is_unicode"]


class Columns(NamedTuple):
    """The columns of a chunk."""

    ids: list[Any]
    expressions: pa.Array  # of large_string, without nulls
    patterns: tuple[list[int], list[dict[Any, Any]]] = ([], [])  # rows that are objects; these


class RowChunk(Protocol):
    """Some rows."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        ...

    @property
    def n_characters(self) -> int:
        """About how long all expressions are."""
        ...

    def row(self, i: int) -> SubscriptionRow:
        """Return one row."""
        ...

    def columns(self) -> Columns | None:
        """Return all rows as columns; None if they are none."""
        ...


class RowReader(Protocol):
    """Where rows come from."""

    def take(self, n: int) -> RowChunk:
        """Return the next rows, at most n; none at the end."""
        ...


# -- from objects ---------------------------------------------------------------------------------


class RowItems:
    """Reads rows from an iterator of objects. An error of the iterator comes after its rows."""

    def __init__(
        self, items: Iterator[Any], as_row: Callable[[Any], SubscriptionRow] | None = None
    ) -> None:
        self._items = items
        self._as_row = as_row
        self._error: Exception | None = None

    def take(self, n: int) -> RowChunk:
        """Return the next rows."""
        if self._error is not None:
            raise self._error
        items: list[Any] = []
        try:
            items.extend(islice(self._items, n))
        except Exception as error:
            self._error = error
            if not items:
                raise
        return _ItemChunk(items, self._as_row)


class _ItemChunk:
    def __init__(self, items: list[Any], as_row: Callable[[Any], SubscriptionRow] | None) -> None:
        self._items = items
        self._as_row = as_row
        self._columns: Columns | None = None

    @property
    def n_rows(self) -> int:
        return len(self._items)

    @property
    def n_characters(self) -> int:
        columns = self.columns()
        return 0 if columns is None else int(columns.expressions.nbytes)

    def row(self, i: int) -> SubscriptionRow:
        item: Any = self._items[i]
        return item if self._as_row is None else self._as_row(item)

    def columns(self) -> Columns | None:
        if self._columns is None:
            self._columns = self._made_columns()
        return self._columns

    def _made_columns(self) -> Columns:
        items = self._items
        kinds = set(map(type, items))
        if kinds <= {tuple, list} and set(map(len, items)) == {2}:
            ids, expressions = ([item[i] for item in items] for i in range(2))
        else:
            if self._as_row is not None:
                self._items = items = list(map(self._as_row, items))
                self._as_row = None
            ids = [item.id for item in items]
            expressions = [item.expression if item.problem is None else "" for item in items]
        return Columns(ids, _text_array(expressions), _objects(expressions))


def _objects(values: Sequence[Any]) -> tuple[list[int], list[dict[Any, Any]]]:
    """Return which values are objects, and these."""
    if dict not in set(map(type, values)):
        return [], []
    places = [i for i, value in enumerate(values) if type(value) is dict]
    return places, [values[i] for i in places]


def _text_array(values: Sequence[Any]) -> pa.Array:
    if set(map(type, values)) != {str}:
        values = [value if type(value) is str else "" for value in values]
    try:
        return pa.array(values, pa.large_string())
    except UnicodeEncodeError:
        values = [value if is_unicode(value) else "" for value in values]
        return pa.array(values, pa.large_string())


def is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# -- from record batches --------------------------------------------------------------------------


class RowBatches:
    """Reads rows from the two columns of record batches."""

    def __init__(self, batches: Iterator[pa.RecordBatch], names: tuple[str, str]) -> None:
        self._batches = batches
        self._names = names
        self._batch: pa.RecordBatch | None = None

    def take(self, n: int) -> RowChunk:
        """Return the next rows."""
        batch = self._batch
        while batch is None or batch.num_rows == 0:
            batch = next(self._batches, None)
            if batch is None:
                return _ItemChunk([], None)
        self._batch = batch.slice(n)
        return _BatchChunk(batch.slice(0, n), self._names)


class _BatchChunk:
    def __init__(self, batch: pa.RecordBatch, names: tuple[str, str]) -> None:
        self._batch = batch
        self._names = names

    @property
    def n_rows(self) -> int:
        return int(self._batch.num_rows)

    @property
    def n_characters(self) -> int:
        return int(self._batch.column(self._names[1]).nbytes)

    def row(self, i: int) -> SubscriptionRow:
        return next(batch_rows(self._batch.slice(i, 1), self._names))

    def columns(self) -> Columns | None:
        ids, expressions = (self._batch.column(name) for name in self._names)
        kind = expressions.type
        if pa.types.is_dictionary(kind):
            expressions, kind = expressions.dictionary_decode(), kind.value_type
        if not (_is_text(kind) and _is_id(ids.type)):
            return None
        try:
            expressions = expressions.cast(pa.large_string()).fill_null("")
            expressions.validate(full=True)
            return Columns(ids.to_pylist(), expressions)
        except (pa.ArrowInvalid, UnicodeDecodeError):  # one of the texts is not UTF-8
            return None


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_id(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return _is_text(kind) or bool(pa.types.is_integer(kind))
