"""Stores of older versions are brought up to date; those of newer ones are rejected."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from matchmill.errors import InputError, StoreError
from matchmill.service.database.connection import Connection
from matchmill.service.database.open import DATABASE_NAME, open_store
from matchmill.service.database.rows import Retention
from matchmill.service.database.schema import VERSION, migrate, version_of
from matchmill.service.database.sqlite import SqliteConnection, copy_database
from tests.service.database.test_store import MANY, NOW, seqs, subscribe, tenant_of


def make_version_1(url: str | None, folder: Path) -> None:
    """A store as the first version had it, with a subscription and a match in its mailbox."""
    connection: Connection
    if url is None:
        connection = SqliteConnection(folder / DATABASE_NAME)
    else:
        import psycopg

        from matchmill.service.database.postgres import PostgresConnection

        connection = PostgresConnection(psycopg.connect(url, autocommit=True))
    connection.run("BEGIN")
    migrate(connection, up_to=1)
    connection.run("UPDATE counters SET value = 1 WHERE name = 'change'")
    connection.run("INSERT INTO tenants VALUES (1, 'acme', 1, 1)")
    row = (1, 1, "a", b"x > 3", b"t", NOW, NOW + 1)
    connection.run("INSERT INTO subscriptions VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
    connection.run("INSERT INTO changes VALUES (1, 1, 1, 0)")
    connection.run("INSERT INTO events VALUES (1, 1, 'e', '{}', ?, 1)", NOW)
    connection.run("INSERT INTO mailboxes VALUES (1, 1, 0)")
    connection.run("INSERT INTO entries VALUES (1, 1, ?)", NOW)
    connection.run("COMMIT")
    assert version_of(connection) == 1
    connection.close()


def test_a_store_of_version_1_is_brought_up_to_date(store_url: str | None, tmp_path: Path) -> None:
    make_version_1(store_url, tmp_path)
    store = open_store(tmp_path, store_url)
    try:
        with store.reading() as reading:
            found = reading.subscription(1, "a", NOW)
            page = reading.page(1, 0, 10, NOW)
            for most, steps in ((1, [1]), (2, [])):  # the event has two characters
                assert reading.forgettable(1, Retention(9, most, 9), None, 9).steps == steps
        assert found is not None
        assert page is not None
        assert (found.expression, found.max_per_minute, found.n_pending) == ("x > 3", None, 1)
        assert [(entry.event_id, entry.digest_count) for entry in page.entries] == [("e", None)]
        assert subscribe(store, 1, "b", max_per_minute=1) == 2
    finally:
        store.close()
    open_store(tmp_path, store_url).close()


def test_a_store_of_a_newer_version_is_rejected(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    with sqlite3.connect(tmp_path / DATABASE_NAME) as connection:
        sql = "UPDATE facts SET value = ? WHERE name = 'schema_version'"
        connection.execute(sql, (str(VERSION + 1),))
    connection.close()
    with pytest.raises(StoreError, match=f"schema version {VERSION + 1}"):
        open_store(tmp_path)


def test_what_is_no_store_is_rejected(tmp_path: Path) -> None:
    (tmp_path / DATABASE_NAME).write_bytes(b"not a database" * 100)
    with pytest.raises(StoreError, match="cannot be used"):
        open_store(tmp_path)
    with pytest.raises(InputError, match="postgresql://"):
        open_store(tmp_path, "mysql://here")


def test_a_copy_taken_in_the_middle_of_writing(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    tenant = tenant_of(store)
    a = subscribe(store, tenant)
    with store.writing() as writing:
        writing.acknowledge(a, MANY)
        copy_database(tmp_path / DATABASE_NAME, tmp_path / "copy.sqlite")
    store.close()
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy.sqlite").rename(tmp_path / "copy" / DATABASE_NAME)
    copy = open_store(tmp_path / "copy")
    assert seqs(copy, a) == []
    copy.close()
