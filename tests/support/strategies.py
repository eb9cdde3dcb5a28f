"""Hypothesis strategies for names, literals, expressions and events that meet often.

Names and values come from small pools, mixed with arbitrary ones, so that equality hits and edges
are frequent. Every expression drawn here can be printed and read back; every event is valid.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
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
    TruthTest,
)
from matchmill.language.values import INT64_MAX, INT64_MIN, Value

__all__ = ["event_values", "events", "expressions", "literals", "names", "predicates"]

# The type that an attribute mostly has, in events and in predicates, so that they meet.
HOMES = {
    "a": "number",
    "b": "string",
    "tags": "list of strings",
    "geo.lat": "number",
    "größe": "string",
    "in": "boolean",
    "date": "date",
    'odd "name"': "timestamp",
    "A": "list of numbers",
}

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
OBJECTS: tuple[object, ...] = (b"", object(), dt.time(1), np.zeros((2, 2)))
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
    """Attribute names, from the pool."""
    return st.sampled_from(sorted(HOMES))


def any_names() -> st.SearchStrategy[str]:
    """Every name there can be."""
    return st.text(min_size=1, max_size=12)


KINDS: dict[str, st.SearchStrategy[Value]] = {
    "boolean": st.sampled_from(BOOLEANS),
    "number": st.one_of(
        st.sampled_from(NUMBERS),
        st.integers(-3, 3),
        st.integers(INT64_MIN, INT64_MAX),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    "string": st.sampled_from(STRINGS) | st.text("ab'\\%_é😀", max_size=4),
    "date": st.sampled_from(DATES) | st.dates(),
    "timestamp": st.sampled_from(TIMESTAMPS) | st.datetimes(),
}


def literals() -> st.SearchStrategy[Value]:
    """Literals of every type."""
    return st.one_of(list(KINDS.values()))


def _kind(name: str) -> st.SearchStrategy[str]:
    """The kind of a value or an element of an attribute: its own, now and then another."""
    home = HOMES[name].removeprefix("list of ").removesuffix("s")
    return st.sampled_from([home] * 12 + list(KINDS))


def _literals_for(name: str) -> st.SearchStrategy[Value]:
    return _kind(name).flatmap(KINDS.__getitem__)


def _like_patterns() -> st.SearchStrategy[str]:
    parts = st.sampled_from(["%", "_", "\\%", "\\_", "\\\\", "a", "b", "B", "'", "é", "😀", "\\a"])
    return st.sampled_from(LIKE_PATTERNS) | st.lists(parts, max_size=5).map("".join)


@st.composite
def predicates(draw: st.DrawFn) -> Expression:
    """Every kind of predicate, on values and on the elements of lists."""
    flag = st.booleans()
    name = draw(names())
    literal, several = _literals_for(name), st.lists(_literals_for(name), min_size=1, max_size=4)
    is_list = HOMES[name].startswith("list")
    any_element = draw(st.sampled_from([is_list] * 7 + [not is_list]))
    shapes = ["compare", "in", "between", "null", "true", "contains", "like", "rlike", "network"]
    if not is_list:
        shapes.remove("contains")
    if "string" not in HOMES[name]:
        shapes = shapes[: -3 if draw(st.integers(0, 5)) else None]
    match draw(st.sampled_from(shapes)):
        case "compare":
            op = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
            return Compare(name, op, draw(literal), any_element)  # type: ignore[arg-type]
        case "in":
            return In(name, tuple(draw(several)), draw(flag), any_element)
        case "between":
            kind = KINDS[draw(_kind(name))]
            return Between(name, draw(kind), draw(kind), draw(flag), any_element)
        case "null":
            return IsNull(name, draw(flag))
        case "true":
            return IsTrue(draw(st.sampled_from(["in", "in", name])))
        case "contains":
            mode = draw(st.sampled_from(["any", "all", "none"]))
            on = draw(st.sampled_from([name, name, name, "a"]))
            return Contains(on, mode, tuple(draw(several)))  # type: ignore[arg-type]
        case "like":
            return Like(name, draw(_like_patterns()), draw(flag), draw(flag), any_element)
        case "rlike":
            return RLike(name, draw(st.sampled_from(RLIKE_PATTERNS)), draw(flag), any_element)
        case _:
            networks = draw(st.lists(st.sampled_from(NETWORKS), min_size=1, max_size=3))
            return InNetwork(name, tuple(networks), draw(flag), any_element)


def expressions(max_leaves: int = 10) -> st.SearchStrategy[Expression]:
    """Trees of and, or and not over predicates and constants."""
    leaves = st.one_of(predicates(), predicates(), st.builds(Constant, st.booleans()))

    def branches(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(parts, min_size=2, max_size=4).map(tuple)
        tests = st.builds(TruthTest, parts, st.sampled_from([True, False, None]), st.booleans())
        nots = st.builds(Not, parts)
        return st.one_of(st.builds(And, several), st.builds(Or, several), nots, tests)

    return st.recursive(leaves, branches, max_leaves=max_leaves)


def event_values(name: str, objects: bool = False) -> st.SearchStrategy[Any]:
    """What an attribute may hold: mostly its own type, else any other, null, a list, an object."""
    absent = st.sampled_from([None, math.nan])
    odd = [st.sampled_from(OBJECTS)] if objects else []
    scalars = _literals_for(name)
    lists = st.lists(st.one_of(scalars, scalars, absent, *odd), max_size=4)
    is_list = HOMES[name].startswith("list")
    common, other = (lists, scalars) if is_list else (scalars, lists)
    rare = st.one_of(other, *odd) if objects else other
    return st.integers(0, 9).flatmap(lambda n: absent if n == 8 else rare if n == 9 else common)


def events(objects: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    """Events over the pool of names; a name may be missing and of any type."""
    return st.fixed_dictionaries({}, optional={name: event_values(name, objects) for name in HOMES})
