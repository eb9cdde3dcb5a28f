"""Matching in each database, by each form: against brute force, with changes, and what goes wrong.

DuckDB in memory is also held to the whole conformance kit, as every index in the registry."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import take_clauses
from matchmill.errors import InputError, MissingDependencyError
from matchmill.index.base import DynamicIndex
from matchmill.papers.common.clause_intervals import MAX_KEY
from matchmill.papers.two_stage.sql import SqlGrouped, SqlIndex, SqlPivot, SqlSequential
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_statistics,
    random_table,
    table_of,
)

FORMS: list[type[SqlIndex]] = [SqlSequential, SqlGrouped, SqlPivot]

by_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)


@by_form
def test_agrees_with_brute_force(form: type[SqlIndex], place: dict[str, Any]) -> None:
    rng = Random(11)
    table, batch = random_table(rng, 150), random_batch(rng, 60)
    index = form.build(table, random_statistics(rng, 8), **place)
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
    index.close()


@by_form
def test_the_ends_of_the_line_and_odd_clauses(form: type[SqlIndex], place: dict[str, Any]) -> None:
    table = table_of(
        [
            {0: [(1, MAX_KEY)]},
            {0: [(0, 0), (MAX_KEY, MAX_KEY)], 1: [(0, 4)]},
            {0: [(0, MAX_KEY)], 1: [(0, MAX_KEY)]},
            {},
            {0: [(2, 2)], 1: [(0, 0)]},
            {0: [], 1: [(0, MAX_KEY)]},
            {1: [], 2: [(1, 9)]},
            {0: [(1, 1), (3, 3), (5, MAX_KEY - 1)]},
            {0: [(0, 0)], 1: [(0, 0)]},
        ]
    )
    batch = batch_of([{}, {0: 1}, {0: 2}, {0: 2, 1: 4}, {0: MAX_KEY}, {1: 5, 2: 3}, {0: 0, 9: 9}])
    index = form.build(table, **place)
    expected = brute_force(table, batch)
    assert [len(ids) for ids in expected] == [4, 4, 4, 3, 4, 2, 4]
    assert matched(index.match_batch(batch)) == expected
    index.close()


@by_form
def test_changes(form: type[SqlIndex], place: dict[str, Any]) -> None:
    rng = Random(12)
    everything, batch = random_table(rng, 60), random_batch(rng, 15)
    live = set(range(0, 60, 2))
    index = form.build(take_clauses(everything, np.array(sorted(live))), **place)
    assert isinstance(index, DynamicIndex)
    for _ in range(8):
        new = sorted(rng.sample(sorted(set(range(60)) - live), 5))
        index.insert(take_clauses(everything, np.array(new)))
        old = sorted(rng.sample(sorted(live), 4))
        index.delete(np.array(old))
        live = (live | set(new)) - set(old)
        expected = brute_force(take_clauses(everything, np.array(sorted(live))), batch)
        assert matched(index.match_batch(batch)) == expected
        assert index.stats().n_clauses == len(live)
    index.delete(np.array(sorted(live)))
    assert all(len(a) == 0 for name, a in index.arrays().items() if name != "database")
    index.close()


@by_form
def test_what_cannot_be_changed_is_left_alone(form: type[SqlIndex], place: dict[str, Any]) -> None:
    rng = Random(13)
    table, batch = random_table(rng, 30), random_batch(rng, 10)
    index = form.build(table, **place)
    more = random_table(rng, 3, first_id=29)
    with pytest.raises(InputError, match="1 of these 3 clauses are in the index already"):
        index.insert(more)
    with pytest.raises(InputError, match="1 are given twice"):
        index.insert(take_clauses(more, np.array([1, 2, 1])))
    with pytest.raises(InputError, match="2 of these 3 clauses are not in the index"):
        index.delete(np.array([3, 30, 31]))
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
    index.close()


@by_form
def test_arrays_hold_everything(form: type[SqlIndex], place: dict[str, Any]) -> None:
    rng = Random(14)
    table, batch = random_table(rng, 50), random_batch(rng, 20)
    index = form.build(table, **place)
    again = form.from_arrays(index.arrays())
    before, after = index.arrays(), again.arrays()
    assert before.keys() == after.keys()
    for name, array in before.items():
        if name != "database":
            assert np.array_equal(array, after[name]), name
    more = random_table(rng, 10, first_id=100)
    again.insert(more)
    again.delete(np.arange(0, 50, 3))
    index.insert(more)
    index.delete(np.arange(0, 50, 3))
    assert matched(again.match_batch(batch)) == matched(index.match_batch(batch))
    index.close()
    again.close()


@by_form
def test_batches_in_pieces(form: type[SqlIndex], place: dict[str, Any]) -> None:
    rng = Random(15)
    table, batch = random_table(rng, 40), random_batch(rng, 23)
    index = form.build(table, events_per_query=5, **place)
    pieces = list(index.stream(batch))
    assert len(pieces) >= 5
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
    index.close()


@by_form
def test_a_stream_may_be_left_early(form: type[SqlIndex], place: dict[str, Any]) -> None:
    rng = Random(16)
    table, batch = random_table(rng, 40), random_batch(rng, 20)
    index = form.build(table, events_per_query=3, **place)
    stream = index.stream(batch)
    next(stream)
    with pytest.raises(InputError, match="a stream of matches is open"):
        index.delete(np.array([1]))
    stream.close()
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
    index.close()


@by_form
def test_threads_wait_for_each_other(form: type[SqlIndex], place: dict[str, Any]) -> None:
    rng = Random(17)
    table = random_table(rng, 40)
    batches = [random_batch(rng, 10) for _ in range(6)]
    index = form.build(table, **place)
    found: dict[int, list[list[int]]] = {}

    def work(n: int) -> None:
        found[n] = matched(index.match_batch(batches[n]))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(batches))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[n] for n in range(6)] == [brute_force(table, batch) for batch in batches]
    index.close()


def test_equal_predicates_are_stored_once(place: dict[str, Any]) -> None:
    table = table_of([{0: [(1, 1)], 1: [(2, 9)]}, {0: [(1, 1)]}, {1: [(2, 9)], 2: [(0, 3)]}])
    index = SqlGrouped.build(table, **place)
    assert len(index.arrays()["preds_pid"]) == 3
    index.insert(table_of([{2: [(0, 3)]}, {0: [(1, 1)], 3: [(5, 5)]}], first_id=10))
    preds = index.arrays()["preds_pid"]
    assert len(preds) == len(set(preds.tolist())) == 5  # (3, [5, 5]) is new, and so is ALWAYS
    index.delete(np.array([11]))
    assert len(index.arrays()["preds_pid"]) == 4
    index.close()


def test_the_pivot_looks_at_few_clauses(place: dict[str, Any]) -> None:
    rng = Random(18)
    clauses = [{0: [(1, 50)], 1: [(k + 1, k + 1)], 2: [(0, 7)]} for k in range(100)]
    batch = batch_of([{0: 3, 1: rng.randrange(1, 101)} for _ in range(10)])
    looked_at = {}
    for form in FORMS:
        options = {**place, "prefix": f"{place.get('prefix', '')}{form.name}_"}
        index = form.build(table_of(clauses), **options)
        assert sum(map(len, matched(index.match_batch(batch)))) == 10
        looked_at[form] = index.stats().candidates
        index.close()
    assert looked_at == {SqlSequential: 1000, SqlGrouped: 1000, SqlPivot: 10}


@by_form
@pytest.mark.parametrize("database", ["duckdb", "sqlite"])
def test_in_a_file(form: type[SqlIndex], database: str, tmp_path: Path) -> None:
    rng = Random(19)
    table, batch = random_table(rng, 40), random_batch(rng, 10)
    file: Any = {"database": database, "path": str(tmp_path / "alerts.db")}
    index = form.build(table, **file)
    index.delete(np.arange(0, 40, 2))
    index.close()
    with pytest.raises(InputError, match="this index is closed"):
        index.match_batch(batch)
    again = form.open(**file)
    again.insert(random_table(rng, 5, first_id=100))
    assert again.stats().n_clauses == 25
    rest = take_clauses(table, np.arange(1, 40, 2))
    again.delete(np.arange(100, 105))
    assert matched(again.match_batch(batch)) == brute_force(rest, batch)
    again.close()


@by_form
def test_tables_that_are_there(form: type[SqlIndex], tmp_path: Path) -> None:
    file: Any = {"database": "sqlite", "path": str(tmp_path / "alerts.db")}
    one, other = random_table(Random(1), 10), random_table(Random(2), 20)
    with pytest.raises(InputError, match="is not there; one that `build` makes has"):
        form.open(**file)
    form.build(one, **file).close()
    with pytest.raises(InputError, match="`open` takes them as they are"):
        form.build(other, **file)
    temporary = form.build(other, temporary=True, prefix="mine_", **file)
    assert temporary.stats().n_clauses == 20
    temporary.close()
    with pytest.raises(InputError, match="is not there"):
        form.open(prefix="mine_", **file)
    assert form.open(**file).stats().n_clauses == 10
    form.build(other, replace=True, **file).close()
    assert form.open(**file).stats().n_clauses == 20


def test_tables_of_another_form(tmp_path: Path) -> None:
    path = str(tmp_path / "alerts.duckdb")
    table = random_table(Random(1), 10)
    SqlSequential.build(table, path=path, prefix="my_").close()
    with pytest.raises(InputError, match="my_subs has the columns sid, attr"):
        SqlGrouped.open(path=path, prefix="my_")
    with pytest.raises(InputError, match="my_subs has the columns sid, attr"):
        SqlGrouped.build(table, path=path, prefix="my_", replace=True)
    assert SqlSequential.open(path=path, prefix="my_").stats().n_clauses == 10


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"database": "oracle"}, "unknown database 'oracle'; there are: duckdb, sqlite"),
        ({"database": "sqlite", "dsn": "host=x"}, "dsn is for PostgreSQL"),
        ({"database": "postgresql", "path": "x"}, "PostgreSQL has no path"),
        ({"path": "/nowhere/at/all.db"}, "DuckDB cannot open"),
        ({"database": "sqlite", "path": "/nowhere/at/all.db"}, "SQLite cannot open"),
        ({"database": "postgresql", "dsn": "host=/nowhere"}, "no PostgreSQL server answers"),
        ({"prefix": ""}, "a prefix of 1 to 48 bytes"),
        ({"prefix": "x" * 49}, "a prefix of 1 to 48 bytes"),
        ({"events_per_query": 0}, "events_per_query is at least 1"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        SqlPivot.build(random_table(Random(1), 3), **options)


@pytest.mark.parametrize(
    ("database", "package", "extra"),
    [("duckdb", "duckdb", "sql"), ("postgresql", "psycopg", "postgres")],
)
def test_a_driver_that_is_missing(
    database: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=rf"pip install 'matchmill\[{extra}\]'"):
        SqlPivot.build(random_table(Random(1), 3), database=database)
