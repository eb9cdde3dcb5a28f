"""Events in one column, one event per cell.

    struct<origin: string, delay: int>     the fields are attributes
    map<string, string>                    the keys are attributes
    array<struct<name, value>>             pairs: the first field is the attribute
    string                                 a JSON object

A null struct, map or array is an event without attributes; a null text is rejected. There are no
warnings of objects: whoever has such cells knows their type in advance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from matchmill.encoding.events.arrow import LeafTree, TableEvents, some_slots
from matchmill.encoding.events.arrow_values import (
    Leaf,
    build_column,
    decoded,
    is_list,
    is_object,
    is_text,
    list_lengths,
    map_entries,
    plain_array,
    screen,
    take,
    to_python,
    valid_slots,
)
from matchmill.encoding.events.columns import Column, EventColumns, Events, Wanted
from matchmill.encoding.events.dicts import with_awkward_rows
from matchmill.encoding.events.json_lines import read_json_cells
from matchmill.errors import EventError
from matchmill.language.flatten import Pairs, flatten_record
from matchmill.language.values import EventValue
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["read_cells"]


def read_cells(cells: pa.Array, settings: Settings = DEFAULT_SETTINGS) -> Events:
    """Return the events of an array, read as its type says."""
    kind = cells.type
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        return _StructEvents(zip(names, cells.flatten(), strict=True), len(cells), settings)
    if pa.types.is_map(kind) and is_text(kind.key_type):
        return _MapEvents(cells, settings)
    if is_list(kind) and _are_pairs(kind.value_type):
        return _pair_events(cells, settings)
    if is_text(kind):
        return read_json_cells(cells, settings)
    raise EventError(
        f"events cannot be read from a column of type {kind}: give structs, maps from strings,"
        " arrays of (name, value) structs, or JSON texts"
    )


def _are_pairs(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and kind.num_fields == 2 and is_text(kind.field(0).type)


def _pair_events(cells: pa.Array, settings: Settings) -> Events:
    names, values = cells.flatten().flatten()
    rows = np.repeat(np.arange(len(cells)), list_lengths(cells))
    named = valid_slots(names)
    if not named.all():  # nobody can ask for a value without a name
        rows, names, values = rows[named], names.filter(pa.array(named)), _some(values, named)
    offsets = np.searchsorted(rows, np.arange(len(cells) + 1)).astype(np.int32)
    return _MapEvents(pa.MapArray.from_arrays(pa.array(offsets), names, values), settings)


def _some(array: pa.Array, kept: np.ndarray) -> pa.Array:
    return take(array, pa.array(np.flatnonzero(kept)))


class _StructEvents(TableEvents):
    """Structs whose fields are attributes."""

    _warns = False


class _MapEvents(Events):
    """Maps from attributes to values."""

    def __init__(self, maps: pa.MapArray, settings: Settings) -> None:
        self._maps = plain_array(maps)
        self._settings = settings
        self.n_events = len(maps)

    def columns(self, wanted: Wanted = None) -> EventColumns:
        awkward = np.zeros(self.n_events, bool)
        kind = self._maps.type.item_type
        if not is_object(kind) and not pa.types.is_nested(decoded(kind)) and kind != pa.null():
            columns = self._plain_columns(awkward, wanted)
        else:
            tree = LeafTree(self.n_events, self._settings, wanted, warns=False)
            tree.visit_entries(self._maps, np.arange(self.n_events))
            columns = tree.columns(awkward)
        return with_awkward_rows(columns, awkward, self._mappings, self._settings, wanted)

    def _plain_columns(self, awkward: np.ndarray, wanted: Wanted) -> list[Column]:
        """Return the columns of maps to scalars: convert all values at once, then divide by key.

        With hundreds of attributes, one step for each takes several times as long.
        """
        lengths, keys, items = map_entries(self._maps)
        rows = np.repeat(np.arange(self.n_events), lengths)
        slots = np.arange(len(rows))
        if self._maps.null_count:
            slots[np.repeat(~valid_slots(self._maps), lengths)] = -1
        awkward |= lengths > self._settings.max_event_values
        bad = np.zeros(len(rows), bool)
        names = screen(Leaf("", keys, slots), bad)
        values = build_column(screen(Leaf("", items, slots), bad))
        awkward[rows[bad]] = True
        encoded = names.values.dictionary_encode()
        attributes = encoded.dictionary.to_pylist()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        if len(attributes) < 1 << 16:
            codes = codes.astype(np.uint16)  # NumPy sorts these in linear time
        order = np.argsort(codes, kind="stable")
        slots, codes = names.rows[order], codes[order]
        repeated = (codes[1:] == codes[:-1]) & (rows[slots[1:]] == rows[slots[:-1]])
        awkward[rows[slots[1:][repeated]]] = True
        places = np.full(len(rows), -1)
        places[values.rows] = np.arange(len(values.rows))
        taken = places[slots]
        codes, taken = codes[taken >= 0], taken[taken >= 0]
        bounds = np.searchsorted(codes, np.arange(len(attributes) + 1))
        return _divided(values, rows, taken, attributes, bounds.tolist(), wanted)

    def event(self, i: int) -> dict[str, EventValue]:
        self._check_index(i)
        return flatten_record(self._mapping(i), self._settings, has_nulls=False)

    def _mappings(self, rows: list[int]) -> Iterator[Any]:
        return (self._mapping(i) for i in rows)

    def _mapping(self, i: int) -> Pairs:
        (found,) = to_python("", some_slots(self._maps, pa.array([i])))
        return Pairs(() if found is None else found.items())


def _divided(
    values: Column,
    rows: np.ndarray,
    taken: np.ndarray,
    attributes: list[str],
    bounds: list[int],
    wanted: Wanted,
) -> list[Column]:
    """Return one column per attribute; `taken` has its values, in order, from bounds[k] on."""
    all_rows = rows[values.rows[taken]]
    text = None if values.text is None else values.text.take(pa.array(taken))
    whole = values.whole[taken] if len(values.whole) else values.whole
    part = values.part[taken] if len(values.part) else values.part
    return [
        values._replace(
            attribute=name,
            rows=all_rows[start:stop],
            whole=whole[start:stop],
            part=part[start:stop],
            text=None if text is None else text.slice(start, stop - start),
        )
        for name, start, stop in zip(attributes, bounds[:-1], bounds[1:], strict=True)
        if stop > start and (wanted is None or wanted(name))
    ]
