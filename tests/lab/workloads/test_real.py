"""Workloads with the values that people have: all of their forms mean the same, for the oracle."""

from __future__ import annotations

import numpy as np
import pytest

import matchmill as mm
from matchmill.errors import InputError
from matchmill.index.scan import Scan
from matchmill.lab.experiments.measure import event_batch, table_of
from matchmill.lab.workloads.columns import arrow_events, expressions, flat_subscriptions
from matchmill.lab.workloads.flat import event_dicts, subscription_texts
from matchmill.lab.workloads.nested import NESTED, nested
from matchmill.lab.workloads.real import REAL, real
from matchmill.lab.workloads.registry import generate
from matchmill.language.read import read_expression

_SMALL = {"long_lists": {"list_size": 40, "n_lists": 5, "n_items": 300}, "wide2000": {}}


@pytest.mark.parametrize("name", REAL)
def test_all_forms_have_the_matches_of_the_oracle(name: str) -> None:
    spec = real(name).changed(
        n_subscriptions=40, n_events=5, n_training_events=3, **_SMALL.get(name, {})
    )
    made = generate(spec)
    found = Scan.build(table_of(made.subscriptions)).match_batch(event_batch(made.events))
    texts = expressions(made).to_pylist()
    table = arrow_events(made, made.events, 0, 5)
    assert table.num_columns == made.domain.n_attributes
    dicts = list(event_dicts(made))
    assert [{k: v for k, v in e.items() if v is not None} for e in table.to_pylist()] == dicts
    whole = [read_expression(text) for text in texts]
    slowly = [read_expression(text) for _, text in subscription_texts(made)]
    for e, event in enumerate(dicts):
        wanted = [i for i, one in enumerate(whole) if mm.evaluate(one, event) is True]
        assert wanted == [i for i, one in enumerate(slowly) if mm.evaluate(one, event) is True]
        ids = found.clause_ids[found.offsets[e] : found.offsets[e + 1]]
        assert sorted(ids.tolist()) == wanted


@pytest.mark.parametrize("name", ["geo4", "mixed", "ids", "sensors_mixed", "absence"])
def test_the_same_seed_gives_the_same(name: str) -> None:
    spec = real(name).changed(n_subscriptions=200, n_events=10)
    one, same, other = (generate(s) for s in (spec, spec, spec.changed(seed=2)))
    assert all(map(np.array_equal, one.subscriptions, same.subscriptions))
    assert all(map(np.array_equal, one.events, same.events))
    assert not np.array_equal(one.subscriptions.lows, other.subscriptions.lows)
    longer = generate(spec.changed(n_events=20))
    assert all(map(np.array_equal, one.subscriptions, longer.subscriptions))


@pytest.mark.parametrize(
    ("name", "share"), [("geo2", 0.001), ("geo4", 0.001), ("many10", 0.1), ("many50", 0.5)]
)
def test_shares(name: str, share: float) -> None:
    made = generate(real(name).changed(n_subscriptions=4000, n_events=200))
    found = Scan.build(table_of(made.subscriptions)).match_batch(event_batch(made.events))
    assert found.offsets[-1] / (200 * 4000) == pytest.approx(share, rel=0.2)


def test_intervals_that_meet_are_joined() -> None:
    rows = [(0, 1, 5, 9), (0, 1, 10, 12), (0, 1, 2, 20), (1, 0, 7, 7), (0, 0, 3, 4), (0, 0, 6, 6)]
    flat = flat_subscriptions(3, *(np.array(column) for column in zip(*rows, strict=True)))
    assert flat.clause_offsets.tolist() == [0, 2, 3, 3]
    assert flat.attributes.tolist() == [0, 1, 0]
    assert flat.interval_offsets.tolist() == [0, 2, 3, 4]
    assert list(zip(flat.lows.tolist(), flat.highs.tolist(), strict=True)) == [
        (3, 4), (6, 6), (2, 20), (7, 7),
    ]  # fmt: skip


@pytest.mark.parametrize("name", NESTED)
def test_nested_expressions_hold_now_and_then(name: str) -> None:
    work = nested(name, 30, 20)
    assert work == nested(name, 30, 20)
    assert work != nested(name, 30, 20, seed=2)
    read = [read_expression(text) for text in work.expressions]
    assert len(read) == 30
    n_true = sum(mm.evaluate(one, e) is True for one in read for e in work.events)
    assert 0 < n_true < 0.2 * 30 * 20


def test_bad_names() -> None:
    with pytest.raises(InputError, match="no workload 'geo5'; there are: geo2"):
        real("geo5")
    with pytest.raises(InputError, match="scale must be above 0"):
        real("geo4", 0)
    with pytest.raises(InputError, match="no workload 'depe'; there are: cnf3"):
        nested("depe", 1, 1)
    for name, changes in {
        "sensors_low": {"fewest": 31},
        "long_lists": {"n_items": 1500},
        "sparse_ranges": {"event_size": 201},
        "geo2": {"shape": "round"},
    }.items():
        with pytest.raises(InputError):
            generate(real(name).changed(n_subscriptions=1, **changes))
