"""Odd arguments for the public functions, drawn from a seed.

A call may answer or raise a `MatchmillError`; it may never raise anything else, hang or crash.
What is drawn:

    values         numbers at and beyond all limits, NumPy scalars, decimals, enumerations, lone
                   surrogates, bytes, objects whose methods raise
    events         flat, nested, deep, of values that are odd
    expressions    texts made of odd tokens, deep ones, JSON patterns, trees built by hand
    options        any of the values, where a function takes an option
"""

from __future__ import annotations

import datetime as dt
import enum
import json
from collections import namedtuple
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pandas as pd

import matchmill as mm
from matchmill.language.expression import (
    And,
    Between,
    Compare,
    Contains,
    In,
    InNetwork,
    IsNull,
    IsTrue,
    Like,
    Not,
    Or,
    RLike,
)

__all__ = ["Call", "odd_call", "odd_event", "odd_expression", "odd_id", "odd_value"]

Call = tuple[str, Callable[[], Any]]  # with its name, for the report of a failure


class Colour(str, enum.Enum):  # noqa: UP042 - `str` of its members is not their value
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Plain(enum.Enum):
    ONE = 1


class Broken:
    """Every method of it raises."""

    def _fail(self, *_: object) -> Any:
        raise ZeroDivisionError("a broken object")

    __repr__ = __str__ = __hash__ = __eq__ = __lt__ = __len__ = __iter__ = __bool__ = _fail
    __int__ = __float__ = __index__ = _fail


class BrokenText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise ZeroDivisionError("a broken text")

    __repr__ = __str__


class Ambiguous(dt.tzinfo):
    """A time zone that raises."""

    def utcoffset(self, _: object) -> dt.timedelta:
        raise ZeroDivisionError("a broken time zone")


Point = namedtuple("Point", "x y")

SCALARS: list[Any] = [
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1),
    *(2**64, 10**400, -(10**5000), 0.0, -0.0, 1.5, 5e-324, 1e308, 2.0**63, float("inf")),
    *(float("-inf"), float("nan"), 1j, Decimal("1.5"), Decimal("NaN"), Decimal("sNaN")),
    *(Decimal("Infinity"), Decimal("1e999999"), Decimal("1e-999999"), Decimal(2**63)),
    *(Decimal("9007199254740993.5"), Fraction(1, 3), Fraction(10**400), Fraction(2)),
    *("", "a", "red", "x" * 300, "\x00", "\n", "é", "İ", "ẞ", "ﬁ", "\ud800", "a\udfff", "😀", "'"),
    *("%", "_", "\\", "{", "{}", "[]", "10.0.0.0/8", "::1", "1e999", "0x10", "null", "u1"),
    *(b"", b"a", b"\xff", bytearray(b"a"), memoryview(b"a"), Colour.RED, Level.LOW, Plain.ONE),
    *(np.int8(1), np.int64(-1), np.uint64(2**64 - 1), np.float16(1.5), np.float32("nan")),
    *(np.float64("inf"), np.longdouble(1), np.bool_(True), np.str_("a"), np.bytes_(b"a")),
    *(np.str_("\ud800"), np.complex64(1), np.datetime64("NaT"), np.datetime64("2020-01-01")),
    *(np.datetime64("9999999-01-01"), np.datetime64(1, "ns"), np.datetime64(10**17, "s")),
    *(np.datetime64("2020"), np.timedelta64(1, "s"), np.timedelta64("NaT"), np.void(b"ab")),
    *(np.datetime64(2**62, "as"), np.array(1), np.array("a"), np.array([1, 2]), np.array([])),
    *(np.array([[1], [2]]), np.array(["a", None], object), np.array([1.5, np.nan])),
    *(np.ma.masked, dt.date.min, dt.date.max, dt.date(2020, 2, 29), dt.datetime.min),
    *(dt.datetime.max, dt.time(1), dt.timedelta(1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
    dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=23))),
    dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=23))),
    dt.datetime(2020, 1, 1, tzinfo=Ambiguous()),
    *(pd.NaT, pd.NA, pd.Timestamp.min, pd.Timestamp.max, pd.Timestamp(0), pd.Timedelta(1)),
    *(pd.Series([1, 2]), pd.Series({"x": 1}), pd.Series({1: 2}), pd.Interval(0, 1)),
    *(pd.DataFrame({"x": [1]}), pd.Timestamp("2020-01-01", tz="Asia/Tokyo")),
    *((), (1,), (1, 2, 3), [], [None], [1, "a"], [[1], [[2]]], {}, {"x": 1}, {1: 2}, {None: 1}),
    *(set(), {1}, frozenset("a"), range(3), slice(1), Ellipsis, NotImplemented, object(), Broken()),
    *(BrokenText("a"), int, str, len, lambda: 1, Exception("x"), Point(1, 2), Point("a", None)),
    *(mm.attr("x"), mm.parse("x = 1"), type("Empty", (), {})()),
]

