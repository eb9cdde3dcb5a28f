"""Workloads about lists: what they give is what the oracle says, and always the same."""

from __future__ import annotations

import pytest

import matchmill as mm
from matchmill.lab.workloads.lists import LIST_WORKLOADS, list_workload


@pytest.mark.parametrize("name", LIST_WORKLOADS)
def test_matches_are_those_of_the_oracle(name: str) -> None:
    work = list_workload(name, 200, 40)
    assert work == list_workload(name, 200, 40)
    assert work != list_workload(name, 200, 40, seed=2)
    engine = mm.Engine(work.subscriptions, settings=mm.Settings(fresh_clauses=8))
    found = engine.match_many(work.events)
    n_true = 0
    for event, ids in zip(work.events, found, strict=True):
        wanted = {i for i, e in work.subscriptions.items() if mm.evaluate(e, event) is True}
        assert set(ids) == wanted == engine.match(event)
        n_true += len(wanted)
    assert n_true > 0


def test_an_unknown_name() -> None:
    with pytest.raises(mm.InputError, match="no workload 'contain'; there are: patterns"):
        list_workload("contain", 1, 1)
