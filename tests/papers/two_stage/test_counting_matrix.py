"""What the conformance kit does not reach in the matrix forms of counting."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.encoding.conjunction_table import concatenate, take_clauses
from matchmill.errors import InputError
from matchmill.index.in_place import View
from matchmill.index.scan import Scan
from matchmill.kernels.jit import JIT_DISABLED
from matchmill.language.evaluate import evaluate
from matchmill.language.parser import parse
from matchmill.papers.predicate_index.base import PredicateIndex, Predicates
from matchmill.papers.two_stage.counting_bits import CountingBits
from matchmill.papers.two_stage.counting_bytes import CountingBytes
from matchmill.papers.two_stage.counting_lists import CountingLists
from matchmill.papers.two_stage.counting_matrix import CountingMatrix
from matchmill.papers.two_stage.linked_list import LinkedList
from matchmill.papers.two_stage.ordered_list import OrderedList
from matchmill.papers.two_stage.predicate_stage import CountingPredicates
from matchmill.papers.two_stage.ranked_table import RankedTable
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_table,
    table_of,
)
from tests.support.counting_checks import check_counting_matrix

pytestmark = pytest.mark.kernels

both_forms = pytest.mark.parametrize("form", [CountingBytes, CountingBits])
all_forms = pytest.mark.parametrize("form", [CountingBytes, CountingBits, CountingLists])


@all_forms
@pytest.mark.parametrize("length", [1, 63, 254, 255, 256, 300])
def test_long_clauses(form: type[CountingMatrix], length: int) -> None:
    """Counts to the limits of a byte and beyond."""
    present: dict[int, Any] = {d: [(5, 5)] for d in range(length)}
    absent: dict[int, Any] = {d: [(0, 0), (7, 9)] for d in range(length)}
    table = table_of([present, absent, present | {length // 2: [(0, 0)]}, {}])
    batch = batch_of(
        [
            {},
            dict.fromkeys(range(length), 5),
            dict.fromkeys(range(length - 1), 5),
            dict.fromkeys(range(length), 7),
            {d: 5 for d in range(length) if d != length // 2},
        ]
    )
    expected = brute_force(table, batch)
    index = form.build(take_clauses(table, np.array([3])))
    index.insert(take_clauses(table, np.arange(3)))
    assert matched(index.match_batch(batch)) == expected
    index.delete(np.array([0, 3]))
    left = [[i for i in ids if i not in (0, 3)] for ids in expected]
    assert matched(index.match_batch(batch)) == left


@pytest.mark.skipif(JIT_DISABLED, reason="42,000 clauses, one by one")
@all_forms
def test_more_columns_than_a_part_and_more_matches_than_room(form: type[CountingMatrix]) -> None:
    rng = Random(1)
    table = random_table(rng, 700, n_dimensions=3)
    table = concatenate([table._replace(clause_ids=table.clause_ids + 700 * k) for k in range(60)])
    batch = random_batch(rng, 5, n_dimensions=4)
    expected = matched(Scan.build(table).match_batch(batch))
    index = form.build(table)
    assert matched(index.match_batch(batch)) == expected
    index.delete(np.arange(0, 42_000, 2))
    left = [[i for i in ids if i % 2] for ids in expected]
    assert matched(index.match_batch(batch)) == left


def test_bits_are_added_or_excluded_by_what_is_less() -> None:
    """Events that satisfy nearly all predicates, about half of them, and nearly none."""
    rng = Random(2)
    clauses: list[dict[int, Any]] = [
        {d: [(1, rng.randrange(2, 60))] for d in rng.sample(range(6), 3)} for _ in range(900)
    ]
    table = table_of([dict(sorted(clause.items())) for clause in clauses])
    batch = batch_of([dict.fromkeys(range(6), key) for key in (1, 2, 30, 45, 58, 59, 60)] + [{}])
    index = CountingBits.build(table)
    assert matched(index.match_batch(batch)) == brute_force(table, batch)


@all_forms
def test_ids_and_columns_are_used_again(form: type[CountingMatrix]) -> None:
    rng = Random(3)
    index = form.build(random_table(rng, 200))
    n_bytes = index.stats().n_bytes
    for k in range(1, 15):
        index.delete(np.arange(200 * (k - 1), 200 * k))
        assert index.stats().n_clauses == 0
        index.insert(random_table(Random(3), 200, first_id=200 * k))
    assert index.stats().n_bytes <= 1.2 * n_bytes
    batch = random_batch(rng, 30)
    table = random_table(Random(3), 200, first_id=2800)
    assert matched(index.match_batch(batch)) == brute_force(table, batch)


@both_forms
def test_a_matrix_that_is_too_large_is_refused(form: type[CountingMatrix]) -> None:
    rng = Random(4)
    table, more = random_table(rng, 100), random_table(rng, 3000, first_id=100)
    batch = random_batch(rng, 10)
    with pytest.raises(InputError, match=r"use the index 'counting'.*matrix_bytes"):
        form.build(table, matrix_bytes=1000)
    index = form.build(table, matrix_bytes=50_000)
    with pytest.raises(InputError, match=f"{form.name} would need a matrix of"):
        index.insert(more)
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
    assert index.stats().n_clauses == 100
    again = form.from_arrays(index.arrays())
    with pytest.raises(InputError, match="would need"):
        again.insert(more)


@both_forms
@pytest.mark.parametrize("n_values", [30, 400])
def test_a_matrix_near_its_limit_is_seldom_copied(
    form: type[CountingMatrix], n_values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few distinct predicates: columns run out; many: rows do, and columns give theirs back."""
    sizes: list[tuple[int, int]] = []
    resize = form.association.resize

    def counted(matrix: Any, n_predicates: int, n_columns: int) -> None:
        sizes.append((n_predicates, n_columns))
        resize(matrix, n_predicates, n_columns)

    monkeypatch.setattr(form.association, "resize", counted)
    rng, limit = Random(9), 160_000 if form is CountingBytes else 20_000
    clauses: list[dict[int, Any]] = [
        {d: [(a, a)] for d in range(3) for a in [rng.randrange(1, n_values)]} for _ in range(3000)
    ]
    table = table_of(clauses)
    index = form.build(take_clauses(table, np.arange(5)), matrix_bytes=limit)

    def inserted(k: int) -> bool:
        try:
            index.insert(take_clauses(table, np.array([k])))
        except InputError:
            return False
        return True

    n = next(k for k in range(5, 3000) if not inserted(k))
    assert len(sizes) <= 25
    assert all(form.association.bytes_of(*size) <= limit for size in sizes)
    used = form.association.bytes_of(index._predicates.n_ids, index._n_columns)
    assert used > 0.85 * limit, "it was refused while there was room"
    check_counting_matrix(index)
    batch = batch_of([{d: rng.randrange(1, n_values) for d in range(3)} for _ in range(20)])
    assert matched(index.match_batch(batch)) == brute_force(
        take_clauses(table, np.arange(n)), batch
    )


