"""`matchmill explain`: an expression, or a subscription of a file or folder."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_an_expression(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    expression = "price <= 580 and origin = 'JFK'"
    result = run("explain", expression, '{"price": 590, "origin": "JFK"}')
    assert result.code == 1
    assert result.out.splitlines()[0] == f"✗ {expression}"
    assert "10 too much" in result.out
    assert run("explain", expression, '{"price": 5, "origin": "JFK"}').code == 0
    assert run("explain", expression, "{}").code == 1
    monkeypatch.setattr("sys.stdin", io.StringIO('{\n "price": 5,\n "origin": "JFK"\n}\n'))
    result = run("explain", "--format", "json", expression, "-")
    assert result.code == 0
    assert json.loads(result.out)["truth"] is True


def test_a_subscription(run: Run) -> None:
    assert run("explain", "subs.csv", "u1", '{"price": 5}').code == 0
    assert run("explain", "subs.csv", "u5", '{"origin": "LGA"}').code == 1
    lines = '{"subscription_id": 7, "expression": "price < 5"}\n{"subscription_id": 8}'
    Path("subs.jsonl").write_text(lines)
    assert run("explain", "subs.jsonl", "7", '{"price": 4}').code == 0
    assert (
        "subs.jsonl:2: 8: there is no 'expression'" in run("explain", "subs.jsonl", "8", "{}").err
    )
    assert run("build", "subs.jsonl", "saved").code == 3
    assert run("explain", "saved", "7", '{"price": 4}').code == 0
    assert run("explain", "saved", "x", '{"price": 4}').code == 2
    assert "no subscription 'no'" in run("explain", "subs.csv", "no", "{}").err


def test_a_bare_name_gets_a_hint(run: Run) -> None:
    """A newcomer gives the id of a subscription, which is also an expression."""
    result = run("explain", "u1", '{"price": 5}')
    assert result.code == 1
    assert "SUBSCRIPTIONS ID EVENT" in result.err
    assert run("explain", "price < 9", '{"price": 5}').err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("price <", "{}"), "a literal is missing"),
        (("price < 5", "{"), "the event: not valid JSON"),
        (("price < 5", "[1]"), "the event:"),
        (("price < 5", '{"a": 1, "a": }'), "the event: not valid JSON"),
        (("price < 5", ""), "there is no event"),
        (("{}",), "give EXPRESSION and EVENT"),
        (("a", "b", "c", "d"), "give EXPRESSION and EVENT"),
        (("nowhere.csv", "u1", "{}"), "there is no such file"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], message: str, run: Run) -> None:
    result = run("explain", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
