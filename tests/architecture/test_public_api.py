"""What `import matchmill` offers, and what it leaves unloaded."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import subprocess
import sys

import pytest

import matchmill
from matchmill.errors import MissingDependencyError

OPTIONAL = ("pyspark", "starlette", "psycopg", "duckdb", "pandas", "polars", "matplotlib")


def order(name: str) -> tuple[int, str]:
    """Constants, classes, functions, each by name: the order that `ruff check --fix` makes."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    return kind, name


def test_all_is_sorted_and_unique() -> None:
    assert list(matchmill.__all__) == sorted(set(matchmill.__all__), key=order)


@pytest.mark.parametrize("name", matchmill.__all__)
def test_every_public_name_resolves(name: str) -> None:
    try:
        value = getattr(matchmill, name)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    assert value is not None


def test_public_names_are_listed() -> None:
    """`dir()` shows names that load lazily, too, so that completion finds them."""
    assert set(matchmill.__all__) <= set(dir(matchmill))


def test_importing_loads_nothing_optional() -> None:
    program = f"import matchmill, sys; print(*sorted(set({OPTIONAL!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr


def test_the_package_is_typed_and_has_one_version() -> None:
    files = {path.name for path in importlib.resources.files("matchmill").iterdir()}
    assert "py.typed" in files
    if hasattr(matchmill, "__version__"):
        assert matchmill.__version__ == importlib.metadata.version("matchmill")