NAMES = ["x", "y", "geo.x", "tags", "time", "text", "a b", 'q"', "", "é", "\ud800", "and", "x" * 90]

TOKENS = [
    *("x", "y", "tags", "text", "geo.x", '"a b"', "any(tags)", "any(x)", "(", ")", ",", "and"),
    *("or", "not", "=", "!=", "<", "<=", ">", ">=", "<>", "==", "in", "between", "like", "ilike"),
    *("rlike", "is", "null", "true", "false", "contains", "all", "any", "none", "cidr", "date"),
    *("timestamp", "1", "-1", "0", "1.5", "1e308", "1e999", "9223372036854775807", "9" * 30),
    *("9" * 5000, "1e" + "9" * 30, "0.1", "''", "'a'", "'%a%'", "'\\'", "'(a|b)*'", "'['", "'é'"),
    *("'\ud800'", "'a{1000}'", "'(((a*)*)*)*'", "'10.0.0.0/8'", "'::/0'", "'1.2.3.4/99'", "-", "+"),
    *("'2020-01-01'", "'2020-13-01'", "'0000-00-00'", "'9999-12-31 23:59-12:00'", "*", "/", "nan"),
    *('"', "'", ".", "..", "x.", "\x00", "{", "}", "[", "]", ";", "--", "/*", "?x", ":x", "f(x)"),
    *("f(", "near(x, 1)", "\ufeff", "\u200b", "\xa0", "😀", "١", "x\ud800", "inf", "0x1", "1_000"),
]

CONDITIONS = [
    *("x = 1", "x != 1.5", "text = 'a'", "text like '%a_b%'", "text ilike 'É%'", "x is null"),
    *("text rlike '^a+b'", "x in (1, 2, 3)", "text in ('a', 'b')", "x between 1 and 2", "flag"),
    *("tags contains 1", "tags contains all (1, 'a')", "any(tags) > 1", "any(tags) like 'a%'"),
    *("text in cidr ('10.0.0.0/8')", "time > timestamp '2020-01-01'", "time = date '2020-01-01'"),
    *("x > 9223372036854775807", "x < -9223372036854775808", "x = 1e308", "geo.x = 1", "true"),
]


def odd_value(random: Random, depth: int = 0) -> Any:
    """Draw a value."""
    if depth < 4 and random.random() < 0.25:
        n = random.choice([0, 1, 1, 2, 3, 40])
        kind = random.randrange(4)
        if kind == 0:
            return [odd_value(random, depth + 1) for _ in range(n)]
        if kind == 1:
            return tuple(odd_value(random, depth + 1) for _ in range(n))
        if kind == 2:
            return {random.choice(NAMES): odd_value(random, depth + 1) for _ in range(n)}
        return _nested(random, odd_value(random, depth + 1))
    return random.choice(SCALARS)


def _nested(random: Random, value: Any) -> Any:
    """Nest a value, up to far beyond Python's limit of recursion."""
    as_mapping = random.random() < 0.5
    for _ in range(random.choice([1, 10, 63, 64, 65, 300, 5000])):
        value = {"x": value} if as_mapping else [value]
    return value


