"""Chances and costs are learned, lean on wider figures, and follow what changes."""

from __future__ import annotations

import random

import pytest

from matchmill.operators.learning import Learned

P, Q, OTHER = ("p", (("str", "a"),)), ("p", (("str", "b"),)), ("q", ())


def test_what_is_assumed_at_first() -> None:
    learned = Learned()
    assert learned.selectivity(P) == 0.5
    assert learned.cost(P, 7.0) == 7.0


def test_a_predicate_that_is_new_is_taken_to_be_like_others_of_its_operator() -> None:
    learned = Learned()
    for _ in range(100):
        learned.add(P, False, 3.0)
    assert learned.selectivity(P) < 0.01
    assert learned.selectivity(Q) < 0.02
    assert learned.cost(Q, 50.0) == pytest.approx(3.0, rel=1)
    assert learned.selectivity(OTHER) == 0.5
    assert learned.cost(OTHER, 50.0) == 50.0


def test_estimates_follow_events_that_drift() -> None:
    learned = Learned()
    for _ in range(5000):
        learned.add(P, True, 1.0)
    assert learned.selectivity(P) > 0.99
    for _ in range(2000):
        learned.add(P, False, 9.0)
    assert learned.selectivity(P) < 0.1
    assert learned.cost(P, 1.0) > 8


def test_classes_are_told_apart_and_lean_on_the_whole() -> None:
    learned = Learned()
    randoms = random.Random(1)
    for _ in range(400):
        kind = randoms.choice(["day", "night"])
        learned.add(P, kind == "day", 1.0, kind)
    assert learned.selectivity(P, "day") > 0.95
    assert learned.selectivity(P, "night") < 0.05
    assert learned.selectivity(P, "dawn") == learned.selectivity(P) == pytest.approx(0.5, abs=0.1)


def test_there_is_no_end_of_classes_but_of_memory() -> None:
    learned = Learned()
    for n in range(1000):
        learned.add(P, True, 1.0, n)
    assert len(learned._classes) == 64
    learned.forget(P)
    assert learned.selectivity(P, 1) == learned.selectivity(P)
    assert not any(learned._classes.values())


def test_a_cost_is_never_nothing() -> None:
    learned = Learned()
    for _ in range(1000):
        learned.add(P, True, 0.0)
    assert learned.cost(P, 1e-9) > 0
