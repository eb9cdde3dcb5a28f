"""Fixtures: a PostgreSQL server for all tests, and each database that `indexes/sql` knows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.postgres import Server, running_server

_numbers = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with running_server() as server:
        yield server


@pytest.fixture(params=["duckdb", "sqlite", "postgresql"])
def place(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Options of `build`: each of the databases, with nothing in it."""
    if request.param == "postgresql":
        dsn = request.getfixturevalue("postgres").dsn
        return {"database": "postgresql", "dsn": dsn, "prefix": f"t{next(_numbers)}_"}
    return {"database": request.param}
