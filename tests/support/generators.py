"""Seeded random expressions and events, made so that they meet.

Names and values come from small pools, and the pools hold what breaks matchers: both zeros,
neighbours around 2**53 and 2**63, subnormals, empty text, text beyond the BMP, quotes, wildcards
and backslashes, nulls and NaN, lists with nulls in them. Every name has a home kind; with `mixed`,
a value or a literal is now and then of another kind. Everything printed here parses back.

    expressions, events = cases(seed, n_expressions, n_events)

The same seed gives the same cases under every Python.
"""

from __future__ import annotations

import datetime as dt
import math
from random import Random
from typing import Any

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
    Operator,
    Or,
    RLike,
    TruthTest,
)

__all__ = ["HOMES", "LITERALS", "cases", "random_event", "random_expression"]

# The kind of value that a name usually holds. Lists are written list:<kind>.
HOMES: dict[str, str] = {
    "origin": "string",
    "carrier": "string",
    "größe": "string",
    "price": "float",
    "flight": "int",
    "delay": "number",
    "day": "date",
    "seen": "timestamp",
    "open": "boolean",
    "address": "address",
    "tags": "list:string",
    "scores": "list:number",
    "hops": "list:address",
    "geo.lat": "number",
    "geo.city": "string",
    "odd name": "string",
    'say "in"': "number",
    "in": "boolean",
}

_INTEGERS = [
    *(0, 1, -1, 2, 3, 7, 10, 579, 580, 581),
    *(2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1),
    *(2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 2**62, 9223372036854774784),
]
_FLOATS = [
    *(0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 2.5, 3.0, 7.0, 0.1, 0.3, 0.1 + 0.2),
    *(579.5, 580.0, 580.25, 581.0),
    *(5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308),
    *(2.0**53 - 1, 2.0**53, 2.0**53 + 2, -(2.0**53), 2.0**62, 2.0**63, -(2.0**63)),
    *(9223372036854774784.0, -9223372036854777856.0, 1e19, -1e19, 1e300),
]
_STRINGS = [
    *("", "a", "A", "ab", "aB", "abc", "abcabc", "b", "ba", "B", "JFK", "jfk", "JFKx", "UA"),
    *("%", "_", "\\", "a%b", "a_b", "a\\b", "\\%", "it's", "'", 'say "hi"', "a b", " a", "a "),
    *("é", "É", "e\u0301", "ß", "ẞ", "ss", "İ", "i", "I", "ı", "Σ", "σ", "ς", "ΑΣ", "ας", "K", "k"),
    *("😀", "a😀b", "\uffff", "\U0010ffff", "日本", "日本語"),
    *("a\nb", "\n", "\t", "\x7f", "1", "1.0", "true", "null", "NaN", "2013-01-31"),
]
_ADDRESSES = [
    *("10.0.0.0", "10.1.2.3", "10.255.255.255", "11.0.0.0", "192.168.1.1", "192.168.1.128"),
    *("0.0.0.0", "255.255.255.255", "::", "::1", "2001:db8::1", "2001:DB8:0:0:0:0:0:1"),
    *("::ffff:10.1.2.3", "fe80::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    *("10.1.2", "10.1.2.256", "10.01.2.3", " 10.1.2.3", "fe80::1%eth0", ":::", "none", ""),
]
_NETWORKS = [
    *("10.0.0.0/8", "10.1.2.3/32", "10.1.2.3", "192.168.1.0/24", "192.168.1.128/25", "0.0.0.0/0"),
    *("::/0", "::1/128", "2001:db8::/32", "fe80::/10", "::ffff:0:0/96"),
]
_DATES = [
    dt.date.fromisoformat(text)
    for text in [
        *("0001-01-01", "1969-12-31", "1970-01-01", "2000-02-29", "2013-01-30", "2013-01-31"),
        *("2013-02-01", "2013-02-02", "9999-12-31"),
    ]
]
_TIMESTAMPS = [
    dt.datetime.fromisoformat(text)
    for text in [
        *("0001-01-01 00:00", "1969-12-31 23:59:59.999999", "1970-01-01 00:00"),
        *("2013-01-31 00:00", "2013-01-31 09:59:59.999999", "2013-01-31 10:00"),
        *("2013-01-31 10:00:00.000001", "2013-02-01 00:00", "9999-12-31 23:59:59.999999"),
    ]
]
_LIKES = [
    *("%", "%%", "_", "__", "", "a", "a%", "%b", "%a%", "a_", "_b%", "a%b", "a%b%", "%a_c%"),
    *("j%", "JFK", "jf_", "\\%", "%\\%%", "a\\_b", "\\\\", "a\\\\%", "%'%", "\\a%", "É%", "%Σ"),
    *("%ς", "ı", "i", "ẞ", "ss", "k%", "_😀_", "%\uffff", "日%", "a\nb", "%\n%", "%abc%abc%"),
    *("%a%b%c%", "_%_"),
]
_REGEXES = [
    *("", "a", "^a", "a$", "^$", "^a.*b$", "a.b", "(?s)a.b", "(?m)^b", "(?i)jfk", "[A-Z]{2}"),
    *("^.$", "a|b", "(ab)+c", r"\d", r"^\d+(\.\d+)?$", r"\\", "%", r"\bhi\b", r"\pL\pL", "'"),
    *(r"\p{Greek}", "[^a-z]", "(?i)é", "(?i)k", r"\x{1F600}", r"^\s", r"\s$", "(?:a?){5}b"),
    *(r"\Qa_\E", r"\z"),
]

# Literals by kind. An "address" in an expression is plain text.
LITERALS: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int": _INTEGERS,
    "float": _FLOATS,
    "number": _INTEGERS + _FLOATS,
    "string": _STRINGS,
    "address": _ADDRESSES,
    "date": _DATES,
    "timestamp": _TIMESTAMPS,
}

