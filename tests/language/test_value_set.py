"""The algebra of value sets against membership, value by value."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from matchmill.language.value_set import (
    ABSENT,
    EMPTY,
    FULL,
    PRESENT,
    ValueSet,
    interval,
    point,
    points,
    region,
    string_prefix,
)
from matchmill.language.values import Region, region_of

VALUES: list[Any] = [
    *(None, True, False, [], [1]),
    *(-(2**63), -1, 0, -0.0, 5e-324, 1, 1.0, 1.5, 2, 2**53, 2.0**53, 2**53 + 1, 2**63 - 1, 2.0**63),
    *(dt.date(2020, 1, 1), dt.date(2020, 1, 2), dt.date(2020, 1, 3)),
    *(dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 0, 0, 0, 1)),
    *("", "\x00", "a", "a\x00", "ab", "b", "\uffff", "\U00010000", "\U0010ffff"),
]
SCALARS = [v for v in VALUES if v is not None and not isinstance(v, list)]


def basic() -> st.SearchStrategy[ValueSet]:
    scalars = st.sampled_from(SCALARS)
    same_type = scalars.flatmap(
        lambda v: st.tuples(
            st.just(v), st.sampled_from([w for w in SCALARS if region_of(w) == region_of(v)])
        )
    )
    return st.one_of(
        st.just(EMPTY),
        st.just(FULL),
        st.just(ABSENT),
        scalars.map(point),
        st.lists(scalars, max_size=4).map(points),
        st.sampled_from([r for r in Region if r != Region.END]).map(region),
        st.builds(
            lambda ends, a, b: interval(
                region_of(ends[0]), ends[0], ends[1], open_low=a, open_high=b
            ),
            same_type,
            st.booleans(),
            st.booleans(),
        ),
        st.sampled_from(["", "a", "\U0010ffff", "a\U0010ffff", "\ud7ff"]).map(string_prefix),
    )


def sets() -> st.SearchStrategy[ValueSet]:
    return st.recursive(
        basic(),
        lambda inner: st.one_of(
            inner.map(ValueSet.complement),
            st.tuples(inner, inner).map(lambda ab: ab[0].unite(ab[1])),
            st.tuples(inner, inner).map(lambda ab: ab[0].intersect(ab[1])),
        ),
        max_leaves=6,
    )


def is_canonical(s: ValueSet) -> bool:
    return len(s.edges) % 2 == 0 and all(a < b for a, b in zip(s.edges, s.edges[1:], strict=False))


@given(sets(), sets())
def test_operations_are_what_they_say(a: ValueSet, b: ValueSet) -> None:
    for value in VALUES:
        assert (value in a.complement()) == (value not in a)
        assert (value in a.unite(b)) == (value in a or value in b)
        assert (value in a.intersect(b)) == (value in a and value in b)


@given(sets(), sets(), sets())
def test_laws(a: ValueSet, b: ValueSet, c: ValueSet) -> None:
    for s in (a, a.complement(), a.unite(b), a.intersect(b)):
        assert is_canonical(s)
    assert a.complement().complement() == a
    assert a.unite(b).complement() == a.complement().intersect(b.complement())
    assert a.intersect(b.unite(c)) == a.intersect(b).unite(a.intersect(c))
    assert a.unite(a.complement()) == FULL
    assert a.intersect(a.complement()) == EMPTY
    assert a.unite(EMPTY) == a == a.intersect(FULL)
    assert (a == b) == (a.unite(b) == a.intersect(b))


def test_canonical_forms() -> None:
    assert points([1, 1.0]) == point(1)
    assert points([False, True]) == region(Region.BOOLEAN)
    assert points([dt.date(2020, 1, 1), dt.date(2020, 1, 2)]) == interval(
        Region.DATE, dt.date(2020, 1, 1), dt.date(2020, 1, 2)
    )
    assert PRESENT.unite(ABSENT).is_full
    assert PRESENT.intersect(ABSENT).is_empty
    assert interval(Region.NUMBER, 3, 1).is_empty
    assert interval(Region.NUMBER, 3, 3, open_low=True).is_empty
    assert string_prefix("a").intersect(string_prefix("b")).is_empty


@given(st.text(max_size=4), st.text(max_size=6))
def test_prefixes(prefix: str, text: str) -> None:
    assert (text in string_prefix(prefix)) == text.startswith(prefix)
    assert prefix + text in string_prefix(prefix)
