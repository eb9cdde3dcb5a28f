"""docs/LANGUAGE.md: every example is run, every keyword has one, every limit is right."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from matchmill.errors import ExpressionError
from matchmill.language.evaluate import evaluate
from matchmill.language.expression import KEYWORDS
from matchmill.language.parser import parse
from matchmill.language.values import read_date, read_timestamp
from matchmill.settings import Settings, list_settings

PAGE = (Path(__file__).parents[2] / "docs" / "LANGUAGE.md").read_text(encoding="utf-8")
TRUTHS = {"true": True, "false": False, "unknown": None}
FIELDS = re.compile(r"\s+\|\s+")


def blocks(info: str) -> list[str]:
    return re.findall(rf"^```{info}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def lines(info: str, n_fields: int) -> list[tuple[str, ...]]:
    """The fields of each line, split at the last ` | `s: an expression may hold one itself."""
    rows = []
    for line in "".join(blocks(info)).splitlines():
        fields = FIELDS.split(line.strip())
        first = len(fields) - n_fields + 1
        rows.append((" | ".join(fields[:first]), *fields[first:]))
    return rows


def with_dates(value: dict[str, Any]) -> Any:
    """Dates and timestamps, which JSON lacks."""
    if value.keys() == {"$date"}:
        return read_date(value["$date"])
    if value.keys() == {"$timestamp"}:
        return read_timestamp(value["$timestamp"])
    return value


EXAMPLES = lines("example", 3)
REJECTED = lines("rejected", 2)


@pytest.mark.parametrize(("text", "event", "truth"), EXAMPLES)
def test_example(text: str, event: str, truth: str) -> None:
    expression = parse(text)
    values = json.loads(event, object_hook=with_dates)
    assert evaluate(expression, values) is TRUTHS[truth]
    assert evaluate(parse(str(expression)), values) is TRUTHS[truth]


@pytest.mark.parametrize(("text", "words"), REJECTED)
def test_rejected(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert words in caught.value.summary


@pytest.mark.parametrize("block", blocks("error"))
def test_error(block: str) -> None:
    text, shown = block.split("\n---\n")
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert str(caught.value) == shown.rstrip("\n")


@pytest.mark.parametrize("block", blocks("python"))
def test_python(block: str) -> None:
    exec(compile(block, "LANGUAGE.md", "exec"), {})


def test_all_blocks_are_run() -> None:
    assert len(EXAMPLES) > 100
    assert set(re.findall(r"^```(\w+)", PAGE, re.MULTILINE)) == {
        "example",
        "rejected",
        "error",
        "python",
    }


def test_every_keyword_and_operator_has_an_example() -> None:
    texts = " ".join(re.sub(r"'[^']*'|\"[^\"]*\"", "", text) for text, _, _ in EXAMPLES)
    words = set(re.findall(r"\w+|[=<>!]+", texts.lower()))
    assert set(KEYWORDS) - words == set()
    assert {"=", "==", "!=", "<>", "<", "<=", ">", ">="} - words == set()
    for negatable in ("in", "between", "like", "ilike", "rlike", "in cidr"):
        assert f" not {negatable} " in texts


def test_every_operator_is_shown_on_missing_values() -> None:
    for operator in ("=", "in", "between", "like", "ilike", "rlike", "in cidr", "contains"):
        assert any(
            f" {operator} " in text and event == "{}" and truth == "unknown"
            for text, event, truth in EXAMPLES
        )


def test_names_in_the_table_of_contents_are_headings() -> None:
    headings = re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
    assert set(re.findall(r"\]\(#([\w-]+)\)", PAGE)) <= anchors


LIMITS = [
    setting
    for setting in list_settings(Settings)
    if setting.name.startswith("max_") and not setting.name.startswith("max_event")
]


@pytest.mark.parametrize("setting", LIMITS, ids=[setting.name for setting in LIMITS])
def test_limits_and_their_defaults(setting: Any) -> None:
    assert f"| `{setting.name}` | {setting.default} |" in PAGE
