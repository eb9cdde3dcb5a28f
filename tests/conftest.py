"""Settings of all tests: seeds for generated cases, and which worker runs which test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from matchmill.index.registry import INDEXES

pytest_plugins = (
    "tests.support.local_service",
    "tests.support.operator_cleanup",
    "tests.support.postgres",
    "tests.support.spark_session",
)

settings.register_profile(
    "seeded",
    deadline=None,  # the machines are shared, and the first call may compile a kernel
    derandomize=True,  # a failure comes back in the next run
    max_examples=int(os.environ.get("MATCHMILL_EXAMPLES", "25")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("seeded")

TESTS = Path(__file__).parent
SAMPLE = "test_raw_tables.py"  # of what papers run without the JIT, in every check
IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT") != "1"


@pytest.hookimpl(wrapper=True)  # runs before -m is applied and before pytest-xdist looks
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Mark what is slow, and tell pytest-xdist which tests belong together and which come first.

    All tests that use a Spark session or an index of a paper are slow: a fast run is about the
    product. Tests that share something costly go to one worker, one after the other: those of a
    Spark session, of a PostgreSQL server, of one file, and those of one paper, whose kernels are
    then compiled once. A test that starts a JVM of its own may run anywhere. The longest groups
    come first, so that no worker is left alone with one at the end.
    """
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(
                f"{item.nodeid}: the name has an address in it, so workers disagree about it;"
                " name the parameter: pytest.param(…, id=…)"
            )
        group = _group(item)
        if group.startswith(("spark ", "paper ")):
            item.add_marker(pytest.mark.slow)
        if group.startswith("paper ") and item.path.name != SAMPLE:
            item.add_marker(pytest.mark.beyond_sample)
        if IS_COMPILED and (group.startswith("paper ") or item.get_closest_marker("kernels")):
            item.add_marker(pytest.mark.no_cover)  # the run without the JIT measures kernels
        if group and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))
    if config.getoption("loadgroup", False):
        items.sort(key=_turn)
    yield


def _group(item: pytest.Item) -> str:
    """Name the group of a test; empty if it is alone."""
    folders = item.path.relative_to(TESTS).parts[:-1]
    fixtures = getattr(item, "fixturenames", ())
    if "spark" in fixtures:
        return f"spark {'pipeline' if 'pipeline' in folders else 'functions'}"
    if folders[:1] == ("papers",) and len(folders) > 1:
        return f"paper {folders[1]}"
    if paper := _paper(item):
        return f"paper {paper}"
    if "postgres_server" in fixtures:
        return "postgresql"
    if folders[:1] == ("spark",) and item.get_closest_marker("slow"):
        return ""
    return item.path.relative_to(TESTS).as_posix()


def _paper(item: pytest.Item) -> str:
    """Find the paper of the index that is a parameter of a test; empty if there is none."""
    callspec = getattr(item, "callspec", None)
    for value in callspec.params.values() if callspec is not None else ():
        if isinstance(value, str) and value in INDEXES:
            _, package, folder, *_ = INDEXES[value].__module__.split(".")
            return folder if package == "papers" else ""
    return ""


def _turn(item: pytest.Item) -> int:
    """Rank a test: the smallest ranks begin."""
    marker = item.get_closest_marker("xdist_group")
    group = marker.args[0] if marker is not None else ""
    if group.startswith("spark "):
        return 0
    if group.startswith("paper "):
        return 1
    if not group:
        return 2
    return 3 if item.get_closest_marker("slow") else 4
