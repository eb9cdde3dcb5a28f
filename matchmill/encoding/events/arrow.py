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
    DEEPEST_TYPE,
    Leaf,
    build_column,
    decoded,
    is_list,
    is_object,
    list_lengths,
    map_entries,
    not_nan,
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
from matchmill.language.flatten import Pairs, flatten_record
from matchmill.language.values import EventValue
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["LeafTree", "Source", "TableEvents", "read_table", "some_slots", "table_sources"]

Source: TypeAlias = tuple[str, pa.Array | list[Any]]

_ROWS_AT_ONCE = 10_000


def read_table(table: pa.Table | pa.RecordBatch, settings: Settings = DEFAULT_SETTINGS) -> Events:
    """Return the rows of a table as events."""
    if isinstance(table, pa.RecordBatch):
        sources = list(zip(table.schema.names, table.columns, strict=True))
        return TableEvents(sources, table.num_rows, settings)
    try:
        return TableEvents(table_sources(table), table.num_rows, settings)
    except pa.ArrowInvalid:  # more than 2**31 list elements in one column
        return ChainedEvents(read_table(batch, settings) for batch in table.to_batches())


def table_sources(table: pa.Table) -> list[Source]:
    """Return the columns of a table, each as one array; ArrowInvalid if one is too large."""
    columns = map(combined, table.columns)
    return list(zip(table.schema.names, columns, strict=True))


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

    _warns = True  # of columns that hold objects

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
        tree = LeafTree(self.n_events, self._settings, wanted, warns=self._warns)
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
        row = self._mappings_at(pa.array([i]))[0]
        return flatten_record(row, self._settings, has_nulls=False)

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


class _Entries(NamedTuple):
    key: str
    slots: np.ndarray  # of the maps
    rows: np.ndarray
    values: pa.Array


