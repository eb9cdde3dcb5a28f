"""Tables as events: Arrow columns, and columns of Python objects beside them.

A table is flattened into leaves, arrays of scalars with the event of each slot:

    origin: string                       ──►  origin     rows 0 1 2 …
    geo: struct<lat, lon>                ──►  geo.lat, geo.lon
    tags: list<string>                   ──►  tags       elements with rows 0 0 2 2 2 …
    extra: map<string, int64>            ──►  extra.k for each key k that occurs

Nested arrays are never filtered: a slot below a null gets row -1 instead and is ignored at the
leaf. `flatten_event` defines what a row means; an event that is bad, or that might be, is *awkward*
and goes through `flatten_event` itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from matchmill.encoding.events.arrow_values import (
    Leaf,
    build_column,
    can_be_bad,
    decoded,
    is_list,
    is_object,
    list_lengths,
    map_entries,
    plain_array,
    screen,
    take,
    to_python,
    valid_slots,
    warn_of_objects,
)
from matchmill.encoding.events.columns import (
    ChainedEvents,
    Column,
    EventColumns,
    Events,
    Wanted,
    list_column,
    object_column,
)
from matchmill.encoding.events.dicts import cell_columns, with_awkward_rows
from matchmill.errors import EventError
from matchmill.language.flatten import Pairs, flatten_event
from matchmill.language.values import EventValue
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["LeafTree", "Source", "TableEvents", "read_table", "some_slots"]

Source: TypeAlias = tuple[str, pa.Array | list[Any]]

_ROWS_AT_ONCE = 10_000
_DEEPEST_TYPE = 200


def read_table(table: pa.Table | pa.RecordBatch, settings: Settings = DEFAULT_SETTINGS) -> Events:
    """Return the rows of a table as events."""
    if isinstance(table, pa.RecordBatch):
        sources = list(zip(table.schema.names, table.columns, strict=True))
        return TableEvents(sources, table.num_rows, settings)
    try:
        columns = [combined(column) for column in table.columns]
    except pa.ArrowInvalid:  # more than 2**31 list elements in one column
        return ChainedEvents(read_table(batch, settings) for batch in table.to_batches())
    sources = list(zip(table.schema.names, columns, strict=True))
    return TableEvents(sources, table.num_rows, settings)


def combined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_string(column.type):
        column = column.cast(pa.large_string())  # the texts may be too long for 32 bits together
    return column.combine_chunks()


class TableEvents(Events):
    """Events from named columns of one length: Arrow arrays, or lists of Python objects."""

    def __init__(
        self, sources: Iterable[Source], n_events: int, settings: Settings = DEFAULT_SETTINGS
    ) -> None:
        self._sources = list(sources)
        self._settings = settings
        self.n_events = n_events

    def columns(self, wanted: Wanted = None) -> EventColumns:
        """Return all events as columns."""
        awkward = np.zeros(self.n_events, bool)
        rows = np.arange(self.n_events)
        tree = LeafTree(self.n_events, self._settings, wanted)
        for name, cells in self._sources:
            if isinstance(cells, list):
                tree.add_columns(name, cell_columns(name, rows, cells, awkward))
            else:
                tree.visit(name, cells, rows)
        columns = tree.columns(awkward)
        return with_awkward_rows(columns, awkward, self._mappings, self._settings, wanted)

    def column_names(self) -> list[str]:
        """Return the names of the columns."""
        return [name for name, _ in self._sources]

    def event(self, i: int) -> dict[str, EventValue]:
        """Return one event."""
        self._check_index(i)
        return flatten_event(self._mappings_at(pa.array([i]))[0], self._settings)

    def _mappings(self, rows: list[int]) -> Iterator[Any]:
        """Yield rows as mappings; an EventError in place of a row that cannot be a mapping."""
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[start : start + _ROWS_AT_ONCE]
            try:
                yield from self._mappings_at(pa.array(some))
            except EventError:
                for i in some:
                    try:
                        yield from self._mappings_at(pa.array([i]))
                    except EventError as error:
                        yield error

    def _mappings_at(self, rows: pa.Array) -> list[Any]:
        names: list[str] = []
        columns: list[list[Any]] = []
        for name, cells in self._sources:
            if isinstance(cells, list):
                columns.append([cells[i] for i in rows.to_pylist()])
            else:
                columns.append(to_python(name, some_slots(cells, rows)))
            names.append(name)
        if not columns:
            return [{} for _ in range(len(rows))]
        return [Pairs(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def some_slots(array: pa.Array, rows: pa.Array) -> pa.Array:
    """Return some slots of an array."""
    return array.slice(rows[0].as_py(), 1) if len(rows) == 1 else take(array, rows)


# -- flattening -----------------------------------------------------------------------------------


class _ListLeaf(NamedTuple):
    """Lists, or what they hold under one name: the events that have one, and the elements."""

    name: str
    rows: np.ndarray
    elements: list[Leaf | Column]


class _Gathered(NamedTuple):
    presence: list[np.ndarray]
    leaves: list[Leaf | Column]


class LeafTree:
    """Collects the leaves of all columns by attribute, then builds the columns."""

    def __init__(self, n_events: int, settings: Settings, wanted: Wanted) -> None:
        self._n_events = n_events
        self._settings = settings
        self._wanted = wanted
        self._leaves: dict[str, list[Leaf | _ListLeaf | Column]] = {}
        self._awkward: list[np.ndarray] = []
        # What flatten_event counts against max_event_values: at most so many for each event,
        # and one more for each row in these arrays.
        self._n_nodes = 0
        self._slots: list[np.ndarray] = []

    def add_columns(self, name: str, columns: list[Column]) -> None:
        """Add the finished columns of an attribute."""
        self._n_nodes += 1
        self._leaves.setdefault(name, []).extend(columns)

    def visit(self, name: str, array: pa.Array, rows: np.ndarray) -> None:
        """Add an array that is not inside a list."""
        self._check_depth(name, rows, _depth(array.type))
        self._visit(name, array, rows)

    def visit_entries(self, array: pa.MapArray, rows: np.ndarray) -> None:
        """Add a map whose keys are attributes themselves."""
        self._check_depth("", rows, _depth(array.type) - 1)
        self._visit_keys("", array, rows)

    def _check_depth(self, name: str, rows: np.ndarray, depth: int) -> None:
        if depth > _DEEPEST_TYPE:
            raise EventError(f"attribute {name!r}: an Arrow type nested {depth} deep")
        if depth > self._settings.max_event_depth:
            self._awkward.append(rows)

    def _visit(self, name: str, array: pa.Array, rows: np.ndarray, in_map: bool = False) -> None:
        if in_map:
            self._slots.append(rows)
        else:
            self._n_nodes += 1
        if is_object(array.type):
            column = self._objects(name, array, rows)
            self._leaves.setdefault(name, []).append(column)
            return
        if pa.types.is_nested(decoded(array.type)):
            array = plain_array(array)
        kind = array.type
        if pa.types.is_struct(kind):
            for field, child in zip(kind, array.flatten(), strict=True):
                self._visit(f"{name}.{field.name}", child, rows, in_map)
        elif pa.types.is_map(kind):
            self._visit_keys(f"{name}.", array, rows)
        elif is_list(kind):
            self._visit_list(name, array, rows)
        elif not pa.types.is_null(kind):
            self._leaves.setdefault(name, []).append(Leaf(name, array, rows))

    def _visit_keys(self, prefix: str, array: pa.MapArray, rows: np.ndarray) -> None:
        for key, key_rows, items in self._entries(prefix, array, rows):
            self._awkward.append(key_rows[1:][key_rows[1:] == key_rows[:-1]])
            self._visit(prefix + key, items, key_rows, in_map=True)

    def _visit_list(self, name: str, array: pa.Array, rows: np.ndarray) -> None:
        gathered: dict[str, _Gathered] = {}
        list_rows = rows[valid_slots(array)] if array.null_count else rows
        list_rows = list_rows[list_rows >= 0]
        self._slots.append(list_rows)
        self._gather(gathered, name, array.flatten(), np.repeat(rows, list_lengths(array)))
        found = np.zeros(self._n_events, bool)
        for part in gathered.values():
            for present in part.presence:
                found[present] = True
        empty = list_rows[~found[list_rows]]
        if len(empty):
            gathered.setdefault(name, _Gathered([], [])).presence.append(empty)
        for inner, part in gathered.items():
            present = np.unique(np.concatenate(part.presence))
            if len(present):
                leaf = _ListLeaf(inner, present, part.leaves)
                self._leaves.setdefault(inner, []).append(leaf)

    def _gather(
        self, gathered: dict[str, _Gathered], name: str, array: pa.Array, rows: np.ndarray
    ) -> None:
        """Add an array inside a list. Anything but an object or a list makes the name present."""
        array = plain_array(array)
        kind = array.type
        live = rows[rows >= 0]
        self._slots.append(live)
        if is_object(kind) or not pa.types.is_nested(kind):
            place = gathered.setdefault(name, _Gathered([], []))
            place.presence.append(live)
            if is_object(kind):
                place.leaves.append(self._objects(name, array, rows))
            elif not pa.types.is_null(kind):
                place.leaves.append(Leaf(name, array, rows))
            return
        if array.null_count:
            valid = valid_slots(array)
            nulls = rows[~valid]
            gathered.setdefault(name, _Gathered([], [])).presence.append(nulls[nulls >= 0])
            rows = np.where(valid, rows, -1)
        if pa.types.is_struct(kind):
            for field, child in zip(kind, array.flatten(), strict=True):
                self._gather(gathered, f"{name}.{field.name}", child, rows)
        elif pa.types.is_map(kind):
            for key, key_rows, items in self._entries(name, array, rows):
                self._gather(gathered, f"{name}.{key}", items, key_rows)
        else:
            element_rows = np.repeat(rows, list_lengths(array))
            self._gather(gathered, name, array.flatten(), element_rows)

    def _objects(self, name: str, array: pa.Array, rows: np.ndarray) -> Column:
        warn_of_objects(name, array.type, self._wanted)
        rows = rows[valid_slots(plain_array(array))]
        return object_column(name, rows[rows >= 0])

    def _entries(
        self, name: str, array: pa.MapArray, rows: np.ndarray
    ) -> Iterator[tuple[str, np.ndarray, pa.Array]]:
        """Yield each key that occurs, the rows of its entries, and their values."""
        lengths, keys, items = map_entries(array)
        if array.null_count:
            rows = np.where(valid_slots(array), rows, -1)
        rows = np.repeat(rows, lengths)
        screened = screen(Leaf(name, keys, np.arange(len(keys))), bad := np.zeros(len(keys), bool))
        bad[:] = True
        bad[screened.rows] = False
        self._awkward.append(rows[bad & (rows >= 0)])
        encoded = screened.values.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")
        places = screened.rows[order]
        bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
        for k, key in enumerate(encoded.dictionary.to_pylist()):
            some = places[bounds[k] : bounds[k + 1]]
            some = some[rows[some] >= 0]
            if len(some):
                yield key, rows[some], take(items, pa.array(some))

    # -- columns ----------------------------------------------------------------------------------

    def columns(self, awkward: np.ndarray) -> list[Column]:
        """Return the columns; flag the events that need `flatten_event`."""
        columns: list[Column] = []
        for rows in self._awkward:
            awkward[rows] = True
        self._flag_large_events(awkward)
        for name, leaves in self._leaves.items():
            keep = self._wanted is None or self._wanted(name)
            contested = len(leaves) > 1
            presence: list[np.ndarray] = []
            for leaf in leaves:
                column = self._column(leaf, awkward, keep, contested)
                if column is None:
                    continue
                presence.append(column.rows)
                if keep:
                    columns.append(column)
            if contested:
                counts = np.bincount(np.concatenate(presence), minlength=self._n_events)
                awkward |= counts > 1
        return columns

    def _column(
        self, leaf: Leaf | _ListLeaf | Column, awkward: np.ndarray, keep: bool, contested: bool
    ) -> Column | None:
        """Return the column of a leaf, or None if it is not needed; flag its bad values anyway."""
        if isinstance(leaf, Column):
            return leaf
        if isinstance(leaf, _ListLeaf):
            elements = [self._column(e, awkward, keep, False) for e in leaf.elements]
            return list_column(leaf.name, leaf.rows, [e for e in elements if e is not None])
        if not keep and not contested and not can_be_bad(leaf.array.type):
            return None
        screened = screen(leaf, awkward)
        return build_column(screened) if keep or contested else None

    def _flag_large_events(self, awkward: np.ndarray) -> None:
        budget = self._settings.max_event_values - self._n_nodes
        if sum(map(len, self._slots)) > budget:
            counts = np.zeros(self._n_events, np.int64)
            for rows in self._slots:
                counts += np.bincount(rows, minlength=self._n_events)
            awkward |= counts > budget


def _depth(kind: pa.DataType) -> int:
    """Count how deep a type is nested, without recursion: types may come from anywhere."""
    deepest = 0
    stack = [(kind, 1)]
    while stack:
        kind, depth = stack.pop()
        kind = decoded(kind)
        deepest = max(deepest, depth)
        if pa.types.is_nested(kind):
            stack += [(kind.field(i).type, depth + 1) for i in range(kind.num_fields)]
    return deepest
