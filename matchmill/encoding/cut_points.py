"""The cut points of one dimension and type, in order, each with a label; values become keys.

    run   places  p0 < p1 < p2 …       numbers: (whole, part) pairs; strings: flat UTF-8
          labels  L0 < L1 < L2 …       int64, with gaps, stable while the engine lives

    value equal to p_i                 key L_i
    value between p_i and p_(i+1)      key L_i + 1        (below p_0: floor + 1)

Only cut points have labels, so keys are exact for any value without storing it. A predicate's
interval is [L, L'], [L + 1, L' - 1], … in labels, and stays right when a cut point is added
inside it, because a new label always falls strictly between its neighbours (which therefore
differ by at least 2). If a gap is full, all labels change: `added` then returns the old and the new
labels.

A table has two runs, a large one and a small fresh one, which are merged from time to time, so that
adding one cut point does not copy a million. No array changes once it is published: readers keep
what they have. New labels at either end take a fixed step, since thresholds and ids often ascend.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.numbers import distinct_pairs, few_number_pairs, number_pairs
from matchmill.encoding.search_guides import (
    LEAST_GUIDED,
    Guide,
    build_guide,
    guided_range,
    ordered_bits,
)
from matchmill.encoding.texts import (
    Texts,
    gather_texts,
    head_of,
    strings_to_texts,
    text_heads,
    writable,
)
from matchmill.kernels.jit import int64, kernel
from matchmill.language.values import Domain, Region

__all__ = [
    "CutTable",
    "NumberRun",
    "Relabelling",
    "StringRun",
    "region_ceiling",
    "region_floor",
    "sorted_places",
]

_END_STEP = 1 << 30
_FRESH_LIMIT = 1024
_ASKED_SHARE = 8  # of the cut points: after so many values a guide has paid
_FEW = 8  # cut points that are handled one by one
REGION_BITS = 60


def region_floor(region: int) -> int:
    """Return a key below the label of every cut point of a region."""
    return region << REGION_BITS


def region_ceiling(region: int) -> int:
    """Return a key above the label of every cut point of a region."""
    return ((region + 1) << REGION_BITS) - 1


class Relabelling(NamedTuple):
    """Labels before and after, both ascending, of one dimension's region."""

    region: int
    old: np.ndarray
    new: np.ndarray


# -- runs -----------------------------------------------------------------------------------------


class NumberRun(NamedTuple):
    """Numbers in ascending order, with their labels."""

    whole: np.ndarray
    part: np.ndarray
    labels: np.ndarray


class StringRun(NamedTuple):
    """Texts in ascending order, with their labels."""

    heads: np.ndarray  # the first eight bytes of each string as one big-endian integer
    offsets: np.ndarray
    data: np.ndarray
    labels: np.ndarray


# -- search ---------------------------------------------------------------------------------------


@kernel
def _number_bound(run: NumberRun, whole: int, part: float) -> int:
    """Return the first cut point that is not below the value."""
    return _number_bound_within(run, whole, part, 0, len(run.whole))


@kernel
def _number_bound_within(run: NumberRun, whole: int, part: float, low: int, high: int) -> int:
    while low < high:
        middle = (low + high) >> 1
        w = run.whole[middle]
        if w < whole or (w == whole and run.part[middle] < part):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _text_below(run: StringRun, i: int, data: np.ndarray, start: int, stop: int) -> bool:
    """Whether cut point i is below the text, beyond equal heads."""
    a = run.offsets[i]
    length_a = run.offsets[i + 1] - a
    length = stop - start
    for j in range(min(length_a, length)):
        x = run.data[a + j]
        y = data[start + j]
        if x != y:
            return bool(x < y)
    return bool(length_a < length)


@kernel
def _string_bound(run: StringRun, head: Any, data: np.ndarray, start: int, stop: int) -> int:
    low = 0
    high = len(run.heads)
    while low < high:
        middle = (low + high) >> 1
        h = run.heads[middle]
        if h < head or (h == head and _text_below(run, middle, data, start, stop)):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _text_equal(run: StringRun, i: int, data: np.ndarray, start: int, stop: int) -> bool:
    a = run.offsets[i]
    if run.offsets[i + 1] - a != stop - start:
        return False
    for j in range(stop - start):
        if run.data[a + j] != data[start + j]:
            return False
    return True


