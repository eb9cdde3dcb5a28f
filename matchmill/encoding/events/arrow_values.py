"""Arrow arrays of scalars as columns, and Arrow arrays of anything as Python objects.

The first is vectorised and gives the columns, the second is for single events and for awkward
ones. They agree on what a value means:

- timestamps are instants, naive ones in UTC, kept to the nanosecond; dates and timestamps beyond
  the years 1 to 9999 count as the first or the last moment of these, because no literal lies
  beyond;
- decimals are compared as `decimal_value` says;
- dictionaries and runs stand for their values.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchmill.encoding.events.columns import Column, Wanted, number_column, text_column
from matchmill.encoding.numbers import decimal_pairs, split_floats
from matchmill.errors import EventError, warn_caller
from matchmill.language.flatten import Pairs
from matchmill.language.values import INT64_MAX, Opaque, Region, decimal_value, fine_timestamp

__all__ = [
    "DEEPEST_TYPE",
    "Leaf",
    "Screened",
    "build_column",
    "decoded",
    "is_list",
    "is_object",
    "list_lengths",
    "map_entries",
    "not_nan",
    "plain_array",
    "screen",
    "take",
    "to_python",
    "valid_slots",
    "warn_of_objects",
]

types = pa.types

DEEPEST_TYPE = 200
"""What is nested deeper is an object, whatever `max_event_depth` says."""

_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()
_MIN_DAY = dt.date.min.toordinal() - _EPOCH_DAY
_MAX_DAY = dt.date.max.toordinal() - _EPOCH_DAY
_MICROSECOND = dt.timedelta(microseconds=1)
_MIN_MICROSECONDS = (dt.datetime.min - _EPOCH) // _MICROSECOND
_MAX_MICROSECONDS = (dt.datetime.max - _EPOCH) // _MICROSECOND
_DAY_MILLISECONDS = 24 * 60 * 60 * 1000
_INT64_DIGITS = 18  # that always fit
_SMALL_DECIMALS = 2.0**45  # below, decimals are compared as doubles
_PER_MICROSECOND = {"s": 1_000_000, "ms": 1000, "us": 1}


# -- types ----------------------------------------------------------------------------------------


def is_list(kind: pa.DataType) -> bool:
    """Whether this is a type of lists."""
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether this is a type of texts."""
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def decoded(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values behind dictionaries and runs."""
    while types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        kind = kind.value_type
    return kind


def is_object(kind: pa.DataType) -> bool:
    """Whether values of this type are objects, such as binaries, times and durations."""
    kind = decoded(kind)
    if types.is_map(kind):
        return not is_text(decoded(kind.key_type))
    return not (
        is_text(kind)
        or is_list(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
        or types.is_decimal(kind)
        or types.is_struct(kind)
        or types.is_null(kind)
    )


def warn_of_objects(name: str, kind: pa.DataType, wanted: Wanted) -> None:
    """Warn if there are conditions on a column of objects.

    It must not be an error: one subscription to such a column would stop all others.
    """
    if wanted is not None and wanted(name):
        warn_caller(
            f"attribute {name!r}: only operators look at values of the Arrow type {kind};"
            " every condition on it but `is null` is unknown; cast it to another type to compare"
        )


# -- arrays ---------------------------------------------------------------------------------------


def plain_array(array: pa.Array) -> pa.Array:
    """Return the array without dictionaries, runs and views of text at its top."""
    while True:
        if types.is_dictionary(array.type):
            array = take(plain_array(array.dictionary), array.indices)
        elif types.is_run_end_encoded(array.type):
            slots = np.arange(array.offset, array.offset + len(array))
            runs = np.searchsorted(array.run_ends.to_numpy(), slots, side="right")
            array = take(array.values, pa.array(runs))
        elif types.is_string_view(array.type):
            return array.cast(pa.large_string())
        else:
            return array


def take(array: pa.Array, indices: pa.Array) -> pa.Array:
    """Return some slots of an array, in the order given."""
    try:
        return array.take(indices)
    except pa.ArrowNotImplementedError:  # views inside; slow, but there is no other way
        slots = [array.slice(i, 1) for i in indices.to_pylist()]
        return pa.concat_arrays(slots) if slots else array.slice(0, 0)


def valid_slots(array: pa.Array) -> np.ndarray:
    """Return a flag per slot."""
    if types.is_union(array.type):  # it has no nulls of its own
        return np.array([slot.as_py() is not None for slot in array], bool)
    flags: np.ndarray = array.is_valid().to_numpy(zero_copy_only=False)
    return flags


def not_nan(array: pa.Array) -> np.ndarray | bool:
    """Return a flag per slot that is false for NaN, or True if there can be none."""
    if not types.is_floating(array.type):
        return True
    values = array.to_numpy(zero_copy_only=False).astype(np.float64)
    flags: np.ndarray = ~np.isnan(values) | ~valid_slots(array)
    return flags


def list_lengths(array: pa.Array) -> np.ndarray:
    """Return the number of elements that `array.flatten()` holds for each slot."""
    lengths: np.ndarray = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    return lengths


def map_entries(array: pa.MapArray) -> tuple[np.ndarray, pa.Array, pa.Array]:
    """Return the number of entries of each slot, null ones included; the keys; the values."""
    offsets = array.offsets.to_numpy()
    start, n_entries = int(offsets[0]), int(offsets[-1] - offsets[0])
    keys, items = array.keys, array.items  # both disregard the slice
    return np.diff(offsets), keys.slice(start, n_entries), items.slice(start, n_entries)


# -- columns --------------------------------------------------------------------------------------


class Leaf(NamedTuple):
    """An array of scalars and the event of each slot; -1 means that the slot is ignored."""

    name: str
    array: pa.Array
    rows: np.ndarray


class Screened(NamedTuple):
    """The values of a leaf that are present and good."""

    name: str
    kind: pa.DataType
    rows: np.ndarray
    values: Any  # text as LargeStringArray, decimals as pairs of arrays, all else as NumPy array


def screen(leaf: Leaf, awkward: np.ndarray) -> Screened:
    """Leave out what is absent; leave out what is bad and flag its event."""
    array, rows = plain_array(leaf.array), leaf.rows
    if array.null_count:
        valid = valid_slots(array)
        rows, array = rows[valid], array.drop_null()
    if len(rows) and rows.min() < 0:
        live = rows >= 0
        rows, array = rows[live], array.filter(pa.array(live))
    kind = array.type
    if is_text(kind):
        return _screen_text(leaf.name, array.cast(pa.large_string()), rows, awkward)
    if types.is_decimal(kind):
        return _screen_decimals(leaf.name, array, rows, awkward)
    values, bad = _numbers(array)
    if bad is not None and bad.any():
        awkward[rows[bad]] = True
    if values.dtype == np.float64:
        finite = np.isfinite(values)
        if not finite.all():
            values, rows = values[finite], rows[finite]
    elif bad is not None and bad.any():
        values, rows = values[~bad], rows[~bad]
    return Screened(leaf.name, kind, rows, values)


def _numbers(array: pa.Array) -> tuple[np.ndarray, np.ndarray | None]:
    """Return values as int64 or float64, writable, and flags of bad ones if there can be any."""
    values = _numeric(array).to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        return values, np.isinf(values)
    bad = values > INT64_MAX if values.dtype == np.uint64 else None
    return values.astype(np.int64), bad


def _numeric(array: pa.Array) -> pa.Array:
    kind = array.type
    if types.is_date32(kind):
        return array.cast(pa.int32())
    if types.is_date64(kind) or types.is_timestamp(kind) or types.is_boolean(kind):
        return array.cast(pa.int64())
    return array


def _screen_decimals(name: str, array: pa.Array, rows: np.ndarray, awkward: np.ndarray) -> Screened:
    """Return decimals as pairs; one by one only those that a double or an integer cannot hold."""
    kind = array.type
    if kind.scale == 0 and kind.precision <= _INT64_DIGITS:
        values = array.cast(pa.int64()).to_numpy(zero_copy_only=False).copy()
        return Screened(name, kind, rows, (values, np.zeros(len(values))))
    # By way of text: the direct cast does not always give the nearest double.
    doubles = array.cast(pa.string()).cast(pa.float64()).to_numpy(zero_copy_only=False)
    finite = np.isfinite(doubles)
    if not finite.all():
        awkward[rows[~finite]] = True
        doubles, rows, array = doubles[finite], rows[finite], array.filter(pa.array(finite))
    whole, part = split_floats(doubles)
    large = np.flatnonzero(np.abs(doubles) >= _SMALL_DECIMALS)
    if len(large):
        exact = [decimal_value(value) for value in array.take(pa.array(large)).to_pylist()]
        whole, part = whole.copy(), part.copy()
        whole[large], part[large] = decimal_pairs(exact)
    return Screened(name, kind, rows, (whole, part))


def _screen_text(
    name: str, text: pa.LargeStringArray, rows: np.ndarray, awkward: np.ndarray
) -> Screened:
    try:
        text.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise EventError(f"attribute {name!r}: damaged Arrow data: {error}") from None
        good = np.array([_is_utf8(value) for value in text.view(pa.large_binary()).to_pylist()])
        awkward[rows[~good]] = True
        rows, text = rows[good], text.filter(pa.array(good))
    return Screened(name, text.type, rows, text)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def build_column(screened: Screened) -> Column:
    """Return the column of screened values."""
    name, kind, rows, values = screened
    if types.is_large_string(kind):
        return text_column(name, rows, values)
    if types.is_decimal(kind):
        return number_column(name, Region.NUMBER, rows, *values)
    if types.is_boolean(kind):
        return number_column(name, Region.BOOLEAN, rows, values)
    if types.is_date(kind):
        return number_column(name, Region.DATE, rows, _days(values, kind))
    if types.is_timestamp(kind):
        microseconds, nanoseconds = _instants(values, kind.unit)
        return number_column(name, Region.TIMESTAMP, rows, microseconds, nanoseconds / 1000.0)
    if values.dtype == np.float64:
        return number_column(name, Region.NUMBER, rows, *split_floats(values))
    return number_column(name, Region.NUMBER, rows, values)


def _days(values: np.ndarray, kind: pa.DataType) -> np.ndarray:
    days = values if types.is_date32(kind) else values // _DAY_MILLISECONDS
    clipped: np.ndarray = np.clip(days, _MIN_DAY, _MAX_DAY)
    return clipped


def _instants(values: np.ndarray, unit: str) -> tuple[np.ndarray, np.ndarray]:
    """Return microseconds since 1970, rounded down, and the nanoseconds left."""
    if unit == "ns":
        microseconds = values // 1000
        return microseconds, values - microseconds * 1000
    factor = _PER_MICROSECOND[unit]
    # Clip first so that nothing overflows, then to the very first and last moment.
    values = np.clip(values, _MIN_MICROSECONDS // factor, _MAX_MICROSECONDS // factor + 1)
    microseconds = np.clip(values * factor, _MIN_MICROSECONDS, _MAX_MICROSECONDS)
    return microseconds, np.zeros(len(values), np.int64)


# -- Python objects -------------------------------------------------------------------------------


def to_python(name: str, array: pa.Array, depth: int = 1) -> list[Any]:
    """Return a value per slot for `flatten_event`."""
    array = plain_array(array)
    kind = array.type
    if is_object(kind) or (depth >= DEEPEST_TYPE and types.is_nested(kind)):
        return _objects_to_python(array)
    if types.is_struct(kind):
        return _structs_to_python(name, array, depth)
    if types.is_map(kind):
        return _maps_to_python(name, array, depth)
    if is_list(kind):
        elements = iter(to_python(name, array.flatten(), depth + 1))
        lengths, valid = list_lengths(array).tolist(), valid_slots(array).tolist()
        lists = [[next(elements) for _ in range(length)] for length in lengths]
        return [value if ok else None for value, ok in zip(lists, valid, strict=True)]
    if is_text(kind):
        return _texts_to_python(array)
    if types.is_date(kind) or types.is_timestamp(kind):
        return _times_to_python(array)
    values: list[Any] = array.to_pylist()
    return values


def _texts_to_python(array: pa.Array) -> list[Any]:
    try:
        texts: list[Any] = array.to_pylist()
    except UnicodeDecodeError:
        values = array.cast(pa.large_string()).view(pa.large_binary()).to_pylist()
        texts = [None if value is None else _text(value) for value in values]
    return texts


def _text(value: bytes) -> str | Opaque:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Opaque(value, "cannot be compared: the text is not valid UTF-8")


def _objects_to_python(array: pa.Array) -> list[Any]:
    """Return objects, wrapped: an Arrow interval becomes a tuple, which would be a record."""
    try:
        values = array.to_pylist()
    except Exception:  # noqa: BLE001 - nanoseconds that Python's times have no room for, and the like
        values = [slot if slot.is_valid else None for slot in array]
    return [None if value is None else Opaque(value) for value in values]


def _times_to_python(array: pa.Array) -> list[Any]:
    kind = array.type
    values = _numeric(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    times: list[Any]
    if types.is_date(kind):
        times = [dt.date.fromordinal(day + _EPOCH_DAY) for day in _days(values, kind).tolist()]
    else:
        epoch = _EPOCH.replace(tzinfo=dt.UTC) if kind.tz else _EPOCH
        instants = zip(*(part.tolist() for part in _instants(values, kind.unit)), strict=True)
        times = [fine_timestamp(epoch + us * _MICROSECOND, ns) for us, ns in instants]
    return [time if ok else None for time, ok in zip(times, valid_slots(array), strict=True)]


def _structs_to_python(name: str, array: pa.StructArray, depth: int) -> list[Any]:
    names, fields = [], []
    for field, child in zip(array.type, array.flatten(), strict=True):
        names.append(field.name)
        fields.append(to_python(f"{name}.{field.name}", child, depth + 1))
    slots = zip(*fields, strict=True) if fields else iter([()] * len(array))
    return [
        _mapping(zip(names, values, strict=True)) if ok else None
        for values, ok in zip(slots, valid_slots(array).tolist(), strict=True)
    ]


def _maps_to_python(name: str, array: pa.MapArray, depth: int) -> list[Any]:
    lengths, keys, items = map_entries(array)
    entries = zip(to_python(name, keys), to_python(f"{name}.*", items, depth + 1), strict=True)
    maps = [_mapping([next(entries) for _ in range(n)]) for n in lengths.tolist()]
    return [value if ok else None for value, ok in zip(maps, valid_slots(array), strict=True)]


def _mapping(pairs: Any) -> Any:
    pairs = list(pairs)
    mapping = dict(pairs)
    return mapping if len(mapping) == len(pairs) else Pairs(pairs)
