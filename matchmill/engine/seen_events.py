"""Some events of a source as columns, for questions about what events are like.

    chunk      0  1  2  3  4  5  6  7  8  …     of 2,048 events each
    kept       0     2     4     6     8        once there are too many, every other one is dropped
                                                and from then on only every second one is kept

So a part of bounded size is spread evenly over a source of any length, with all attributes of its
events, also of those that no subscription asks for. Chunks that are not kept are read past.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchmill.encoding.events.columns import Column, EventColumns
from matchmill.encoding.numbers import exact_number
from matchmill.encoding.texts import texts_of
from matchmill.encoding.time_texts import IS_DATE, IS_TIMESTAMP, read_times
from matchmill.io.event_files import EventChunk
from matchmill.io.event_sources import FileEvents, event_batches, rejected_events
from matchmill.io.reports import Rejected
from matchmill.language.attribute_types import AttributeTypes
from matchmill.language.values import TIMES, Region
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["SeenEvents", "Values", "see_events"]

_EVENTS_AT_ONCE = 2048
_MOST_DISTINCT = 2000  # texts of one attribute that are remembered by name


class Values(NamedTuple):
    """The values of one type that an attribute has, elements of lists included."""

    n_values: int
    n_single: int  # values that occur once
    texts: list[str]  # the distinct ones, unless they are many
    low: object  # of numbers
    high: object

    @property
    def are_few(self) -> bool:
        """Whether the next value is most likely one of these.

        The share of values that occur once estimates the chance of a new one (Good 1953).
        """
        return self.n_values > 0 and self.n_single <= self.n_values / 100


class SeenEvents:
    """Chunks of events, spread evenly over all that were added; at most `most_chunks` of them."""

    def __init__(self, most_chunks: int = 16) -> None:
        self._most = most_chunks
        self._stride = 1
        self._n_chunks = 0
        self.n_read = 0  # events of all chunks, kept or not
        self.chunks: list[EventColumns] = []
        self._rejected: list[list[Rejected]] = []
        self._columns: list[list[str] | None] = []
        self._facts: Facts | None = None

    def copy(self) -> SeenEvents:
        """Return the same, which grows independently."""
        other = SeenEvents(self._most)
        other._stride, other._n_chunks, other.n_read = self._stride, self._n_chunks, self.n_read
        other.chunks, other._rejected = list(self.chunks), list(self._rejected)
        other._columns = list(self._columns)
        return other

    def add(self, chunk: EventChunk) -> None:
        """Look at some consecutive events."""
        if isinstance(chunk.events, FileEvents):
            for part in chunk.events.chunks:
                self.add(part)
            return
        self.n_read += chunk.events.n_events
        if self._n_chunks % self._stride == 0:
            self._keep(chunk)
        self._n_chunks += 1

    def _keep(self, chunk: EventChunk) -> None:
        columns = chunk.events.columns()
        self._facts = None
        self.chunks.append(columns)
        self._rejected.append(rejected_events(columns.rejected, chunk))
        self._columns.append(chunk.events.column_names())
        if len(self.chunks) > self._most:
            self._stride *= 2
            for kept in (self.chunks, self._rejected, self._columns):
                del kept[1::2]

    @property
    def n_events(self) -> int:
        """How many events were looked at and could be read."""
        return sum(chunk.n_events - len(chunk.rejected) for chunk in self.chunks)

    @property
    def rejected(self) -> list[Rejected]:
        """The events that could not be read, of those that were looked at."""
        return [one for some in self._rejected for one in some]

    def facts(self) -> Facts:
        """Return what the events have; found out once."""
        if self._facts is None:
            self._facts = Facts(self)
        return self._facts

    def column_names(self) -> list[str] | None:
        """Return the columns of all sources; None if some have events with names of their own."""
        names: dict[str, None] = {}
        for some in self._columns:
            if some is None:
                return None
            names |= dict.fromkeys(some)
        return list(names) if self._columns else None


def see_events(
    source: object,
    settings: Settings = DEFAULT_SETTINGS,
    most_chunks: int = 16,
    types: AttributeTypes | None = None,
) -> SeenEvents:
    """Look at the events of any source."""
    seen = SeenEvents(most_chunks)
    for chunk in event_batches(source, lambda: _EVENTS_AT_ONCE, settings, types):
        seen.add(chunk)
    return seen


class Facts:
    """Which attributes events have, of which types, and with which values."""

    def __init__(self, seen: SeenEvents) -> None:
        self._seen = seen
        self.n_events = seen.n_events
        self.n_present: Counter[str] = Counter()
        self.n_of_type: Counter[tuple[str, Region]] = Counter()
        self.n_with_element: Counter[tuple[str, Region]] = Counter()  # lists that have one
        for column in self._all_columns():
            self.n_present[column.attribute] += len(column.rows)
            self.n_of_type[column.attribute, column.region] += len(column.rows)
            for part in column.elements:
                n_lists = len(np.unique(part.rows))
                self.n_with_element[column.attribute, part.region] += n_lists
        self._names = seen.column_names()
        self._values: dict[tuple[str, Region], Values] = {}

    def _all_columns(self) -> Iterator[Column]:
        return (column for chunk in self._seen.chunks for column in chunk.columns)

    @cached_property
    def names(self) -> list[str]:
        """All names that events have, for suggestions."""
        return list(dict.fromkeys([*self.n_present, *(self._names or ())]))

    @property
    def have_columns(self) -> bool:
        """Whether the events are rows of tables, so that a name that is not there is none."""
        return self._names is not None

    def has(self, attribute: str) -> bool:
        """Whether some event has the attribute, or a table a column for it."""
        if self.n_present[attribute]:
            return True
        # A column may be an object, whose attributes have dotted names.
        return any(
            attribute == name or attribute.startswith(f"{name}.") for name in self._names or ()
        )

    def types_of(self, attribute: str) -> list[Region]:
        """Return the types that the values of an attribute have, the most frequent first."""
        found = {region: self.n_of_type[attribute, region] for region in Region}
        return sorted((r for r in found if found[r]), key=lambda region: -found[region])

    def n_as_time(self, attribute: str, region: Region) -> int:
        """Return how many texts, those in lists included, are read as dates, or as timestamps."""
        if region not in TIMES:
            return 0
        kind = IS_DATE if region == Region.DATE else IS_TIMESTAMP
        texts = (part.text for part in self._parts(attribute, Region.STRING))
        return sum(int((read_times(texts_of(text))[0] == kind).sum()) for text in texts)

    def values(self, attribute: str, region: Region) -> Values:
        """Return the values of one type, those in lists included."""
        known = self._values.get((attribute, region))
        if known is None:
            known = self._values[attribute, region] = _values_of(self._parts(attribute, region))
        return known

    def _parts(self, attribute: str, region: Region) -> list[Column]:
        parts = []
        for column in self._all_columns():
            if column.attribute == attribute:
                parts += [one for one in (column, *column.elements) if one.region == region]
        return parts


def _values_of(parts: Iterable[Column]) -> Values:
    parts = [part for part in parts if len(part.rows)]
    if not parts or parts[0].region in (Region.LIST, Region.OBJECT):
        return Values(0, 0, [], None, None)
    n_values = sum(len(part.rows) for part in parts)
    if parts[0].text is not None:
        counted = pc.value_counts(pa.chunked_array([part.text for part in parts]))
        counts = counted.field("counts").to_numpy()
        texts = counted.field("values").to_pylist() if len(counted) <= _MOST_DISTINCT else []
        return Values(n_values, int((counts == 1).sum()), texts, None, None)
    whole = np.concatenate([part.whole for part in parts])
    rest = np.concatenate([part.part for part in parts])
    order = np.lexsort((rest, whole))
    whole, rest = whole[order], rest[order]
    starts = np.flatnonzero(np.append(True, (whole[1:] != whole[:-1]) | (rest[1:] != rest[:-1])))
    counts = np.diff(np.append(starts, n_values))
    ends = [exact_number(int(whole[k]), float(rest[k])) for k in (0, -1)]
    return Values(n_values, int((counts == 1).sum()), [], *ends)