@kernel
def _locate_numbers(
    run: NumberRun, whole: np.ndarray, part: np.ndarray, out_equal: np.ndarray, out_at: np.ndarray
) -> None:
    for k in range(len(whole)):
        i = _number_bound(run, whole[k], part[k])
        out_at[k] = i
        out_equal[k] = i < len(run.whole) and run.whole[i] == whole[k] and run.part[i] == part[k]


@kernel
def _locate_strings(
    run: StringRun, texts: Texts, heads: np.ndarray, out_equal: np.ndarray, out_at: np.ndarray
) -> None:
    for k in range(len(heads)):
        start, stop = texts.offsets[k], texts.offsets[k + 1]
        i = _string_bound(run, heads[k], texts.data, start, stop)
        out_at[k] = i
        out_equal[k] = (
            i < len(run.heads)
            and run.heads[i] == heads[k]
            and _text_equal(run, i, texts.data, start, stop)
        )


@kernel
def _find_bounds(run: NumberRun, whole: np.ndarray, part: np.ndarray, out_at: np.ndarray) -> None:
    for k in range(len(whole)):
        out_at[k] = _number_bound(run, whole[k], part[k])


@kernel
def _find_guided_bounds(
    run: NumberRun,
    guide: Guide,
    whole: np.ndarray,
    part: np.ndarray,
    bits: np.ndarray,
    out_at: np.ndarray,
) -> None:
    for k in range(len(whole)):
        low, high = guided_range(guide, whole[k], part[k], bits[k] if guide.by_bits else int64(0))
        out_at[k] = _number_bound_within(run, whole[k], part[k], low, high)


@kernel
def _number_keys(
    base: NumberRun,
    fresh: NumberRun,
    whole: np.ndarray,
    part: np.ndarray,
    base_at: np.ndarray,
    floor: int,
    out_keys: np.ndarray,
) -> None:
    """Write keys; `base_at` has for each number the first cut point of the base not below it."""
    for k in range(len(whole)):
        key = floor + 1
        i = base_at[k]
        if i < len(base.whole) and base.whole[i] == whole[k] and base.part[i] == part[k]:
            out_keys[k] = base.labels[i]
            continue
        if i > 0:
            key = base.labels[i - 1] + 1
        j = _number_bound(fresh, whole[k], part[k])
        if j < len(fresh.whole) and fresh.whole[j] == whole[k] and fresh.part[j] == part[k]:
            out_keys[k] = fresh.labels[j]
            continue
        if j > 0:
            key = max(key, fresh.labels[j - 1] + 1)
        out_keys[k] = key


@kernel
def _string_keys(
    base: StringRun, fresh: StringRun, texts: Texts, floor: int, out_keys: np.ndarray
) -> None:
    for k in range(len(texts.offsets) - 1):
        start, stop = texts.offsets[k], texts.offsets[k + 1]
        head = head_of(texts.data, start, stop)
        key = floor + 1
        i = _string_bound(base, head, texts.data, start, stop)
        if i < len(base.heads) and _text_equal(base, i, texts.data, start, stop):
            out_keys[k] = base.labels[i]
            continue
        if i > 0:
            key = base.labels[i - 1] + 1
        j = _string_bound(fresh, head, texts.data, start, stop)
        if j < len(fresh.heads) and _text_equal(fresh, j, texts.data, start, stop):
            out_keys[k] = fresh.labels[j]
            continue
        if j > 0:
            key = max(key, fresh.labels[j - 1] + 1)
        out_keys[k] = key


# -- the table ------------------------------------------------------------------------------------


def _empty_run(region: int) -> Any:
    no_labels = np.empty(0, np.int64)
    if region == Region.STRING:
        return StringRun(
            np.empty(0, np.uint64), np.zeros(1, np.int64), np.empty(0, np.uint8), no_labels
        )
    return NumberRun(np.empty(0, np.int64), np.empty(0, np.float64), no_labels)


class _Guiding:
    """The guide into the base run of some tables, once it pays.

    Threads that look values up may count some of them twice or not at all, or make a guide twice.
    """

    __slots__ = ("_guide", "_is_made", "_n_asked")

    def __init__(self) -> None:
        self._guide: Guide | None = None
        self._is_made = False
        self._n_asked = 0

    def guide_for(self, run: NumberRun, n_values: int) -> Guide | None:
        """Return the guide, if there is one, for so many values."""
        if not self._is_made and len(run.labels) >= LEAST_GUIDED:
            self._n_asked += n_values
            if self._n_asked * _ASKED_SHARE >= len(run.labels):
                self._guide = build_guide(run.whole + run.part)
                self._is_made = True
        return self._guide