@both_forms
def test_a_saved_one_goes_on_changing(form: type[CountingMatrix]) -> None:
    rng = Random(5)
    everything = random_table(rng, 120)
    batch = random_batch(rng, 20)
    index = form.build(take_clauses(everything, np.arange(80)))
    index.delete(np.arange(10, 60))
    index = form.from_arrays({name: a.copy() for name, a in index.arrays().items()})
    index.insert(take_clauses(everything, np.arange(40, 60)))
    index.delete(np.arange(5))
    index.insert(take_clauses(everything, np.arange(80, 120)))
    live = np.concatenate((np.arange(5, 10), np.arange(40, 120)))
    expected = brute_force(take_clauses(everything, live), batch)
    assert matched(index.match_batch(batch)) == expected


@both_forms
def test_deleting_what_is_not_there_changes_nothing(form: type[CountingMatrix]) -> None:
    rng = Random(6)
    table, batch = random_table(rng, 20), random_batch(rng, 10)
    index = form.build(table)
    with pytest.raises(InputError, match="1 of these 2 clauses are not in the index"):
        index.delete(np.array([3, 99]))
    assert matched(index.match_batch(batch)) == brute_force(table, batch)


# -- predicates -----------------------------------------------------------------------------------


def test_equal_predicates_have_one_id_that_is_given_out_again() -> None:
    predicates = CountingPredicates()
    same: dict[int, Any] = {0: [(1, 5)], 3: [(2, 2)]}
    ids = predicates.take(predicates.look_up(table_of([same, same, {0: [(2, 2)]}])))
    assert ids.tolist()[:2] == ids.tolist()[2:4]
    assert predicates.n_ids == len(set(ids.tolist())) == 3
    predicates.release(ids[:2])
    assert len(predicates.stored().ids) == 3, "the other clause has them still"
    predicates.release(ids[2:4])
    assert predicates.stored().ids.tolist() == [ids[4]]
    new = predicates.look_up(table_of([{1: [(4, 4)]}, {2: [(0, 0)]}]))
    assert predicates.n_ids_with(new) == 3
    assert sorted([*predicates.take(new).tolist(), int(ids[4])]) == [0, 1, 2]