def odd_event(random: Random) -> Any:
    """Draw what is given for an event: mostly a mapping."""
    if random.random() < 0.15:
        return odd_value(random)
    names = [random.choice(NAMES) for _ in range(random.choice([0, 1, 2, 5]))]
    event: dict[Any, Any] = {name: odd_value(random) for name in names}
    if random.random() < 0.05:
        event[random.choice([1, None, (1,), 1.5, Level.LOW, Colour.RED])] = 1
    return event


def odd_expression(random: Random) -> Any:
    """Draw what is given for an expression: text, a pattern, a tree, or none of these."""
    kind = random.randrange(8)
    if kind == 0:
        return odd_value(random)
    if kind == 1:
        return _pattern(random, 0)
    if kind == 2:
        return _tree(random, 0)
    if kind == 3:
        return _deep_text(random)
    if kind == 4:
        return f"text rlike '{_regex(random)}'"
    if kind == 5:
        joined = random.choice([" and ", " or "])
        return joined.join(_condition(random) for _ in range(random.choice([1, 2, 5])))
    words = [random.choice(TOKENS) for _ in range(random.randrange(1, 9))]
    if random.random() < 0.5:
        words = [random.choice(CONDITIONS), "and", *words]
    return " ".join(words)


def _condition(random: Random) -> str:
    text = random.choice(CONDITIONS)
    return f"not ({text})" if random.random() < 0.2 else text


def _deep_text(random: Random) -> str:
    n = random.choice([10, 60, 63, 64, 65, 150, 199, 200, 201, 1000, 30_000])
    kind = random.randrange(5)
    if kind == 0:
        return "(" * n + "x = 1" + ")" * n
    if kind == 1:
        return "not " * n + "x = 1"
    if kind == 2:
        return "(" * n + "x = 1" + " and y = 2) or text = 'a'" * n
    if kind == 3:
        return "{" + '"x": {' * n + '"y": [1]' + "}" * n + "}"
    return '{"$or": [' * n + '{"y": [1]}' + "]}" * n


def _regex(random: Random) -> str:
    n = random.choice([1, 5, 50, 199, 500, 3000])
    kind = random.randrange(6)
    if kind == 0:
        return "|".join(f"{chr(97 + k % 26)}{k}" for k in range(n))
    if kind == 1:
        return "(" * n + "a" + ")*" * n
    if kind == 2:
        return "(a|" * n + "b" + ")" * n
    if kind == 3:
        return f"a{{{n}}}" * random.choice([1, 3])
    if kind == 4:
        pieces = [
            "a",
            "[",
            "]",
            "(",
            ")",
            "*",
            "+",
            "?",
            "{1,2}",
            "|",
            "^",
            "$",
            "\\d",
            "\\p{L}",
            ".",
        ]
        return "".join(
            random.choice([*pieces, "\\", "(?i)", "(?P<n>", "é", "\\x{110000}"]) for _ in range(9)
        )
    return "[^a]" * n


def _pattern(random: Random, depth: int) -> Any:
    """Draw a JSON pattern as a mapping."""
    operators = ["prefix", "suffix", "exists", "anything-but", "numeric", "cidr", "wildcard"]
    out: dict[Any, Any] = {}
    for _ in range(random.randrange(3)):
        kind = random.randrange(6)
        if kind == 0 and depth < 6:
            out["$or"] = [_pattern(random, depth + 1) for _ in range(random.randrange(3))]
        elif kind == 1 and depth < 6:
            out[random.choice(NAMES)] = _pattern(random, depth + 1)
        elif kind == 2:
            out[random.choice(NAMES)] = [{random.choice(operators): odd_value(random, 2)}]
        elif kind == 3:
            sides = random.choice([["<", 1], ["<"], ["=", "a"], [">", 1, "<", 2], [1, "<"], []])
            out[random.choice(NAMES)] = [{"numeric": sides}]
        elif kind == 4:
            out[random.choice(NAMES)] = odd_value(random, 2)
        else:
            out[random.choice(NAMES)] = [odd_value(random, 3) for _ in range(2)]
    return _nested(random, out) if random.random() < 0.05 else out


