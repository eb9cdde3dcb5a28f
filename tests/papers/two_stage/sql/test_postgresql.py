"""What a server adds: commits that outlive its death, and other connections."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import take_clauses
from matchmill.errors import InputError
from matchmill.papers.two_stage.sql import SqlGrouped, SqlIndex, SqlPivot, SqlSequential
from tests.support.conformance_kit import brute_force, matched, random_batch, random_table
from tests.support.postgres import Server


@pytest.mark.slow
@pytest.mark.parametrize("form", [SqlSequential, SqlGrouped, SqlPivot], ids=lambda form: form.name)
def test_commits_survive_a_kill(form: type[SqlIndex], postgres_server: Server) -> None:
    rng = Random(21)
    table, batch = random_table(rng, 40), random_batch(rng, 20)
    place: Any = {"database": "postgresql", "dsn": postgres_server.dsn, "prefix": f"k_{form.name}_"}
    index = form.build(take_clauses(table, np.arange(39)), **place)
    index.insert(take_clauses(table, np.array([39])))
    index.delete(np.array([7]))
    postgres_server.kill()
    import psycopg

    with pytest.raises(psycopg.OperationalError):
        index.match_batch(batch)
    index.close()
    postgres_server.start()
    again = form.open(**place)
    expected = take_clauses(table, np.array([k for k in range(40) if k != 7]))
    assert again.stats().n_clauses == 39
    assert matched(again.match_batch(batch)) == brute_force(expected, batch)
    again.close()


def test_connections_see_each_others_commits(postgres_server: Server) -> None:
    rng = Random(22)
    table, batch = random_table(rng, 30), random_batch(rng, 10)
    place: Any = {"database": "postgresql", "dsn": postgres_server.dsn, "prefix": "shared_"}
    writer = SqlGrouped.build(take_clauses(table, np.arange(20)), **place)
    reader = SqlGrouped.open(**place)
    writer.insert(take_clauses(table, np.arange(20, 30)))
    assert matched(reader.match_batch(batch)) == brute_force(table, batch)
    reader.delete(np.arange(10))
    rest = take_clauses(table, np.arange(10, 30))
    assert matched(writer.match_batch(batch)) == brute_force(rest, batch)
    writer.close()
    reader.close()


def test_temporary_tables_are_each_connections_own(postgres_server: Server) -> None:
    rng = Random(23)
    tables, batch = [random_table(rng, 20) for _ in range(2)], random_batch(rng, 10)
    place: Any = {"database": "postgresql", "dsn": postgres_server.dsn, "temporary": True}
    indexes = [SqlGrouped.build(table, **place) for table in tables]
    for index, table in zip(indexes, tables, strict=True):
        assert matched(index.match_batch(batch)) == brute_force(table, batch)
        index.close()
    with pytest.raises(InputError, match="is not there"):
        SqlGrouped.open(database="postgresql", dsn=postgres_server.dsn)
