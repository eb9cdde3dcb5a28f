"""Generated workloads: the same rows however they are divided, and true to their arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.errors import InputError
from matchmill.lab.workloads import dataframes as generate
from matchmill.lab.workloads import row_blocks as blocks
from matchmill.lab.workloads.characteristics import clause_truths
from matchmill.lab.workloads.flat import event_dicts, subscription_texts
from matchmill.lab.workloads.registry import generate as generate_whole
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.lab.workloads.standard import standard

SMALL = WorkloadSpec(
    "be_gen",
    150_000,
    200,
    parameters={"n_dimensions": 40, "cardinality": 12, "subscription_size": 3},
)
ADS = standard("ads").changed(n_subscriptions=300, n_events=50)


@pytest.mark.slow
@pytest.mark.long
def test_rows_do_not_depend_on_partitions(spark: Any) -> None:
    tables = []
    for n_partitions in (1, 3, 8):
        df = generate.subscriptions(spark, SMALL, partitions=n_partitions)
        tables.append(df.toArrow().sort_by("subscription_id"))
    assert tables[0].num_rows == 150_000
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    assert len(set(tables[0]["expression"].to_pylist()[:65_536])) > 60_000
    head, tail = (set(tables[0]["expression"].slice(at, 1000).to_pylist()) for at in (0, 65_536))
    assert len(head & tail) < 50  # blocks are not each other's copies


@pytest.mark.slow
def test_one_block_is_what_the_library_generates(spark: Any) -> None:
    for spec in (ADS, SMALL.changed(n_subscriptions=300)):
        whole = generate_whole(spec)
        rows = generate.subscriptions(spark, spec).collect()
        assert [tuple(row) for row in rows] == list(subscription_texts(whole))
        texts = generate.events(spark, spec, form="json").collect()
        assert [mm.read_events(row["event"]).event(0) for row in texts] == list(event_dicts(whole))


@pytest.mark.slow
def test_texts_match_as_the_arrays_do(spark: Any) -> None:
    spec = SMALL.changed(n_subscriptions=2000, n_events=60, seed=5)
    engine = mm.Engine()
    engine.subscribe_many([tuple(row) for row in generate.subscriptions(spark, spec).collect()])
    events = [row["attributes"] for row in generate.events(spark, spec).collect()]
    arrays = generate.subscriptions(spark, spec, form="arrays").collect()
    codes = generate.events(spark, spec, form="arrays").collect()
    found = engine.match_many(events)
    n_matches = 0
    for number, row in enumerate(codes):
        event = dict(zip(row["attributes"], row["codes"], strict=True))
        expected = {
            r["subscription_id"]
            for r in arrays
            if any(all(_holds(p, event) for p in clause) for clause in r["clauses"])
        }
        assert found[number] == expected
        n_matches += len(expected)
    assert n_matches > 100


def _holds(predicate: Any, event: dict[int, int]) -> bool:
    code = event.get(predicate["attribute"], 0)
    return any(low <= code <= high for low, high in predicate["intervals"])


@pytest.mark.parametrize(
    "spec",
    [
        SMALL.changed(n_subscriptions=200),
        ADS.changed(n_subscriptions=200),
        WorkloadSpec("op_index", 200, 40),
        WorkloadSpec("op_index_prefix", 200, 40, parameters={"n_words": 500}),
        WorkloadSpec("operators", 200, 20, parameters={"n_predicates": 50}),
        WorkloadSpec("two_stage", 200, 20, parameters={"workload": "subscriptions"}),
        WorkloadSpec("two_stage", 200, 20),
    ],
    ids=lambda spec: f"{spec.generator} {dict(spec.parameters)}"[:40],
)
def test_every_generator_has_blocks(spec: WorkloadSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are as large as asked for, differ, come out the same again, and share a domain."""
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 64)
    made = [blocks.subscription_block(spec, b) for b in range(4)]
    texts = [[text for _, text in subscription_texts(workload)] for workload in made]
    assert [len(block) for block in texts] == [64, 64, 64, 8]
    assert texts[0] != texts[1]
    again = blocks.subscription_block(spec, 1)
    assert [text for _, text in subscription_texts(again)] == texts[1]
    assert made[0].domain == made[3].domain
    events = blocks.event_block(spec, 0)
    assert events.events.n_events == min(64, spec.n_events)
    assert events.subscriptions.n_clauses == 0
    truths = [t for w in made for t in clause_truths(w.subscriptions, events.events)]
    assert np.concatenate(truths).any()


def test_a_map_needs_one_type(spark: Any) -> None:
    with pytest.raises(InputError, match="form='json'"):
        generate.events(spark, ADS)
    with pytest.raises(InputError, match="unknown form 'xml'"):
        generate.subscriptions(spark, ADS, form="xml")  # type: ignore[arg-type]
