"""A database that stops, goes silent, is read-only, locked or full: an error soon, and no restart.

Statements wait at most `WAIT` seconds here, and each test asks until the store works again.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from matchmill.errors import StoreError
from matchmill.service.database.breaker import Breaker
from matchmill.service.database.open import DATABASE_NAME, open_store
from matchmill.service.database.store import Store
from tests.service.database.test_store import publish, seqs, subscribe, tenant_of
from tests.support.postgres import Server
from tests.support.running_service import wait_until

WAIT = 1.0


def error_of(action: Callable[[], Any]) -> Exception | None:
    try:
        action()
    except Exception as error:
        return error
    return None


def check_write(store: Store, tenant: int, name: str) -> None:
    """Without a response the same name is sent again, as a client does."""
    wait_until(lambda: error_of(lambda: publish(store, tenant, (name, []))) is None)


def check_outage(
    store: Store, fault: Callable[[], Any], mend: Callable[[], Any], *, reads: bool = True
) -> None:
    """Read and write before, in the middle of, and after an outage."""
    tenant = tenant_of(store)
    number = subscribe(store, tenant)
    publish(store, tenant, ("before", [number]))
    fault()
    try:
        started = time.monotonic()
        wait_until(lambda: error_of(lambda: publish(store, tenant, ("begins", []))) is not None)
        for n in range(50):
            error = error_of(lambda n=n: publish(store, tenant, (f"in the middle {n}", [number])))  # type: ignore[misc]
            assert isinstance(error, StoreError), error
        if reads:
            assert isinstance(error_of(lambda: seqs(store, number)), StoreError)
        else:
            assert seqs(store, number) == [1]
        assert store.error is not None
        # Not each of them waits: the first one does, and those that try whether it is back.
        assert time.monotonic() - started < 30
    finally:
        mend()
    check_write(store, tenant, "after")
    wait_until(lambda: error_of(lambda: seqs(store, number)) is None)
    assert seqs(store, number) == [1]
    assert store.error is None
    with store.reading() as reading:
        there = [one.event_id for one in reading.recent_events(tenant, 9)]
    assert [name for name in there if name != "begins"] == ["before", "after"]


# -- PostgreSQL -----------------------------------------------------------------------------------


@pytest.fixture
def server(postgres_server: Server) -> Server:
    postgres_server.empty()
    return postgres_server


@contextmanager
def opened(url: str | None, folder: Path) -> Iterator[Store]:
    store = open_store(folder, url, wait_seconds=WAIT)
    try:
        yield store
    finally:
        store.close()


@pytest.mark.slow
def test_a_server_that_is_stopped(server: Server, tmp_path: Path) -> None:
    with opened(server.url, tmp_path) as store:
        check_outage(store, server.stop, server.start)


@pytest.mark.slow
def test_a_server_that_is_killed(server: Server, tmp_path: Path) -> None:
    with opened(server.url, tmp_path) as store:
        check_outage(store, server.kill, server.start)


@pytest.mark.slow
def test_a_server_that_goes_silent(server: Server, tmp_path: Path) -> None:
    with opened(server.url, tmp_path) as store:
        check_outage(store, server.freeze, server.thaw)


@pytest.mark.slow
def test_a_server_that_is_read_only(server: Server, tmp_path: Path) -> None:
    with opened(server.url, tmp_path) as store:
        check_outage(
            store,
            lambda: server.set_read_only(True),
            lambda: server.set_read_only(False),
            reads=False,
        )


@pytest.mark.slow
def test_a_lock_that_another_process_holds(server: Server, tmp_path: Path) -> None:
    import psycopg

    with (
        opened(server.url, tmp_path) as store,
        psycopg.connect(server.dsn, autocommit=True) as other,
    ):
        lock = "SELECT pg_advisory_lock(7236455)"
        unlock = "SELECT pg_advisory_unlock(7236455)"
        check_outage(store, lambda: other.execute(lock), lambda: other.execute(unlock), reads=False)


@pytest.mark.slow
def test_one_who_listens_hears_again_after_an_outage(server: Server, tmp_path: Path) -> None:
    heard: list[list[int]] = []
    with opened(server.url, tmp_path) as store, opened(server.url, tmp_path) as other:
        tenant = tenant_of(other)
        number = subscribe(other, tenant)
        stop = store.listen(heard.append)
        try:
            wait_until(lambda: heard == [[]])
            server.kill()
            server.start()
            wait_until(lambda: heard == [[], []])  # again: something may have been missed
            check_write(other, tenant, "e")
            publish(other, tenant, ("f", [number]))
            wait_until(lambda: heard == [[], [], [number]])
        finally:
            stop()


@pytest.mark.slow
def test_no_wait_goes_beyond_the_end(server: Server, tmp_path: Path) -> None:
    """As when a service stops while its database does not answer."""
    store = open_store(tmp_path, server.url, wait_seconds=600)
    tenant = tenant_of(store)
    errors: list[Exception | None] = []
    server.freeze()
    try:
        waiting = threading.Thread(
            target=lambda: errors.append(error_of(lambda: publish(store, tenant, ("e", []))))
        )
        waiting.start()
        store.end_by(time.monotonic() + 0.5)
        waiting.join(30)
        assert not waiting.is_alive()
        assert isinstance(errors[0], StoreError)
        store.close()
    finally:
        server.thaw()


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("psycopg_pool")
    with pytest.raises(StoreError, match="cannot be reached"):
        open_store(tmp_path, f"postgresql://nobody@/nothing?host={tmp_path}")


# -- SQLite ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_file_that_another_process_locks(tmp_path: Path) -> None:
    with opened(None, tmp_path) as store:
        other = sqlite3.connect(tmp_path / DATABASE_NAME, isolation_level=None)
        check_outage(
            store,
            lambda: other.execute("BEGIN IMMEDIATE"),
            lambda: other.execute("ROLLBACK"),
            reads=False,
        )
        other.close()


def test_no_lock_is_waited_for_beyond_the_end(tmp_path: Path) -> None:
    store = open_store(tmp_path, wait_seconds=600)
    tenant = tenant_of(store)
    other = sqlite3.connect(tmp_path / DATABASE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store.end_by(time.monotonic())
    assert isinstance(error_of(lambda: publish(store, tenant, ("e", []))), StoreError)
    other.close()
    store.close()


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    with opened(None, tmp_path) as store:
        tenant = tenant_of(store)
        large = "x" * 100_000
        with store._connections.writing() as connection:
            n_pages = connection.rows("PRAGMA page_count")[0][0]
            connection.rows(f"PRAGMA max_page_count = {n_pages}")
        error = error_of(lambda: publish(store, tenant, (large, [])))
        assert isinstance(error, StoreError)
        assert "full" in str(error)
        with store._connections.writing() as connection:
            connection.rows("PRAGMA max_page_count = 1000000")
        check_write(store, tenant, large)


# -- the breaker ----------------------------------------------------------------------------------


def test_a_breaker_lets_one_try() -> None:
    breaker = Breaker("it", lambda error: isinstance(error, OSError))
    with pytest.raises(KeyError), breaker.trying():
        raise KeyError  # says nothing about it
    assert breaker.error is None
    with pytest.raises(StoreError, match="it failed: gone"), breaker.trying():
        raise OSError("gone\n")
    with pytest.raises(StoreError, match="it is away: gone"), breaker.trying():
        raise AssertionError("nobody tries so soon")
    wait_until(lambda: time.monotonic() >= breaker._retry_at)
    with breaker.trying(), pytest.raises(StoreError, match="it is away"), breaker.trying():
        raise AssertionError("one at a time")
    with breaker.trying(), breaker.trying():
        assert breaker.error is None


def test_a_trial_that_says_nothing_is_followed_by_another() -> None:
    breaker = Breaker("it", lambda error: isinstance(error, OSError))
    with pytest.raises(StoreError), breaker.trying():
        raise OSError("gone")
    wait_until(lambda: time.monotonic() >= breaker._retry_at)
    with pytest.raises(KeyboardInterrupt), breaker.trying():
        raise KeyboardInterrupt
    with breaker.trying() as works:
        works()
        assert breaker.error is None