def test_few_bounds_have_a_table_and_others_a_list() -> None:
    """What counts is how many keys are told apart, not how large they are."""
    predicates = CountingPredicates()
    large: dict[int, Any] = {0: [((3 << 60) + 7, (3 << 60) + 4095)], 1: [(1, 4096)]}
    many = [{1: [(key, key)]} for key in range(2, 10_000, 2)]
    predicates.take(predicates.look_up(table_of([large])))
    assert isinstance(predicates._structures[0], RankedTable)
    assert isinstance(predicates._structures[1], RankedTable)
    predicates.take(predicates.look_up(table_of(many)))
    assert isinstance(predicates._structures[0], RankedTable)
    assert isinstance(predicates._structures[1], OrderedList)
    assert predicates.vector(batch_of([{0: (3 << 60) + 7, 1: 4097}]))[0].any()
    (row,) = predicates.vector(batch_of([{1: 10}]))
    assert sum(int(word).bit_count() for word in row) == 2


@pytest.mark.parametrize("name", ["counting_bits", "counting_bytes", "counting_lists"])
@pytest.mark.parametrize(
    ("structure", "kind"),
    [("auto", RankedTable), ("table", RankedTable), ("list", OrderedList), ("linked", LinkedList)],
)
def test_structures_are_reached_through_the_engine(
    name: str, structure: str, kind: type[PredicateIndex], tmp_path: Path
) -> None:
    """Also after saving and opening."""
    rng = Random(7)
    texts = {i: f"a = {rng.randrange(30)} and b > {rng.randrange(30)}" for i in range(400)}
    events = [{"a": rng.randrange(30), "b": rng.randrange(30)} for _ in range(50)]
    options = {"predicates": structure}
    engine = mm.Engine(texts, index=name, index_options=options)
    parsed = {i: parse(text) for i, text in texts.items()}
    expected = [{i for i, p in parsed.items() if evaluate(p, e) is True} for e in events]
    engine.save(tmp_path / "saved")
    with mm.Engine.open(tmp_path / "saved") as again:
        for one in (engine, again):
            assert [set(ids) for ids in one.match_many(events)] == expected
            (built,) = [s.built for s in one._store.state.snapshot.segments if not s.is_fresh]
            if isinstance(built, View):
                built = built.structure.index
            assert isinstance(built, CountingMatrix)
            assert {type(s) for s in built._predicates._structures.values()} == {kind}
        assert again.index_options == options


def test_a_table_of_ranks_is_small_and_exact() -> None:
    """2,000 values of a domain far apart: one slot per bound, not per key."""
    rng = Random(8)
    values = sorted(rng.sample(range(3 << 60, 4 << 60), 2000))
    given = {i: [(value, value)] for i, value in enumerate(values)}
    given |= {i + 5000: [(3 << 60, value)] for i, value in enumerate(values)}
    table = RankedTable.build(
        Predicates(
            np.array(list(given)),
            np.arange(len(given) + 1),
            np.array([a for ((a, _),) in given.values()]),
            np.array([b for ((_, b),) in given.values()]),
        )
    )
    assert table._waiting.n_intervals == 0
    assert 4000 <= table._table.n_values <= 4002
    found = table.match(np.array([values[7], values[7] + 1, values[0] - 1]))
    assert np.diff(found.offsets).tolist() == [1 + 1993, 1992, 2000]
