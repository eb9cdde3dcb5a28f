"""Each database that `papers/two_stage/sql` knows."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

_numbers = count()


@pytest.fixture(params=["duckdb", "sqlite", "postgresql"])
def place(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Options of `build`: each of the databases, with nothing in it."""
    if request.param == "postgresql":
        dsn = request.getfixturevalue("postgres_server").dsn
        return {"database": "postgresql", "dsn": dsn, "prefix": f"t{next(_numbers)}_"}
    return {"database": request.param}
