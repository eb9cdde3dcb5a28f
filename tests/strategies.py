"""Hypothesis strategies for names, literals, expressions and events that meet often.

Names and values come from small pools, mixed with arbitrary ones, so that equality hits and edges
are frequent. Every expression drawn here can be printed and read back; every event is valid.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from hypothesis import strategies as st

from matchmill.language.expression import (
    And,
    Between,
    Compare,
    Constant,
    Contains,
    Expression,
    In,
    InNetwork,
    IsNull,
    IsTrue,
    Like,
    Not,
    Or,
    RLike,
)
from matchmill.language.values import INT64_MAX, INT64_MIN, Value

__all__ = ["event_values", "events", "expressions", "literals", "names", "predicates"]

NAMES = ("a", "b", "tags", "geo.lat", "größe", 'odd "name"', "in", "date", "A")

BOOLEANS: tuple[Value, ...] = (True, False)
NUMBERS: tuple[Value, ...] = (
    *(0, 1, 2, -1, 0.0, -0.0, 1.0, 1.5, -1.5),
    *(2**53, 2**53 + 1, float(2**53), INT64_MIN, INT64_MAX, float(2**63)),
    *(5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308),
)
STRINGS: tuple[Value, ...] = (
    *("", "a", "ab", "abc", "A", "b", "aB", "it's", "''", '"', "100%", "a_b", "back\\slash", "\\"),
    *("é", "e\u0301", "İ", "ΑΣ", "ß", "\ue000", "😀", "😀a", "\U0010ffff", "\n", "\0", "\u2028"),
    *("10.0.0.1", "10.255.0.1", "192.168.0.1", "::1", "true", "1", "2013-01-01"),
)
DATES: tuple[Value, ...] = (
    dt.date(2013, 1, 1),
    dt.date(2013, 1, 2),
    dt.date(2012, 2, 29),
    dt.date.min,
    dt.date.max,
)
TIMESTAMPS: tuple[Value, ...] = (
    dt.datetime(2013, 1, 1),
    dt.datetime(2013, 1, 1, 10, 30),
    dt.datetime(2013, 1, 1, 10, 30, 0, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime.min,
    dt.datetime.max,
)
NETWORKS = ("10.0.0.0/8", "10.0.0.1/32", "0.0.0.0/0", "192.168.0.0/16", "::1/128", "::/0")
LIKE_PATTERNS = (
    *("", "%", "_", "a%", "%a", "%b%", "a_c", "AB%", "%%", "a%c", "_%_", "\\%", "100\\%", "\\\\"),
    *("%'%", "é", "%😀", "ab\\c", "%\\_%", "i%", "ς", "%\n%"),
)
RLIKE_PATTERNS = (
    "",
    "a",
    "^a",
    "b$",
    "^a.c$",
    "[a-c]+",
    "(?i)AB",
    "\\d",
    "a|é",
    "^$",
    "😀",
    "'",
    "\\\\",
)


def names() -> st.SearchStrategy[str]:
    """Attribute names, mostly from the pool."""
    return st.sampled_from(NAMES)


def any_names() -> st.SearchStrategy[str]:
    """Every name there can be."""
    return st.text(min_size=1, max_size=12)


def _numbers() -> st.SearchStrategy[Value]:
    return st.one_of(
        st.sampled_from(NUMBERS),
        st.integers(-3, 3),
        st.integers(INT64_MIN, INT64_MAX),
        st.floats(allow_nan=False, allow_infinity=False),
    )


def _kinds() -> list[st.SearchStrategy[Value]]:
    return [
        st.sampled_from(BOOLEANS),
        _numbers(),
        st.sampled_from(STRINGS) | st.text("ab'\\%_é😀", max_size=4),
        st.sampled_from(DATES) | st.dates(),
        st.sampled_from(TIMESTAMPS) | st.datetimes(),
    ]


def literals() -> st.SearchStrategy[Value]:
    """Literals of every type."""
    return st.one_of(_kinds())


def _value_lists(max_size: int = 4) -> st.SearchStrategy[tuple[Value, ...]]:
    return st.lists(literals(), min_size=1, max_size=max_size).map(tuple)


def _bounds() -> st.SearchStrategy[tuple[Value, Value]]:
    return st.one_of([st.tuples(kind, kind) for kind in _kinds()])


def _like_patterns() -> st.SearchStrategy[str]:
    parts = st.sampled_from(["%", "_", "\\%", "\\_", "\\\\", "a", "b", "B", "'", "é", "😀", "\\a"])
    return st.sampled_from(LIKE_PATTERNS) | st.lists(parts, max_size=5).map("".join)


def predicates() -> st.SearchStrategy[Expression]:
    """Every kind of predicate, on values and on the elements of lists."""
    flag = st.booleans()
    operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    networks = st.lists(st.sampled_from(NETWORKS), min_size=1, max_size=3).map(tuple)
    modes = st.sampled_from(["any", "all", "none"])
    return st.one_of(
        st.builds(Compare, names(), operators, literals(), flag),
        st.builds(In, names(), _value_lists(), flag, flag),
        st.builds(
            lambda name, bounds, negated, any_element: Between(name, *bounds, negated, any_element),
            names(),
            _bounds(),
            flag,
            flag,
        ),
        st.builds(Like, names(), _like_patterns(), flag, flag, flag),
        st.builds(RLike, names(), st.sampled_from(RLIKE_PATTERNS), flag, flag),
        st.builds(InNetwork, names(), networks, flag, flag),
        st.builds(Contains, names(), modes, _value_lists(3)),
        st.builds(IsNull, names(), flag),
        st.builds(IsTrue, names()),
    )


def expressions(max_leaves: int = 10) -> st.SearchStrategy[Expression]:
    """Trees of and, or and not over predicates and constants."""
    leaves = st.one_of(predicates(), predicates(), st.builds(Constant, st.booleans()))

    def branches(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(parts, min_size=2, max_size=4).map(tuple)
        return st.one_of(st.builds(And, several), st.builds(Or, several), st.builds(Not, parts))

    return st.recursive(leaves, branches, max_leaves=max_leaves)


def event_values() -> st.SearchStrategy[Any]:
    """What an attribute of an event may hold: scalars of any type, absent ones, lists."""
    absent = st.sampled_from([None, math.nan])
    lists = st.lists(literals() | absent, max_size=4)
    return st.one_of(literals(), literals(), literals(), absent, lists)


def events() -> st.SearchStrategy[dict[str, Any]]:
    """Events over the pool of names; a name may be missing and of any type."""
    return st.dictionaries(names(), event_values(), max_size=len(NAMES))
