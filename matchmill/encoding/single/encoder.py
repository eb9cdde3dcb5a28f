"""Encode one event as (dimension, key) pairs quickly, without columns and arrays.

    {origin: 'JFK', delay: 75.5, …}
       │  attribute → type of the value → reader      two dictionary lookups
       ▼
    reader(value) ──► the pairs of that value          `value_readers`
       ▼
    one `bytes`: d0 k0 d1 k1 …                         int64; a kernel takes it as it is

At what no subscription asks for nobody looks (`events/asked.py`). A reader is made when a value
first needs it. It is valid as long as the cut points and patterns that it uses:
`Dimensions.version` tells that something changed, and the tables themselves tell which attributes
are concerned.

Only plain scalars have readers. Any other event is flattened first, which is the definition of what
an event means. For an event that is awkward even then, or that has to be rejected, there is no
result: the caller encodes it as a batch (`event_encoder`), which also finds the reason.

Any number of threads may share an encoder: its results are never written to, and its caches change
by single steps of dictionaries.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matchmill.encoding.cut_points import CutTable
from matchmill.encoding.dimensions import LIST_KEY, OBJECT_KEY, AttributePlan, Dimensions
from matchmill.encoding.event_encoder import matcher_of
from matchmill.encoding.events.asked import FEW_OF, Asked
from matchmill.encoding.pattern_work import list_instructions, text_instructions, work_share
from matchmill.encoding.single.key_search import KeySearch, key_search
from matchmill.encoding.single.value_readers import (
    IGNORING,
    Awkward,
    Memo,
    Reader,
    TextFlags,
    TextLookup,
    boolean_reader,
    date_reader,
    float_reader,
    int_reader,
    longest_text,
    pair,
    text_reader,
    time_reader,
    time_text_reader,
)
from matchmill.errors import EventError
from matchmill.language.evaluate import texts_of_event
from matchmill.language.expression import ANY_ATTRIBUTE
from matchmill.language.flatten import Pairs, as_mapping, flatten_event
from matchmill.language.normal_form import TIME, VALUES, WITHOUT
from matchmill.language.patterns import address_text
from matchmill.language.values import TIMES, Region, fold_case, region_of
from matchmill.settings import Settings

__all__ = ["OneEventEncoder"]

_MOST_IGNORED = 100_000
_LONGEST_MATCHED = 1024  # characters of a text for which is kept which patterns it has
_MOST_ELEMENTS = 256  # of a list that is not flattened first
_MADE_FROM: dict[str, Callable[[str], str | None]] = {
    "reversed": lambda text: text[::-1],
    "lower": fold_case,
    "lower_reversed": lambda text: fold_case(text)[::-1],
    "address": address_text,
}


class OneEventEncoder:
    """Encodes single events on one set of dimensions, which may grow meanwhile."""

    def __init__(self, dimensions: Dimensions, settings: Settings) -> None:
        self.dimensions = dimensions
        self.settings = settings
        self._attributes = _Attributes(self, dimensions.version)
        self._earlier: dict[str, _Attribute] = {}
        self._searches: dict[tuple[int, int], KeySearch] = {}
        # With more names, elements of lists have to be counted.
        self._most_names = settings.max_event_values // (_MOST_ELEMENTS + 1)

    def encode(self, event: Mapping[str, Any]) -> bytes | None:
        """Return the pairs of an event; None if it has to be encoded, or rejected, as a batch.

        Raises
        ------
        EventError
            If this is no event at all.
        """
        attributes = self._attributes
        if attributes.version != self.dimensions.version:
            attributes = self._attributes = _Attributes(self, self.dimensions.version)
        if type(event) is not dict:
            event = as_mapping(event)
            if isinstance(event, Pairs):  # a name may be there twice
                return self._encode_flattened(event, attributes)
        if attributes.reads_all_texts:
            return self._encode_flattened(event, attributes)
        part = event
        if len(event) > attributes.most_names_read:
            if len(event) > self.settings.max_event_values:
                return None
            if attributes.few is not None:
                part = {name: event[name] for name in attributes.few if name in event}
        if len(part) > self._most_names:
            return self._encode_flattened(event, attributes)
        records = []
        try:
            for name, value in part.items():
                readers = attributes[name]
                if readers is not None:
                    records.append(readers[type(value)](value))
        except Awkward:
            return self._encode_flattened(event, attributes)
        return b"".join(records)

    def encode_many(self, events: Sequence[Any]) -> tuple[list[bytes], list[int]]:
        """Return the pairs of each event, and the events that have to be encoded as a batch."""
        encode = self.encode
        found: list[bytes] = []
        others: list[int] = []
        for i, event in enumerate(events):
            try:
                pairs = encode(event)
            except EventError:
                pairs = None
            if pairs is None:
                others.append(i)
                pairs = b""
            found.append(pairs)
        return found, others

    def _encode_flattened(self, event: Mapping[str, Any], attributes: _Attributes) -> bytes | None:
        records = []
        try:
            part = event if attributes.reads_all_texts else attributes.asked.part_of(event)
            flat = flatten_event(part, self.settings)
            if attributes.reads_all_texts:
                flat[ANY_ATTRIBUTE] = texts_of_event(flat)
            for name, value in flat.items():
                readers = attributes[name]
                if readers is None:
                    continue
                if isinstance(value, list):
                    records.append(readers.list_pairs(value))
                elif type(value) not in IGNORING and region_of(value) == Region.OBJECT:
                    records.append(readers.object_pairs())
                else:
                    records.append(readers[type(value)](value))
        except (EventError, Awkward):
            return None
        return b"".join(records)

    def readers(self, name: str) -> _Readers | None:
        """Return the readers of an attribute; those of an earlier version if nothing changed.

        None means that nobody asks for it, nor for anything inside of it.
        """
        plan = self.dimensions.plans.get(name)
        if plan is None:
            return _OBJECT if Asked(self.dimensions).is_head(name) else None
        sources = self._sources(plan)
        earlier = self._earlier.get(name)
        if earlier is not None and earlier.sources == sources:
            return earlier
        new = self._earlier[name] = _Attribute(self, plan, sources, earlier)
        return new

    def _sources(self, plan: AttributePlan) -> list[Any]:
        """Return all that readers depend on; equal for the same tables."""
        tables = self.dimensions.tables
        ids = [i for i in (plan.value, *plan.transforms.values()) if self.is_known(i)]
        n_patterns = [(derivation, len(group)) for derivation, group in plan.patterns.items()]
        if n_patterns:
            n_patterns.append(("", self.most_work()))
        several = [(kind, self._sources(own)) for kind, own in plan.multi.items()]
        return [(i, tables[i]) for i in ids] + n_patterns + several

    def is_known(self, dimension_id: int) -> bool:
        """Whether a dimension is known here: plans are shared with copies, which may grow."""
        return 0 <= dimension_id < len(self.dimensions.tables)

    def most_work(self) -> int:
        """Return how much work the patterns on one attribute may be."""
        return work_share(self.dimensions, self.settings.max_pattern_work)

    def search(self, dimension_id: int, region: Region) -> KeySearch:
        """Return the search for keys on a dimension, among the values of one type."""
        table = self.dimensions.tables[dimension_id].get(region)
        if table is None:
            return _NO_CUTS[region]
        place = (dimension_id, region)
        search = self._searches.get(place)
        if search is None or search.table is not table:
            search = self._searches[place] = key_search(table, search)
        return search


class _Attributes(dict[str, "_Readers | None"]):
    """Name in an event → readers, or None; all of one version or a later one."""

    def __init__(self, encoder: OneEventEncoder, version: int) -> None:
        super().__init__()
        self.version = version
        self._encoder = encoder
        n_attributes = len(encoder.dimensions.plans)
        self._most_names = n_attributes + _MOST_IGNORED
        self.asked = Asked(encoder.dimensions)
        self.reads_all_texts = self.asked(ANY_ATTRIBUTE)
        # All names, if events with more names than `most_names_read` have few of them.
        self.few = self.asked.heads_if_few(sys.maxsize)
        self.most_names_read = encoder.settings.max_event_values
        if self.few is not None:
            self.most_names_read = min(self.most_names_read, FEW_OF * len(self.few))

    def __missing__(self, name: str) -> _Readers | None:
        if len(self) >= self._most_names:  # names that nobody asks for are without number
            self.clear()
        readers = self[name] = self._encoder.readers(name)
        return readers


class _Readers(dict[type, Reader]):
    """Type of value → reader; this class is for names of which only what is inside is asked for."""

    def __missing__(self, kind: type) -> Reader:
        raise Awkward

    def list_pairs(self, elements: list[Any]) -> bytes:
        """Return the pairs of a list of checked values."""
        return b""

    def object_pairs(self) -> bytes:
        """Return the pairs of an object."""
        return b""


class _Attribute(_Readers):
    """Readers of an attribute that has dimensions, each made at first use."""

    def __init__(
        self,
        encoder: OneEventEncoder,
        plan: AttributePlan,
        sources: list[Any],
        earlier: _Attribute | None,
    ) -> None:
        super().__init__()
        self.sources = sources
        self._encoder = encoder
        self._plan = plan
        self._value = plan.value if encoder.is_known(plan.value) else -1
        self._without_memo: set[type] = set() if earlier is None else earlier._without_memo
        before: dict[str, _Attribute] = {} if earlier is None else earlier._several
        self._several: dict[str, _Attribute] = {  # of the elements of a list
            kind: _Attribute(encoder, own, [], before.get(kind)) for kind, own in plan.multi.items()
        }
        most_work = encoder.most_work()
        self._longest_list = longest_text(list_instructions(plan), most_work)
        self._longest = longest_text(text_instructions(plan), most_work)

    def __missing__(self, kind: type) -> Reader:
        if kind is list:
            self[kind] = self._short_list_pairs
            return self._short_list_pairs
        if kind not in IGNORING:
            raise Awkward
        reader = self._reader(kind)
        own = self._several.get(VALUES)
        if own is not None:
            reader = _both(reader, own[kind], self._longest if kind is str else sys.maxsize)
        self[kind] = reader
        return reader

    def _reader(self, kind: type) -> Reader:
        if kind is str:
            reader = self._text_reader()
        elif kind is dt.date or kind is dt.datetime:
            reader = self._time_reader(kind)
        elif self._value < 0 or kind is type(None):
            reader = IGNORING[kind]
        elif kind is bool:
            reader = boolean_reader(self._value)
        else:
            make = int_reader if kind is int else float_reader
            search = self._search(Region.NUMBER)
            reader = self._with_memo(kind, make(self._value, search), [search])
        return reader

    def _search(self, region: Region) -> KeySearch:
        return self._encoder.search(self._value, region)

    def _with_memo(self, kind: type, read: Reader, searches: list[KeySearch]) -> Reader:
        if not all(search.slots for search in searches):
            return Memo(read, None).__getitem__
        if kind in self._without_memo:
            return read

        def give_up(read: Reader) -> None:
            self._without_memo.add(kind)
            self[kind] = read

        return Memo(read, give_up).__getitem__

    def _time_reader(self, kind: type) -> Reader:
        # No memo: in the hour that is repeated when summer ends, different times are equal.
        make = date_reader if kind is dt.date else time_reader
        region = Region.DATE if kind is dt.date else Region.TIMESTAMP
        ids = (self._value, self._plan.transforms.get(TIME, -1))
        readers = [
            make(i, self._encoder.search(i, region)) for i in ids if self._encoder.is_known(i)
        ]
        if len(readers) == 2:
            as_value, as_time = readers
            return lambda value: as_value(value) + as_time(value)
        return readers[0] if readers else IGNORING[kind]

    def _text_reader(self) -> Reader:
        plan, encoder = self._plan, self._encoder
        value = None
        if self._value >= 0:
            value = TextLookup(self._value, str, self._search(Region.STRING))
        made = [
            TextLookup(dimension, _MADE_FROM[name], encoder.search(dimension, Region.STRING))
            for name, dimension in plan.transforms.items()
            if name != TIME and encoder.is_known(dimension)
        ]
        flags = [
            TextFlags(
                fold_case if name.removeprefix(WITHOUT).startswith("lower") else str,
                *matcher_of(plan, name),
                name.startswith(WITHOUT),
            )
            for name in plan.patterns
        ]
        most_work = encoder.most_work()
        time = None
        if encoder.is_known(plan.transforms.get(TIME, -1)):
            searches = [encoder.search(plan.transforms[TIME], region) for region in TIMES]
            time = time_text_reader(plan.transforms[TIME], *searches)
        read = text_reader(value, made, flags, most_work, time)
        if made or flags or time:
            return Memo(read, None, _LONGEST_MATCHED).__getitem__
        return read if value is None else self._with_memo(str, read, [value.search])

    def list_pairs(self, elements: list[Any]) -> bytes:
        if self._longest_list < sys.maxsize:
            texts = (element for element in elements if type(element) is str)
            if sum(map(len, texts)) > self._longest_list:
                raise Awkward
        records = [] if self._value < 0 else [pair(self._value, LIST_KEY)]
        for several in self._several.values():
            for element in elements:
                if type(element) not in _SCALARS and region_of(element) == Region.OBJECT:
                    records.append(several.object_pairs())
                else:
                    records.append(several[type(element)](element))
        return b"".join(records)

    def _short_list_pairs(self, elements: list[Any]) -> bytes:
        """Return the pairs of a list as it is in an event."""
        if len(elements) > _MOST_ELEMENTS or not _SCALARS.issuperset(map(type, elements)):
            raise Awkward
        if not self._several:
            for element in elements:
                IGNORING[type(element)](element)
        elif self._longest_list == sys.maxsize:
            records = [] if self._value < 0 else [pair(self._value, LIST_KEY)]
            for several in self._several.values():
                records += [several[type(element)](element) for element in elements]
            return b"".join(records)
        return self.list_pairs(elements)

    def object_pairs(self) -> bytes:
        return b"" if self._value < 0 else pair(self._value, OBJECT_KEY)


def _both(first: Reader, second: Reader, longest: int) -> Reader:
    """Return the reader of the pairs of two readers; longer texts are awkward."""

    def read(value: Any) -> bytes:
        if longest < sys.maxsize and len(value) > longest:
            raise Awkward
        return first(value) + second(value)

    return read


_SCALARS = frozenset(IGNORING)
_NO_CUTS = {region: key_search(CutTable(region)) for region in Region}
_OBJECT = _Readers(IGNORING)
