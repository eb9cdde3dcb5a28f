"""Settings of all tests: generated cases are seeded, so that a failure comes back."""

import os

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = (
    "tests.support.local_service",
    "tests.support.operator_cleanup",
    "tests.support.postgres",
    "tests.support.spark_session",
)

settings.register_profile(
    "seeded",
    deadline=None,  # the machines are shared, and the first call may compile a kernel
    derandomize=True,
    max_examples=int(os.environ.get("MATCHMILL_EXAMPLES", "25")),  # the slow suite asks for more
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("seeded")

_LONGEST = ("test_stream_kills", "test_demo_spark", "test_crashes")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that no worker is left alone with them in the end."""
    items.sort(key=lambda item: item.path.stem not in _LONGEST)
