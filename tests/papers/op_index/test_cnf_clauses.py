"""The index `op_index_cnf`: products found in tables of clauses, and CNF through the engine."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.encoding.conjunction_table import take_clauses
from matchmill.language.evaluate import evaluate
from matchmill.language.parser import parse
from matchmill.papers.op_index import OpIndex
from matchmill.papers.op_index.cnf.clauses import OpIndexCnfClauses
from matchmill.papers.op_index.cnf.products import Products, find_products, multiplied_out
from tests.support.cnf_tables import random_products
from tests.support.conformance_kit import (
    brute_force,
    matched,
    random_batch,
    random_table,
    table_of,
)
from tests.support.generators import random_event, random_expression
from tests.support.in_place_checks import check_engine, structure_of
from tests.support.op_index_checks import check_op_index_clauses

X, A, B, C, D, E = range(6)
ONE = [(1, 1)]


def factors_of(products: Products) -> list[list[list[int]]]:
    """The dimensions of each factor of each product."""
    table = products.table
    each = np.split(table.dimensions, table.disjunction_offsets[1:-1])
    lists = [part.tolist() for part in each]
    starts = table.subscription_offsets.tolist()
    return [lists[a:b] for a, b in pairwise(starts)]


def rows_of(*factors: tuple[int, ...]) -> list[dict[int, list[tuple[int, int]]]]:
    return [dict.fromkeys(sorted(choice), ONE) for choice in product(*factors)]


# -- products -------------------------------------------------------------------------------------


@pytest.mark.kernels
def test_the_example() -> None:
    products = find_products(table_of(rows_of((X,), (A, B), (C, D, E))))
    assert factors_of(products) == [[[X], [A, B], [C, D, E]]]
    assert products.clause_offsets.tolist() == [0, 6]


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], []),
        ([{}, {}], [[], []]),
        (rows_of((A, B, C)), [[[A]], [[B]], [[C]]]),  # nothing is shared
        (rows_of((A, B), (C, D)), [[[A, B], [C, D]]]),
        (rows_of((X,), (A, B))[:1] * 2, [[[X], [A]], [[X], [A]]]),  # equal rows
        (rows_of((A, B), (C, D, E))[:5], [[[A], [C, D, E]], [[B], [C, D]]]),  # one is missing
        (rows_of((X,), (A, B)) + rows_of((C,), (D, E)), [[[X], [A, B]], [[C], [D, E]]]),
        ([{X: ONE, A: ONE}, {X: ONE, A: [(2, 2)]}], [[[X], [A]], [[X], [A]]]),  # one dimension
        (rows_of((X,), (A,)) + rows_of((X,), (A, B), (C,)), [[[X], [A]], [[X], [C], [A, B]]]),
    ],
)
def test_what_is_a_product(rows: list[Any], expected: list[list[list[int]]]) -> None:
    table = table_of(rows)
    assert factors_of(find_products(table)) == expected


@pytest.mark.kernels
def test_no_product_is_large() -> None:
    """All clauses of a product are looked at when it holds."""
    products = find_products(table_of(rows_of((X,), tuple(range(1, 201)))))
    assert np.diff(products.clause_offsets).tolist() == [64, 64, 64, 8]


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(10))
def test_multiplied_out_again(seed: int) -> None:
    rng = Random(seed)
    table = random_products(rng, 60) if seed % 2 else random_table(rng, 60)
    products = find_products(table, first_id=5)
    assert (products.table.n_subscriptions < 50) == bool(seed % 2)
    for rows in (np.arange(60), np.array(sorted(rng.sample(range(60), 20)))):
        expected = take_clauses(table, rows)
        for name, before, after in zip(
            table._fields, expected, multiplied_out(products, rows), strict=True
        ):
            assert np.array_equal(before, after), name


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(4))
def test_clauses_of_products_come_and_go_alone(seed: int) -> None:
    rng = Random(seed)
    table, batch = random_products(rng, 90), random_batch(rng, 20)
    index = OpIndexCnfClauses.build(table)
    assert index._n_live.n < 60
    order = rng.sample(range(90), 90)
    for start in range(0, 90, 6):
        index.delete(np.array(order[start : start + 6]))
        check_op_index_clauses(index)
        left = take_clauses(table, np.array(sorted(order[start + 6 :]), np.int64))
        assert matched(index.match_batch(batch)) == brute_force(left, batch)
    assert index._clause_ids.n == 0


@pytest.mark.kernels
def test_fewer_entries_than_clauses_have() -> None:
    """The paper's reason for bitmaps: a rewriting to DNF has more predicates."""
    table = table_of(rows_of((X,), (A, B), (C, D, E)) * 50)
    as_clauses, as_products = OpIndex.build(table), OpIndexCnfClauses.build(table)
    assert int(as_clauses._store.lists.sizes.sum()) == 50 * 18
    assert int(as_products._cnf._store.lists.sizes.sum()) == 50 * 6


