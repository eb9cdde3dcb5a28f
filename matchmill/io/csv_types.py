"""The types of the cells of a CSV file, which holds nothing but text.

A column has one type, that of all its cells in the whole file:

    boolean     true, false (also True, TRUE, …)
    number      -1  0.5  1e6   integers stay exact; `007` is text, since a number has no such zeros
    date        2013-01-31
    timestamp   2013-01-31T10:00[:00[.000000]][Z | +01:00], `T` or a space; without an offset UTC;
                a date among them is its midnight
    text        everything else, and any column that is to be text

An empty cell is null, whether quoted or not; other words for null can be given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["CsvColumns", "joint_type", "typed"]


class CsvColumns(NamedTuple):
    """How to read a CSV file of events: the type of each column, and what stands for null."""

    types: dict[str, str]
    null_words: frozenset[str]


_DIGITS = r"(?:0|[1-9][0-9]*)"
_YEAR = r"(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DAY = _YEAR + r"-[0-9]{2}-[0-9]{2}"
_TIME = r"[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_ZONE = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})"
_INTEGER = f"^-?{_DIGITS}$"
_PATTERNS = {
    "boolean": "^(?:true|false|True|False|TRUE|FALSE)$",
    "number": rf"^-?(?:{_DIGITS}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$",
    "date": f"^{_DAY}$",
    "timestamp": f"^{_DAY}(?:{_TIME}{_ZONE}?)?$",
}


def _booleans(texts: pa.Array) -> pa.Array:
    return pc.equal(pc.ascii_lower(texts), "true")


def _numbers(texts: pa.Array) -> pa.Array | list[Any]:
    """Return integers, doubles, or Python's own of both where doubles alone would not be exact."""
    is_integer = pc.match_substring_regex(texts, _INTEGER)
    if pc.all(is_integer).as_py() is not False:
        try:
            return pc.cast(texts, pa.int64())
        except pa.ArrowInvalid:  # beyond 64 bits: such an event is rejected, as in JSON
            pass
    is_long = pc.and_(is_integer, pc.greater(pc.utf8_length(texts), 15))
    if not pc.any(is_long).as_py():
        return pc.cast(texts, pa.float64())
    cells = zip(texts.to_pylist(), is_integer.to_pylist(), strict=True)
    return [None if t is None else (int(t[:400]) if whole else float(t)) for t, whole in cells]


def _dates(texts: pa.Array) -> pa.Array:
    return pc.cast(texts, pa.date32())


def _timestamps(texts: pa.Array) -> pa.Array:
    """Return timestamps. Arrow wants a time and an offset in every value, or in none."""
    texts = pc.replace_substring_regex(texts, f"^({_DAY})$", r"\1T00:00")
    texts = pc.replace_substring_regex(texts, f"({_TIME})$", r"\1Z")
    is_fine = pc.any(pc.match_substring_regex(texts, r"\.[0-9]{7}")).as_py()
    return pc.cast(texts, pa.timestamp("ns" if is_fine else "us", "UTC"))


_CONVERT: dict[str, Callable[[pa.Array], pa.Array | list[Any]]] = {
    "boolean": _booleans,
    "number": _numbers,
    "date": _dates,
    "timestamp": _timestamps,
}


def _fits(texts: pa.Array, kind: str) -> bool:
    if pc.all(pc.match_substring_regex(texts, _PATTERNS[kind])).as_py() is False:
        return False
    try:
        _CONVERT[kind](texts)
    except pa.ArrowInvalid:  # 2013-02-30
        return False
    return True


def joint_type(kind: str, texts: pa.Array) -> str:
    """Return the type of a column with these texts; `kind` is its type so far (null: no value)."""
    if kind == "text" or texts.null_count == len(texts):
        return kind
    # No text fits two types, but that dates are timestamps as well.
    possible = {"null": tuple(_PATTERNS), "date": ("date", "timestamp")}.get(kind, (kind,))
    return next((other for other in possible if _fits(texts, other)), "text")


def typed(texts: pa.Array, kind: str) -> pa.Array | list[Any]:
    """Return texts as values of a type that fits them; ArrowInvalid if it does not."""
    convert = _CONVERT.get(kind, partial(pc.cast, target_type=pa.large_string()))
    return convert(texts)
