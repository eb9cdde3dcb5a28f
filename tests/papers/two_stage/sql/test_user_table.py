"""Subscriptions in a table of the user's: in each database, against the oracle."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import count
from typing import Any

import duckdb
import pytest

from matchmill.errors import InputError
from matchmill.language.evaluate import evaluate
from matchmill.papers.two_stage.sql import RejectedRow, TableSubscriptions, from_table
from matchmill.settings import Settings
from tests.support.generators import cases

_numbers = count()


class User:
    """A user with a connection and a table of subscriptions with a hard name."""

    def __init__(self, connection: Any, mark: str) -> None:
        self.connection = connection
        self._mark = mark
        self.table = f'my "alerts" {next(_numbers)}'
        self.run(f"CREATE TABLE {self.quoted} (owner TEXT, nr BIGINT, rule TEXT)")

    @property
    def quoted(self) -> str:
        return '"' + self.table.replace('"', '""') + '"'

    def run(self, statement: str, *values: Any) -> None:
        self.connection.execute(statement.replace("?", self._mark), values)
        if hasattr(self.connection, "autocommit"):
            self.connection.commit()

    def add(self, number: int | None, rule: str | None) -> None:
        self.run(f"INSERT INTO {self.quoted} VALUES (?, ?, ?)", "somebody", number, rule)

    def opened(self, **options: Any) -> TableSubscriptions:
        return from_table(self.connection, self.table, "nr", "rule", **options)


@pytest.fixture(params=["duckdb", "sqlite", "postgresql"])
def user(request: pytest.FixtureRequest) -> Iterator[User]:
    if request.param == "duckdb":
        connection: Any = duckdb.connect()
    elif request.param == "sqlite":
        connection = sqlite3.connect(":memory:")
    else:
        import psycopg

        connection = psycopg.connect(request.getfixturevalue("postgres_server").dsn)
    yield User(connection, "%s" if request.param == "postgresql" else "?")
    connection.close()


@pytest.mark.parametrize("form", ["sequential", "grouped", "pivot"])
def test_agrees_with_the_oracle(user: User, form: str) -> None:
    expressions, events = cases(105, 60, 30)
    for number, expression in enumerate(expressions):
        user.add(number, str(expression))
    settings = Settings(max_clauses=3)  # so that some expressions have to be confirmed
    subscriptions = user.opened(form=form, settings=settings)
    assert (len(subscriptions), subscriptions.rejected) == (60, [])
    found = subscriptions.match_many(events)
    assert found.rejected == {}
    expected = [{n for n, e in enumerate(expressions) if evaluate(e, v) is True} for v in events]
    assert found.ids == expected
    assert any(expected)


def test_bad_rows_are_set_aside(user: User) -> None:
    user.add(1, "price < 100")
    user.add(2, "price <")
    user.add(None, "price < 5")
    user.add(4, None)
    user.add(1, "price > 7")
    user.add(6, '{"color": ["red"]}')
    subscriptions = user.opened()
    assert subscriptions.match({"price": 50, "color": "red"}) == {1, 6}
    rejected = {(row.row, row.id): row.reason for row in subscriptions.rejected}
    assert all(isinstance(row, RejectedRow) for row in subscriptions.rejected)
    assert list(rejected) == [(1, 2), (2, None), (3, 4), (4, 1)]
    assert "line 1, column" in rejected[1, 2]
    assert rejected[2, None] == "there is no id"
    assert rejected[3, 4] == "an expression is text or a JSON pattern; this one is nothing"
    assert rejected[4, 1] == "the id 1 occurs twice"


def test_an_empty_table_and_a_later_look(user: User) -> None:
    subscriptions = user.opened()
    assert subscriptions.match({"price": 50}) == set()
    user.add(1, "price < 100")
    user.add(2, "price > 10 and color is null")
    assert subscriptions.match({"price": 50}) == set()
    subscriptions.refresh()
    assert subscriptions.match({"price": 50}) == {1, 2}
    user.run(f"DELETE FROM {user.quoted} WHERE nr = 1")
    again = user.opened()  # takes the helper tables over
    assert again.match({"price": 50}) == {2}
    again.close()


def test_values_that_cannot_be_compared(user: User) -> None:
    user.add(1, "price < 100")
    user.add(2, "price > 100")
    subscriptions = user.opened()
    found = subscriptions.match_many([{"price": 1}, {"price": 1 << 70}])
    assert found.ids == [{1}, set()]
    assert list(found.rejected) == []
    assert subscriptions.match({"price": 1 << 70}) == set()


def test_names_that_are_not_there(user: User) -> None:
    with pytest.raises(InputError, match="there is no table nothing"):
        from_table(user.connection, "nothing")
    with pytest.raises(InputError, match="has no column 'id'; it has: owner, nr, rule"):
        from_table(user.connection, user.table)
    with pytest.raises(InputError, match="unknown form 'best'; there are: sequential"):
        user.opened(form="best")


def test_a_table_that_only_has_a_helpers_name_stays(user: User) -> None:
    name = f'"{next(_numbers)}_rest"'
    user.run(f"CREATE TABLE {name} (mine TEXT)")
    with pytest.raises(InputError, match="_rest has the columns mine; one that `build` makes has"):
        user.opened(prefix=name[1:-5])
    user.run(f"INSERT INTO {name} VALUES ('still there')")


def test_what_is_no_connection() -> None:
    with pytest.raises(InputError, match=r"not builtins\.object"):
        from_table(object(), "alerts")


def test_inside_a_transaction_of_the_users(postgres_server: Any) -> None:
    import psycopg

    connection = psycopg.connect(postgres_server.dsn)
    user = User(connection, "%s")
    user.add(1, "price < 100")
    connection.execute(f"INSERT INTO {user.quoted} VALUES ('me', 2, 'price > 10')")
    subscriptions = user.opened()  # sees what is not committed, and commits nothing
    assert subscriptions.match({"price": 50}) == {1, 2}
    connection.rollback()
    with pytest.raises(psycopg.errors.UndefinedTable):
        subscriptions.match({"price": 50})
    connection.rollback()
    subscriptions.refresh()
    assert subscriptions.match({"price": 50}) == {1}
    connection.close()


def test_a_table_in_a_schema(postgres_server: Any) -> None:
    import psycopg

    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute("CREATE TABLE shop.alerts (id UUID, expression JSONB)")
        connection.execute(
            "INSERT INTO shop.alerts VALUES (gen_random_uuid(), %s::jsonb)",
            ['{"price": [{"numeric": ["<", 100]}]}'],
        )
        subscriptions = from_table(connection, ("shop", "alerts"))
        (identifier,) = subscriptions.match({"price": 50})
        assert len(str(identifier)) == 36
        assert subscriptions.match({"price": 500}) == set()
        helpers = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'shop'"
        ).fetchall()
        assert len(helpers) == 4
