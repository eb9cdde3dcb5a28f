"""Patterns that are tried one by one: they mean the same as RE2's, and their work has a limit."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchmill as mm
from matchmill.language.patterns import (
    compile_regex,
    like_matches,
    like_to_regex,
    like_tokens,
    longest_search,
)

LONG = "(?:a?c?){1000}" * 4


@given(st.text("aab\\%_é", max_size=9), st.text("abé", max_size=12))
def test_like_is_what_its_regular_expression_says(pattern: str, text: str) -> None:
    if (len(pattern) - len(pattern.rstrip("\\"))) % 2:
        pattern += "\\"
    expected = bool(compile_regex(like_to_regex(pattern)).search(text))
    assert like_matches(like_tokens(pattern), text) == expected


def test_a_long_piece_is_searched_for_in_linear_time() -> None:
    """Comparing it at each place would take minutes."""
    started = time.process_time()
    assert mm.evaluate(f"t like '%{'a' * 9_000}b%'", {"t": "a" * 200_000}) is False
    assert time.process_time() - started < 20


def test_what_may_have_to_be_compared_at_each_place() -> None:
    patterns = ["a_b", "%abc%", "a_%b%_c", "%a_%", "%a_bc%d_%_%", r"%a\_b%"]
    assert [longest_search(pattern) for pattern in patterns] == [0, 0, 0, 2, 4, 0]


@pytest.mark.parametrize(
    ("expression", "n_steps"),
    [
        ("t rlike 'a'", None),
        (f"t rlike '{LONG}'", None),
        (f"not (x = 1 or t rlike '{LONG}')", None),
        ("t like '%a_%'", 11),
        ("t like '%a_%' and t like 'b%' and u like '%aaaa_%'", 12),
        ("any(t) like '%a_%'", 11),
    ],
)
def test_the_work_of_an_explanation_has_a_limit(expression: str, n_steps: int | None) -> None:
    engine = mm.Engine({"u": expression}, settings=mm.Settings(max_pattern_work=30_000_000))
    n_steps = n_steps or compile_regex(LONG if LONG in expression else "a").programsize
    n = 30_000_000 // n_steps
    few: object = "é" * (n // 2)
    many: object = "é" * (n // 2 + 1)
    if "any" in expression:
        few, many = [few], [many, 1, "x"]
    if n < 10_000:  # others would take long
        assert engine.explain("u", {"t": few}) is not None
    with pytest.raises(mm.EventError, match=r"attribute t: .* max_pattern_work"):
        engine.explain("u", {"t": many})
    assert engine.explain("u", {"t": 1}).truth is not True


def test_the_work_of_all_attributes_is_added_up() -> None:
    expression = " or ".join(f"t{n} rlike 'a'" for n in range(100))
    n_steps = compile_regex("a").programsize
    engine = mm.Engine({"u": expression}, settings=mm.Settings(max_pattern_work=1_000 * n_steps))
    fits = {f"t{n}": "b" * 10 for n in range(100)}
    assert engine.explain("u", fits).truth is False
    with pytest.raises(mm.EventError, match=r"100 attributes .* max_pattern_work"):
        engine.explain("u", fits | {"t7": "b" * 11})


def test_what_no_pattern_reads_may_be_long() -> None:
    engine = mm.Engine({"u": "t rlike 'a'"}, settings=mm.Settings(max_pattern_work=100))
    assert engine.explain("u", {"t": "a", "v": "a" * 1_000}).truth is True
