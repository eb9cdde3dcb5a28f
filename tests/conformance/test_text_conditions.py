"""Readable text conditions, and the search over all texts of an event: oracle, indexes, forms."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from matchmill import Engine, any_attribute, attr
from matchmill.encoding.events.read import read_json_lines
from matchmill.errors import ExpressionError
from matchmill.index.registry import INDEXES
from matchmill.language.evaluate import evaluate
from matchmill.language.parser import parse
from tests.support.generators import random_event, random_expression

FORMS = {
    "x startswith 'a%'": r"x like 'a\%%'",
    "x endswith '_'": r"x like '%\_'",
    r"x contains text 'a\b'": r"x like '%a\\b%'",
    "x iequals 'Ab'": "x ilike 'Ab'",
    "x IStartsWith 'Ab' and x iendswith 'C'": "x ilike 'Ab%' and x ilike '%C'",
    "x icontains text 'Ab'": "x ilike '%Ab%'",
    "x not startswith 'a' or x not contains text 'b'": "x not like 'a%' or x not like '%b%'",
    "x startswith any ('a', 'b')": "x like 'a%' or x like 'b%'",
    "not x contains text all ('a', 'b')": "not (x like '%a%' and x like '%b%')",
    "x like any ('a%') and x ilike all ('b', 'c')": "x like 'a%' and x ilike 'b' and x ilike 'c'",
    "any(x) endswith any ('a', 'b')": "any(x) like '%a' or any(x) like '%b'",
    "text contains text 'text'": "text like '%text%'",
    "startswith startswith 'a'": "startswith like 'a%'",
    "x contains 'a'": "x contains 'a'",
    "?n startswith 'a' and f(?n)": "?n like 'a%' and f(?n)",
    "lower(?n) not contains text 'a' and f(?n)": "lower(?n) not like '%a%' and f(?n)",
}


@pytest.mark.parametrize("text", FORMS)
def test_forms_are_likes(text: str) -> None:
    assert str(parse(text)) == FORMS[text]
    assert parse(str(parse(text))) == parse(text)


BAD = {
    "x startswith 5": "`startswith` takes a text in single quotes, not `5`",
    "x startswith any 'a'": "`startswith any` takes a list",
    "x not startswith any ('a', 'b')": "`any` with several texts cannot stand here",
    "any(x) startswith all ('a', 'b')": "`all` with several texts cannot stand here",
    "x icontains 'a'": "`icontains` is followed by `text`",
    "x not contains 'a'": "is expected after `not`",
    "x starts_with 'a'": "write `startswith`",
    "any attribute is null": "any() takes a comparison",
    "any attribute contains 'a'": "any() looks at its elements",
    "any attribute": "an operator is expected",
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_wrong(text: str) -> None:
    with pytest.raises(ExpressionError) as error:
        parse(text)
    assert BAD[text] in str(error.value)


def test_builder() -> None:
    x = attr("x")
    assert x.startswith("a%", "b") == parse("x startswith any ('a%', 'b')")
    assert x.any().contains_text("a") == parse("any(x) contains text 'a'")
    assert x.iequals("A") & x.istartswith("a") == parse("x iequals 'A' and x istartswith 'a'")
    assert any_attribute().ilike("%a%") == parse("any attribute ilike '%a%'")
    assert any_attribute().is_in("a", "b") == parse("any attribute in ('a', 'b')")
    assert (any_attribute().icontains_text("a")).attributes == frozenset()


# -- all texts of an event ------------------------------------------------------------------------

CONDITIONS = [
    *("ilike '%a%'", "like 'a%'", "like '%b'", "= 'ab'", "in ('JFK', 'a')", "rlike '^[a-c]+$'"),
    *("not like '%a%'", "istartswith 'j'", "!= ''", "> 'x'", "in cidr '10.0.0.0/8'", "= 5"),
    *("like '%b_c%'", "contains text any ('zz', 'é')", "= date '2013-01-31'"),
]


def random_search(rng: Random) -> str:
    text = f"any attribute {rng.choice(CONDITIONS)}"
    draw = rng.random()
    if draw < 0.3:
        return f"not {text}" if draw < 0.15 else f"({text}) is not true"
    if draw < 0.5:
        return f"({text} or {random_expression(rng, depth=1)}) and any attribute like '%a%'"
    return text if draw < 0.7 else f"{random_expression(rng, depth=1)} and {text}"


@pytest.mark.parametrize("index", sorted(INDEXES))
def test_every_index_searches_all_texts(index: str) -> None:
    rng = Random(31)
    texts = {i: random_search(rng) for i in range(40)}
    events = [random_event(rng) for _ in range(15)] + [{}, {"x": 5}, {"new": ["a", {"b": "ab"}]}]
    wanted = [{i for i, text in texts.items() if evaluate(text, e) is True} for e in events]
    engine = Engine(index=index)
    engine.subscribe_many(texts)
    assert list(engine.match_many(events)) == wanted
    assert [engine.match(event) for event in events[-5:]] == wanted[-5:]


def test_every_form_of_events() -> None:
    rng = Random(32)
    texts = {i: random_search(rng) for i in range(60)}
    rows: list[dict[str, Any]] = [
        {
            "a": rng.choice(["a", "ab", None, "xyz"]),
            "n": rng.choice([1, None]),
            "l": rng.choice([["abc", None, "JFK"], [], None]),
            "s": {"t": rng.choice(["é", "b"])},
        }
        for _ in range(200)
    ]
    table = pa.Table.from_pylist(rows)
    rows = [{name: value for name, value in row.items() if value is not None} for row in rows]
    engine = Engine(texts)
    wanted = [{i for i, text in texts.items() if evaluate(text, e) is True} for e in rows]
    lines = "\n".join(map(json.dumps, rows)).encode()
    for events in (rows, table, read_json_lines(lines), iter(rows)):
        assert list(engine.match_many(events)) == wanted
    assert [engine.match(row) for row in rows] == wanted


def test_what_is_said_about_them() -> None:
    engine = Engine({"a": "any attribute ilike '%mimi%' and x = 5"})
    explanation = engine.explain("a", {"x": 5, "b": "run Mimikatz", "c": ["d"]})
    assert str(explanation).splitlines()[1] == (
        "  ✓ any attribute ilike '%mimi%': any attribute is ['run Mimikatz', 'd']"
    )
    assert not engine.check([{"x": 5, "b": "c"}]).warnings
    assert engine.match_expression("x = 5 and b = 'c'") == {"a"}  # some text may be so
    with pytest.raises(ExpressionError, match="no attribute has this name"):
        parse('"\0any attribute" = 1')
    odd = {"\0any attribute": "mimi", "x": 5}  # a text like any other
    assert engine.match(odd) == {"a"}
    assert list(engine.match_many([odd] * 200)) == [{"a"}] * 200


def test_they_are_saved_and_limited(tmp_path: Any) -> None:
    with Engine.open(tmp_path / "e", create=True) as engine:
        engine.subscribe("a", "any attribute ilike '%mimi%'")
    with Engine.open(tmp_path / "e") as engine:
        assert engine.match({"b": "MIMI"}) == {"a"}
        assert list(engine.match_many([{"b": "MIMI"}, {"b": 5}])) == [{"a"}, set()]
