"""Many patterns at once against one pattern at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchmill as mm
from matchmill.encoding.event_encoder import reverse_texts
from matchmill.encoding.text_patterns import (
    LikeIndex,
    PatternTiers,
    RegexIndex,
    SubstringIndex,
    lower_texts,
)
from matchmill.encoding.texts import Texts, strings_to_texts, texts_of
from matchmill.kernels.jit import JIT_DISABLED
from matchmill.language.patterns import compile_regex, like_matches, like_tokens
from matchmill.language.values import fold_case

pytestmark = pytest.mark.kernels

SMALL = st.text(st.sampled_from("ab😀é"), max_size=9)


def decoded(texts: Texts) -> list[str]:
    pairs = zip(texts.offsets[:-1], texts.offsets[1:], strict=True)
    return [texts.data[a:b].tobytes().decode() for a, b in pairs]


@given(st.lists(SMALL.filter(bool), min_size=1, max_size=12, unique=True), st.lists(SMALL))
def test_substrings(patterns: list[str], texts: list[str]) -> None:
    found = SubstringIndex(patterns).find(strings_to_texts(texts))
    expected = {(t, p) for t, x in enumerate(texts) for p, y in enumerate(patterns) if y in x}
    assert len(found) == len(expected)
    assert set(map(tuple, found.tolist())) == expected


def test_more_hits_than_guessed() -> None:
    patterns = ["a" * n for n in range(1, 200)]
    assert len(SubstringIndex(patterns).find(strings_to_texts(["a" * 300]))) == 199


LIKES = st.text(st.sampled_from("ab😀_%%"), max_size=9)


@given(st.lists(LIKES, min_size=1, max_size=12, unique=True), st.lists(SMALL))
def test_like_patterns(patterns: list[str], texts: list[str]) -> None:
    index = LikeIndex(patterns)
    found = index.find(strings_to_texts(texts))
    expected = {
        (t, p)
        for t, text in enumerate(texts)
        for p, pattern in enumerate(patterns)
        if like_matches(like_tokens(pattern), text)
    }
    assert len(found) == len(expected)
    assert set(map(tuple, found.tolist())) == expected
    for t, text in enumerate(texts[:2]):
        assert set(index.patterns_of(text)) == {p for i, p in expected if i == t}


def test_like_patterns_with_what_is_a_wildcard_or_nothing() -> None:
    patterns = ["", "%", "_", r"a\%b_", r"\_%", "a\0_", "%\0%"]
    texts = ["", "x", "a%bc", "_", "a\0b", "a%b"]
    found = LikeIndex(patterns).find(strings_to_texts(texts)).tolist()
    expected = [
        [t, p]
        for t, text in enumerate(texts)
        for p, pattern in enumerate(patterns)
        if like_matches(like_tokens(pattern), text)
    ]
    assert sorted(found) == expected
    assert len(expected) == 13


REGEXES = ["a+b", "^b", "b$", "[é😀]", ".", "", "(?i)AB", "a{2}", r"\bab\b", "(?s)a.b"]


@given(st.lists(st.text(st.sampled_from("ab😀é\n"), max_size=8), max_size=8))
def test_regular_expressions(texts: list[str]) -> None:
    found = RegexIndex(REGEXES).find(pa.array(texts, pa.large_string()))
    expected = {
        (t, p)
        for t, text in enumerate(texts)
        for p, regex in enumerate(REGEXES)
        if compile_regex(regex).search(text)
    }
    assert set(map(tuple, found.tolist())) == expected


def test_a_set_out_of_memory_loses_no_match() -> None:
    """With far too little memory RE2's set gives up; the answer stays the same."""
    regexes = [f"(x|y{n}|[a-f]{{{n % 20 + 1}}}z)+q{n}" for n in range(300)]
    texts = pa.array([f"zz xxy{n}q{n} tail" for n in range(0, 300, 7)], pa.large_string())
    roomy = RegexIndex(regexes).find(texts)
    tight = RegexIndex(regexes, max_mem=1 << 12).find(texts)
    assert len(roomy) == len(texts)
    assert roomy.tolist() == tight.tolist()


@pytest.mark.parametrize("kind", [SubstringIndex, LikeIndex, RegexIndex])
def test_patterns_that_come_one_by_one(kind: Any) -> None:
    """They are found, and each is compiled a few times only."""
    n_compiled = 0

    def compiled(patterns: list[str]) -> Any:
        nonlocal n_compiled
        n_compiled += len(patterns)
        return kind(patterns)

    patterns = [f"{a}{b}{c}" for a in "ab" for b in "abé" for c in "abcdefghij"]
    text = "aaabbéabjj"
    texts: Any = pa.array([text, "", "aéc"], pa.large_string())
    if kind is not RegexIndex:
        texts = texts_of(texts)
    tiers = PatternTiers(compiled, patterns[:20])
    for n in range(21, len(patterns) + 1):
        tiers = PatternTiers(compiled, patterns[:n], tiers)
        assert len(tiers._tiers) <= 6
    assert n_compiled < 6 * len(patterns)
    whole = kind(patterns)
    assert sorted(tiers.find(texts).tolist()) == sorted(whole.find(texts).tolist())
    assert sorted(tiers.patterns_of(text)) == sorted(whole.patterns_of(text))
    assert tiers.instructions == whole.instructions
    assert len(tiers._tiers) > 1


@given(st.lists(st.text(max_size=10)))
def test_case_and_reversal(texts: list[str]) -> None:
    flat = strings_to_texts(texts)
    assert decoded(lower_texts(flat)) == [fold_case(t) for t in texts]
    assert decoded(reverse_texts(flat)) == [t[::-1] for t in texts]


def test_every_character_is_folded_as_the_oracle_does() -> None:
    characters = [chr(c) for c in range(0x24000) if not 0xD800 <= c < 0xE000]
    step = 97 if JIT_DISABLED else 1
    some = characters[::step]
    assert decoded(lower_texts(strings_to_texts(some))) == [fold_case(c) for c in some]


def test_sliced_arrow_arrays() -> None:
    whole = pa.array(["ab", "", "cde", "f"], pa.large_string())
    assert decoded(texts_of(whole.slice(1, 2))) == ["", "cde"]
    assert decoded(texts_of(whole.slice(4))) == []
    assert decoded(texts_of(pa.array(["", ""], pa.large_string()))) == ["", ""]
    assert texts_of(whole).offsets.dtype == np.int64


def test_texts_that_repeat_are_looked_at_once() -> None:
    expressions = {
        "a": "t like '%ab%' and t ilike '%B'",
        "b": "t rlike 'a+b' or t like 'a%b_'",
        "c": "t is not null",
    }
    engine = mm.Engine(expressions)
    texts = ["xab", "xaB", "abé", None, "", "aab"]
    for n in (1, 20):
        events = pa.table({"t": pa.array(texts * n, pa.string())})
        expected = [
            {id for id, text in expressions.items() if mm.evaluate(text, {"t": value})}
            for value in texts * n
        ]
        assert list(engine.match_many(events)) == expected
