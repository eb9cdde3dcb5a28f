"""Text and patterns that are too much work: the event is rejected, never matched by half."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import matchmill as mm
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


MANY = 130
SHARED = {
    "attributes": {f"u{n}": f"t{n} rlike '(a|b)*c'" for n in range(MANY)},
    "lists": {f"u{n}": f"any(t{n}) rlike '(a|b)*c'" for n in range(MANY)},
    "subexpressions": {
        f"u{n}": " and ".join(
            f"(t{n} rlike 'x{k}(a|b)*' or a{k} = 1 or b{k} = 2 or c{k} = 3)" for k in range(6)
        )
        for n in range(MANY)
    },
}


@pytest.mark.parametrize("kind", SHARED)
def test_the_work_of_all_attributes_of_an_event_is_added_up(kind: str) -> None:
    """A hundred texts, each of them below the limit, are together far above it."""
    engine = mm.Engine(
        {**SHARED[kind], "n": "n = 1"},
        settings=Settings(max_pattern_work=20 * LIMIT, background=False),
    )
    text: Any = ["ab" * 9, "ab"] if kind == "lists" else "ab" * 10
    large = {f"t{n}": text * 5 for n in range(MANY)} | {"n": 1}
    small = {"t0": text * 5, "n": 1}
    for few in (small, small | {f"t{n}": "a" for n in range(MANY)}):
        assert engine.match(few) == {"n"}
    with pytest.raises(mm.EventError, match=r"130 attributes.*max_pattern_work"):
        engine.match(large)
    rows = [{name: event.get(name) for name in large} for event in (small, large, small)]
    for events in ([small, large, small], rows, pa.Table.from_pylist(rows)):
        matches = engine.match_many(events)
        assert [one.row for one in matches.rejected] == [1]
        assert "130 attributes" in matches.rejected[0].reason
        assert [set(found) for found in matches] == [{"n"}, set(), {"n"}]


def test_the_sum_over_attributes_is_exact() -> None:
    """Single events and batches agree, however the work is divided among attributes."""
    expressions = {f"u{n}": f"t{n} rlike '(a|b)*c'" for n in range(3)}
    engine = mm.Engine(expressions, settings=Settings(max_pattern_work=LIMIT, background=False))
    with pytest.raises(mm.EventError) as caught:
        engine.match({"t0": "a" * LIMIT})
    instructions = int(str(caught.value).split("patterns of ")[1].split(" ")[0])
    longest = LIMIT // instructions
    for first, second in ((longest, 0), (longest - 1, 1), (longest // 2, longest - longest // 2)):
        fits = {"t0": "a" * first, "t1": "a" * second, "t2": 1}
        too_long = fits | {"t2": "c"}
        assert engine.match(fits) == set()
        assert [one.row for one in engine.match_many([fits, too_long] * 3).rejected] == [1, 3, 5]
        with pytest.raises(mm.EventError):
            engine.match(too_long)


def test_an_attribute_that_gets_patterns_later_counts(tmp_path: Path) -> None:
    engine = mm.Engine({"u0": REGEX}, settings=Settings(max_pattern_work=LIMIT, background=False))
    with pytest.raises(mm.EventError) as caught:
        engine.match({"t": "a" * LIMIT})
    longest = LIMIT // int(str(caught.value).split("patterns of ")[1].split(" ")[0])
    event = {"t": "a" * longest, "s": "a" * longest, "r": "a" * longest}
    assert engine.match(event) == set()
    for name in ("s", "r"):
        engine.subscribe(name, f"{name} rlike '(a|b)*c'")
        with pytest.raises(mm.EventError):
            engine.match(event)
    engine.save(tmp_path / "saved.mill")
    for again in (mm.Engine.open(tmp_path / "saved.mill"), engine):
        again.unsubscribe("s")
        again.unsubscribe("r")
        again.compact()
        assert again.match(event) == set() if again is engine else True
