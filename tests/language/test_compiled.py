"""Compiled expressions against the oracle: the same truth for every event."""

from __future__ import annotations

from random import Random

from matchmill.language.compiled import compiled
from matchmill.language.evaluate import evaluate_flat
from matchmill.language.flatten import flatten_record
from matchmill.language.parser import parse
from tests.conformance.test_attribute_comparisons import (
    comparisons,
    random_event,
    random_row,
    random_rule,
)
from tests.support.generators import cases


def test_comparisons_of_attributes() -> None:
    rng = Random(1)
    rules = [parse(text) for text in comparisons(rng, 150)]
    rules += [parse(random_rule(rng)) for _ in range(150)]
    events = [flatten_record(random_row(rng)) for _ in range(40)]
    events += [flatten_record(random_event(rng)) for _ in range(60)]
    for rule in rules:
        judge = compiled(rule)
        for event in events:
            assert judge(event) is evaluate_flat(rule, event), f"{rule} on {event}"


def test_all_other_conditions() -> None:
    expressions, events = cases(77, 150, 30, objects=True)
    flat = [flatten_record(event) for event in events]
    for expression in expressions:
        judge = compiled(expression)
        for event in flat:
            assert judge(event) is evaluate_flat(expression, event), f"{expression} on {event}"


def test_numbers_at_the_edges() -> None:
    numbers = [0, -1, 2**63 - 1, -(2**63), 2**53 + 1, 0.5, -0.0, 1e308, 5e-324, float(2**53)]
    texts = ["a + b > c", "a * b * c != 1", "a - b = c", "a / b < c", "a % b >= c", "a * a * a > b"]
    for text in texts:
        rule = parse(text)
        judge = compiled(rule)
        for a in numbers:
            for b in numbers:
                for c in numbers:
                    event = {"a": a, "b": b, "c": c}
                    assert judge(event) is evaluate_flat(rule, event), f"{text} on {event}"
