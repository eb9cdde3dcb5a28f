"""The examples of docs/JSON_PATTERNS.md are true.

A `json pattern` block is followed by the `expression` it becomes, by events that it `matches` and
by events that are `no match`; a `json rejected` block by its `message`. A row of the tables of
differences has a pattern, an event and outcomes.
"""

from __future__ import annotations

import doctest
import json
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

import matchmill as mm
from matchmill.encoding.events.read import read_json_lines
from matchmill.errors import ExpressionError
from matchmill.language.evaluate import evaluate
from matchmill.language.json_pattern import _MATCH_TYPES
from matchmill.language.parser import parse
from tests.support.event_ruler import ruler_matches

PAGE = Path(__file__).parents[2] / "docs" / "JSON_PATTERNS.md"
TEXT = PAGE.read_text(encoding="utf-8")


class Block(NamedTuple):
    line: int
    kind: str
    text: str
    subject: str  # the pattern that the block speaks about


def read_blocks() -> list[Block]:
    blocks: list[Block] = []
    subject = ""
    for match in re.finditer(r"^```([^\n`]+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL):
        line = TEXT.count("\n", 0, match.start()) + 1
        if match[1] in ("json pattern", "json rejected"):
            subject = match[2]
        blocks.append(Block(line, match[1], match[2], subject))
    return blocks


BLOCKS = read_blocks()


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"line {block.line}, {block.kind}")
def test_block(block: Block) -> None:
    if block.kind == "python":
        example = doctest.DocTestParser().get_doctest(block.text, {}, PAGE.name, None, block.line)
        assert doctest.DocTestRunner().run(example).failed == 0
    elif block.kind == "message":
        with pytest.raises(ExpressionError) as caught:
            parse(block.subject)
        assert str(caught.value) == block.text.strip()
    elif block.kind != "json rejected":
        check(block)


def check(block: Block) -> None:
    expression = parse(block.subject)
    if block.kind == "expression":
        assert str(expression) == " ".join(block.text.split())
        assert parse(block.text) == expression
    elif block.kind in ("json matches", "json no match"):
        truth = evaluate(expression, json.loads(block.text))
        assert (truth is True) == (block.kind == "json matches"), expression
    else:
        assert block.kind == "json pattern"


def test_the_page_has_examples_of_everything() -> None:
    kinds = Counter(block.kind for block in BLOCKS)
    assert kinds["json pattern"] >= 15
    assert kinds["json rejected"] == kinds["message"]
    for match_type in _MATCH_TYPES:
        assert f"### {match_type}\n" in TEXT
        assert any(f'"{match_type}"' in block.text for block in BLOCKS)


# -- tables of differences ------------------------------------------------------------------------

ROW = re.compile(
    r"^\| (?P<what>.*?) ?\| `(?P<pattern>.+?)` \| `(?P<event>.+?)`"
    r" \| (?P<first>[^|`]+) \| (?P<second>[^|`]+) \|$"
)


class Row(NamedTuple):
    what: str
    pattern: str
    event: str
    first: str
    second: str


def rows_below(head: str) -> list[Row]:
    """The rows of the one table below a head; each line has to be one."""
    below = TEXT.split(f"\n## {head}\n")[1].split("\n## ")[0]
    lines = [line for line in below.splitlines() if line.startswith("|")][2:]
    matches = [ROW.match(line) for line in lines]
    assert None not in matches, lines[matches.index(None)]
    return [Row(**match.groupdict()) for match in matches if match is not None]


DIALECTS = rows_below("Differences between the dialects")
REMAINING = rows_below("Differences to EventBridge")


def outcome(row: Row, dialect: str) -> str:
    engine = mm.Engine()
    report = engine.subscribe_many([("p", row.pattern)], dialect=dialect)
    matches = engine.match_many(read_json_lines(row.event.encode()))
    if report.rejected or matches.rejected:
        return "error"
    return "match" if matches[0] else "no match"


@pytest.mark.parametrize("row", DIALECTS, ids=lambda row: f"{row.pattern} {row.event}")
def test_a_difference_between_the_dialects(row: Row) -> None:
    assert row.first != row.second
    assert (outcome(row, "matchmill"), outcome(row, "eventbridge")) == (row.first, row.second)
    if row.second != "error":
        assert ruler_matches(row.pattern, json.loads(row.event)) == (row.second == "match")


@pytest.mark.parametrize("row", REMAINING, ids=lambda row: f"{row.pattern} {row.event}")
def test_a_difference_to_eventbridge(row: Row) -> None:
    assert row.first != row.second
    assert outcome(row, "eventbridge") == row.second


def test_the_tables_are_there() -> None:
    assert (len(DIALECTS) > 20, len(REMAINING) > 4) == (True, True)
