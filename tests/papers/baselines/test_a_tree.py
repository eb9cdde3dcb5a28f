"""A-Tree finds what the oracle finds, and shares what its paper says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.encoding.events.dicts import DictEvents
from matchmill.errors import InputError
from matchmill.lab.workloads.nested import NESTED, nested
from matchmill.language.read import read_expression
from matchmill.papers.baselines.a_tree import ATree

pytestmark = pytest.mark.kernels


def found(tree: ATree, events: list[dict[str, Any]]) -> list[list[int]]:
    matches = tree.match_columns(DictEvents(events).columns())
    return [sorted(ids.tolist()) for ids in np.split(matches.clause_ids, matches.offsets[1:-1])]


def expected(expressions: list[Any], events: list[dict[str, Any]]) -> list[list[int]]:
    return [
        [i for i, one in enumerate(expressions) if mm.evaluate(one, event) is True]
        for event in events
    ]


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("seed", [1, 2])
def test_it_agrees_with_the_oracle(name: str, seed: int) -> None:
    work = nested(name, 25, 12, seed)
    read = [read_expression(text) for text in work.expressions]
    events = [*work.events, {}, {"n1": None, "k1": 3}, {"n0": "a", "n1": [1], "n2": True}]
    assert found(ATree(read, seed=seed), events) == expected(read, events)


def test_constants_nulls_and_repeated_parts() -> None:
    texts = [
        "true", "false", "not (a = 1)", "not (a = 1 and not (b > 2 or c is null))", "a = 1 or true",
        "a = 1 and a = 1", "a is null or a != 1", "not (a = 1 or b = 1)", "a = 1", "c like '%x%'",
        "not (c like '%x%') and (a in (1, 2) or not (b between 1 and 3))",
    ]  # fmt: skip
    read = [read_expression(text) for text in texts]
    events = [{"a": a, "b": b, "c": c} for a in (None, 1, 2) for b in (1, 5) for c in (None, "x")]
    assert found(ATree(read), events) == expected(read, events)
    assert found(ATree([]), events) == [[]] * len(events)


def test_numbers_are_no_truth_values() -> None:
    read = [read_expression(text) for text in ("a = 1", "a = true", "a = 1.0")]
    assert found(ATree(read), [{"a": 1}, {"a": True}]) == [[0, 2], [1]]


def test_parts_are_shared() -> None:
    """The example of the docstring: three leaves and three inner nodes."""
    texts = [
        "a = 1 and b = 1 and c = 1",
        "a = 1 and b = 1",
        "not (not a = 1 or not b = 1) or c = 1",
    ]
    read = [read_expression(text) for text in texts]
    tree = ATree(read)
    assert tree.n_nodes == 6
    events = [{"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 1}, {"c": 1}, {"a": 1}]
    assert found(tree, events) == [[0, 1, 2], [1, 2], [2], []]
    assert ATree([*read, *reversed(read)]).n_nodes == 6
    wider = read_expression("b = 1 and d = 1 and a = 1")
    assert ATree([*read, wider]).n_nodes == 8  # d, and AND(AND(a, b), d)


def test_many_matches_grow_the_output() -> None:
    tree = ATree([read_expression("a = 1")] * 5000)
    assert [len(ids) for ids in found(tree, [{"a": 1}] * 8 + [{"a": 2}])] == [5000] * 8 + [0]


def test_what_it_does_not_take() -> None:
    with pytest.raises(InputError, match="no condition about lists"):
        ATree([read_expression("tags contains 'a'")])
