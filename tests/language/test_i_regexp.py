"""Regular expressions of quamina: compared with Python's, which are written side by side."""

from __future__ import annotations

import random
import re

import pytest
import re2

import matchmill as mm
from matchmill.errors import ExpressionError, LimitError
from matchmill.language.i_regexp import regexp_to_re2

CHARACTERS = ["a", "b", "^", "$", "\\", "-", "é", "\n", "~", "."]


def written(r: random.Random, depth: int) -> tuple[str, str]:
    """One random expression, as quamina and as Python write it."""
    kind = r.choice(("one", "one", "class", "dot", "escape", *("group", "repeat") * (depth > 0)))
    if kind == "dot":
        return ".", "(?s:.)"
    if kind == "one":
        c = r.choice(CHARACTERS)
        return ("~" + c if c in "~." else "~-" if c == "-" else c), re.escape(c)
    if kind == "escape":
        c = r.choice("()*+-.?[]^{|}~nrt")
        return f"~{c}", {"n": "\n", "r": "\r", "t": "\t"}.get(c, re.escape(c))
    if kind == "class":
        negated = r.choice(("", "^"))
        return r.choice(
            (
                (f"[{negated}a-c~n-]", f"[{negated}a-c\n\\-]"),
                (f"[{negated}-~^~]\\$]", f"[{negated}\\-\\^\\]\\\\$]"),
                (f"[{negated}~~.*?]", f"[{negated}~.*?]"),
            )
        )
    if kind == "group":
        ours, theirs = zip(*(several(r, depth - 1) for _ in range(r.randint(1, 3))), strict=True)
        return f"({'|'.join(ours)})", f"(?:{'|'.join(theirs)})"
    ours, theirs = written(r, 0)
    quantifier = r.choice(("?", "*", "+", "{2}", "{1,}", "{0,2}"))
    return ours + quantifier, f"(?:{theirs}){quantifier}"


def several(r: random.Random, depth: int) -> tuple[str, str]:
    parts = [written(r, depth) for _ in range(r.randint(0, 3))]
    return "".join(a for a, _ in parts), "".join(b for _, b in parts)


def test_generated_expressions_mean_what_pythons_mean() -> None:
    r = random.Random(5)
    n_true = 0
    for _ in range(400):
        ours, theirs = several(r, 2)
        translated = re2.compile(regexp_to_re2(ours))
        for _ in range(12):
            text = "".join(r.choice(CHARACTERS) for _ in range(r.randint(0, 3)))
            expected = re.fullmatch(theirs, text) is not None
            assert (translated.search(text) is not None) == expected, (ours, theirs, text)
            n_true += expected
    assert n_true > 300


def test_categories() -> None:
    regex = re2.compile(regexp_to_re2("[~p{Lu}~P{L}]~p{Nd}+"))
    assert regex.search("É5")
    assert regex.search("-5")
    assert not regex.search("é5")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a**", "character 3: there is nothing to repeat"),
        ("a+?", "there is nothing to repeat"),
        ("*a", "character 1: there is nothing to repeat"),
        ("(?i)a", "character 2: there is nothing to repeat"),
        ("(a", "a parenthesis is not closed"),
        ("a)", "character 2: nothing was opened"),
        ("a]", "write ~] for the character itself"),
        ("a{2", "repetitions are written"),
        ("a{2,1}", "the first number of repetitions is above"),
        ("a{1001}", "RE2 repeats at most 1,000 times"),
        ("~d", "~ stands before one of"),
        ("a~", "~ stands before one of"),
        ("~p{Greek}", "~ stands before one of"),
        ("~p{Xx}", "there is no category Xx"),
        ("~P{Cn}", "RE2 has no category of characters that are not assigned"),
        ("[", "character 1: a class of characters is not closed"),
        ("[]", "a class of characters is empty"),
        ("[z-a]", "the range z-a is empty"),
        ("[a-c-e]", "- stands first, last, or between"),
        ("[[a]", "write ~[ for the character itself"),
    ],
)
def test_what_is_rejected(text: str, problem: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        mm.parse({"a": [{"regexp": text}]})
    message = str(caught.value)
    assert message.startswith("a[0].regexp: character ")
    assert problem in message


def test_in_a_pattern() -> None:
    expression = mm.parse({"file": [{"regexp": "[a-z]+~.(png|jpg)"}]})
    assert str(expression) == (
        r"file rlike '(?s)\A(?:[a-z]+\.(?:png|jpg))\z'"
        r" or any(file) rlike '(?s)\A(?:[a-z]+\.(?:png|jpg))\z'"
    )
    assert mm.evaluate(expression, {"file": "map.png"})
    assert mm.evaluate(expression, {"file": ["x", "map.jpg"]})
    assert not mm.evaluate(expression, {"file": "map.png2"})
    with pytest.raises(LimitError, match=r"a\[0\]\.regexp: the regular expression compiles to"):
        mm.parse({"a": [{"regexp": "~p{L}{50}"}]})