def _tree(random: Random, depth: int) -> Any:
    """Draw a tree that somebody has built by hand; building it may raise."""
    name: Any = random.choice(NAMES) if random.random() < 0.9 else odd_value(random, 2)
    attribute = mm.attr("x")
    makers: list[Callable[[], Any]] = [
        lambda: Compare(name, random.choice(["=", "<", "?", None]), odd_value(random, 2)),
        lambda: In(name, odd_value(random, 2)),
        lambda: Between(name, odd_value(random, 2), odd_value(random, 2)),
        lambda: random.choice([Like, RLike])(name, odd_value(random, 2)),
        lambda: InNetwork(name, odd_value(random, 2)),
        lambda: Contains(name, random.choice(["any", "all", "none", 1]), odd_value(random, 2)),
        lambda: IsNull(name, odd_value(random, 2)),
        lambda: IsTrue(name),
        lambda: attribute == odd_value(random, 2),
        lambda: attribute < odd_value(random, 2),
        lambda: attribute.is_in(odd_value(random, 2), odd_value(random, 2)),
        lambda: attribute.between(odd_value(random, 2), odd_value(random, 2)),
        lambda: attribute.like(odd_value(random, 2)),
        lambda: attribute.contains(odd_value(random, 2)),
        lambda: mm.attr(name) > 1,
    ]
    if depth < 3 and random.random() < 0.3:
        parts = (_tree(random, depth + 1), _tree(random, depth + 1))
        return random.choice([And, Or])(parts) if random.random() < 0.8 else Not(parts[0])
    if random.random() < 0.05:
        tree: Any = Compare("x", "=", 1)
        for n in range(random.choice([60, 200, 900, 3000])):
            tree = Not(tree) if n % 2 else And((tree, Compare("y", "=", n)))
        return tree
    return random.choice(makers)()


def odd_id(random: Random) -> Any:
    """Draw an id: one that there may be, or any value."""
    return random.choice(["u1", "u2", 1, 2]) if random.random() < 0.5 else odd_value(random, 3)


def odd_call(random: Random, engine: mm.Engine) -> Call:
    """Draw a public function and its arguments."""
    function = random.choice([*_QUICK * 3, *_SLOW] if random.random() < 0.5 else _QUICK)
    return function.__name__.strip("_"), lambda: function(random, engine)


def _parse(random: Random, _: Any) -> None:
    parsed = mm.parse(odd_expression(random))
    assert mm.parse(str(parsed)) == parsed
    assert hash(parsed) is not None
    assert repr(parsed)
    assert isinstance(parsed.attributes, frozenset)


def _parse_with_settings(random: Random, _: Any) -> None:
    settings = mm.Settings(max_depth=200, max_clauses=random.choice([1, 64]))
    parsed = mm.parse(odd_expression(random), settings=settings)
    assert mm.parse(str(parsed), settings=settings) == parsed
    mm.Engine(settings=settings).subscribe("x", parsed)


def _evaluate(random: Random, _: Any) -> None:
    mm.evaluate(_any_expression(random), odd_event(random))


def _explain(random: Random, _: Any) -> None:
    _print_explanation(mm.explain(_any_expression(random), odd_event(random)))


def _any_expression(random: Random) -> Any:
    return odd_expression(random) if random.random() < 0.3 else _condition(random)


def _print_explanation(explanation: mm.Explanation) -> None:
    assert str(explanation)
    assert repr(explanation)
    assert explanation._repr_html_()
    json.dumps(explanation.to_dict())


def _subscribe(random: Random, engine: mm.Engine) -> None:
    engine.subscribe(odd_id(random), odd_expression(random), replace=random.random() < 0.5)


def _subscribe_many(random: Random, engine: mm.Engine) -> None:
    rows: list[Any] = [(odd_id(random), odd_expression(random)) for _ in range(4)]
    rows.append(odd_value(random))
    report = engine.subscribe_many(rows, replace=True, strict=random.random() < 0.1)
    assert str(report)
    assert report._repr_html_()


