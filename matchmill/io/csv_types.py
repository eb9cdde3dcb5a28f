"""The types of the cells of a CSV file, which holds nothing but text.

A column has one type, that of all its cells in the whole file:

    boolean     true, false (also True, TRUE, …)
    number      -1  0.5  1e6   integers stay exact; `007` is text, since a number has no such zeros
    date        2013-01-31
    timestamp   2013-01-31T10:00[:00[.000000]][Z | +01:00], `T` or a space; without an offset UTC;
                a date among them is its midnight
    text        everything else, and any column that is to be text

An empty cell is null, whether quoted or not; other words for null can be given.

One cell such as `n/a` makes a text column of a column of numbers, and no comparison with a number
is true any more. Such cells are *odd*: the column is text, most of its cells have another type, and
the others are a few texts that occur again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["CsvColumns", "OddCell", "TypeOfColumn", "joint_type", "typed"]


class OddCell(NamedTuple):
    """A cell because of which a column is text."""

    line: int
    column: str
    text: str
    kind: str  # the type of most other cells
    is_word: bool  # such as n/a, which may stand for null

    def __str__(self) -> str:
        return (
            f"{self.shown!r} makes {self.column} a text column; most of its cells are {self.kind}s"
        )

    @property
    def shown(self) -> str:
        """The text, cut if it is long."""
        long = len(self.text) > _LONGEST_SHOWN
        return f"{self.text[:_LONGEST_SHOWN]}…" if long else self.text


class CsvColumns(NamedTuple):
    """How to read a CSV file of events: the type of each column, and what stands for null."""

    types: dict[str, str]
    null_words: frozenset[str]
    odd: tuple[OddCell, ...] = ()


_LONGEST_SHOWN = 40
_MOST_ODD = 3  # distinct texts of a column


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


class TypeOfColumn:
    """The type of a column whose cells come some at a time, and the odd cells."""

    def __init__(self, name: str, kind: str = "null") -> None:
        self.name = name
        self.kind = kind
        self._n_cells = 0
        self._n_like: dict[str, int] = {}  # of a text column: cells that look like another type
        self._odd: dict[str, dict[str, int]] = {}  # and those that do not: text → first line
        self._is_forced = kind == "text"

    def add(self, texts: pa.Array, lines: np.ndarray) -> None:
        """Look at the next cells."""
        before, n_before = self.kind, self._n_cells
        self._n_cells += len(texts) - texts.null_count
        self.kind = joint_type(before, texts)
        if self.kind != "text" or self._is_forced:
            return
        if before == "null":
            self._n_like = dict.fromkeys(_PATTERNS, 0)
        elif before != "text":
            self._n_like = {before: n_before}
        for kind in list(self._n_like):
            self._look_for_odd(kind, texts, lines)

    def _look_for_odd(self, kind: str, texts: pa.Array, lines: np.ndarray) -> None:
        is_odd = pc.invert(pc.match_substring_regex(texts, _PATTERNS[kind]))
        odd = pc.filter(texts, is_odd)
        distinct = pc.unique(odd.slice(0, 1000)).to_pylist()
        known = self._odd.setdefault(kind, {})
        self._n_like[kind] += len(texts) - texts.null_count - len(odd)
        if self._n_like[kind] <= self._n_cells / 2 or len({*known, *distinct}) > _MOST_ODD:
            del self._n_like[kind]  # simply a text column
            return
        for text in distinct:
            if text not in known:
                known[text] = int(lines[pc.index(texts, text).as_py()])

    def odd_cells(self) -> list[OddCell]:
        """Return the cells without which the column would have another type."""
        for kind, n_like in self._n_like.items():
            words = {text: not any(map(str.isdigit, text)) for text in self._odd[kind]}
            # With digits it may be a code; a number that begins with 0 is one.
            few = self._n_cells - n_like <= self._n_cells / 10
            if all(words.values()) or (few and not any(text.startswith("0") for text in words)):
                return [
                    OddCell(line, self.name, text, kind, words[text])
                    for text, line in self._odd[kind].items()
                ]
        return []
