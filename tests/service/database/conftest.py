"""Every test of a store runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from matchmill.service.database.open import open_store
from matchmill.service.database.store import Store
from tests.support.postgres import Server


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """The URL of an empty store; None for the file in a folder."""
    if request.param == "sqlite":
        return None
    server: Server = request.getfixturevalue("postgres_server")
    server.empty()
    return server.url


Reopen = Callable[[], Store]


@pytest.fixture
def reopen(store_url: str | None, tmp_path: Path) -> Iterator[Reopen]:
    """Opens the store, each time with connections of its own."""
    opened: list[Store] = []

    def open_again() -> Store:
        opened.append(open_store(tmp_path, store_url))
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()


@pytest.fixture
def store(reopen: Reopen) -> Store:
    return reopen()
