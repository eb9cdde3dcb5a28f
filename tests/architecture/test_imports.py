"""The direction of imports: a package imports only from those above it in `LAYERS`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import matchmill

PACKAGE = Path(matchmill.__file__).parent

# One line is one layer; within it imports are free. `matchmill` stands for the names that the
# package itself exports, from `__init__.py`: only what lies below the engine may use those.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("settings",),
    ("kernels", "storage"),
    ("language",),
    ("encoding",),
    ("index", "operators", "io"),
    ("engine",),
    ("matchmill",),
    ("client",),
    ("spark", "service"),
    ("cli", "__main__"),
    ("papers",),
    ("lab",),
)
RANK = {unit: rank for rank, layer in enumerate(LAYERS) for unit in layer}

# `__init__.py` loads Spark and the like lazily, so it may reach down.
EXEMPT = "__init__"


def unit_of(root: Path, file: Path) -> str:
    """The first part of a file's module name: `language` for language/parser.py."""
    return file.relative_to(root).with_suffix("").parts[0]


def imported_modules(root: Path, file: Path) -> Iterator[tuple[int, str]]:
    """All (line, dotted name) that a file imports, at any depth, by any means we use."""
    parts = (root.name, *file.relative_to(root).with_suffix("").parts)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            # One dot is the folder of the file; a package's __init__ is a file in it as well.
            start = ".".join(parts[: len(parts) - node.level]) if node.level else ""
            module = ".".join(filter(None, (start, node.module)))
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"
        elif isinstance(node, ast.Call) and called_name(node) in ("import_module", "__import__"):
            if node.args and isinstance(node.args[0], ast.Constant):
                yield node.lineno, str(node.args[0].value)


def called_name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def imported_units(root: Path, file: Path) -> Iterator[tuple[int, str]]:
    """All (line, unit) of this package that a file imports."""
    for line, name in imported_modules(root, file):
        package, _, rest = name.partition(".")
        if package == root.name:
            unit = rest.partition(".")[0]
            # `matchmill.Engine` is a name that the package exports, `matchmill.engine` a folder.
            is_module = (root / unit).is_dir() or (root / f"{unit}.py").is_file() or "." in rest
            yield line, unit if unit and is_module else "matchmill"


def violations(root: Path) -> list[str]:
    found = []
    for file in sorted(root.rglob("*.py")):
        unit = unit_of(root, file)
        if unit == EXEMPT:
            continue
        where = file.relative_to(root)
        if unit not in RANK:
            found.append(f"{where}: '{unit}' has no place in LAYERS")
            continue
        for line, target in imported_units(root, file):
            if target not in RANK:
                found.append(f"{where}:{line} imports '{target}', which has no place in LAYERS")
            elif target != unit and RANK[target] > RANK[unit]:
                found.append(f"{where}:{line} imports '{target}', which lies below '{unit}'")
    return found


def test_imports_only_go_up() -> None:
    assert violations(PACKAGE) == []


@pytest.mark.parametrize(
    "line",
    [
        "import matchmill.engine.engine",
        "from matchmill import engine",
        "from matchmill import Engine",
        "from matchmill.engine.engine import Engine",
        "from .. import engine",
        "from ..engine import Engine",
        "def later():\n    from ..engine import Engine",
        "if TYPE_CHECKING:\n    from matchmill.engine.engine import Engine",
        "importlib.import_module('matchmill.engine.engine')",
        "from ..unheard_of import thing",
    ],
)
def test_a_wrong_import_is_found(line: str, tmp_path: Path) -> None:
    root = write_package(tmp_path, {"encoding/wrong.py": line})
    (problem,) = violations(root)
    assert problem.startswith("encoding/wrong.py:")


@pytest.mark.parametrize(
    "line",
    [
        "import numpy",
        "import matchmill.errors",
        "from ..language import text",
        "from ..language.text import parse",
        "from . import dimension",
        "from .dimension import Dimension",
        "from matchmill import errors",
    ],
)
def test_a_right_import_is_not(line: str, tmp_path: Path) -> None:
    root = write_package(tmp_path, {"encoding/right.py": line, "encoding/__init__.py": line})
    assert violations(root) == []


def test_a_module_without_a_place_is_found(tmp_path: Path) -> None:
    root = write_package(tmp_path, {"unheard_of.py": ""})
    assert violations(root) == ["unheard_of.py: 'unheard_of' has no place in LAYERS"]


def write_package(folder: Path, files: dict[str, str]) -> Path:
    root = folder / "matchmill"
    for name in ("errors.py", "engine.py", "language/parser.py", "encoding/dimensions.py"):
        files = {name: "", **files}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root
