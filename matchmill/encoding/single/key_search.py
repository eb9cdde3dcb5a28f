"""Find the key of one value without arrays, by Python's bisect over the edges of a run.

    cut points         c0  .     c1  .
    edges              c0  c0+   c1  c1+         c+ is the next possible value after c
    keys         f+1   L0  L0+1  L1  L1+1        value → keys[bisect_right(edges, value)]

The next value after c, and what is compared:

    NUMBER, DATE   doubles, and the next double; as long as all cut points are within 2**53, no
                   whole number lies between c and c+, so the edges hold for ints and floats.
                   Otherwise Python's numbers, which are compared exactly, and `next_number`
    TIMESTAMP      microseconds since 1970, as Python's datetimes have no finer digits: an edge is
                   the first whole one at or after c, and the first one after c
    STRING         texts, whose order by code point is that of their UTF-8; c+ is c and a NUL

A table has two runs, and the key of a value is the larger of its keys in both, because there is at
least one free label after each label. Short runs are lists, longer ones memory views, which are
slower to read but free to build. Tables that are too large for both use the compiled search.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.cut_points import CutTable, NumberRun, StringRun, region_floor
from matchmill.encoding.numbers import exact_number, split_floats
from matchmill.encoding.texts import one_text
from matchmill.language.values import Region, next_number

__all__ = ["EXACT_DOUBLES", "KeySearch", "Slots", "key_search"]

EXACT_DOUBLES = 2**53
"""Whole numbers of smaller size are exact as doubles, and distinct ones stay distinct."""

_MOST_LISTED = 256  # cut points of a run whose edges are Python's numbers
_MOST_VIEWED = 500_000  # … are viewed as an array: 32 bytes each
_MOST_OBJECTS = 20_000  # … are Python's texts or mixed numbers: up to 250 bytes each


class Slots(NamedTuple):
    """The edges and keys of one run."""

    run: NumberRun | StringRun
    edges: Sequence[Any]
    keys: Sequence[int]


class KeySearch(NamedTuple):
    """The search in one table. Without slots it is searched by the kernels."""

    table: CutTable
    slots: tuple[Slots, ...]
    key_of: Callable[[Any], int]


def key_search(table: CutTable, earlier: KeySearch | None = None) -> KeySearch:
    """Return the search in a table; reuse what `earlier`, of an older table, has in common."""
    runs = [run for run in (table.base, table.fresh) if len(run.labels)] or [table.fresh]
    known = {id(slots.run): slots for slots in earlier.slots} if earlier is not None else {}
    all_slots = []
    for run in runs:
        slots = known.get(id(run)) or _build_slots(run, table.region)
        if slots is None:
            return KeySearch(table, (), _by_kernel(table))
        all_slots.append(slots)
    return KeySearch(table, tuple(all_slots), _by_slots(all_slots))


def _by_slots(all_slots: list[Slots]) -> Callable[[Any], int]:
    _, edges, keys = all_slots[0]
    if len(all_slots) == 1:
        return lambda value: keys[bisect_right(edges, value)]
    _, other_edges, other_keys = all_slots[1]
    return lambda value: max(
        keys[bisect_right(edges, value)], other_keys[bisect_right(other_edges, value)]
    )


def _by_kernel(table: CutTable) -> Callable[[Any], int]:
    def key_of_text(text: str) -> int:
        return int(table.string_keys(one_text(text))[0])

    def key_of_number(number: int | float) -> int:
        if type(number) is float:
            whole, part = split_floats([number])
        else:
            whole, part = np.array([number], np.int64), np.zeros(1)
        return int(table.number_keys(whole, part)[0])

    return key_of_text if table.region == Region.STRING else key_of_number


def _build_slots(run: Any, region: int) -> Slots | None:
    """Return the slots of a run; None if it is too large."""
    edges = _text_edges(run) if region == Region.STRING else _number_edges(run, region)
    if edges is None:
        return None
    keys = np.concatenate(([region_floor(region) + 1], _interleaved(run.labels, run.labels + 1)))
    return Slots(run, edges, _sequence(keys))


def _text_edges(run: StringRun) -> list[str] | None:
    if len(run.labels) > _MOST_OBJECTS:
        return None
    data = run.data.tobytes()
    texts = [data[start:stop].decode() for start, stop in pairwise(run.offsets.tolist())]
    return [edge for text in texts for edge in (text, text + "\0")]


def _number_edges(run: NumberRun, region: int) -> Sequence[Any] | None:
    whole, part, n_cuts = run.whole, run.part, len(run.labels)
    if n_cuts > _MOST_VIEWED:
        return None
    if region == Region.TIMESTAMP:
        return _sequence(_interleaved(whole + (part > 0.0), whole + 1))
    if n_cuts == 0 or (-EXACT_DOUBLES < whole[0] and whole[-1] < EXACT_DOUBLES):
        doubles = whole + part
        with np.errstate(under="ignore"):  # what comes after 0 is tiny
            after = np.nextafter(doubles, np.inf)
        return _sequence(_interleaved(doubles, after))
    if n_cuts > _MOST_OBJECTS:
        return None
    numbers = map(exact_number, whole.tolist(), part.tolist())
    return list(chain.from_iterable((number, next_number(number, 1)) for number in numbers))


def _interleaved(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.column_stack((first, second)).ravel()


def _sequence(array: np.ndarray) -> Sequence[Any]:
    if len(array) <= 2 * _MOST_LISTED + 1:
        listed: list[Any] = array.tolist()
        return listed
    return array.data
