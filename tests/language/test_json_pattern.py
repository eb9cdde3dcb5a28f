"""JSON patterns: named cases, rejections, limits, and a second, direct reading of their meaning."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import pickle
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from matchmill.errors import ExpressionError, LimitError
from matchmill.language.evaluate import evaluate
from matchmill.language.expression import (
    And,
    Between,
    Compare,
    Contains,
    Expression,
    In,
    InNetwork,
    IsNull,
    Like,
    Or,
    RLike,
)
from matchmill.language.json_pattern import parse_json_pattern
from matchmill.language.parser import parse
from matchmill.language.values import INT64_MAX, INT64_MIN, next_number
from matchmill.settings import Settings
from tests.support.soon import ends_soon

CASES = Path(__file__).parents[1] / "cases"


def load(name: str) -> list[Any]:
    cases = json.loads((CASES / name).read_text(encoding="utf-8"))
    return [pytest.param(case, id=case["name"]) for case in cases]


# -- named cases ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", load("json_patterns.json"))
def test_case(case: dict[str, Any]) -> None:
    expression = parse_json_pattern(case["pattern"])
    assert (evaluate(expression, case["event"]) is True) == case["matches"], expression
    assert matches(case["pattern"], case["event"]) == case["matches"], "the reader in this file"
    assert parse_json_pattern(json.dumps(case["pattern"])) == expression
    assert (
        parse_json_pattern(json.dumps(case["pattern"], ensure_ascii=False).encode()) == expression
    )
    assert parse(str(expression)) == expression


@pytest.mark.parametrize("case", load("bad_json_patterns.json"))
def test_bad_case(case: dict[str, Any]) -> None:
    pattern = case["text"] if "text" in case else case["pattern"]
    with pytest.raises(ExpressionError) as caught:
        parse_json_pattern(pattern)
    assert case["message_contains"] in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    if "pattern" in case:
        with pytest.raises(ExpressionError) as caught_in_text:
            parse_json_pattern(json.dumps(pattern))
        assert str(caught_in_text.value) == str(caught.value)


# -- what becomes of a pattern --------------------------------------------------------------------

EXPRESSIONS: list[tuple[dict[str, Any], Expression]] = [
    ({"x": ["a"]}, Or((Compare("x", "=", "a"), Contains("x", "any", ("a",))))),
    (
        {"x": ["a", 1, True, "a", 1.0]},
        Or((In("x", ("a", 1, True)), Contains("x", "any", ("a", 1, True)))),
    ),
    ({"x": [None]}, IsNull("x")),
    ({"x": [None, {"exists": False}]}, IsNull("x")),
    ({"x": [{"exists": True}]}, IsNull("x", negated=True)),
    ({"x": [{"exists": True}, None]}, Or((IsNull("x", True), IsNull("x")))),
    (
        {"x": [{"cidr": "10.0.0.0/8"}, {"cidr": "::1/128"}, {"cidr": "10.0.0.0/8"}]},
        Or(
            (
                InNetwork("x", ("10.0.0.0/8", "::1/128")),
                InNetwork("x", ("10.0.0.0/8", "::1/128"), any_element=True),
            )
        ),
    ),
    (
        {"x": [{"wildcard": r"50%_*\*\\"}]},
        Or((Like("x", r"50\%\_%*\\"), Like("x", r"50\%\_%*\\", any_element=True))),
    ),
    (
        {"x": [{"numeric": [">=", 1, "<=", 2]}]},
        Or((Between("x", 1, 2), Between("x", 1, 2, any_element=True))),
    ),
    (
        {"x": [{"numeric": [">", 0, "<", 1]}]},
        Or(
            (
                And((Compare("x", ">", 0), Compare("x", "<", 1))),
                Between("x", 5e-324, 0.9999999999999999, any_element=True),
            )
        ),
    ),
    (
        {"x": [{"anything-but": ["a", "a"]}]},
        Or((Compare("x", "!=", "a"), Compare("x", "!=", "a", any_element=True))),
    ),
    (
        {"x": [{"anything-but": {"prefix": ["a", "b.", "a"]}}]},
        Or(
            (
                And((Like("x", "a%", True), Like("x", "b.%", True))),
                RLike("x", r"(?s)\Aa.*\z|(?s)\Ab\..*\z", True, True),
            )
        ),
    ),
    (
        {"a": {"b": ["x"], "$or": [{"c": [None]}, {"d": {"e": [None]}}]}},
        And(
            (
                Or((Compare("a.b", "=", "x"), Contains("a.b", "any", ("x",)))),
                Or((IsNull("a.c"), IsNull("a.d.e"))),
            )
        ),
    ),
]


@pytest.mark.parametrize(("pattern", "expression"), EXPRESSIONS, ids=lambda x: str(x)[:60])
def test_expression(pattern: dict[str, Any], expression: Expression) -> None:
    assert parse_json_pattern(pattern) == expression


def test_python_values() -> None:
    class Color(StrEnum):
        RED = "red"

    inner = MappingProxyType({"x": (Color.RED, {"numeric": (">", 1)})})
    expression = parse_json_pattern({"a": inner})
    assert isinstance(expression, Or)
    assert isinstance(expression.operands[0], Compare)
    assert type(expression.operands[0].value) is str
    assert expression == parse_json_pattern('{"a": {"x": ["red", {"numeric": [">", 1]}]}}')
    assert parse(str(expression)) == expression


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ({1: ["x"]}, "keys are text, not 1"),
        ({"a": {None: ["x"]}}, "a: keys are text, not null"),
        ({"a": [{2: "x"}]}, r"a\[0\]: keys are text, not 2"),
        ({"a": [{1, 2}]}, r"a\[0\]: a value of type set is not JSON"),
        ({"a": [float("nan")]}, r"a\[0\]: NaN is not a number"),
        ({"a": [10**400]}, r"a\[0\]: the integer of \d+ bits is beyond 64 bits"),
        ({"a": 10**400}, "a: a field takes an array of alternatives, not a very large integer"),
        ({"a": ["\ud800"]}, r"a\[0\]: text with a lone surrogate"),
        ({"a": "x" * 100}, 'not "x{40}…"'),
        ({"a": b"x"}, "not a value of type bytes"),
        (["x"], "a pattern is a JSON object, not an array"),
        (bytearray(b"{}"), "a pattern is a JSON object, not a value of type bytearray"),
        (None, "a pattern is a JSON object, not null"),
        (b'{"a": ["\xff"]}', "not valid UTF-8: invalid start byte at byte 8"),
    ],
)
def test_bad_python_value(pattern: Any, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        parse_json_pattern(pattern)


def test_byte_order_mark() -> None:
    assert parse_json_pattern('\ufeff{"a": [1]}') == parse_json_pattern({"a": [1]})
    assert parse_json_pattern(b'\xef\xbb\xbf{"a": [1]}') == parse_json_pattern({"a": [1]})


def test_caret() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_json_pattern('{"a": [1],\n "b": [2 3]}')
    assert '   "b": [2 3]}\n           ^' in str(caught.value)


# -- limits ---------------------------------------------------------------------------------------


def nested(levels: int, key: str = "a") -> dict[str, Any]:
    pattern: dict[str, Any] = {key: [1]}
    for _ in range(levels - 1):
        pattern = {key: pattern}
    return pattern


def nested_or(levels: int) -> dict[str, Any]:
    pattern: dict[str, Any] = {"a": [1]}
    for i in range(levels - 1):
        pattern = {"$or": [pattern, {"b": [i]}], "c": [1]}
    return pattern


def shared(levels: int) -> dict[str, Any]:
    """An object of 2**levels fields, in a few dictionaries."""
    pattern: dict[str, Any] = {"a": [1], "b": [2]}
    for _ in range(levels - 1):
        pattern = {"a": pattern, "b": pattern}
    return pattern


def endless() -> dict[str, Any]:
    pattern: dict[str, Any] = {}
    pattern["a"] = pattern
    return pattern


LARGE = {
    "brackets": "[" * 100_000,
    "objects": '{"a":' * 100_000,
    "closed brackets": '{"a": ' + "[" * 50_000 + "]" * 50_000 + "}",
    "brackets and quotes": '{"' + '["[' * 100_000,
    "text": " " * 1_000_001,
    "bytes": b" " * 4_000_001,
    "multi-byte text": ("é" * 1_000_001).encode(),
    "nested": nested(65),
    "nested, in text": json.dumps(nested(65)),
    "$or": nested_or(65),
    "$or, in text": json.dumps(nested_or(40)),
    "endless": endless(),
    "shared": shared(60),
    "predicates": {"a": [{"prefix": str(i)} for i in range(5001)]},
    "fields": {f"a{i}": [1] for i in range(5001)},
    "values": {"a": list(range(50_001))},
    "many values": {"a": [0] * 100_001},
    "excluded values": {"a": [{"anything-but": list(range(50_001))}]},
    "excluded patterns": {"a": [{"anything-but": {"prefix": ["x"] * 100_001}}]},
    "long names": json.dumps({"n" * 400_000: {str(i): [None] for i in range(10_000)}}),
    "long names of objects": json.dumps(
        {"n" * 400_000: {str(i): {"x": [None]} for i in range(10_000)}}
    ),
    "long texts": {"a": [str(i) + "x" * 6000 for i in range(90)]},
    "long prefix": {"a": [{"prefix": "x" * 10_000}]},
    "long escaped text": {"a": [{"equals-ignore-case": "%" * 5_001}]},
    "long regex": {"a": [{"anything-but": {"suffix": [f"{i}" for i in range(2_000)]}}]},
}


@pytest.mark.parametrize("pattern", LARGE.values(), ids=LARGE.keys())
def test_limits(pattern: Any) -> None:
    with ends_soon(), pytest.raises(LimitError):
        parse_json_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [nested(64), nested_or(25), shared(11), {"a": list(range(50_000))}, {"a": ["x" * 400_000]}],
    ids=["nested", "$or", "shared", "values", "text"],
)
def test_within_limits(pattern: dict[str, Any]) -> None:
    expression = parse_json_pattern(pattern)
    assert parse_json_pattern(json.dumps(pattern)) == expression
    assert parse(str(expression)) == expression


def test_brackets_in_text_do_not_count() -> None:
    text = '[{"' * 500 + "\\"
    assert evaluate(parse_json_pattern(json.dumps({"a": [text]})), {"a": text}) is True


def test_settings() -> None:
    pattern = {"a": [1, 2]}
    for small in (
        Settings(max_depth=1),
        Settings(max_conditions=1),
        Settings(max_values=3),
        Settings(max_expression_length=30),
    ):
        with pytest.raises(LimitError):
            parse_json_pattern(pattern, small)
    enough = Settings(max_depth=2, max_conditions=2, max_values=4, max_expression_length=100)
    assert parse_json_pattern(pattern, enough) == parse_json_pattern(pattern)
    assert parse_json_pattern(nested(200), Settings(max_depth=200)) == parse_json_pattern(
        json.dumps(nested(200)), Settings(max_depth=200)
    )


@pytest.mark.parametrize("digits", [30, 999, 1001, 5000, 900_000])
def test_long_integers(digits: int) -> None:
    with ends_soon(), pytest.raises(ExpressionError, match="beyond 64 bits"):
        parse_json_pattern('{"a": [' + "7" * digits + "]}")


def test_long_decimals() -> None:
    with ends_soon():
        assert evaluate(parse_json_pattern('{"a": [0.5' + "0" * 900_000 + "]}"), {"a": 0.5}) is True


@given(st.text() | st.text(alphabet='{}[]",:\\ ua0$or*'))
def test_any_text_is_read_or_rejected(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        parse_json_pattern(text)


WORDS = ["$or", "prefix", "suffix", "wildcard", "equals-ignore-case", "anything-but", "numeric"]
WORDS += ["exists", "cidr", "a", "b", "<", "=", "10.0.0.0/8"]
words = st.sampled_from(WORDS) | st.text(max_size=3)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(words, json_values, max_size=3))
def test_any_object_is_read_or_rejected(pattern: dict[str, Any]) -> None:
    with contextlib.suppress(ExpressionError):
        expression = parse_json_pattern(pattern)
        assert parse(str(expression)) == expression


def test_anything_but_of_hundreds_of_patterns() -> None:
    texts = [f"{i:05}-some/name/of/a/file" for i in range(600)]
    pattern = {"a": [{"anything-but": {"prefix": texts}}], "b": [{"anything-but": texts * 10}]}
    expression = parse_json_pattern(pattern)
    assert parse(str(expression)) == expression
    assert evaluate(expression, {"a": ["00599-some/name/of/a/file.png", "x"], "b": "x"}) is True
    assert evaluate(expression, {"a": ["00599-some/name/of/a/file.png"], "b": "x"}) is not True


# -- the next number ------------------------------------------------------------------------------

NUMBERS: list[int | float] = [
    *(-2, -1, 0, 1, 2, 5, 0.5, -0.5, 1.5, 2.0, 5e-324, -5e-324, 1e-300),
    *(2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, float(2**53), -(2**53) - 1, 2**62 + 1, -(2**62) - 1),
    *(INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1, 2.0**63, -(2.0**63), 2.0**64, 1e300),
]
finite = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.sampled_from(NUMBERS) | st.integers(INT64_MIN, INT64_MAX) | finite


@given(numbers, numbers)
@example(2**53, 2**53 + 1)
@example(INT64_MIN, -(2.0**63))
@example(1.7976931348623157e308, INT64_MAX)
def test_nothing_lies_between_neighbours(value: int | float, other: int | float) -> None:
    above, below = next_number(value, 1), next_number(value, -1)
    assert below < value < above
    assert (other > value) == (other >= above)
    assert (other < value) == (other <= below)
    for neighbour in (above, below):
        is_integer = isinstance(neighbour, int) and INT64_MIN <= neighbour <= INT64_MAX
        assert is_integer or isinstance(neighbour, float)


# -- the meaning, read directly -------------------------------------------------------------------
#
# `matches` interprets a pattern on an event without expressions: slowly, and by the words of
# docs/JSON_PATTERNS.md. It knows nothing of flattening, like patterns or neighbours.

MISSING = object()


def matches(pattern: dict[str, Any], event: dict[str, Any], above: tuple[str, ...] = ()) -> bool:
    for key, value in pattern.items():
        if key == "$or":
            holds = any(matches(branch, event, above) for branch in value)
        elif isinstance(value, dict):
            holds = matches(value, event, (*above, key))
        else:
            found = reach(event, ".".join((*above, key)))
            holds = any(alternative_holds(alternative, found) for alternative in value)
        if not holds:
            return False
    return True


def reach(node: Any, name: str) -> Any:
    """What an event holds under a dotted name: MISSING, a scalar or a list of scalars."""
    if isinstance(node, list):
        found = [reach(element, name) for element in node]
        if not node or all(each is MISSING for each in found):
            return MISSING if name or node else []
        return list(scalars(found))
    if not name:
        return MISSING if isinstance(node, dict) else node
    if isinstance(node, dict):
        for key, value in node.items():
            if name == key or name.startswith(key + "."):
                found = reach(value, name[len(key) + 1 :])
                if found is not MISSING:
                    return found
    return MISSING


def scalars(found: list[Any]) -> Iterator[Any]:
    for each in found:
        if isinstance(each, list):
            yield from scalars(each)
        elif each is not MISSING and each is not None:
            yield each


def alternative_holds(alternative: Any, found: Any) -> bool:
    absent = found is MISSING or found is None
    if alternative is None or alternative == {"exists": False}:
        return absent
    if alternative == {"exists": True}:
        return not absent
    if absent:
        return False
    return any(
        holds(alternative, value) for value in (found if isinstance(found, list) else [found])
    )


def holds(alternative: Any, value: Any) -> bool:
    """Whether a present scalar satisfies an alternative."""
    if not isinstance(alternative, dict):
        return same(alternative, value)
    ((kind, argument),) = alternative.items()
    if kind == "anything-but":
        return differs(argument, value)
    if kind == "numeric":
        comparisons = zip(argument[::2], argument[1::2], strict=True)
        return is_number(value) and all(compares(value, op, bound) for op, bound in comparisons)
    if not isinstance(value, str):
        return False
    if kind == "cidr":
        try:
            return ipaddress.ip_address(value) in ipaddress.ip_network(argument)
        except ValueError:
            return False
    if isinstance(argument, dict):
        argument = lower(argument["equals-ignore-case"])
        value = lower(value)
    if kind == "equals-ignore-case":
        return lower(argument) == lower(value)
    if kind == "wildcard":
        return bool(re.fullmatch(wildcard_regex(argument), value, re.DOTALL))
    return bool(value.startswith(argument) if kind == "prefix" else value.endswith(argument))


def differs(excluded: Any, value: Any) -> bool:
    if isinstance(excluded, dict):
        ((kind, texts),) = excluded.items()
        texts = texts if isinstance(texts, list) else [texts]
        return isinstance(value, str) and not any(holds({kind: text}, value) for text in texts)
    excluded = excluded if isinstance(excluded, list) else [excluded]
    comparable = [other for other in excluded if type_of(other) == type_of(value)]
    return bool(comparable) and not any(same(other, value) for other in comparable)


def type_of(value: Any) -> str:
    return "number" if is_number(value) else type(value).__name__


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same(a: Any, b: Any) -> bool:
    return type_of(a) == type_of(b) and bool(a == b)


def compares(value: Any, op: str, bound: Any) -> bool:
    order = (value > bound) - (value < bound)
    return order in {"=": (0,), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (1, 0)}[op]


def lower(text: str) -> str:
    return "".join(c.lower()[0] for c in text)


def wildcard_regex(text: str) -> str:
    regex = ""
    while text:
        if text[0] == "*":
            regex, text = regex + ".*", text[1:]
        else:
            text = text[1:] if text[0] == "\\" else text
            regex, text = regex + re.escape(text[0]), text[1:]
    return regex


# -- generated patterns and events ----------------------------------------------------------------

TEXTS = ["", "a", "A", "ab", "aB", "b", "ba", "a%", "_", "\\", "*", "a*b", "a\nb", "a.b", "K", "k"]
TEXTS += ["\u212a", "é", "É", "ſ", "s", "ΑΣ", "ας", "ασ", "İ", "i", "ß", "ẞ", "'", "\0", "😀", "1"]
ADDRESSES = ["10.0.0.1", "10.0.1.0", "10.0.0", "::1", "2001:db8::5", "192.168.0.1"]

texts = st.sampled_from(TEXTS) | st.text(alphabet="abAB%_*\\.", max_size=4)
scalar_values = st.booleans() | numbers | texts | st.sampled_from(ADDRESSES)
nonempty_texts = texts.filter(bool)


def one_or_more(each: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return each | st.lists(each, min_size=1, max_size=3)


wildcards = st.lists(
    st.sampled_from(["a", "b", "A", "%", "_", ".", "\\\\", "\\*", "é"]), max_size=4
).flatmap(
    lambda parts: st.lists(
        st.sampled_from(["", "*"]), min_size=len(parts) + 1, max_size=len(parts) + 1
    ).map(lambda stars: stars[0] + "".join(p + s for p, s in zip(parts, stars[1:], strict=True)))
)


@st.composite
def ranges(draw: st.DrawFn) -> list[Any]:
    low, high = sorted((draw(numbers), draw(numbers)))
    ops = (draw(st.sampled_from([">", ">="])), draw(st.sampled_from(["<", "<="])))
    if ops != (">=", "<=") and not next_number(low, 1) <= next_number(high, -1):
        ops = (">=", "<=")
    return [ops[0], low, ops[1], high]


match_types = st.one_of(
    st.fixed_dictionaries({"exists": st.booleans()}),
    st.fixed_dictionaries({"wildcard": wildcards}),
    st.fixed_dictionaries({"equals-ignore-case": texts}),
    *(
        st.fixed_dictionaries({kind: texts | st.fixed_dictionaries({"equals-ignore-case": texts})})
        for kind in ("prefix", "suffix")
    ),
    st.sampled_from(["10.0.0.0/24", "10.0.0.0/8", "0.0.0.0/0", "2001:db8::/32", "::/0", "::1/128"])
    .map(lambda network: {"cidr": network}),
    st.tuples(st.sampled_from(["=", "<", "<=", ">", ">="]), numbers)
    .map(lambda pair: {"numeric": list(pair)}),
    ranges().map(lambda bounds: {"numeric": bounds}),
    st.fixed_dictionaries({"anything-but": one_or_more(st.booleans() | numbers | texts)}),
    *(
        st.fixed_dictionaries({"anything-but": st.fixed_dictionaries({kind: one_or_more(each)})})
        for kind, each in (
            ("prefix", nonempty_texts),
            ("suffix", nonempty_texts),
            ("wildcard", wildcards),
            ("equals-ignore-case", texts),
        )
    ),
)  # fmt: skip
alternatives = st.lists(st.none() | scalar_values | match_types, min_size=1, max_size=3)
keys = st.sampled_from(["a", "b", "c", "odd name"])
patterns: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.dictionaries(keys, alternatives, min_size=1, max_size=2),
    lambda inner: (
        st.dictionaries(keys, alternatives | inner, min_size=1, max_size=2)
        | st.fixed_dictionaries(
            {"$or": st.lists(inner, min_size=2, max_size=3)}, optional={"a": alternatives | inner}
        )
    ),
    max_leaves=4,
)

event_lists = st.lists(st.none() | scalar_values, max_size=4)
event_objects = st.dictionaries(keys, scalar_values, min_size=1, max_size=3)
events: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.dictionaries(keys, st.none() | scalar_values | event_lists, max_size=4),
    lambda inner: st.dictionaries(
        keys,
        inner
        | scalar_values
        | event_lists
        | st.lists(event_objects, min_size=1, max_size=3)
        | st.lists(st.lists(scalar_values, min_size=1, max_size=2), min_size=1, max_size=2),
        max_size=4,
    ),
    max_leaves=4,
)


@given(patterns, events)
@example({"a": [{"anything-but": {"equals-ignore-case": ["s", "k"]}}]}, {"a": ["ſ", "\u212a"]})
@example({"a": [{"numeric": [">", 2**53, "<", 2**53 + 2]}]}, {"a": [2**53, 2**53 + 2]})
def test_expressions_mean_what_patterns_mean(
    pattern: dict[str, Any], event: dict[str, Any]
) -> None:
    expression = parse_json_pattern(pattern)
    assert (evaluate(expression, event) is True) == matches(pattern, event), str(expression)
    assert parse_json_pattern(json.dumps(pattern)) == expression
    assert parse(str(expression)) == expression


@given(alternatives, st.none() | scalar_values | event_lists)
def test_one_field(field: list[Any], value: Any) -> None:
    expression = parse_json_pattern({"a": field})
    assert (evaluate(expression, {"a": value}) is True) == matches({"a": field}, {"a": value})


def test_generated_events_match_often_enough() -> None:
    """The comparison above would be hollow if they never did."""
    outcomes: list[bool] = []

    @given(patterns, events)
    @settings(derandomize=True, database=None)
    def collect(pattern: dict[str, Any], event: dict[str, Any]) -> None:
        outcomes.append(matches(pattern, event))

    collect()
    assert 0.1 < sum(outcomes) / len(outcomes) < 0.9