_EASTERN = dt.timezone(dt.timedelta(hours=-5))
_AWARE = [dt.datetime(2013, 1, 31, 5, 0, tzinfo=_EASTERN), dt.datetime(2013, 1, 31, tzinfo=dt.UTC)]
_KINDS = [*LITERALS, "list:string", "list:number", "list:boolean", "list:date", "list:timestamp"]
_NAMES = list(HOMES)
_OBJECTS = [b"", b"a", object(), dt.timedelta(1), {1, 2}, iter(())]
_OPERATORS: list[Operator] = ["=", "!=", "<", "<=", ">", ">="]


def cases(
    seed: int, n_expressions: int, n_events: int, *, mixed: bool = True, objects: bool = False
) -> tuple[list[Expression], list[dict[str, Any]]]:
    """Expressions and events of one seed; with `objects` some values are such."""
    rng = Random(seed)
    expressions = [random_expression(rng, mixed=mixed) for _ in range(n_expressions)]
    events = [random_event(rng, mixed=mixed) for _ in range(n_events)]
    if objects:
        for event in events:
            _put_objects(rng, event)
    return expressions, events


def _put_objects(rng: Random, event: dict[str, Any]) -> None:
    for name, value in event.items():
        if isinstance(value, list) and rng.random() < 0.3:
            value.insert(rng.randrange(len(value) + 1), rng.choice(_OBJECTS))
        elif rng.random() < 0.1:
            event[name] = rng.choice(_OBJECTS)


# -- events ---------------------------------------------------------------------------------------


def random_event(rng: Random, *, mixed: bool = True) -> dict[str, Any]:
    """An event with some of the names of HOMES.

    Without `mixed` it is flat and every value is null or of the home kind of its name, so that
    events fit into typed columns.
    """
    event: dict[str, Any] = {}
    for name in _NAMES:
        draw = rng.random()
        if draw < 0.12:
            continue
        if draw < 0.15:
            event[name] = None
        elif mixed and draw < 0.17:
            event[name] = math.nan
        else:
            kind = rng.choice(_KINDS) if mixed and draw < 0.25 else HOMES[name]
            event[name] = _event_value(rng, kind, mixed)
    if mixed and rng.random() < 0.5:
        _nest(event, "geo")
    return event


def _nest(event: dict[str, Any], prefix: str) -> None:
    """Dotted names as a nested object, as JSON has them."""
    inner = [name for name in event if name.startswith(prefix + ".")]
    event[prefix] = {name[len(prefix) + 1 :]: event.pop(name) for name in inner}


def _event_value(rng: Random, kind: str, mixed: bool) -> Any:
    if kind.startswith("list:"):
        return _event_list(rng, kind[5:], mixed)
    if mixed and kind in ("int", "float"):
        kind = "number"
    if mixed and kind == "timestamp" and rng.random() < 0.2:
        return rng.choice(_AWARE)
    return rng.choice(LITERALS[kind])