class CutTable:
    """The cut points of one dimension and region; immutable, `added` returns a new one."""

    __slots__ = ("_guiding", "base", "fresh", "region")

    def __init__(
        self, region: int, base: Any = None, fresh: Any = None, guiding: _Guiding | None = None
    ) -> None:
        self.region = region
        self._guiding = _Guiding() if guiding is None else guiding
        self.base = _empty_run(region) if base is None else base
        self.fresh = _empty_run(region) if fresh is None else fresh

    @property
    def n_cuts(self) -> int:
        """The number of cut points."""
        return len(self.base.labels) + len(self.fresh.labels)

    # values → keys

    def number_keys(self, whole: np.ndarray, part: np.ndarray) -> np.ndarray:
        """Return the keys of numbers, given as pairs."""
        keys, at = np.empty((2, len(whole)), np.int64)
        whole, part = writable(whole), writable(part)
        guide = self._guiding.guide_for(self.base, len(whole))
        if guide is None:
            _find_bounds(self.base, whole, part, at)
        else:
            bits = ordered_bits(whole + part) if guide.by_bits else whole[:0]
            _find_guided_bounds(self.base, guide, whole, part, bits, at)
        _number_keys(self.base, self.fresh, whole, part, at, region_floor(self.region), keys)
        return keys

    def string_keys(self, texts: Texts) -> np.ndarray:
        """Return the keys of texts."""
        keys = np.empty(len(texts.offsets) - 1, np.int64)
        _string_keys(self.base, self.fresh, texts, region_floor(self.region), keys)
        return keys

    def keys_of(self, values: Sequence[Domain]) -> np.ndarray:
        """Return the keys of values of this region."""
        if self.region == Region.STRING:
            return self.string_keys(strings_to_texts(values))  # type: ignore[arg-type]
        return self.number_keys(*number_pairs(self.region, values))

    def labels_of(self, values: Sequence[Domain]) -> np.ndarray | None:
        """Return the labels of cut points; None if one of them is missing."""
        return self.labels_of_run(self._probe(values))

    def labels_of_run(self, places: Any) -> np.ndarray | None:
        """Return the labels that this table has for the cut points of another table's run."""
        labels = np.full(len(places[0]), -1, np.int64)
        for run in (self.base, self.fresh):
            if len(run.labels):
                equal, at = self._locate(run, places)
                labels[equal] = run.labels[at[equal]]
        return None if bool((labels < 0).any()) else labels

    def _probe(self, values: Sequence[Domain]) -> Any:
        """Return values in the form of a run, in the order given, without labels."""
        if self.region == Region.STRING:
            texts = strings_to_texts(values)  # type: ignore[arg-type]
            return StringRun(text_heads(*texts), *texts, np.empty(0, np.int64))
        return NumberRun(*number_pairs(self.region, values), np.empty(0, np.int64))

    # adding

    def added(self, values: Sequence[Domain]) -> tuple[CutTable, Relabelling | None]:
        """Return a table that has these cut points too, and the relabelling if one was needed."""
        table, _, relabelling = self.with_labels(sorted_places(self.region, values)[0])
        return table, relabelling

    def with_labels(self, places: Any) -> tuple[CutTable, np.ndarray, Relabelling | None]:
        """Return a table that has the cut points of a run too, their labels, and as `added`."""
        equal, at = self._locate(self.base, places)
        fresh_equal, fresh_at = self._locate(self.fresh, places)
        labels = np.empty(len(at), np.int64)
        labels[equal] = self.base.labels[at[equal]]
        labels[fresh_equal] = self.fresh.labels[fresh_at[fresh_equal]]
        unknown = np.flatnonzero(~(equal | fresh_equal))
        if len(unknown) == 0:
            return self, labels, None
        are_all = len(unknown) == len(at)
        new = places if are_all else _take(places, unknown, with_labels=False)
        below, above = self._around(at[unknown], fresh_at[unknown])
        new_labels = _labels_between(below, above, self.region)
        if new_labels is None:
            wider, relabelling = self._relabelled(len(unknown))
            table, labels, again = wider.with_labels(places)
            assert again is None, "a fresh relabelling has room"
            return table, labels, relabelling
        labels[unknown] = new_labels
        return self._with_run(new._replace(labels=new_labels)), labels, None

    def with_places(self, places: Texts | tuple[np.ndarray, np.ndarray]) -> CutTable:
        """Return a table with these cut points, ascending and distinct; this one has none yet."""
        if isinstance(places, Texts):
            run: Any = StringRun(text_heads(*places), *places, np.empty(0, np.int64))
        else:
            run = NumberRun(*places, np.empty(0, np.int64))
        labels = _labels_between(*self._neighbours(run), self.region)
        assert labels is not None, "a whole region has room"
        return CutTable(self.region, run._replace(labels=labels))

    def with_more_places(self, places: Any) -> CutTable | None:
        """Return a table with the cut points of a run, too; None if a gap has no room for them."""
        known = self._locate(self.base, places)[0] | self._locate(self.fresh, places)[0]
        if known.all():
            return self
        new = _take(places, np.flatnonzero(~known), with_labels=False)
        labels = _labels_between(*self._neighbours(new), self.region)
        return None if labels is None else self._with_run(new._replace(labels=labels))

    def _locate(self, run: Any, values: Any) -> tuple[np.ndarray, np.ndarray]:
        n = len(values[0])
        equal, at = np.empty(n, bool), np.empty(n, np.int64)
        if self.region == Region.STRING:
            _locate_strings(run, Texts(values.offsets, values.data), values.heads, equal, at)
        else:
            _locate_numbers(run, values.whole, values.part, equal, at)
        return equal, at

    def _neighbours(self, new: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels next below and next above each new cut point."""
        return self._around(self._locate(self.base, new)[1], self._locate(self.fresh, new)[1])

    def _around(self, at: np.ndarray, fresh_at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels below and above new cut points, whose places in both runs are given."""
        floor, ceiling = region_floor(self.region), region_ceiling(self.region)
        if len(at) <= _FEW:
            return self._around_few(at.tolist(), fresh_at.tolist(), floor, ceiling)
        below, above = np.full(len(at), floor, np.int64), np.full(len(at), ceiling, np.int64)
        for run, places in ((self.base, at), (self.fresh, fresh_at)):
            if len(run.labels):
                last = len(run.labels) - 1
                lower = run.labels[np.maximum(places - 1, 0)]
                upper = run.labels[np.minimum(places, last)]
                below = np.maximum(below, np.where(places > 0, lower, floor))
                above = np.minimum(above, np.where(places <= last, upper, ceiling))
        return below, above

    def _around_few(
        self, at: list[int], fresh_at: list[int], floor: int, ceiling: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what `_around` does, one by one."""
        below, above = [floor] * len(at), [ceiling] * len(at)
        for labels, places in ((self.base.labels, at), (self.fresh.labels, fresh_at)):
            for i, place in enumerate(places):
                if 0 < place <= len(labels):
                    below[i] = max(below[i], int(labels[place - 1]))
                if place < len(labels):
                    above[i] = min(above[i], int(labels[place]))
        return np.array(below, np.int64), np.array(above, np.int64)

    def _with_run(self, new: Any) -> CutTable:
        fresh = _merged(self.fresh, new)
        if len(fresh.labels) > max(_FRESH_LIMIT, 4 * isqrt(len(self.base.labels))):
            return CutTable(self.region, _merged(self.base, fresh))
        return CutTable(self.region, self.base, fresh, self._guiding)

    def _relabelled(self, n_more: int) -> tuple[CutTable, Relabelling]:
        run = _merged(self.base, self.fresh)
        n = len(run.labels)
        floor, ceiling = region_floor(self.region), region_ceiling(self.region)
        step = (ceiling - floor) // (n + 1)
        if step < 4 * (n_more + 2):
            raise MemoryError("too many cut points on one dimension")
        labels = floor + step * np.arange(1, n + 1, dtype=np.int64)
        table = CutTable(self.region, run._replace(labels=labels))
        return table, Relabelling(self.region, run.labels, labels)

    def merged(self) -> Any:
        """Return all cut points as one run."""
        return _merged(self.base, self.fresh)

    @property
    def n_bytes(self) -> int:
        """The bytes of all arrays."""
        return sum(a.nbytes for run in (self.base, self.fresh) for a in run)


def sorted_places(region: int, values: Sequence[Domain]) -> tuple[Any, np.ndarray]:
    """Return distinct values in ascending order as a run without labels; and where each is."""
    no_labels = np.empty(0, np.int64)
    if region == Region.STRING:
        ascending = sorted(set(values))
        texts = strings_to_texts(ascending)  # type: ignore[arg-type]
        place_of = {value: i for i, value in enumerate(ascending)}
        at = np.fromiter((place_of[value] for value in values), np.int64, len(values))
        return StringRun(text_heads(*texts), *texts, no_labels), at
    if len(values) <= _FEW:
        ascending = sorted(set(values))
        place_of = {value: i for i, value in enumerate(ascending)}
        at = np.array([place_of[value] for value in values], np.int64)
        return NumberRun(*few_number_pairs(region, ascending), no_labels), at
    whole, part, at = distinct_pairs(*number_pairs(region, values))
    return NumberRun(whole, part, no_labels), at


def taken_places(run: Any, positions: np.ndarray) -> Any:
    """Return some cut points of a run, ascending, without labels."""
    return _take(run, positions, with_labels=False)._replace(labels=np.empty(0, np.int64))


def _take(run: Any, order: np.ndarray, *, with_labels: bool) -> Any:
    labels = run.labels[order] if with_labels else run.labels
    if isinstance(run, StringRun):
        offsets, data = gather_texts(run.offsets, run.data, order)
        return StringRun(run.heads[order], offsets, data, labels)
    return NumberRun(run.whole[order], run.part[order], labels)


def _merged(a: Any, b: Any) -> Any:
    """Return two runs as one; the labels give the order."""
    if len(a.labels) == 0 or len(b.labels) == 0:
        return b if len(a.labels) == 0 else a
    if not isinstance(a, StringRun):
        at = np.searchsorted(a.labels, b.labels)
        return NumberRun(*(_inserted(old, at, new) for old, new in zip(a, b, strict=True)))
    labels = np.concatenate((a.labels, b.labels))
    offsets = np.concatenate((a.offsets, b.offsets[1:] + a.offsets[-1]))
    heads = np.concatenate((a.heads, b.heads))
    both = StringRun(heads, offsets, np.concatenate((a.data, b.data)), labels)
    return _take(both, np.argsort(labels, kind="stable"), with_labels=True)


def _inserted(old: np.ndarray, at: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return an array with new elements before some of its places, which ascend."""
    if len(at) > _FEW:
        return np.insert(old, at, new)
    pieces: list[np.ndarray] = []
    start = 0
    for i, place in enumerate(at.tolist()):
        pieces += (old[start:place], new[i : i + 1])
        start = place
    return np.concatenate((*pieces, old[start:]))


def _labels_between(below: np.ndarray, above: np.ndarray, region: int) -> np.ndarray | None:
    """Return labels for ascending new cut points between neighbours; None if a gap is too small."""
    floor, ceiling = region_floor(region), region_ceiling(region)
    if len(below) <= _FEW:
        return _few_labels_between(below.tolist(), above.tolist(), floor, ceiling)
    starts = np.flatnonzero(np.concatenate(([True], below[1:] != below[:-1])))
    counts = np.diff(np.concatenate((starts, [len(below)])))
    nth = np.arange(len(below)) - np.repeat(starts, counts) + 1  # 1, 2, … inside each gap
    count = np.repeat(counts, counts)
    gap = above - below
    step = gap // (count + 1)
    at_end = (above == ceiling) & (step > _END_STEP)
    at_start = (below == floor) & (step > _END_STEP) & ~at_end
    labels = below + step * nth
    labels[at_end] = below[at_end] + _END_STEP * nth[at_end]
    labels[at_start] = above[at_start] - _END_STEP * (count - nth + 1)[at_start]
    empty = (below == floor) & (above == ceiling)
    middle = (floor + ceiling) // 2
    fits = empty & (count < (1 << 28))
    labels[fits] = middle + _END_STEP * (nth - count // 2)[fits]
    return None if bool((step < 3).any()) else labels


def _few_labels_between(
    below: list[int], above: list[int], floor: int, ceiling: int
) -> np.ndarray | None:
    """Return what `_labels_between` does, one by one: NumPy's fixed costs are higher for a few."""
    labels = []
    for i, (low, high) in enumerate(zip(below, above, strict=True)):
        count = below.count(low)
        nth = i - below.index(low) + 1
        step = (high - low) // (count + 1)
        if step < 3:
            return None
        if low == floor and high == ceiling:
            label = (floor + ceiling) // 2 + _END_STEP * (nth - count // 2)
        elif high == ceiling and step > _END_STEP:
            label = low + _END_STEP * nth
        elif low == floor and step > _END_STEP:
            label = high - _END_STEP * (count - nth + 1)
        else:
            label = low + step * nth
        labels.append(label)
    return np.array(labels, np.int64)
