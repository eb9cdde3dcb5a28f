"""The dialect `eventbridge` means what event-ruler's documentation says.

`tests/support/event_ruler` reads patterns directly. It is compared with the package on generated
patterns and events: with the oracle, and with an engine, which confirms only what its index has not
answered for good.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import matchmill as mm
from matchmill.encoding.events.read import read_json_lines
from matchmill.errors import ExpressionError, InputError, LimitError
from matchmill.language.dialects.pattern import DialectPattern, Exactness
from matchmill.language.evaluate import evaluate
from matchmill.language.read import read_expression
from matchmill.settings import DEFAULT_SETTINGS, Settings
from tests.support.event_ruler import ruler_matches
from tests.support.eventbridge_cases import Cases
from tests.support.tiers import first_cases


def read(pattern: object, settings: Settings = DEFAULT_SETTINGS) -> DialectPattern:
    found = read_expression(pattern, settings, "eventbridge")
    assert isinstance(found, DialectPattern)
    return found


def holds(pattern: object, event: Any) -> bool:
    truth = evaluate(read(pattern), event)
    assert truth is not None
    return truth


def pairs(seed: int, n_patterns: int, n_events: int) -> Iterator[tuple[str, list[Any]]]:
    cases = Cases(seed)
    for _ in range(n_patterns):
        pattern = cases.pattern()
        yield (
            pattern,
            [cases.event_near(pattern) if i % 4 else cases.event() for i in range(n_events)],
        )


# -- generated cases ------------------------------------------------------------------------------


def compare(seed: int, n_patterns: int, n_events: int) -> None:
    n_true = 0
    for pattern, events in pairs(seed, n_patterns, n_events):
        expression = read(pattern)
        for event in events:
            truth = ruler_matches(pattern, event)
            n_true += truth
            assert evaluate(expression, event) is truth, (pattern, event)
    assert 0.1 < n_true / (n_patterns * n_events) < 0.9


def test_some_generated_pairs() -> None:
    compare(0, 100, 20)


@pytest.mark.slow
def test_many_generated_pairs() -> None:
    compare(1, 700, 20)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 22))
def test_very_many_generated_pairs(seed: int) -> None:
    compare(seed, 1000, 25)


@pytest.mark.parametrize("seed", first_cases(1, range(40)))
def test_an_engine_finds_the_same(seed: int) -> None:
    """Dicts in a batch, one by one, and JSON lines; after a change of the texts to others."""
    patterns, events = [], []
    for pattern, some in pairs(1000 + seed, 50, 2):
        patterns.append(pattern)
        events += some
    engine = mm.Engine()
    engine.subscribe_many(list(enumerate(patterns)), dialect="eventbridge", strict=True)
    lines = read_json_lines("\n".join(map(json.dumps, events)).encode())
    batch, by_line = engine.match_many(events), engine.match_many(lines)
    assert not batch.rejected
    for i, event in enumerate(events):
        expected = {k for k, pattern in enumerate(patterns) if ruler_matches(pattern, event)}
        assert batch[i] == expected, event
        assert by_line[i] == expected, event
        assert engine.match(event) == expected, event


@pytest.mark.slow
@pytest.mark.parametrize(
    "index", first_cases(1, ["scan", "be_tree", "op_index", "counting", "pst_hash", "gryphon"])
)
def test_every_index_takes_supersets(index: str) -> None:
    patterns, events = [], []
    for pattern, some in pairs(77, 40, 1):
        patterns.append(pattern)
        events += some
    engine = mm.Engine(index=index)
    engine.subscribe_many(list(enumerate(patterns)), dialect="eventbridge", strict=True)
    for event, found in zip(events, engine.match_many(events), strict=True):
        assert found == {k for k, one in enumerate(patterns) if ruler_matches(one, event)}


def test_index_answers_what_it_can() -> None:
    """What patterns ask for most often is not confirmed, and the comparison above is about both."""
    kinds = [read(pattern).exactness for pattern, _ in pairs(1000, 120, 0)]
    assert kinds.count(Exactness.NONE) < 110
    assert read({"a": ["x"], "b": {"c": [{"prefix": "y"}]}}).exactness is Exactness.ALL
    assert read({"a": ["10.0.0.1", 5, True, {"cidr": "::/0"}]}).exactness is Exactness.ALL
    assert read({"a": {"b": ["x"], "c": ["y"]}}).exactness is Exactness.WITHOUT_LISTS
    assert read({"a": [None]}).exactness is Exactness.NONE
    assert read({"a": [{"equals-ignore-case": "Paul"}]}).exactness is Exactness.ALL
    assert read({"a": [{"equals-ignore-case": "Kai"}]}).exactness is Exactness.NONE


# -- named cases ----------------------------------------------------------------------------------

EMPLOYEES = {"e": [{"first": "Anna", "last": "Smith"}, {"first": "Peter", "last": "Jones"}]}

CASES: list[tuple[Any, Any, bool]] = [
    # array consistency
    ({"e": {"first": ["Anna"], "last": ["Smith"]}}, EMPLOYEES, True),
    ({"e": {"first": ["Anna"], "last": ["Jones"]}}, EMPLOYEES, False),
    ({"e": {"first": ["Anna"], "last": ["Smith"]}}, {"e": [[EMPLOYEES["e"][0]], []]}, True),
    ({"e": {"first": ["Anna"], "last": ["Jones"]}}, {"e": [EMPLOYEES["e"]]}, False),
    ({"e": {"a": {"x": [1], "y": [2]}}}, {"e": [{"a": [{"x": 1}, {"y": 2}]}]}, False),
    ({"e": {"a": {"x": [1]}, "b": {"y": [2]}}}, {"e": [{"a": [{"x": 1}], "b": [{"y": 2}]}]}, True),
    ({"e": {"a": {"x": [1]}, "b": {"y": [2]}}}, {"e": [{"a": {"x": 1}}, {"b": {"y": 2}}]}, False),
    ({"e": {"b": [2], "a": [1]}}, {"e": [{"a": 1, "b": [3, 2]}]}, True),
    # a name that must not exist may do so in another element, if names before it have taken one
    ({"e": {"a": [1], "b": [{"exists": False}]}}, {"e": [{"a": 1}, {"b": 2}]}, True),
    ({"e": {"a": [{"exists": False}], "b": [2]}}, {"e": [{"a": 1}, {"b": 2}]}, False),
    ({"e": {"a": [1], "b": [{"exists": False}]}}, {"e": [{"a": 1, "b": 2}]}, False),
    # null, missing, empty
    ({"a": [None]}, {"a": None}, True),
    ({"a": [None]}, {}, False),
    ({"a": [None]}, {"a": ["x", None]}, True),
    ({"a": [None]}, {"a": "null"}, False),
    ({"a": [{"exists": True}]}, {"a": None}, True),
    ({"a": [{"exists": False}]}, {"a": None}, False),
    ({"a": [{"exists": False}]}, {"a": []}, True),
    ({"a": [{"exists": False}]}, {"a": {}}, True),
    ({"a": [{"exists": True}]}, {"a": {"b": 1}}, False),
    ({"a": [""]}, {"a": None}, False),
    # anything-but
    ({"a": [{"anything-but": "x"}]}, {"a": 5}, True),
    ({"a": [{"anything-but": "x"}]}, {"a": None}, True),
    ({"a": [{"anything-but": "x"}]}, {"a": "x"}, False),
    ({"a": [{"anything-but": "x"}]}, {"a": ["x", "y"]}, True),
    ({"a": [{"anything-but": "x"}]}, {"a": []}, False),
    ({"a": [{"anything-but": "x"}]}, {}, False),
    ({"a": [{"anything-but": [5, 6]}]}, {"a": "5"}, True),
    ({"a": [{"anything-but": [5, 6]}]}, {"a": 5.0}, False),
    ({"a": [{"anything-but": {"prefix": "x"}}]}, {"a": True}, True),
    ({"a": [{"anything-but": {"prefix": ["x", "y"]}}]}, {"a": ["xa", "yb"]}, False),
    ({"a": [{"anything-but": {"wildcard": "x*z"}}]}, {"a": "xyz"}, False),
    ({"a": [{"anything-but": {"equals-ignore-case": ["No"]}}]}, {"a": "nO"}, False),
    # numbers are doubles
    ({"a": [300]}, {"a": 3.0e2}, True),
    ({"a": [2**53 + 1]}, {"a": 2**53}, True),
    ({"a": [{"numeric": [">", 2**53]}]}, {"a": 2**53 + 1}, False),
    ({"a": [{"numeric": [">", 2**53]}]}, {"a": 2**53 + 2}, True),
    ({"a": [{"numeric": [">=", 2.0**63]}]}, {"a": 2**63 - 1}, True),
    ({"a": [1]}, {"a": True}, False),
    # addresses
    ({"a": ["::1"]}, {"a": "0:0:0:0:0:0:0:1"}, True),
    ({"a": [{"exactly": "::1"}]}, {"a": "0:0:0:0:0:0:0:1"}, False),
    ({"a": [{"cidr": "10.0.0.7/24"}]}, {"a": "10.0.0.1"}, True),
    # upper and lower case
    ({"a": [{"equals-ignore-case": "kit"}]}, {"a": "KIT"}, True),
    ({"a": [{"equals-ignore-case": "kit"}]}, {"a": "\u212ait"}, False),
    ({"a": [{"equals-ignore-case": "straße"}]}, {"a": "STRASSE"}, True),
    ({"a": [{"prefix": {"equals-ignore-case": "Ab"}}]}, {"a": "aBc"}, True),
    ({"a": [{"suffix": {"equals-ignore-case": ".PNG"}}]}, {"a": "x.png"}, True),
    # a name given twice, `$or`
    ('{"a": ["x"], "a": ["y"]}', {"a": "y"}, True),
    ('{"a": ["x"], "a": ["y"]}', {"a": "x"}, False),
    ('{"d": {"a": ["x"]}, "d": {"b": ["y"]}}', {"d": {"a": "x"}}, False),
    ('{"d": {"a": ["x"]}, "d": {"b": ["y"]}}', {"d": {"a": "x", "b": "y"}}, True),
    ({"a": [1], "$or": [{"a": [2]}, {"b": [3]}]}, {"a": 2}, True),
    ({"$or": [{"a": [2]}, {"b": [3]}], "a": [1]}, {"a": 2, "b": 3}, False),
    ({"$or": {"a": [1]}}, {"$or": {"a": 1}}, True),
    ({"$or": [{"prefix": "a"}, {"suffix": "b"}]}, {"$or": "xb"}, True),
    ({"d": {"$or": [{"a": [1]}, {"b": [1]}], "c": [1]}}, {"d": {"b": 1, "c": 1}}, True),
    # names
    ({"a": {"b": [1]}}, {"a.b": 1}, True),
    ({"state": {"prefix": ["x"]}}, {"state": {"prefix": "x"}}, True),
]


@pytest.mark.parametrize("n", range(len(CASES)))
def test_named_case(n: int) -> None:
    pattern, event, expected = CASES[n]
    assert ruler_matches(pattern, event) is expected
    assert holds(pattern, event) is expected
    engine = mm.Engine()
    engine.subscribe("p", pattern, dialect="eventbridge")
    assert engine.match(event) == ({"p"} if expected else set())
    assert engine.match_many([event] * 2)[1] == ({"p"} if expected else set())
    assert engine.explain("p", event).matched is expected


BAD: list[tuple[Any, str]] = [
    ([], "a pattern is a JSON object, not an array"),
    ("price < 20", "not valid JSON"),
    ({}, "an empty object has nothing to match"),
    ({"a": {}}, "a: an empty object"),
    ({"a": []}, "a: an empty array"),
    ({"a": "x"}, "a: a field takes an array"),
    ({"": ["x"]}, "the name of a field is empty"),
    ({"a": [["x"]]}, "a[0]: an array inside an array"),
    ({"a": [{"prefx": "x"}]}, 'a[0]: unknown match type "prefx"'),
    ({"a": [{"regexp": "x"}]}, 'a[0]: unknown match type "regexp"'),
    ({"a": [{"prefix": "x", "suffix": "y"}]}, "a[0]: an object in an array holds one match type"),
    ('{"a": [{"prefix": "x", "prefix": "y"}]}', "given twice"),
    ({"a": [{"exists": 1}]}, "a[0].exists: exists is true or false"),
    ({"a": [{"exactly": 1}]}, "a[0].exactly: text is needed"),
    ({"a": [{"anything-but": [1, "x"]}]}, "are all texts or all numbers"),
    ({"a": [{"anything-but": [True]}]}, "anything-but takes text and numbers, not true"),
    ({"a": [{"anything-but": []}]}, "an empty array excludes nothing"),
    ({"a": [{"anything-but": {"prefix": ""}}]}, "every text has an empty prefix"),
    ({"a": [{"anything-but": {"prefix": {"equals-ignore-case": "x"}}}]}, "text is needed here"),
    ({"a": [{"numeric": [">=", 5, "<=", 5]}]}, "the lower bound of a range has to be below"),
    ({"a": [{"numeric": ["=", 5, "<", 6]}]}, "a range is a lower bound, then an upper bound"),
    ({"a": [{"cidr": "10.0.0.1"}]}, "has no prefix length"),
    ({"a": [{"cidr": "10.0.0.0/32"}]}, "the prefix length is from 0 to 31"),
    ({"a": [{"cidr": "::/128"}]}, "the prefix length is from 0 to 127"),
    ({"a": [{"cidr": "10.0.0/8"}]}, "is not an IP address"),
    ({"a": [{"wildcard": "a**b"}]}, "two wildcards in a row"),
    ({"$or": [{"a": {"cidr": ["x"]}}, {"b": [1]}]}, "cidr is a reserved name"),
    ({"$or": [{"a": [1]}]}, '$or[0]: unknown match type "a"'),
    ({"a": [float("nan")]}, "is not a number that can be compared"),
]


@pytest.mark.parametrize("n", range(len(BAD)))
def test_bad_pattern(n: int) -> None:
    pattern, message = BAD[n]
    with pytest.raises(ExpressionError) as caught:
        read(pattern)
    assert message in str(caught.value)
    report = mm.Engine().subscribe_many([("p", pattern)], dialect="eventbridge")
    assert message in report.rejected[0].reason


def test_limits() -> None:
    branches = {f"d{i}": {"$or": [{"a": [1]}, {"b": [1]}]} for i in range(40)}
    with pytest.raises(LimitError, match="fields, those of all combinations of"):
        read(branches)
    deep: Any = ["x"]
    for _ in range(100):
        deep = {"a": deep}
    for pattern in (deep, json.dumps(deep)):
        with pytest.raises(LimitError, match="nested too deep"):
            read(pattern)
    with pytest.raises(LimitError, match="characters"):
        read({"a": ["x" * 100]}, Settings(max_expression_length=50))
    with pytest.raises(LimitError, match="values"):
        read({"a": list(range(100))}, Settings(max_values=50))
    with pytest.raises(LimitError, match="the most is 50"):
        read({"a": [{"wildcard": "x" * 100}]}, Settings(max_pattern_length=50))


def test_anything_but_of_many_patterns() -> None:
    texts = [f"{i:04}-{'x' * 30}" for i in range(2000)]
    engine = mm.Engine()
    pattern = {"a": [{"anything-but": {"prefix": texts}}], "b": [{"anything-but": texts}]}
    engine.subscribe("p", pattern, dialect="eventbridge")
    assert engine.match({"a": "2000", "b": texts[0] + "x"}) == {"p"}
    assert engine.match({"a": texts[77] + "y", "b": 5}) == set()


def test_independent_arrays_do_not_multiply() -> None:
    """Each field may be in any of 300 elements of an array of its own."""
    event = {f"a{i}": [{"x": 1}] * 300 for i in range(8)} | {"z": [{"x": 2, "y": 1}, {"x": 3}]}
    pattern = {f"a{i}": {"x": [1]} for i in range(8)} | {"z": {"x": [3], "y": [1]}}
    assert not holds(pattern, event)


def test_names_are_taken_in_the_order_of_utf_16() -> None:
    """Characters beyond U+FFFF come before some others there."""
    pattern = {"e": {"\U00010000": [1], "\uffff": [{"exists": False}]}}
    assert holds(pattern, {"e": [{"\U00010000": 1}, {"\uffff": 1}]})


# -- text, copies ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"a": ["it's", None]}, """eventbridge '{"a":["it''s",null]}'"""),
        (
            '\ufeff{ "a" : [ "x  y" ],\n "a": [1.50] }',
            """eventbridge '{"a":["x  y"],"a":[1.50]}'""",
        ),
    ],
)
def test_text(given: Any, text: str) -> None:
    pattern = read(given)
    assert str(pattern) == text
    assert mm.parse(text) == pattern
    assert hash(mm.parse(text)) == hash(pattern)
    assert pickle.loads(pickle.dumps(pattern)) == pattern
    assert pattern != mm.parse("a = 1")
    assert pattern.attributes == {"a"}


def test_a_pattern_among_other_conditions() -> None:
    text = """price < 20 and not eventbridge '{"tag":[null]}' or eventbridge '{"x":[1]}'"""
    expression = mm.parse(text)
    assert str(expression) == text
    assert expression.attributes == {"price", "tag", "x"}
    engine = mm.Engine({"p": text})
    for event, matched in (
        ({"price": 10}, True),
        ({"price": 10, "tag": None}, False),
        ({"price": 30, "x": 1}, True),
        ({"price": 30}, False),
    ):
        assert mm.evaluate(expression, event) is matched
        assert engine.match(event) == ({"p"} if matched else set())
        assert engine.match_many([event])[0] == ({"p"} if matched else set())


def test_errors_inside_of_text_show_the_place() -> None:
    with pytest.raises(ExpressionError) as caught:
        mm.parse("""price < 20 and eventbridge '{"a": "x"}'""")
    assert "eventbridge: a: a field takes an array of alternatives" in str(caught.value)
    assert caught.value.position == 27
    with pytest.raises(ExpressionError, match="not valid JSON"):
        mm.parse("eventbridge 'x'")
    with pytest.raises(ExpressionError):
        mm.parse("""matchmill '{"a": ["x"]}'""")


def test_an_attribute_may_have_the_name_of_a_dialect() -> None:
    assert mm.evaluate("eventbridge = 'x' and matchmill", {"eventbridge": "x", "matchmill": True})


def test_unknown_dialect() -> None:
    with pytest.raises(InputError, match="did you mean 'eventbridge'"):
        mm.parse({"a": [1]}, dialect="eventbrigde")
    with pytest.raises(InputError, match="dialect is one of matchmill, eventbridge, sigma, not 5"):
        mm.Engine().subscribe_many({}, dialect=5)  # type: ignore[arg-type]


# -- forms of events ------------------------------------------------------------------------------


def test_a_null_in_a_table_is_a_missing_value() -> None:
    engine = mm.Engine()
    engine.subscribe("null", {"a": [None]}, dialect="eventbridge")
    engine.subscribe("missing", {"a": [{"exists": False}]}, dialect="eventbridge")
    engine.subscribe("other", {"a": [{"anything-but": "x"}]}, dialect="eventbridge")
    table = pa.table({"a": pa.array([None, "x", "y"])})
    assert list(engine.match_many(table)) == [{"missing"}, set(), {"other"}]
    lines = read_json_lines(b'{"a": null}\n{}\n{"a": "y"}\n{"a": "x"}')
    assert list(engine.match_many(lines)) == [{"null", "other"}, {"missing"}, {"other"}, set()]


def test_arrays_of_a_table() -> None:
    engine = mm.Engine()
    for name, last in (("same", "Smith"), ("apart", "Jones")):
        pattern = {"e": {"first": ["Anna"], "last": [last]}}
        engine.subscribe(name, pattern, dialect="eventbridge")
    assert list(engine.match_many(pa.Table.from_pylist([EMPLOYEES, {"e": None}]))) == [
        {"same"},
        set(),
    ]


def test_match_expression_assumes_what_it_cannot_know() -> None:
    engine = mm.Engine()
    engine.subscribe("p", {"a": [{"anything-but": "x"}], "b": ["y"]}, dialect="eventbridge")
    assert engine.match_expression("a = 'z' and b = 'y'") == {"p"}
    assert engine.match_expression("a = 'z' and b = 'z'") == set()


# -- stored subscriptions -------------------------------------------------------------------------


def test_a_stored_subscription_keeps_its_dialect(tmp_path: Any) -> None:
    event, other = {"a": None}, {"b": None}
    with mm.Engine.open(tmp_path / "e.mill", create=True) as engine:
        engine.subscribe("p", {"a": [None]}, dialect="eventbridge")
        engine.subscribe("q", {"a": [None]})
        engine.save()
        engine.subscribe_many({"r": {"a": [{"exists": True}]}}, dialect="eventbridge")
        assert engine.match(event) == {"p", "q", "r"}
    with mm.Engine.open(tmp_path / "e.mill") as engine:  # from the log
        assert engine.match(event) == {"p", "q", "r"}
        assert engine.match(other) == {"q"}
        assert engine["p"].expression == """eventbridge '{"a":[null]}'"""
        assert engine.explain("p", other).summary == "p: no match: a is missing"
        assert [one.id for one in engine.subscriptions(attribute="a")] == ["p", "q", "r"]
        engine.compact()
        assert engine.match(other) == {"q"}
        copy = mm.Engine(engine.subscriptions())
        assert copy.match(event) == {"p", "q", "r"}
        assert copy.match(other) == {"q"}
        engine.update("q", expression={"a": [None]}, dialect="eventbridge")
        assert engine.match(other) == set()
        engine.update("p", expression="b is null")
        assert engine.match(other) == {"p"}
    with mm.Engine.open(tmp_path / "e.mill", verify=True) as engine:
        assert engine.match(event) == {"p", "q", "r"}
        assert engine.match_many([other])[0] == {"p"}
