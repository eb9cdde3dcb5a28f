"""Text and patterns that are too much work: the event is rejected, never matched by half."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import matchmill as mm
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.read import read_events
from matchmill.language.normal_form import Dimension
from matchmill.settings import Settings

# `(a|b)*c` has a handful of instructions; the limit leaves room for about 100 bytes of text.
LIMIT = 2_000
REGEX = "t rlike '(a|b)*c'"

EXPRESSIONS = {
    "regex": REGEX,
    "like": "t like '%a_%b_%c%'",
    "elements": "any(t) rlike '(a|b)*c'",
    "subexpression": " and ".join(
        f"(t rlike 'x{n}(a|b)*' or a{n} = 1 or b{n} = 2 or c{n} = 3)" for n in range(6)
    ),
}


def engine_of(kind: str, limit: int = LIMIT) -> mm.Engine:
    return mm.Engine(
        {"u1": EXPRESSIONS[kind], "u2": "n = 1"},
        settings=Settings(max_pattern_work=limit, background=False),
    )


def long_text(kind: str, n: int) -> Any:
    return ["ab" * (n // 20)] * 10 if kind == "elements" else "ab" * (n // 2)


@pytest.mark.parametrize("kind", EXPRESSIONS)
def test_too_much_work_is_rejected_with_a_reason(kind: str) -> None:
    engine = engine_of(kind)
    few, many = {"t": long_text(kind, 20), "n": 1}, {"t": long_text(kind, 4000), "n": 1}
    assert engine.match(few) == {"u2"}
    with pytest.raises(mm.EventError, match=r"'t'.*4,000 bytes of text.*max_pattern_work"):
        engine.match(many)
    for events in ([few, many, few], pa.Table.from_pylist([few, many, few])):
        matches = engine.match_many(events)
        assert [one.row for one in matches.rejected] == [1]
        assert [set(found) for found in matches] == [{"u2"}, set(), {"u2"}]


def test_the_limit_is_exact() -> None:
    """Single events and batches agree, whatever characters the text has."""
    engine = engine_of("regex")
    with pytest.raises(mm.EventError) as caught:
        engine.match({"t": "a" * LIMIT})
    instructions = int(str(caught.value).split("patterns of ")[1].split(" ")[0])
    longest = LIMIT // instructions
    for character, size in (("a", 1), ("é", 2), ("😀", 4)):
        fits = {"t": character * (longest // size), "n": 1}
        too_long = {"t": character * (longest // size + 1), "n": 1}
        assert engine.match(fits) == {"u2"}
        assert [one.row for one in engine.match_many([fits, too_long] * 3).rejected] == [1, 3, 5]
        with pytest.raises(mm.EventError):
            engine.match(too_long)


def test_what_no_pattern_reads_may_be_long() -> None:
    engine = engine_of("regex")
    engine.subscribe("u3", "s like '%ab%' and s like 'ab%' and s ilike '%AB'")
    event = {"s": "ab" * 5000, "other": "ab" * 5000, "n": 1}
    assert engine.match(event) == {"u2", "u3"}
    assert engine.match_many([event] * 5)[4] == {"u2", "u3"}


def test_a_pattern_that_compiles_to_a_large_program_is_rejected() -> None:
    engine = mm.Engine()
    for expression in ("x rlike '(?:a?c?){1000}{10}'", mm.attr("x").rlike("(?:a?c?){1000}" * 10)):
        with pytest.raises(mm.ExpressionError):
            engine.subscribe("u1", expression)
    with pytest.raises(mm.LimitError, match="instructions") as caught:
        engine.subscribe("u1", "x rlike '" + "(?:a?c?){1000}" * 10 + "'")
    assert caught.value.position == 8
    engine.subscribe("u1", r"x rlike '\pL{2,12} \pL{2,3}'")  # 1,200 instructions for each letter


def test_engines_saved_with_regexes_for_like_still_match() -> None:
    """Earlier versions kept `like` with several pieces as a regular expression."""
    dimensions = Dimensions()
    for derivation in ("regex", "lower_regex", "like", "lower_like"):
        pattern = "a_b%c" if derivation.endswith("like") else r"(?s)\Aa.b.*c\z"
        dimensions.id_of(Dimension("t", derivation, pattern))
    columns = read_events([{"t": "a b c"}, {"t": "A B C"}, {"t": "abc"}]).columns()
    batch = encode_events(dimensions, columns)
    assert batch.dimensions.tolist() == [0, 1, 2, 3, 1, 3]
