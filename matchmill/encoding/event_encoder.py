"""Columns of events become an EventBatch: each value is looked up on the dimensions it feeds.

value column ──► value dimension                     (all types)
time, text   ──► time                                (a time, or what an ISO text stands for)
text         ──► reversed, lower, address, …         (a text made from the text)
             ──► substring, like, regex: one flag per hit
list         ──► each element the same, on the multi-valued dimensions of the list
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from matchmill.encoding.cut_points import region_floor
from matchmill.encoding.dimensions import (
    FALSE_KEY,
    LIST_KEY,
    OBJECT_KEY,
    TRUE_KEY,
    AttributePlan,
    Dimensions,
)
from matchmill.encoding.event_batch import EventBatch, from_pairs
from matchmill.encoding.events.columns import (
    Column,
    EventColumns,
    number_column,
    with_all_texts,
)
from matchmill.encoding.text_patterns import (
    LikeIndex,
    PatternMatcher,
    PatternTiers,
    RegexIndex,
    SubstringIndex,
    lower_texts,
)
from matchmill.encoding.texts import Texts, texts_of
from matchmill.encoding.time_texts import IS_DATE, IS_TIMESTAMP, read_times
from matchmill.kernels.csr import take_ranges
from matchmill.kernels.jit import kernel
from matchmill.kernels.uninterrupted import uninterrupted
from matchmill.language.expression import ANY_ATTRIBUTE
from matchmill.language.normal_form import TIME, VALUES, WITHOUT
from matchmill.language.patterns import address_text
from matchmill.language.values import TIMES, Region

__all__ = ["encode_events", "matcher_of"]


_REPEATS = 2  # times, on average, that a text must occur


class _Pairs:
    """Gathers (event, dimension, key) triples."""

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []
        self.dimensions: list[np.ndarray] = []
        self.keys: list[np.ndarray] = []

    def add(self, rows: np.ndarray, dimension_id: int, keys: np.ndarray) -> None:
        self.add_flags(rows, np.full(len(rows), dimension_id, np.int32), keys)

    def add_flags(self, rows: np.ndarray, dimensions: np.ndarray, keys: np.ndarray) -> None:
        self.rows.append(rows)
        self.dimensions.append(dimensions)
        self.keys.append(keys)


def encode_events(dimensions: Dimensions, events: EventColumns) -> EventBatch:
    """Return the (dimension, key) pairs of each event."""
    pairs = _Pairs()
    reads_all = ANY_ATTRIBUTE in dimensions.plans
    for column in with_all_texts(events) if reads_all else events.columns:
        plan = dimensions.plans.get(column.attribute)
        if plan is None or len(column.rows) == 0:
            continue
        _add_values(pairs, dimensions, plan, column)
        for kind, several in plan.multi.items():
            if column.region == Region.LIST:
                for elements in column.elements:
                    _add_values(pairs, dimensions, several, elements)
            elif kind == VALUES:
                _add_values(pairs, dimensions, several, column)
    return from_pairs(events.n_events, pairs.rows, pairs.dimensions, pairs.keys)


def _add_values(pairs: _Pairs, dimensions: Dimensions, plan: AttributePlan, column: Column) -> None:
    if plan.value >= 0:
        pairs.add(column.rows, plan.value, _value_keys(dimensions, plan.value, column))
    if TIME in plan.transforms:
        _add_times(pairs, dimensions, plan.transforms[TIME], column)
    if column.region == Region.STRING:
        _add_text(pairs, dimensions, plan, column)


def _value_keys(dimensions: Dimensions, dimension_id: int, column: Column) -> np.ndarray:
    region = column.region
    if region == Region.BOOLEAN:
        return column.whole + FALSE_KEY
    if region == Region.LIST:
        return np.full(len(column.rows), LIST_KEY, np.int64)
    if region == Region.OBJECT:
        return np.full(len(column.rows), OBJECT_KEY, np.int64)
    table = dimensions.tables[dimension_id].get(region)
    if table is None:
        return np.full(len(column.rows), region_floor(region) + 1, np.int64)
    if region == Region.STRING:
        return table.string_keys(texts_of(column.text))
    return table.number_keys(column.whole, column.part)


# -- times ----------------------------------------------------------------------------------------


def _add_times(pairs: _Pairs, dimensions: Dimensions, dimension_id: int, column: Column) -> None:
    if column.region in TIMES:
        pairs.add(column.rows, dimension_id, _value_keys(dimensions, dimension_id, column))
    elif column.region == Region.STRING:
        kinds, whole, part = read_times(texts_of(column.text))
        for kind, region in ((IS_DATE, Region.DATE), (IS_TIMESTAMP, Region.TIMESTAMP)):
            some = np.flatnonzero(kinds == kind)
            if len(some):
                times = number_column(
                    column.attribute, region, column.rows[some], whole[some], part[some]
                )
                pairs.add(times.rows, dimension_id, _value_keys(dimensions, dimension_id, times))


# -- text -----------------------------------------------------------------------------------------


def _add_text(pairs: _Pairs, dimensions: Dimensions, plan: AttributePlan, column: Column) -> None:
    if plan.transforms.keys() <= {TIME} and not plan.patterns:
        return
    if _add_repeated_texts(pairs, dimensions, plan, column):
        return
    texts = texts_of(column.text)
    lowered: Texts | None = None
    for derivation, dimension_id in plan.transforms.items():
        if derivation == TIME:
            continue
        rows, derived = column.rows, texts
        if derivation.startswith("lower"):
            lowered = derived = lowered if lowered is not None else lower_texts(texts)
        if derivation.endswith("reversed"):
            derived = reverse_texts(derived)
        elif derivation == "address":
            rows, derived = _addresses(column)
        table = dimensions.table(dimension_id, Region.STRING)
        pairs.add(rows, dimension_id, table.string_keys(derived))
    for derivation in plan.patterns:
        derived = texts
        if derivation.removeprefix(WITHOUT).startswith("lower"):
            lowered = derived = lowered if lowered is not None else lower_texts(texts)
        matcher, flags = matcher_of(plan, derivation)
        hits = matcher.find(column.text if derivation.endswith("regex") else derived)
        if derivation.startswith(WITHOUT):
            hits = _misses(len(column.rows), len(flags), hits)
        _add_hits(pairs, column.rows, flags, hits)


def _add_repeated_texts(
    pairs: _Pairs, dimensions: Dimensions, plan: AttributePlan, column: Column
) -> bool:
    """Look at each distinct text once; return whether texts repeat so often that this pays."""
    assert column.text is not None
    rows = column.rows
    encoded = column.text.dictionary_encode()
    n_distinct = len(encoded.dictionary)
    if _REPEATS * n_distinct > len(rows) or (rows[1:] == rows[:-1]).any():  # elements of lists
        return False
    found = _Pairs()
    distinct = column._replace(rows=np.arange(n_distinct), text=encoded.dictionary)
    _add_text(found, dimensions, plan, distinct)
    batch = from_pairs(n_distinct, found.rows, found.dimensions, found.keys)
    codes = encoded.indices.to_numpy().astype(np.int64)
    offsets, at = take_ranges(batch.offsets, codes)
    pairs.add_flags(np.repeat(rows, np.diff(offsets)), batch.dimensions[at], batch.keys[at])
    return True


@kernel
def _misses(n_values: int, n_patterns: int, hits: np.ndarray) -> np.ndarray:
    """Return all (value, pattern) pairs but the hits, each of which is there once."""
    is_hit = np.zeros(n_patterns, np.bool_)
    first = np.zeros(n_values + 1, np.int64)
    for k in range(len(hits)):
        first[hits[k, 0] + 1] += 1
    for v in range(n_values):
        first[v + 1] += first[v]
    found = np.empty(len(hits), np.int64)
    filled = first[:-1].copy()
    for k in range(len(hits)):
        found[filled[hits[k, 0]]] = hits[k, 1]
        filled[hits[k, 0]] += 1
    out = np.empty((n_values * n_patterns - len(hits), 2), np.int64)
    n = 0
    for v in range(n_values):
        for k in range(first[v], first[v + 1]):
            is_hit[found[k]] = True
        for p in range(n_patterns):
            if not is_hit[p]:
                out[n, 0] = v
                out[n, 1] = p
                n += 1
        for k in range(first[v], first[v + 1]):
            is_hit[found[k]] = False
    return out


def _add_hits(pairs: _Pairs, rows: np.ndarray, flags: np.ndarray, hits: np.ndarray) -> None:
    """Set flags for (value, pattern) hits, once per event."""
    events = rows[hits[:, 0]]
    patterns = hits[:, 1]
    if len(rows) > 1 and (rows[1:] == rows[:-1]).any():  # elements of lists
        n = len(flags)  # one number per hit: rows of two would be sorted as bytes
        events, patterns = np.divmod(np.unique(events * n + patterns), n)
    pairs.add_flags(events, flags[patterns], np.full(len(events), TRUE_KEY, np.int64))


_PATTERN_KINDS: dict[str, Callable[[list[str]], PatternMatcher]] = {
    "substring": SubstringIndex,
    "like": LikeIndex,
    "regex": RegexIndex,
}


def _compile(derivation: str, arguments: list[str], known: Any) -> PatternTiers:
    kind = next(k for suffix, k in _PATTERN_KINDS.items() if derivation.endswith(suffix))
    return PatternTiers(kind, arguments, known)


def matcher_of(plan: AttributePlan, derivation: str) -> tuple[Any, np.ndarray]:
    """Return the compiled patterns of a derivation and the dimension of each."""
    n_patterns = len(plan.patterns[derivation])
    cached = plan.compiled.get(derivation)
    if cached is None or len(cached[0]) < n_patterns:
        cached = uninterrupted(_compiled, plan, derivation, n_patterns)
    return cached[1], cached[0]


def _compiled(plan: AttributePlan, derivation: str, n_patterns: int) -> tuple[np.ndarray, Any]:
    with plan.lock:
        cached = plan.compiled.get(derivation)
        if cached is None or len(cached[0]) < n_patterns:
            patterns = plan.patterns[derivation][:n_patterns]
            earlier = cached[1] if cached else None
            matcher = _compile(derivation, [p for p, _ in patterns], earlier)
            cached = (np.array([d for _, d in patterns], np.int32), matcher)
            plan.compiled = {**plan.compiled, derivation: cached}
        return cached


def _addresses(column: Column) -> tuple[np.ndarray, Texts]:
    """Return the rows whose text is an IP address, and these addresses in sortable form."""
    assert column.text is not None
    encoded = column.text.dictionary_encode()
    distinct = [address_text(text) for text in encoded.dictionary.to_pylist()]
    texts = pa.array(distinct, pa.large_string()).take(encoded.indices)
    valid = texts.is_valid().to_numpy(zero_copy_only=False)
    return column.rows[valid], texts_of(texts.drop_null())


def reverse_texts(texts: Texts) -> Texts:
    """Return each text with its characters in reverse order."""
    return Texts(texts.offsets, _reverse(texts))


@kernel
def _reverse(texts: Texts) -> np.ndarray:
    out = np.empty_like(texts.data)
    for t in range(len(texts.offsets) - 1):
        k = texts.offsets[t]
        end = texts.offsets[t + 1]
        to = end
        while k < end:
            lead = texts.data[k]
            length = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            to -= length
            for j in range(length):
                out[to + j] = texts.data[k + j]
            k += length
    return out
