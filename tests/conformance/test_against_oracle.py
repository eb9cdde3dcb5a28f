"""Every index through the whole encoding against the oracle: generated pairs, and named cases."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.encoding.event_batch import EventBatch
from matchmill.index.mixed import build_index
from matchmill.index.registry import INDEXES
from matchmill.language.evaluate import evaluate
from matchmill.language.expression import And, Expression, Not, Or
from matchmill.language.parser import parse
from tests.support.conformance_kit import (
    INDEX_NAMES,
    Encoded,
    check_against_oracle,
    encode,
    matched,
)
from tests.support.generators import cases
from tests.support.named_values import from_json
from tests.support.strategies import events, expressions, predicates

NAMED = json.loads(
    (Path(__file__).parent.parent / "cases" / "semantics.json").read_text(encoding="utf-8")
)

by_index = pytest.mark.parametrize("name", INDEX_NAMES)


def generated_cases(seed: int, scale: int) -> list[Encoded]:
    """Some 3,400 times scale² pairs of an expression and an event, in tables of different make."""
    return [
        encode(*cases(seed + 1, 60 * scale, 25 * scale)),
        encode(*cases(seed + 2, 12 * scale, 75 * scale)),
        encode(*cases(seed + 3, 25 * scale, 25 * scale), max_clauses=3),
        encode(*cases(seed + 4, 25 * scale, 25 * scale, objects=True)),
    ]


@pytest.fixture(scope="module")
def generated() -> list[Encoded]:
    return generated_cases(100, 2)


@pytest.fixture(scope="module")
def many_generated() -> list[Encoded]:
    return generated_cases(200, 4)


def check_pairs(name: str, generated: list[Encoded], least: int) -> None:
    n_pairs = 0
    for case in generated:
        check_against_oracle(build_index(INDEXES[name], case.table), case)
        n_pairs += case.truth.size
    assert n_pairs >= least
    assert 0.1 < generated[0].truth.mean() < 0.6  # both answers are common
    assert not generated[2].is_exact.all()  # and some expressions pass the clause limit


@by_index
def test_thousands_of_generated_pairs(name: str, generated: list[Encoded]) -> None:
    check_pairs(name, generated, 13_000)


@by_index
@pytest.mark.long
def test_fifty_thousand_generated_pairs(name: str, many_generated: list[Encoded]) -> None:
    check_pairs(name, many_generated, 50_000)


@by_index
def test_thousands_of_events(name: str, generated: list[Encoded]) -> None:
    """One batch of 3,000 events gives what 60 batches of 50 give."""
    case = generated[0]
    offsets, dimensions, keys = case.batch
    n_pairs, times = len(keys), 60
    many = EventBatch(
        np.concatenate([[0], *(offsets[1:] + k * n_pairs for k in range(times))]),
        np.tile(dimensions, times),
        np.tile(keys, times),
    )
    index = build_index(INDEXES[name], case.table)
    assert many.n_events == 3000
    assert matched(index.match_batch(many)) == matched(index.match_batch(case.batch)) * times


@by_index
@given(
    st.lists(expressions(max_leaves=5), min_size=1, max_size=4),
    st.lists(events(), min_size=1, max_size=3),
)
def test_shrinking_cases(name: str, some: list[Expression], happened: list[dict[str, Any]]) -> None:
    case = encode(some, happened)
    check_against_oracle(build_index(INDEXES[name], case.table), case)


@by_index
@given(
    st.lists(
        predicates().filter(lambda p: getattr(p, "any_element", None) is not None),
        min_size=1,
        max_size=4,
    ),
    st.lists(events(objects=True), min_size=1, max_size=4),
)
def test_a_value_or_an_element(name: str, some: list[Any], happened: list[dict[str, Any]]) -> None:
    """The form of every field of a JSON pattern, alone and together."""
    fields = [Or((replace(p, any_element=False), replace(p, any_element=True))) for p in some]
    whole = And(tuple(fields)) if len(fields) > 1 else fields[0]
    case = encode([*fields, whole, Not(whole), Or((whole, fields[0]))], happened)
    check_against_oracle(build_index(INDEXES[name], case.table), case)


@pytest.mark.parametrize("case", NAMED, ids=lambda case: case["name"])
def test_oracle_on_named_cases(case: dict[str, Any]) -> None:
    expression = parse(case["expression"])
    expected = {"true": True, "false": False, "unknown": None}[case["truth"]]
    assert evaluate(expression, from_json(case["event"])) is expected


@by_index
@pytest.mark.kernels
def test_named_cases(name: str) -> None:
    """All expressions on all events; each also as the form of a field of a JSON pattern."""
    some = [parse(c["expression"]) for c in NAMED]
    twins = [Or((p, replace(p, any_element=True))) for p in some if hasattr(p, "any_element")]
    case = encode(some + twins, [from_json(c["event"]) for c in NAMED])
    check_against_oracle(build_index(INDEXES[name], case.table), case)