class LeafTree:
    """Collects the leaves of all columns by attribute, then builds the columns."""

    def __init__(
        self, n_events: int, settings: Settings, wanted: Wanted, *, warns: bool = True
    ) -> None:
        self._warns = warns
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
        self._visit(name, array, rows, 1)

    def visit_entries(self, array: pa.MapArray, rows: np.ndarray) -> None:
        """Add a map whose keys are attributes themselves."""
        self._visit_keys("", array, rows, 0)

    def _is_object(self, kind: pa.DataType, depth: int) -> bool:
        """Whether no attributes are made of what is inside; `flatten_event` counts depth alike."""
        if depth >= self._settings.max_event_depth or depth >= DEEPEST_TYPE:
            return pa.types.is_nested(decoded(kind)) or is_object(kind)
        return is_object(kind)

    def _visit(
        self, name: str, array: pa.Array, rows: np.ndarray, depth: int, in_map: bool = False
    ) -> None:
        if in_map:
            self._slots.append(rows)
        else:
            self._n_nodes += 1
        if self._is_object(array.type, depth):
            column = self._objects(name, array, rows)
            self._leaves.setdefault(name, []).append(column)
            return
        if pa.types.is_nested(decoded(array.type)):
            array = plain_array(array)
        kind = array.type
        if pa.types.is_struct(kind):
            for field, child in zip(kind, array.flatten(), strict=True):
                self._visit(f"{name}.{field.name}", child, rows, depth + 1, in_map)
        elif pa.types.is_map(kind):
            self._visit_keys(f"{name}.", array, rows, depth)
        elif is_list(kind):
            self._visit_list(name, array, rows, depth)
        elif not pa.types.is_null(kind):
            self._leaves.setdefault(name, []).append(Leaf(name, array, rows))

    def _visit_keys(self, prefix: str, array: pa.MapArray, rows: np.ndarray, depth: int) -> None:
        for entries in self._entries(prefix, array, rows):
            key_rows = entries.rows
            self._awkward.append(key_rows[1:][key_rows[1:] == key_rows[:-1]])
            self._visit(prefix + entries.key, entries.values, key_rows, depth + 1, in_map=True)

    def _visit_list(self, name: str, array: pa.Array, rows: np.ndarray, depth: int) -> None:
        gathered: dict[str, _Gathered] = {}
        self._gather(gathered, name, array, rows, depth)
        for inner, part in gathered.items():
            present = np.unique(np.concatenate(part.presence))
            if len(present):
                leaf = _ListLeaf(inner, present, part.leaves)
                self._leaves.setdefault(inner, []).append(leaf)

    def _gather(
        self,
        gathered: dict[str, _Gathered],
        name: str,
        array: pa.Array,
        rows: np.ndarray,
        depth: int,
    ) -> np.ndarray:
        """Add an array inside a list; return a flag for each slot that has anything.

        What is null, and an object all of whose values are, has nothing: its names are not made
        present. A list always has, if only the name of an empty list.
        """
        array = plain_array(array)
        kind = array.type
        self._slots.append(rows[rows >= 0])
        found = valid_slots(array) & (rows >= 0)
        if self._is_object(kind, depth) or not pa.types.is_nested(kind):
            if pa.types.is_null(kind):
                return found
            place = gathered.setdefault(name, _Gathered([], []))
            if self._is_object(kind, depth):
                place.leaves.append(self._objects(name, array, rows))
            else:
                place.leaves.append(Leaf(name, array, rows))
                found &= not_nan(array)
            place.presence.append(rows[found])
            return found
        rows = np.where(found, rows, -1)
        if is_list(kind):
            elements, lengths = array.flatten(), list_lengths(array)
            owners = np.repeat(np.arange(len(array)), lengths)
            inside = self._gather(gathered, name, elements, rows[owners], depth + 1)
            filled = np.zeros(len(array), bool)
            filled[owners[inside]] = True
            empty = rows[found & ~filled]
            if len(empty):
                gathered.setdefault(name, _Gathered([], [])).presence.append(empty)
            return found
        filled = np.zeros(len(array), bool)
        if pa.types.is_struct(kind):
            for field, child in zip(kind, array.flatten(), strict=True):
                filled |= self._gather(gathered, f"{name}.{field.name}", child, rows, depth + 1)
        else:
            for key, slots, key_rows, items in self._entries(name, array, rows):
                inside = self._gather(gathered, f"{name}.{key}", items, key_rows, depth + 1)
                filled[slots[inside]] = True
        return filled

    def _objects(self, name: str, array: pa.Array, rows: np.ndarray) -> Column:
        if self._warns and is_object(array.type):  # and not only nested too deep
            warn_of_objects(name, array.type, self._wanted)
        rows = rows[valid_slots(plain_array(array))]
        return object_column(name, rows[rows >= 0])

    def _entries(self, name: str, array: pa.MapArray, rows: np.ndarray) -> Iterator[_Entries]:
        """Yield the entries of each key that occurs; those whose key is no name are left out."""
        lengths, keys, items = map_entries(array)
        if array.null_count:
            rows = np.where(valid_slots(array), rows, -1)
        slots = np.repeat(np.arange(len(array)), lengths)
        places = np.arange(len(keys))
        places[rows[slots] < 0] = -1
        screened = screen(Leaf(name, keys, places), np.zeros(len(keys), bool))
        encoded = screened.values.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")
        places = screened.rows[order]
        bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
        for k, key in enumerate(encoded.dictionary.to_pylist()):
            some = places[bounds[k] : bounds[k + 1]]
            yield _Entries(key, slots[some], rows[slots[some]], take(items, pa.array(some)))

    # -- columns ----------------------------------------------------------------------------------

    def columns(self, awkward: np.ndarray) -> list[Column]:
        """Return the columns; flag the events that need `flatten_event`."""
        columns: list[Column] = []
        for rows in self._awkward:
            awkward[rows] = True
        self._flag_large_events(awkward)
        for name, leaves in self._leaves.items():
            if self._wanted is not None and not self._wanted(name):
                continue
            found = [self._column(leaf, awkward) for leaf in leaves]
            columns += found
            if len(found) > 1:  # a name that an event has twice is for `flatten_event`
                rows = np.concatenate([column.rows for column in found])
                awkward |= np.bincount(rows, minlength=self._n_events) > 1
        return columns

    def _column(self, leaf: Leaf | _ListLeaf | Column, awkward: np.ndarray) -> Column:
        """Return the column of a leaf; flag the events of its bad values."""
        if isinstance(leaf, Column):
            return leaf
        if isinstance(leaf, _ListLeaf):
            elements = [self._column(element, awkward) for element in leaf.elements]
            return list_column(leaf.name, leaf.rows, elements)
        return build_column(screen(leaf, awkward))

    def _flag_large_events(self, awkward: np.ndarray) -> None:
        budget = self._settings.max_event_values - self._n_nodes
        if sum(map(len, self._slots)) > budget:
            counts = np.zeros(self._n_events, np.int64)
            for rows in self._slots:
                counts += np.bincount(rows, minlength=self._n_events)
            awkward |= counts > budget
