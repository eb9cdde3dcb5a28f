"""OpIndex over conjunctions of disjunctions: against plain loops, and against the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.event_batch import EventBatch
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.dicts import DictEvents
from matchmill.errors import InputError
from matchmill.language.evaluate import evaluate
from matchmill.language.parser import parse
from matchmill.papers.op_index import OpIndexCnf
from matchmill.papers.op_index.cnf.cnf_table import CnfTable, encode_cnf, take_subscriptions
from matchmill.papers.op_index.cnf.normal_form import estimate, to_cnf
from matchmill.papers.op_index.pivots import NO_PIVOT
from tests.support.conformance_kit import (
    batch_of,
    matched,
    random_batch,
    random_statistics,
    random_table,
)
from tests.support.generators import random_event, random_expression

pytestmark = pytest.mark.kernels

Intervals = Sequence[tuple[int, int]]


def cnf_of(subscriptions: Sequence[Sequence[dict[int, Intervals]]], first_id: int = 0) -> CnfTable:
    """Subscriptions given as disjunctions of dimension → intervals."""
    disjunctions = [d for subscription in subscriptions for d in subscription]
    predicates = [item for d in disjunctions for item in sorted(d.items())]
    bounds = np.array([pair for _, pairs in predicates for pair in pairs], np.int64).reshape(-1, 2)
    return CnfTable(
        np.arange(first_id, first_id + len(subscriptions)),
        np.cumsum([0, *map(len, subscriptions)]),
        np.cumsum([0, *map(len, disjunctions)]),
        np.array([dimension for dimension, _ in predicates], np.int32),
        np.cumsum([0, *(len(pairs) for _, pairs in predicates)]),
        bounds[:, 0].copy(),
        bounds[:, 1].copy(),
    )


def random_cnf(rng: Random, n: int, first_id: int = 0) -> CnfTable:
    """0 to 4 disjunctions of 0 to 6 predicates each."""
    sizes = [rng.choice([0, 1, 1, 2, 2, 3, 4]) for _ in range(n)]
    disjunctions = random_table(rng, sum(sizes), n_dimensions=6, top=25)
    ids = np.arange(first_id, first_id + n)
    return CnfTable(ids, np.cumsum([0, *sizes]), *disjunctions[1:6])


def brute_force(table: CnfTable, events: EventBatch) -> list[list[int]]:
    """The definition of a match, in plain Python."""

    def predicate_holds(p: int, event: dict[int, int]) -> bool:
        key = event.get(int(table.dimensions[p]), 0)
        return any(
            table.lows[k] <= key <= table.highs[k]
            for k in range(table.interval_offsets[p], table.interval_offsets[p + 1])
        )

    def disjunction_holds(c: int, event: dict[int, int]) -> bool:
        first, stop = table.disjunction_offsets[c], table.disjunction_offsets[c + 1]
        return any(predicate_holds(p, event) for p in range(first, stop))

    out = []
    for e in range(events.n_events):
        span = slice(int(events.offsets[e]), int(events.offsets[e + 1]))
        event = dict(zip(events.dimensions[span].tolist(), events.keys[span].tolist(), strict=True))
        out.append(
            [
                int(table.subscription_ids[i])
                for i in range(table.n_subscriptions)
                if all(
                    disjunction_holds(c, event)
                    for c in range(table.subscription_offsets[i], table.subscription_offsets[i + 1])
                )
            ]
        )
    return out


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_brute_force(seed: int) -> None:
    rng = Random(seed)
    table, batch = random_cnf(rng, 150), random_batch(rng, 40, n_dimensions=8, top=25)
    expected = brute_force(table, batch)
    assert sum(map(len, expected)) > 100
    for statistics in (None, random_statistics(rng, 6)):
        for segments in (True, False):
            index = OpIndexCnf.build(table, statistics, segments=segments)
            assert matched(index.match_batch(batch)) == expected
            assert index.stats().candidates > 0


@pytest.mark.parametrize("seed", range(3))
def test_insertions_and_deletions(seed: int) -> None:
    rng = Random(seed)
    everything, batch = random_cnf(rng, 80), random_batch(rng, 12, n_dimensions=8, top=25)
    index = OpIndexCnf.build(take_subscriptions(everything, np.arange(0)))
    live: set[int] = set()
    for _ in range(50):
        dead = sorted(set(range(80)) - live)
        if dead and (not live or rng.random() < 0.55):
            chosen = sorted(rng.sample(dead, min(len(dead), rng.choice((1, 2, 7)))))
            index.insert(take_subscriptions(everything, np.array(chosen)))
            live |= set(chosen)
        else:
            chosen = rng.sample(sorted(live), min(len(live), rng.choice((1, 3, 9))))
            index.delete(np.array(chosen))
            live -= set(chosen)
        expected = take_subscriptions(everything, np.array(sorted(live), np.int64))
        assert matched(index.match_batch(batch)) == brute_force(expected, batch)
        assert index.stats().n_clauses == len(live)


def test_the_shortest_disjunction_leads() -> None:
    """Its dimensions are the pivots; of two that are as short, the one with the rarer ones."""
    a, b, c, d = ({dimension: [(1, 5)]} for dimension in range(4))
    table = cnf_of([[a | b, c | d], [a | b | c, d | b], [a]])
    index = OpIndexCnf.build(table)
    pivots, offsets = index._pivots.array, index._place_offsets.array
    led_by = [sorted((pivots[x:y] - 1).tolist()) for x, y in pairwise(offsets)]
    assert led_by == [[2, 3], [1, 3], [0]]
    batch = batch_of([{0: 1, 2: 1, 3: 1}, {0: 1}, {2: 1, 3: 1}, {1: 1, 3: 6}])
    assert matched(index.match_batch(batch)) == [[0, 1, 2], [2], [1], [1]]


def test_absence_is_checked() -> None:
    absent = {0: [(0, 0)], 1: [(5, 9)]}
    index = OpIndexCnf.build(cnf_of([[absent], [absent, {1: [(5, 5)], 2: [(3, 3)]}], [], [{}]]))
    assert index._pivots.array[0] == NO_PIVOT
    batch = batch_of([{}, {0: 1}, {0: 1, 1: 5}, {2: 3}, {0: 1, 2: 3}])
    assert matched(index.match_batch(batch)) == [[0, 2], [2], [0, 1, 2], [0, 1, 2], [2]]


@pytest.mark.parametrize("n", [29, 30, 31, 32, 33, 64, 100])
def test_more_disjunctions_than_bits(n: int) -> None:
    many = [{d: [(1, 5)], d + 1: [(3, 9)]} for d in range(n)]
    index = OpIndexCnf.build(cnf_of([many, many[: n // 2]]))
    full = dict.fromkeys(range(n + 1), 4)
    last = full | {n - 1: 9, n: 2}
    events = batch_of([full, last, dict.fromkeys(range(1, n), 9), full | {0: 6, 1: 6}])
    assert matched(index.match_batch(events)) == brute_force(cnf_of([many, many[: n // 2]]), events)


def test_more_matches_than_room() -> None:
    """A subscription that was found when there was no room is found again."""
    table = cnf_of([[{0: [(1, 9)], 1: [(1, 9)]}]] * 700)
    batch = batch_of([{0: 3, 1: 3}] * 6)
    assert matched(OpIndexCnf.build(table).match_batch(batch)) == [list(range(700))] * 6


def test_a_failed_change_changes_nothing() -> None:
    index = OpIndexCnf.build(cnf_of([[{0: [(1, 5)]}], [{1: [(1, 5)]}]]))
    with pytest.raises(InputError, match="1 of these 2 subscriptions are in the index already"):
        index.insert(cnf_of([[{0: [(1, 5)]}], []], first_id=1))
    with pytest.raises(InputError, match="1 of these 2 subscriptions are not in the index"):
        index.delete(np.array([1, 2]))
    assert matched(index.match_batch(batch_of([{0: 1, 1: 1}]))) == [[0, 1]]


# -- against the oracle ---------------------------------------------------------------------------


def check(texts_or_expressions: list[Any], events: list[dict[str, Any]]) -> int:
    """How many of the pairs are TRUE; all of them are found and no others."""
    expressions = [parse(e) if isinstance(e, str) else e for e in texts_or_expressions]
    encoded = encode_cnf(
        Dimensions(), [to_cnf(e) for e in expressions], np.arange(len(expressions))
    )
    batch = encoded.events(encode_events(encoded.dimensions, DictEvents(events).columns()))
    found = matched(OpIndexCnf.build(encoded.table).match_batch(batch))
    n_true = 0
    for event, ids in zip(events, found, strict=True):
        for i, expression in enumerate(expressions):
            truth = evaluate(expression, event) is True
            n_true += truth
            assert (i in ids) == truth, f"{expression}\n  on {event}\n  oracle: {truth}"
    return n_true


@pytest.mark.parametrize("seed", range(4))
def test_generated_expressions(seed: int) -> None:
    rng = Random(seed)
    expressions = []
    while len(expressions) < 80:
        expression = random_expression(rng)
        if estimate(expression).cnf.n_sets <= 2000:
            expressions.append(expression)
    n_true = check(expressions, [random_event(rng) for _ in range(60)])
    assert 500 < n_true < 4000


def test_prefixes_suffixes_and_patterns() -> None:
    texts = [
        "(name like 'ab%' or name like '%yz') and (size > 3 or name rlike '^a.*z$')",
        "name like 'a%' and (name like 'abc%' or name like '%bc%' or size is null)",
        "not (name like 'ab%' or size < 3)",
        "(name ilike 'AB%' or tags contains 'x') and not (name like '%q%' and size = 5)",
    ]
    words = ["ab", "abc", "abxyz", "xyz", "Abq", "aqz", ""]
    events: list[dict[str, Any]] = [
        {"name": word} | more
        for word in words
        for more in ({}, {"size": 2}, {"size": 5}, {"size": 4, "tags": ["x"]})
    ]
    assert check(texts, [*events, {}, {"size": 5}, {"tags": ["x"]}]) > 20