# -- through the engine ---------------------------------------------------------------------------


def index_behind(engine: mm.Engine) -> OpIndexCnfClauses:
    structure = structure_of(engine)
    assert structure is not None
    assert isinstance(structure.index, OpIndexCnfClauses)
    return structure.index


def conjunctions(rng: Random, n: int) -> dict[int, str]:
    """Conjunctions of disjunctions; the largest are not multiplied out by an engine."""
    out = {}
    for i in range(n):
        names = rng.sample("abcdefghijkl", 12)
        parts = []
        for size in rng.choice(((1, 2), (2, 2), (1, 3, 3), (2, 2, 2), (4, 4, 4), (3, 3, 3, 3))):
            own, names = names[:size], names[size:]
            tests = [f"{a} {rng.choice(('=', '<', '>', '!='))} {rng.randrange(8)}" for a in own]
            parts.append(f"({' or '.join(tests)})")
        out[i] = " and ".join(parts)
    return out


def expected_of(texts: dict[int, str], events: list[dict[str, Any]]) -> list[set[int]]:
    parsed = {i: parse(text) for i, text in texts.items()}
    return [{i for i, p in parsed.items() if evaluate(p, e) is True} for e in events]


def test_conjunctions_of_disjunctions_through_the_engine(tmp_path: Path) -> None:
    rng = Random(1)
    texts = conjunctions(rng, 150)
    events = [
        {a: rng.randrange(8) for a in "abcdefghijkl" if rng.random() < 0.7} for _ in range(40)
    ]
    engine = mm.Engine(texts, index="op_index_cnf", settings=mm.Settings(background=False))
    expected = expected_of(texts, events)
    assert sum(map(len, expected)) > 300
    assert [engine.match(event) for event in events] == expected
    assert [set(ids) for ids in engine.match_many(events)] == expected
    index = index_behind(engine)
    assert index._cnf.stats().n_clauses < index.stats().n_clauses / 3  # products, and clauses

    for i in range(0, 150, 3):  # a third goes, a third changes
        engine.unsubscribe(i)
        del texts[i]
        texts[i + 1] = conjunctions(rng, 1)[0]
        engine.subscribe(i + 1, texts[i + 1], replace=True)
    assert index_behind(engine) is index
    check_engine(engine)
    expected = expected_of(texts, events)
    assert [set(ids) for ids in engine.match_many(events)] == expected

    engine.save(tmp_path / "saved")
    with mm.Engine.open(tmp_path / "saved") as again:
        assert again.index == "op_index_cnf"
        assert [set(ids) for ids in again.match_many(events)] == expected
        again.subscribe(1000, "(a = 1 or b = 2) and (c = 3 or d = 4)")
        assert 1000 in again.match({"b": 2, "c": 3})
        again.unsubscribe(1000)
        assert [set(ids) for ids in again.match_many(events)] == expected


def test_every_kind_of_expression_through_the_engine() -> None:
    rng = Random(5)
    texts = {i: str(random_expression(rng)) for i in range(200)}
    events = [random_event(rng) for _ in range(60)]
    engine = mm.Engine(
        texts,
        index="op_index_cnf",
        index_options={"segments": 4},
        settings=mm.Settings(fresh_clauses=8),
    )
    assert [set(ids) for ids in engine.match_many(events)] == expected_of(texts, events)
    assert index_behind(engine).stats().n_clauses >= 200


def test_options_are_checked() -> None:
    with pytest.raises(mm.InputError, match="segments"):
        mm.Engine(index="op_index_cnf", index_options={"segments": "many"})
    with pytest.raises(mm.InputError, match="power of two"):
        mm.Engine(index="op_index_cnf", index_options={"segments": 3})