def _event_list(rng: Random, kind: str, mixed: bool) -> list[Any]:
    elements: list[Any] = []
    for _ in range(rng.choice([0, 1, 1, 2, 3, 5, 9])):
        draw = rng.random()
        if draw < 0.08:
            elements.append(None)
        elif mixed and draw < 0.1:
            elements.append(math.nan)
        elif mixed and draw < 0.2:
            elements.append(rng.choice(LITERALS[rng.choice(list(LITERALS))]))
        else:
            elements.append(rng.choice(LITERALS[kind]))
    return elements


# -- expressions ----------------------------------------------------------------------------------


def random_expression(rng: Random, *, depth: int = 3, mixed: bool = True) -> Expression:
    """An expression of at most about 20 predicates, nested at most `depth` deep."""
    draw = rng.random()
    if depth == 0 or draw < 0.3:
        return _random_predicate(rng, mixed)
    if draw < 0.4:
        return Not(random_expression(rng, depth=depth - 1, mixed=mixed))
    if draw < 0.47:
        operand = random_expression(rng, depth=depth - 1, mixed=mixed)
        return TruthTest(operand, rng.choice([True, True, False, None]), rng.random() < 0.6)
    n_parts = rng.choice([2, 2, 2, 3])
    parts = tuple(random_expression(rng, depth=depth - 1, mixed=mixed) for _ in range(n_parts))
    return And(parts) if draw < 0.72 else Or(parts)


def _random_predicate(rng: Random, mixed: bool) -> Expression:
    if rng.random() < 0.01:
        return Constant(rng.random() < 0.5)
    name = rng.choice(_NAMES)
    if rng.random() < 0.07:
        return IsNull(name, rng.random() < 0.5)
    kind = rng.choice(_KINDS) if mixed and rng.random() < 0.06 else HOMES[name]
    if not kind.startswith("list:"):
        return _on_scalar(rng, name, kind, False, mixed)
    if rng.random() < 0.5:
        return _on_scalar(rng, name, kind[5:], True, mixed)
    values = _some(rng, kind[5:], mixed)
    return Contains(name, rng.choice(["any", "any", "all", "none"]), values)


def _on_scalar(rng: Random, name: str, kind: str, on_element: bool, mixed: bool) -> Expression:
    negated = rng.random() < 0.3
    if kind == "boolean" and not on_element and rng.random() < 0.5:
        return IsTrue(name)
    if kind == "address" and rng.random() < 0.8:
        networks = tuple(rng.choices(_NETWORKS, k=rng.choice([1, 1, 2, 3])))
        return InNetwork(name, networks, negated, on_element)
    if kind == "string" and rng.random() < 0.5:
        return _on_text(rng, name, negated, on_element)
    draw = rng.random()
    if draw < 0.55:
        value = _literal(rng, kind, mixed)
        return Compare(name, rng.choice(_OPERATORS), value, on_element)
    if draw < 0.8:
        return In(name, _some(rng, kind, mixed), negated, on_element)
    low, high = _literal(rng, kind, mixed), _literal(rng, kind, mixed)
    if high < low and rng.random() < 0.9:  # now and then a range that holds nothing
        low, high = high, low
    return Between(name, low, high, negated, on_element)


def _on_text(rng: Random, name: str, negated: bool, on_element: bool) -> Expression:
    if rng.random() < 0.35:
        return RLike(name, rng.choice(_REGEXES), negated, on_element)
    pattern = rng.choice(_LIKES) if rng.random() < 0.7 else _random_pattern(rng)
    return Like(name, pattern, negated, rng.random() < 0.5, on_element)


def _random_pattern(rng: Random) -> str:
    pieces = ["%", "%", "_", "a", "b", "A", "c", "\\%", "\\_", "\\\\", "é", "Σ", "😀", "J", "F"]
    return "".join(rng.choices(pieces, k=rng.randrange(1, 6)))


def _literal(rng: Random, kind: str, mixed: bool) -> Any:
    if mixed and kind in ("int", "float"):
        kind = "number"
    return rng.choice(LITERALS[kind])


def _some(rng: Random, kind: str, mixed: bool) -> tuple[Any, ...]:
    """Values for a list of literals, with `mixed` sometimes one of another kind among them."""
    values = [_literal(rng, kind, mixed) for _ in range(rng.choice([1, 1, 2, 3, 4, 8]))]
    if mixed and rng.random() < 0.15:
        values.append(_literal(rng, rng.choice(list(LITERALS)), mixed))
        rng.shuffle(values)
    return tuple(values)
