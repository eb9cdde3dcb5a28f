"""Events that are Python mappings, and columns that are lists of Python objects.

There are two ways to columns:

    by row       `flatten_event` on each event, the values gathered per attribute
    by column    one list of cells per attribute, `set(map(type, cells))` tells what is in it,
                 and each type is converted at once

By column is several times faster, but works for plain scalars only. So an event with anything else
(a nested record, a list, an image, an infinite number, …) is *awkward* and is read by row, which
also finds the reason for a rejection. Events that are mostly awkward, or that share few attributes,
are read by row from the start.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from matchmill.encoding.events.asked import Asked, Wanted
from matchmill.encoding.events.columns import (
    Column,
    EventColumns,
    Events,
    drop_rows,
    list_column,
    merge_columns,
    number_column,
    object_column,
    text_column,
)
from matchmill.encoding.numbers import decimal_pairs, split_floats
from matchmill.errors import EventError
from matchmill.language.flatten import as_mapping, flatten_event, flatten_record, is_record
from matchmill.language.values import (
    EventValue,
    Region,
    bad_scalar,
    decimal_value,
    domain_value,
    region_of,
)
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["DictEvents", "Shape", "cell_columns", "checked_columns", "with_awkward_rows"]

_SAMPLED = 32
_NAMES_AT_ONCE = 64
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_PLAIN = frozenset((str, int, float, bool, type(None), dt.date, dt.datetime))


class DictEvents(Events):
    """Events from mappings. An item may also be an EventError: the reason why it is rejected."""

    def __init__(
        self,
        items: Sequence[Any],
        settings: Settings = DEFAULT_SETTINGS,
        *,
        are_dicts: bool = False,  # the caller has looked: every item is a dict
    ) -> None:
        self.items = items
        self._are_dicts = are_dicts
        self._settings = settings
        self.n_events = len(items)

    def event(self, i: int) -> dict[str, EventValue]:
        """Return one event."""
        self._check_index(i)
        item = self.items[i]
        if isinstance(item, EventError):
            raise item
        return flatten_record(item, self._settings)

    def columns(self, wanted: Wanted = None) -> EventColumns:
        """Return all events as columns."""
        awkward = np.zeros(self.n_events, bool)
        columns: list[Column] = []
        if self.shape().is_tabular:
            columns = self._by_column(awkward, wanted)
        else:
            awkward[:] = True
        return with_awkward_rows(columns, awkward, self._read, self._settings, wanted)

    def some(self, rows: list[int]) -> DictEvents:
        """Return some of the events."""
        return DictEvents(list(self._read(rows)), self._settings, are_dicts=self._are_dicts)

    def _read(self, rows: list[int]) -> Iterable[Any]:
        return self.items if len(rows) == self.n_events else [self.items[i] for i in rows]

    def shape(self) -> Shape:
        """Guess from some events what all are like."""
        step = max(1, self.n_events // _SAMPLED)
        sample = [item for item in self.items[::step] if type(item) is dict]
        plain = [item for item in sample if _PLAIN.issuperset(map(type, item.values()))]
        names = set(chain.from_iterable(plain))
        n_values = sum(map(len, plain))
        is_plain = 2 * len(plain) >= min(self.n_events, _SAMPLED)
        is_tabular = is_plain and self.n_events >= 4 and len(names) * len(plain) <= 3 * n_values
        return Shape(is_tabular, names, n_values / max(1, len(plain)))

    def _by_column(self, awkward: np.ndarray, wanted: Wanted) -> list[Column]:
        items = self.items
        if not self._are_dicts and set(map(type, items)) != {dict}:
            for i, item in enumerate(items):
                awkward[i] = type(item) is not dict
            items = [item if type(item) is dict else {} for item in items]
        lengths = list(map(len, items))
        if max(lengths) > self._settings.max_event_values:
            awkward |= np.array(lengths) > self._settings.max_event_values
        names = self._names(items, lengths, wanted)
        if names is None:
            awkward[:] = True
            return []
        columns: list[Column] = []
        all_rows = np.arange(len(items))
        for name, cells in _cells_by_name(items, names):
            if type(name) is not str or (not name.isascii() and bad_scalar(name)):
                awkward[[i for i, item in enumerate(items) if name in item]] = True
                continue
            found = cell_columns(name, all_rows, cells, awkward)
            if wanted is None or wanted(name):
                columns += found
        return columns

    def _names(
        self, items: Sequence[dict[str, Any]], lengths: list[int], wanted: Wanted
    ) -> list[Any] | None:
        """Return the names to be read by column; None if that does not pay."""
        if isinstance(wanted, Asked):
            few = wanted.heads_if_few(sum(lengths) // len(lengths))
            if few is not None:
                return few
        names = list(dict.fromkeys(chain.from_iterable(items)))
        if len(names) * len(items) > 8 * sum(lengths):  # the first events were not typical
            return None
        return (
            [name for name in names if wanted.is_head(name)] if isinstance(wanted, Asked) else names
        )


class Shape(NamedTuple):
    """What the events of a source are like, by a sample of them."""

    is_tabular: bool  # most events are plain, and share their attributes
    names: Set[Any]  # in the plain events of the sample
    n_per_event: float  # of these


def _cells_by_name(
    items: Sequence[dict[str, Any]], names: Sequence[Any]
) -> Iterator[tuple[Any, list[Any]]]:
    """Return the cells of each name, None where it is missing.

    Many names are looked up while a dict is in the cache of the processor, then transposed.
    """
    for start in range(0, len(names), _NAMES_AT_ONCE):
        some = names[start : start + _NAMES_AT_ONCE]
        if len(some) == 1:
            yield some[0], [item.get(some[0]) for item in items]
            continue
        try:
            rows = list(map(itemgetter(*some), items))
        except KeyError:
            rows = [tuple(map(item.get, some)) for item in items]
        yield from zip(some, map(list, zip(*rows, strict=True)), strict=True)


def _flatten(item: Any, settings: Settings, wanted: Wanted = None) -> dict[str, EventValue]:
    if isinstance(item, EventError):
        raise item
    if isinstance(wanted, Asked) and (isinstance(item, Mapping) or is_record(item)):
        item = as_mapping(item)
        if len(item) <= settings.max_event_values:
            item = wanted.part_of(item)
    return flatten_event(item, settings)


# -- by row ---------------------------------------------------------------------------------------


def with_awkward_rows(
    columns: list[Column],
    awkward: np.ndarray,
    read: Callable[[list[int]], Iterable[Any]],
    settings: Settings,
    wanted: Wanted,
) -> EventColumns:
    """Return columns that were read by column, with the awkward events read again by row.

    `read` returns the events of some rows as mappings, or as EventErrors.
    """
    if not awkward.any():
        return EventColumns(len(awkward), merge_columns(columns), {})
    columns = drop_rows(columns, awkward)
    rows = np.flatnonzero(awkward).tolist()
    cells: dict[str, tuple[list[int], list[EventValue]]] = {}
    rejected: dict[int, str] = {}
    for i, item in zip(rows, read(rows), strict=True):
        try:
            flat = _flatten(item, settings, wanted)
        except EventError as error:
            rejected[i] = str(error)
            continue
        for name, value in flat.items():
            place = cells.get(name)
            if place is None:
                place = cells[name] = ([], [])
            place[0].append(i)
            place[1].append(value)
    all_rows = np.array([i for i in rows if i not in rejected] if rejected else rows, np.int64)
    for name, (places, values) in cells.items():
        if wanted is None or wanted(name):
            is_everywhere = len(places) == len(all_rows)
            name_rows = all_rows if is_everywhere else np.array(places, np.int64)
            columns += checked_columns(name, name_rows, values)
    return EventColumns(len(awkward), merge_columns(columns), rejected)


def checked_columns(name: str, rows: np.ndarray, values: list[Any]) -> list[Column]:
    """Return columns of values that `flatten_event` accepted."""
    columns = []
    for kind, kind_rows, kind_values in _by_kind(rows, values):
        region = region_of(kind_values[0])
        if region == Region.LIST:
            lengths = np.fromiter(map(len, kind_values), np.int64, len(kind_values))
            elements = list(chain.from_iterable(kind_values))
            inner = checked_columns(name, np.repeat(kind_rows, lengths), elements)
            columns.append(list_column(name, kind_rows, inner))
        elif region == Region.OBJECT:
            columns.append(object_column(name, kind_rows))
        elif region == Region.NUMBER and issubclass(kind, float):
            whole, part = split_floats(kind_values)
            columns.append(number_column(name, region, kind_rows, whole, part))
        else:
            columns.append(_convert(name, region, kind_rows, kind_values))
    return columns


def _by_kind(rows: np.ndarray, values: list[Any]) -> Iterator[tuple[type, np.ndarray, list[Any]]]:
    kinds = set(map(type, values))
    if len(kinds) == 1:
        yield kinds.pop(), rows, values
        return
    for kind in kinds:
        places = [k for k, value in enumerate(values) if type(value) is kind]
        yield kind, rows[places], [values[k] for k in places]


def _convert(name: str, region: Region, rows: np.ndarray, values: list[Any]) -> Column:
    """Return a column of one type but float; a bad value raises Overflow- or UnicodeEncodeError."""
    if region == Region.STRING:
        return text_column(name, rows, pa.array(values, pa.large_string()))
    if values and type(values[0]) is Decimal:
        return number_column(name, region, rows, *decimal_pairs(values))
    if region == Region.DATE:
        days = np.array([value.toordinal() for value in values], np.int64) - _EPOCH_DAY
        return number_column(name, region, rows, days)
    if region == Region.TIMESTAMP:
        pairs = [divmod(int(domain_value(value)), 1000) for value in values]
        whole = np.array([pair[0] for pair in pairs], np.int64)
        part = np.array([pair[1] for pair in pairs], np.float64) / 1000.0
        return number_column(name, region, rows, whole, part)
    return number_column(name, region, rows, np.array(values, np.int64))


# -- by column ------------------------------------------------------------------------------------


def cell_columns(
    name: str, rows: np.ndarray, cells: list[Any], awkward: np.ndarray
) -> list[Column]:
    """Return columns of the plain scalars among unchecked cells; flag the rows of all others."""
    columns = []
    for kind, kind_rows, values in _by_kind(rows, cells):
        if kind is float:
            columns.append(_float_column(name, kind_rows, np.array(values), awkward))
        elif kind is Decimal:
            columns.append(_decimal_column(name, kind_rows, values, awkward))
        elif kind in _PLAIN or _is_pandas(kind, "Timestamp"):
            if kind is not type(None):
                columns.append(_plain_column(name, kind_rows, values, awkward))
        elif (unwrapped := _unwrap(kind, values)) is not None:
            columns += cell_columns(name, kind_rows, unwrapped, awkward)
        else:
            awkward[kind_rows] = True
    return columns


def _float_column(name: str, rows: np.ndarray, x: np.ndarray, awkward: np.ndarray) -> Column:
    finite = np.isfinite(x)
    if not finite.all():
        awkward[rows[np.isinf(x)]] = True
        rows, x = rows[finite], x[finite]
    return number_column(name, Region.NUMBER, rows, *split_floats(x))


def _decimal_column(
    name: str, rows: np.ndarray, values: list[Decimal], awkward: np.ndarray
) -> Column:
    present = np.array([not value.is_nan() for value in values])
    exact = [decimal_value(value) for value in values if not value.is_nan()]
    finite = np.array([type(value) is not float or math.isfinite(value) for value in exact], bool)
    rows = rows[present]
    awkward[rows[~finite]] = True
    good = [value for value, is_good in zip(exact, finite.tolist(), strict=True) if is_good]
    return number_column(name, Region.NUMBER, rows[finite], *decimal_pairs(good))


def _plain_column(name: str, rows: np.ndarray, values: list[Any], awkward: np.ndarray) -> Column:
    region = region_of(values[0])
    try:
        return _convert(name, region, rows, values)
    except (OverflowError, UnicodeEncodeError):
        bad = np.array([bad_scalar(value) is not None for value in values])
        awkward[rows[bad]] = True
        good = [value for value, is_bad in zip(values, bad, strict=True) if not is_bad]
        return _convert(name, region, rows[~bad], good)


def _unwrap(kind: type, values: list[Any]) -> list[Any] | None:
    """Return scalars of other libraries as Python scalars, as `flatten_event` does; else None."""
    if issubclass(kind, np.generic) and np.dtype(kind).kind in "biufU":
        unwrapped = [value.item() for value in values]
        return unwrapped if _PLAIN.issuperset(map(type, unwrapped)) else None
    if _is_pandas(kind, "NaTType", "NAType"):
        return [None] * len(values)
    return None


def _is_pandas(kind: type, *names: str) -> bool:
    return kind.__name__ in names and kind.__module__.startswith("pandas.")
