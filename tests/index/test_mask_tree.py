"""The mask tree and the choice between structures, against a scan."""

from __future__ import annotations

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError
from matchmill.index.base import Index, Statistics
from matchmill.index.mask_tree import MaskTree
from matchmill.index.mask_tree.arrays import ABSENT
from matchmill.index.mask_tree.codes import find_buckets, high_codes, low_codes
from matchmill.index.scan import Scan
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.intrinsics import lanes_inside, lanes_within
from matchmill.kernels.jit import JIT_DISABLED, kernel
from tests.support.conformance_kit import matched

LAST = (1 << 63) - 1
N = 300 if JIT_DISABLED else 3000


def boxes(
    random: np.random.Generator,
    n: int,
    dimensions: list[int],
    top: int,
    first_id: int = 0,
    odd: float = 0.0,
) -> ConjunctionTable:
    """Clauses of one range per dimension; `odd` of them have other predicates as well."""
    rows = []
    for i in range(n):
        for d in dimensions:
            low, high = np.sort(random.integers(1, top, 2)).tolist()
            kind = random.random()
            if kind < odd / 4:
                rows.append((i, d, [(0, high)]))  # accepts absence
            elif kind < odd / 2:
                rows.append((i, d, [(0, 0)] if kind < odd / 3 else [(low, LAST)]))
            elif kind < odd:
                rows.append((i, d, [(low, low), (high + 2, high + 3)]))
            else:
                width = max(1, (high - low) // (8 if len(dimensions) < 3 else 2))
                rows.append((i, d, [(low, low + width)]))
        if random.random() < odd / 4:
            rows.append((i, max(dimensions) + 1, [(1, top // 2)]))
    n_predicates = np.bincount([r[0] for r in rows], minlength=n)
    return ConjunctionTable(
        np.arange(first_id, first_id + n),
        offsets_of(n_predicates),
        np.array([r[1] for r in rows], np.int32),
        offsets_of(np.array([len(r[2]) for r in rows])),
        np.array([low for r in rows for low, _ in r[2]], np.int64),
        np.array([high for r in rows for _, high in r[2]], np.int64),
    )


def some_events(
    random: np.random.Generator, n: int, table: ConjunctionTable, n_dimensions: int, top: int
) -> EventBatch:
    """Events of which some have all dimensions; keys at bounds, beside them, and anywhere."""
    bounds = np.concatenate((table.lows, table.highs))
    bounds = bounds[(bounds > 1) & (bounds < LAST)]
    rows: list[list[tuple[int, int]]] = []
    for _ in range(n):
        full = random.random() < 0.6
        pairs = []
        for d in range(n_dimensions):
            if full or random.random() < 0.7:
                at = int(random.choice(bounds)) + int(random.integers(-1, 2))
                key = at if random.random() < 0.5 else int(random.integers(1, top))
                pairs.append((d, max(1, key)))
        rows.append(pairs)
    rows[0] = [(0, LAST), (1, 1)]
    flat = [pair for pairs in rows for pair in pairs]
    return EventBatch(
        offsets_of(np.array([len(pairs) for pairs in rows])),
        np.array([d for d, _ in flat], np.int32),
        np.array([key for _, key in flat], np.int64),
    )


def check(index: Index, table: ConjunctionTable, events: EventBatch) -> int:
    """Compare an index, saved and opened as well, with a scan; return how many matches."""
    wanted = matched(Scan.build(table).match_batch(events))
    for built in (index, type(index).from_arrays(index.arrays())):
        assert matched(built.match_batch(events)) == wanted
        for e in range(0, events.n_events, 7):
            span = slice(int(events.offsets[e]), int(events.offsets[e + 1]))
            pairs = np.stack((events.dimensions[span], events.keys[span]), axis=1)
            one = built.match_pairs(pairs.astype(np.int64).tobytes())  # type: ignore[attr-defined]
            assert sorted(one.tolist()) == wanted[e]
    return sum(map(len, wanted))


@pytest.mark.kernels
@pytest.mark.parametrize("top", [12, 300, 1 << 40, 1 << 62])
@pytest.mark.parametrize("odd", [0.0, 0.4])
@pytest.mark.parametrize("dimensions", [[0], [0, 1], [0, 2, 3], list(range(12))])
def test_it_finds_what_a_scan_finds(top: int, odd: float, dimensions: list[int]) -> None:
    random = np.random.default_rng([top, int(10 * odd), len(dimensions)])
    n = N // 3 if len(dimensions) < 5 else N // 6
    table = boxes(random, n, dimensions, top, odd=odd)
    events = some_events(random, 60, table, max(dimensions) + 3, top)
    assert check(MaskTree.build(table), table, events) or len(dimensions) > 5
    known = Statistics(
        events.n_events,
        np.bincount(events.dimensions, minlength=16),
        offsets_of(np.bincount(events.dimensions, minlength=16)),
        events.keys[np.lexsort((events.keys, events.dimensions))],
    )
    check(MaskTree.build(table, known), table, events)


@pytest.mark.kernels
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 128, 129, 700])
def test_any_number_of_clauses(n: int) -> None:
    random = np.random.default_rng(n)
    table = boxes(random, n, [0, 1], 1000)
    index = MaskTree.build(table)
    assert index.stats().n_clauses == n
    events = some_events(random, 20, boxes(random, 9, [0, 1], 1000), 2, 1000)
    check(index, table, events)
    empty = EventBatch(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
    assert index.match_batch(empty).n_events == 0


@pytest.mark.skipif(JIT_DISABLED, reason="70,000 clauses are too many without the JIT")
def test_three_levels_and_many_matches() -> None:
    random = np.random.default_rng(5)
    lows = random.integers(1, 1 << 40, 70_000)
    table = ConjunctionTable(
        np.arange(70_000), np.arange(70_001), np.zeros(70_000, np.int32), np.arange(70_001),
        lows, lows + (1 << 38),
    )  # fmt: skip
    events = EventBatch(np.arange(31), np.zeros(30, np.int32), random.integers(1, 1 << 40, 30))
    assert check(MaskTree.build(table), table, events) > 100_000


def test_codes_only_widen_ranges() -> None:
    """A key in a range has a code in it; a code strictly inside proves it."""
    random = np.random.default_rng(3)
    for top in (20, 200, 5000):
        lows = np.concatenate(([0, 1, 0], random.integers(1, top, 400)))
        highs = np.concatenate(([0, LAST, LAST], lows[3:] + random.integers(0, top // 5, 400)))
        buckets = find_buckets(lows, highs, np.empty(0, np.int64))
        low, high = low_codes(buckets, lows), high_codes(buckets, highs)
        for key in [*random.integers(1, top + top // 5, 100).tolist(), LAST]:
            code = buckets.codes[np.searchsorted(buckets.edges, key, "right")]
            holds = (lows <= key) & (key <= highs)
            assert ((low <= code) & (code <= high))[holds].all()
            assert holds[(low < code) & (code < high)].all()
            if top == 20:  # every bound has a code of its own
                assert (((low < code) & (code < high)) == holds).all()
        accepts = lows == 0
        assert (((low < ABSENT) & (high > ABSENT)) == accepts).all()


@pytest.mark.kernels
def test_comparing_64_ranges() -> None:
    random = np.random.default_rng(1)
    ranges = random.integers(0, 256, 300, dtype=np.uint8)
    for at in (0, 5, 172):
        for byte in (0, 1, 100, 255):
            lows, highs = ranges[at : at + 64], ranges[at + 64 : at + 128]
            for compare, holds in (
                (_within, (lows <= byte) & (byte <= highs)),
                (_inside, (lows < byte) & (byte < highs)),
            ):
                found = int(compare(ranges, at, np.uint8(byte)))
                assert [found >> i & 1 for i in range(64)] == holds.tolist()


@kernel
def _within(ranges: np.ndarray, at: int, byte: int) -> int:
    return lanes_within(ranges, at, byte)


@kernel
def _inside(ranges: np.ndarray, at: int, byte: int) -> int:
    return lanes_inside(ranges, at, byte)


def test_arrays_that_do_not_fit_are_rejected() -> None:
    arrays = MaskTree.build(boxes(np.random.default_rng(1), 200, [0, 1], 100)).arrays()
    for name in ("blocks", "ids", "bounds", "edges", "levels"):
        with pytest.raises(InputError, match=r"must have|does not fit"):
            MaskTree.from_arrays(arrays | {name: arrays[name][:-1]})
    with pytest.raises(InputError, match="must be a contiguous array of uint8"):
        MaskTree.from_arrays(arrays | {"blocks": arrays["blocks"].astype(np.int64)})
