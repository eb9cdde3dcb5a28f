"""What `import matchmill` offers, and what it leaves unloaded."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.metadata
import importlib.resources
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import matchmill
from matchmill.errors import MissingDependencyError

HEAVY = (
    "numpy", "pyarrow", "numba", "rich", "msgspec", "pyspark", "starlette", "psycopg", "duckdb",
    "pandas", "polars", "matplotlib",
)  # fmt: skip
PACKAGE = Path(matchmill.__file__).parent


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


def test_public_names_and_nothing_else_are_listed() -> None:
    """`dir()` shows names before they are loaded, and no module that is an inner matter."""
    assert set(dir(matchmill)) == {*matchmill.__all__, "sigma", "spark"}


def test_every_name_stands_in_the_table_and_in_the_imports_for_type_checkers() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {
        (alias.asname, node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    table = {(name, f"matchmill.{module}") for name, module in matchmill._MODULE_OF.items()}
    assert typed == {*table, ("sigma", "matchmill"), ("spark", "matchmill")}
    assert {name for name, _ in table} | {"__version__"} == set(matchmill.__all__)


OWN_MODULES = sorted(
    module
    for module in set(matchmill._MODULE_OF.values())
    if module.partition(".")[0] in ("engine", "errors", "io", "operators", "settings")
)


@pytest.mark.parametrize("module", [name for name in OWN_MODULES if name != "engine.warm"])
def test_examples_of_public_names_work(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    done = doctest.testmod(importlib.import_module(f"matchmill.{module}"), optionflags=flags)
    assert done.failed == 0
    assert done.attempted


@pytest.mark.parametrize("module", OWN_MODULES)
def test_public_names_have_examples(module: str) -> None:
    names = [name for name, place in matchmill._MODULE_OF.items() if place == module]
    things = {name: getattr(matchmill, name) for name in names}
    for name, kind in list(things.items()):
        if inspect.isclass(kind):
            things |= {
                f"{name}.{method}": function
                for method, function in vars(kind).items()
                if inspect.isfunction(function) and not method.startswith("_")
            }
    lacking = [name for name, thing in things.items() if "Examples\n" not in (thing.__doc__ or "")]
    assert lacking == []


def test_no_module_hides_a_public_name() -> None:
    """Importing `matchmill.match` would put a module in the place of the function."""
    modules = {path.stem for path in PACKAGE.iterdir() if path.suffix in ("", ".py")}
    assert modules & set(matchmill.__all__) == set()
    assert "spark" in modules


def test_unknown_names_are_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        matchmill.nonsense  # noqa: B018
    with pytest.raises(ImportError):
        from matchmill import nonsense  # noqa: F401


def test_importing_is_light() -> None:
    program = f"import matchmill, sys; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr


def test_the_package_is_typed_and_has_one_version() -> None:
    files = {path.name for path in importlib.resources.files("matchmill").iterdir()}
    assert "py.typed" in files
    if hasattr(matchmill, "__version__"):
        assert matchmill.__version__ == importlib.metadata.version("matchmill")
