"""Settings of all tests: generated cases are seeded, so that a failure comes back."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres import Server, running_server

settings.register_profile(
    "seeded",
    deadline=None,  # the machines are shared, and the first call may compile a kernel
    derandomize=True,
    max_examples=int(os.environ.get("MATCHMILL_EXAMPLES", "25")),  # the slow suite asks for more
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("seeded")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A PostgreSQL server that tests share; each of them empties it first."""
    with running_server() as server:
        yield server