def _subscribe_source(random: Random, engine: mm.Engine) -> None:
    engine.subscribe_many(odd_value(random), subscription_id=_option(random, "x"))


def _update(random: Random, engine: mm.Engine) -> None:
    engine.update(odd_id(random), expression=odd_expression(random))


def _unsubscribe(random: Random, engine: mm.Engine) -> None:
    engine.unsubscribe(odd_id(random))


def _unsubscribe_many(random: Random, engine: mm.Engine) -> None:
    engine.unsubscribe_many(random.choice([[odd_id(random)] * 2, odd_value(random)]))


def _look_up(random: Random, engine: mm.Engine) -> None:
    identifier = odd_id(random)
    assert (identifier in engine) == (engine.get(identifier) is not None)
    assert str(engine[identifier])


def _match(random: Random, engine: mm.Engine) -> None:
    event = odd_event(random)
    matches = engine.match(event)
    assert matches == engine.match_many([event])[0]


def _match_many(random: Random, engine: mm.Engine) -> None:
    events = [odd_event(random) for _ in range(random.choice([1, 3, 40]))]
    matches = engine.match_many(events, event_id=_option(random, None))
    assert str(matches)
    assert matches.to_arrow().num_rows == matches.n_matches
    assert all(map(str, matches.rejected))


def _match_source(random: Random, engine: mm.Engine) -> None:
    engine.match_many(odd_value(random), threads=_option(random, 1), event_id=_option(random, None))


def _match_batches(random: Random, engine: mm.Engine) -> None:
    events = [odd_event(random) for _ in range(3)]
    list(engine.match_batches(events, batch_size=_option(random, 2)))


def _match_expression(random: Random, engine: mm.Engine) -> None:
    engine.match_expression(_any_expression(random))


def _explain_id(random: Random, engine: mm.Engine) -> None:
    _print_explanation(engine.explain(odd_id(random), odd_event(random)))


def _learn(random: Random, engine: mm.Engine) -> None:
    engine.learn([odd_event(random)] if random.random() < 0.5 else odd_value(random))


def _subscriptions(random: Random, engine: mm.Engine) -> None:
    list(engine.subscriptions(attribute=_option(random, "x")))


def _settings(random: Random, _: Any) -> None:
    names = ["max_clauses", "max_depth", "sync", "background", "nonsense", "fresh_clauses"]
    mm.Settings(**{random.choice(names): odd_value(random)})


def _engine(random: Random, _: Any) -> None:
    options: dict[str, Any] = {"index": "mill", "index_options": None, "settings": None}
    options[random.choice(list(options))] = odd_value(random)
    mm.Engine(**options)


def _read_events(random: Random, engine: mm.Engine) -> None:
    engine.match_many(mm.read_events(odd_value(random)))


def _save(random: Random, engine: mm.Engine) -> None:
    engine.save(odd_value(random))


def _open(random: Random, _: Any) -> None:
    mm.Engine.open(odd_value(random), create=random.random() < 0.5).close()


def _operator(random: Random, _: Any) -> None:
    def function(event: Any, x: Any) -> bool:
        return True

    options: dict[str, Any] = {random.choice(["name", "timeout", "cost_ms"]): odd_value(random)}
    made = mm.operator(**options)(random.choice([function, odd_value(random)]))
    mm.unregister_operator(made.name)


def _unregister_operator(random: Random, _: Any) -> None:
    mm.unregister_operator(odd_value(random))


def _option(random: Random, usual: Any) -> Any:
    return odd_value(random) if random.random() < 0.1 else usual


_QUICK: list[Callable[..., None]] = [
    *(_parse, _evaluate, _explain, _subscribe, _update, _unsubscribe, _unsubscribe_many, _look_up),
    *(_match, _match_many, _match_expression, _explain_id, _subscribe_many),
]
_SLOW: list[Callable[..., None]] = [
    *(_parse_with_settings, _subscribe_source, _match_source, _match_batches, _learn, _settings),
    *(_subscriptions, _engine, _read_events, _save, _open, _operator, _unregister_operator),
]
