"""The same event means the same in every form: what matches is what the oracle says of the dict."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import matchmill as mm
from matchmill.language.evaluate import evaluate_flat
from matchmill.language.expression import Expression
from matchmill.language.flatten import flatten_event
from tests.support.event_forms import (
    FORMS,
    MIXED_FORMS,
    random_condition,
    random_event,
    with_mixed_types,
)


def check_forms(seed: int, n_events: int, n_expressions: int, *, mixed: bool) -> int:
    """Compare all forms with the oracle; return how many pairs are true."""
    rng = Random(seed)
    events = [random_event(rng) for _ in range(n_events)]
    if mixed:
        events = [with_mixed_types(rng, event) for event in events]
    expressions = {f"s{k}": mm.parse(random_condition(rng)) for k in range(n_expressions)}
    engine = mm.Engine(expressions)
    expected = [satisfied(expressions, event) for event in events]
    for form in MIXED_FORMS if mixed else FORMS:
        matches = engine.match_many(FORMS[form](events))
        assert not matches.rejected, form
        for event, found, wanted in zip(events, matches, expected, strict=True):
            assert found == wanted, describe(form, event, expressions, found ^ wanted)
    for event, wanted in zip(events[:200], expected, strict=False):
        found = engine.match(event)
        assert found == wanted, describe("one dict", event, expressions, found ^ wanted)
    return sum(map(len, expected))


def satisfied(expressions: dict[str, Expression], event: dict[str, Any]) -> set[str]:
    flat = flatten_event(event)
    return {id for id, one in expressions.items() if evaluate_flat(one, flat) is True}


def describe(form: str, event: dict[str, Any], expressions: Any, ids: Any) -> str:
    return f"{form}: {event}\n" + "\n".join(str(expressions[id]) for id in sorted(ids))


@pytest.mark.parametrize("mixed", [False, True], ids=["one type", "mixed types"])
def test_every_form_agrees_with_the_oracle(mixed: bool) -> None:
    assert check_forms(7 + mixed, 1000, 60, mixed=mixed) > 3000


@pytest.mark.long
def test_every_form_agrees_for_many_events() -> None:
    """200,000 events, each in all forms that can hold it."""
    n_true = sum(check_forms(100 + k, 5000, 60, mixed=k % 2 == 1) for k in range(40))
    assert n_true > 1_000_000
