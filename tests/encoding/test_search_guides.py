"""Keys found with a guide are those of a search among all cut points, whatever the numbers are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from matchmill.encoding.cut_points import CutTable
from matchmill.encoding.numbers import distinct_pairs, split_floats
from matchmill.encoding.search_guides import build_guide
from matchmill.language.values import Region

N = 3000
Numbers = tuple[np.ndarray, np.ndarray]


def doubles(make: Callable[[np.random.Generator], np.ndarray]) -> Callable[..., Numbers]:
    return lambda rng: split_floats(make(rng))


def whole(make: Callable[[np.random.Generator], np.ndarray]) -> Callable[..., Numbers]:
    def pairs(rng: np.random.Generator) -> Numbers:
        numbers = make(rng).astype(np.int64)
        return numbers, np.zeros(len(numbers))

    return pairs


def mixed(rng: np.random.Generator) -> Numbers:
    """Integers that doubles cannot tell apart, among such doubles, and beyond all integers."""
    ints = 2**53 + rng.integers(0, 2000, N)
    floats = split_floats(
        np.concatenate((2.0**53 + 2 * rng.integers(0, 1000, N), 2.0**63 * rng.uniform(-9, 9, N)))
    )
    return np.concatenate((ints, floats[0])), np.concatenate((np.zeros(N), floats[1]))


KINDS: dict[str, Callable[[np.random.Generator], Numbers]] = {
    "uniform": doubles(lambda rng: rng.uniform(-180, 180, N)),
    "cents": doubles(lambda rng: np.round(rng.uniform(0, 100, N), 2)),
    "heavy tails": doubles(lambda rng: np.exp(rng.normal(0, 20, N)) * rng.choice((-1, 1), N)),
    "all sizes": doubles(lambda rng: 10.0 ** rng.uniform(-320, 308, N) * rng.choice((-1, 1), N)),
    "clusters": doubles(lambda rng: rng.choice((0.0, 1e12), N) + rng.normal(0, 1e-3, N)),
    "around zero": doubles(lambda rng: rng.choice((-1, 1), N) * 5e-324 * rng.integers(0, N, N)),
    "extremes": doubles(lambda rng: rng.uniform(-1, 1, N) * np.finfo(np.float64).max),
    "neighbours": whole(lambda rng: 2**62 + rng.integers(0, 2 * N, N)),
    "all of int64": whole(lambda rng: rng.integers(-(2**63), 2**63 - 1, N)),
    "mixed": mixed,
}


def probes(places: Numbers, others: Numbers) -> Numbers:
    """Return cut points, the doubles next to them, other values, and what is beyond all of them."""
    middle = places[0].astype(np.float64) + places[1]
    near = [np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)]
    ends = [np.array([0.0, -0.0, 5e-324, -5e-324, 1.5e308, -1.5e308, 2.0**63, -(2.0**63)])]
    doubles = np.concatenate(near + ends)
    parts = [places, others, split_floats(doubles[np.isfinite(doubles)])]
    ints = np.array([-(2**63), 2**63 - 1, 0, 2**53 + 1])
    parts.append((ints, np.zeros(len(ints))))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


@pytest.mark.kernels
@pytest.mark.parametrize("kind", KINDS)
def test_keys_are_those_of_the_plain_search(kind: str) -> None:
    rng = np.random.default_rng(7)
    numbers, part, _ = distinct_pairs(*KINDS[kind](rng))
    table = CutTable(Region.NUMBER).with_places((numbers, part))
    values = probes((numbers, part), KINDS[kind](rng))
    plain = CutTable(Region.NUMBER, table.base)
    few = max(1, len(numbers) // 50)
    wanted = np.concatenate(
        [
            CutTable(Region.NUMBER, table.base).number_keys(
                values[0][a : a + few], values[1][a : a + few]
            )
            for a in range(0, len(values[0]), few)
        ]
    )
    assert plain._guiding.guide_for(table.base, 0) is None
    assert np.array_equal(table.number_keys(*values), wanted)
    # With cut points beside the base, the guide stays.
    more, _ = table.added([0.12345, 10**15 + 1])
    again = CutTable(Region.NUMBER, table.base, more.fresh)
    slow = [again.number_keys(values[0][k : k + 1], values[1][k : k + 1])[0] for k in range(20)]
    assert more._guiding is table._guiding
    assert more.number_keys(*values)[:20].tolist() == slow


def test_there_is_a_guide_where_it_helps() -> None:
    rng = np.random.default_rng(3)
    for kind, helps in (("uniform", True), ("heavy tails", True), ("all sizes", True)):
        numbers, part, _ = distinct_pairs(*KINDS[kind](rng))
        assert (build_guide(numbers + part) is not None) == helps, kind
    assert build_guide(np.arange(100.0)) is None
    crowded = np.concatenate(([0.0], 1e15 + 0.125 * np.arange(100_000)))
    assert build_guide(np.concatenate((crowded, [1e300]))) is None
    assert build_guide(np.full(1000, 2.0**53)) is None
