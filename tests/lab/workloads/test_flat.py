"""Flat workloads mean the same as their text."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import matchmill as mm
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.lab.workloads.flat import (
    FlatEvents,
    FlatSubscriptions,
    IntegerDomain,
    TextDomain,
    Workload,
    event_dicts,
    subscription_texts,
)
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.spec import WorkloadSpec
from tests.support.conformance_kit import brute_force, random_batch, random_table

SPEC = WorkloadSpec("none", n_subscriptions=0, n_events=0)


def random_workload(seed: int, domain: IntegerDomain | TextDomain, n_values: int) -> Workload:
    """Any table is a workload: codes are keys."""
    rng = Random(seed)
    n = domain.n_attributes
    table = random_table(rng, 150, n_dimensions=n, top=n_values + 1)
    batch = random_batch(rng, 40, n_dimensions=n, top=n_values + 1)
    owners = np.sort(np.array([rng.randrange(100) for _ in range(150)]))
    return Workload(
        SPEC,
        domain,
        FlatSubscriptions(owners, *table[1:6]),
        FlatEvents(*batch),
        FlatEvents(*batch.slice(0, 1)),
    )


@pytest.mark.parametrize(
    ("domain", "n_values"),
    [
        (IntegerDomain(6, 12), 12),
        (
            TextDomain(
                ["plain", "odd name", "in", "größe"],
                [[f"v{k:02}" for k in range(9)]] * 3 + [[-5, 0, 3, 7, 8, 11, 40, 41, 99]],  # type: ignore[list-item]
            ),
            9,
        ),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_text_means_what_the_arrays_mean(
    seed: int, domain: IntegerDomain | TextDomain, n_values: int
) -> None:
    workload = random_workload(seed, domain, n_values)
    flat = workload.subscriptions
    table = ConjunctionTable(np.arange(flat.n_clauses), *flat[1:])
    by_clause = brute_force(table, EventBatch(*workload.events))
    expected = [{int(flat.owners[c]) for c in clauses} for clauses in by_clause]
    texts = {number: mm.parse(text) for number, text in subscription_texts(workload)}
    assert sorted(texts) == sorted(set(flat.owners.tolist()))
    for event, numbers in zip(event_dicts(workload), expected, strict=True):
        got = {number for number, e in texts.items() if mm.evaluate(e, event) is True}
        assert got == numbers
    some = dict(subscription_texts(workload, 20, 30))
    assert set(some) == {n for n in texts if 20 <= n < 30}


def test_specs_are_data() -> None:
    spec = WorkloadSpec("be_gen", n_subscriptions=10, n_events=5, parameters={"zipf": 1.0})
    other = spec.changed(n_subscriptions=20, zipf=2.0, seed=3)
    assert other.as_dict() == {
        "generator": "be_gen",
        "n_subscriptions": 20,
        "n_events": 5,
        "n_training_events": 512,
        "seed": 3,
        "zipf": 2.0,
    }
    assert spec.parameters == {"zipf": 1.0}
    a, b = spec.random("events").random(3), spec.random("events").random(3)
    assert a.tolist() == b.tolist()
    assert a.tolist() != spec.random("subscriptions").random(3).tolist()
    assert a.tolist() != other.random("events").random(3).tolist()
    with pytest.raises(mm.InputError, match="n_events must be"):
        WorkloadSpec("be_gen", n_subscriptions=10, n_events=-5)
    with pytest.raises(mm.InputError, match="unknown generator 'none'"):
        generate(SPEC)
