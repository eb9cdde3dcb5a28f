"""The rules of imports: which package may use which, and how modules are named.

1. Packages are ranked. A package imports only from ranks above its own, and not from another
   package of its rank. So nothing in the product imports `papers/` or `lab/`.
2. Nothing outside `index/mill/` imports what is inside.
3. Papers do not import each other's folders, except `common/` and `predicate_index/`; these two and
   `baselines/` import `common/` alone.
4. Modules are named by text only in the files of `TABLES`, and every such name can be imported.
5. There is no cycle between modules, whenever and wherever they import.

`EXCEPTIONS` lists what breaks a rule for now. One that is no longer needed is an error, so the list
only shrinks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import matchmill

PACKAGE = Path(matchmill.__file__).parent

# One line is one rank. `matchmill` stands for the names that the package itself exports, from
# `__init__.py`: only what comes after the engine may use those.
RANKS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("settings",),
    ("kernels",),
    ("storage",),
    ("language",),
    ("encoding",),
    ("index", "operators", "io"),
    ("engine",),
    ("matchmill",),
    ("client", "sigma"),
    ("spark", "service"),
    ("cli",),
    ("__main__",),
    ("papers",),
    ("lab",),
)
RANK = {unit: rank for rank, units in enumerate(RANKS) for unit in units}

# `__init__.py` loads Spark and the like lazily, so it may name later ranks.
EXEMPT = "__init__"

# Tables that name modules by text, so that each is loaded when it is asked for.
TABLES = (
    "__init__.py",
    "spark/__init__.py",
    "service/__init__.py",
    "index/registry.py",
    "operators/orders.py",
    "language/dialects/registry.py",
    "papers/predicate_index/registry.py",
    "cli/commands.py",
)
# These import modules of the user, whose names nobody can know here.
IMPORTS_OF_USERS = ("operators/modules.py",)

# "file: what it imports", for what is still to be turned round.
EXCEPTIONS: frozenset[str] = frozenset()


# -- what a file imports --------------------------------------------------------------------------


def unit_of(root: Path, file: Path) -> str:
    """The first part of a file's module name: `language` for language/parser.py."""
    return file.relative_to(root).with_suffix("").parts[0]


def imported_names(root: Path, file: Path) -> Iterator[tuple[int, str]]:
    """All (line, dotted name) that a file imports, at any depth, by any means we use."""
    parts = (root.name, *file.relative_to(root).with_suffix("").parts)
    for node in ast.walk(parsed(file)):
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


def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


def module_file(root: Path, name: str) -> Path | None:
    """The file of a module of this package, or of the module that has this name in it."""
    package, *parts = name.split(".")
    if package != root.name:
        return None
    for n in range(len(parts), -1, -1):
        path = root.joinpath(*parts[:n])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file() and file != root.with_suffix(".py"):
                return file
    return None


def imported_files(root: Path, file: Path) -> Iterator[tuple[int, Path]]:
    """All (line, file) of this package that a file imports."""
    for line, name in imported_names(root, file):
        found = module_file(root, name)
        if found is not None and found != file:
            yield line, found


def label(root: Path, file: Path) -> str:
    return file.relative_to(root).as_posix()


# -- the rules ------------------------------------------------------------------------------------


def wrong_ranks(root: Path) -> Iterator[str]:
    for file in sorted(root.rglob("*.py")):
        unit = unit_of(root, file)
        if unit == EXEMPT:
            continue
        where = label(root, file)
        if unit not in RANK:
            yield f"{where}: '{unit}' has no rank"
            continue
        for _, name in imported_names(root, file):
            package, _, rest = name.partition(".")
            if package != root.name:
                continue
            target = rest.partition(".")[0]
            # `matchmill.Engine` is a name that the package exports, `matchmill.engine` a folder.
            is_module = (root / target).is_dir() or (root / f"{target}.py").is_file()
            target = target if target and (is_module or "." in rest) else "matchmill"
            if target not in RANK:
                yield f"{where}: imports '{target}', which has no rank"
            elif target != unit and RANK[target] >= RANK[unit]:
                yield f"{where}: imports '{target}', which does not rank above '{unit}'"


def reaches_into_mill(root: Path) -> Iterator[str]:
    mill = root / "index" / "mill"
    for file in sorted(root.rglob("*.py")):
        if mill not in file.parents:
            for _, found in imported_files(root, file):
                if mill in found.parents and found != mill / "__init__.py":  # its public class
                    yield f"{label(root, file)}: imports {label(root, found)}"


def papers_that_mix(root: Path) -> Iterator[str]:
    papers = root / "papers"
    for file in sorted(papers.rglob("*.py")):
        own = file.relative_to(papers).parts[0]
        allowed = {own, "common"}
        if own not in ("common", "predicate_index", "baselines"):
            allowed.add("predicate_index")
        for _, found in imported_files(root, file):
            if papers in found.parents and found.relative_to(papers).parts[0] not in allowed:
                yield f"{label(root, file)}: imports {label(root, found)}"


# `papers.be_tree:BeTree`, or `matchmill.lab.bench`; `matchmill.service` alone is a logger's name.
MODULE_NAME = re.compile(r"(?:matchmill\.)?([a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)*)(?::(\w+))?")


def module_names(root: Path, file: Path) -> Iterator[tuple[str, str]]:
    """All (module, name in it or "") that a file names by text."""
    for node in ast.walk(parsed(file)):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        match = MODULE_NAME.fullmatch(node.value)
        if match is None or not (match[2] or re.match(r"matchmill\.\w+\.", node.value)):
            continue
        # A name in a registry of papers/ is relative to it.
        for start in (root, root / "papers"):
            path = start.joinpath(*match[1].split("."))
            if path.with_suffix(".py").is_file() or (path / "__init__.py").is_file():
                parts = path.relative_to(root).parts
                yield ".".join((root.name, *parts)), match[2] or ""


def names_by_text(root: Path) -> Iterator[str]:
    for file in sorted(root.rglob("*.py")):
        where = label(root, file)
        if where in TABLES:
            continue
        for module, _ in module_names(root, file):
            yield f"{where}: names {module} by text"
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.Call) and called_name(node) in ("import_module", "__import__"):
                is_known = bool(node.args) and isinstance(node.args[0], ast.Constant)
                if not is_known and where not in IMPORTS_OF_USERS:
                    yield f"{where}: imports a module whose name is computed"


def cycles(root: Path) -> Iterator[str]:
    """Each cycle once, as the files of a strongly connected component (Tarjan's algorithm)."""
    edges = {
        file: sorted({found for _, found in imported_files(root, file)})
        for file in sorted(root.rglob("*.py"))
    }
    numbers: dict[Path, int] = {}
    lowest: dict[Path, int] = {}
    stack: list[Path] = []

    def visit(file: Path) -> Iterator[str]:
        numbers[file] = lowest[file] = len(numbers)
        stack.append(file)
        for found in edges[file]:
            if found not in numbers:
                yield from visit(found)
            if found in stack:
                lowest[file] = min(lowest[file], lowest[found])
        if lowest[file] == numbers[file]:
            together = [stack.pop()]
            while together[-1] != file:
                together.append(stack.pop())
            if len(together) > 1:
                yield "a cycle: " + ", ".join(sorted(label(root, f) for f in together))

    for file in edges:
        if file not in numbers:
            yield from visit(file)


RULES = (wrong_ranks, reaches_into_mill, papers_that_mix, names_by_text, cycles)


@cache
def broken(rule: Any) -> frozenset[str]:
    return frozenset(rule(PACKAGE))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule(rule: object) -> None:
    assert sorted(broken(rule) - EXCEPTIONS) == []


def test_exceptions_are_still_needed() -> None:
    found = {problem for rule in RULES for problem in broken(rule)}
    assert sorted(EXCEPTIONS - found) == [], "these hold now: take them out of EXCEPTIONS"


def test_names_in_tables_can_be_imported() -> None:
    n_names = 0
    for table in TABLES:
        if not (PACKAGE / table).is_file():
            continue
        for module, name in module_names(PACKAGE, PACKAGE / table):
            assert hasattr(import_module(module), name) or not name, f"{table}: {module}:{name}"
            n_names += 1
    assert n_names > 20


# -- do they find what they are for? --------------------------------------------------------------


def problems(root: Path) -> list[str]:
    return sorted({problem for rule in RULES for problem in rule(root)})


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
    found = list(wrong_ranks(root))
    assert len(found) == 1
    assert found[0].startswith("encoding/wrong.py: imports ")


@pytest.mark.parametrize(
    "line",
    [
        "import numpy",
        "import matchmill.errors",
        "from ..language import parser",
        "from ..language.parser import parse",
        "from . import dimensions",
        "from .dimensions import Dimension",
        "from matchmill import errors",
    ],
)
def test_a_right_import_is_not(line: str, tmp_path: Path) -> None:
    root = write_package(tmp_path, {"encoding/right.py": line, "encoding/__init__.py": line})
    assert problems(root) == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"unheard_of.py": ""}, "unheard_of.py: 'unheard_of' has no rank"),
        (
            {"io/files.py": "from matchmill.index.base import Index", "index/base.py": ""},
            "io/files.py: imports 'index', which does not rank above 'io'",
        ),
        (
            {
                "engine/warm.py": "from matchmill.index.mill.blocks import fill",
                "engine/__init__.py": "",
                "index/mill/blocks.py": "",
            },
            "engine/warm.py: imports index/mill/blocks.py",
        ),
        (
            {"papers/a/x.py": "from ..b import y", "papers/b/y.py": ""},
            "papers/a/x.py: imports papers/b/y.py",
        ),
        (
            {
                "papers/baselines/x.py": "from matchmill.papers.predicate_index import y",
                "papers/predicate_index/y.py": "",
            },
            "papers/baselines/x.py: imports papers/predicate_index/y.py",
        ),
        (
            {"encoding/x.py": "name = 'language.parser:parse'"},
            "encoding/x.py: names matchmill.language.parser by text",
        ),
        (
            {"encoding/x.py": "import_module(name)"},
            "encoding/x.py: imports a module whose name is computed",
        ),
        (
            {"encoding/x.py": "from . import y", "encoding/y.py": "def f():\n    from . import x"},
            "a cycle: encoding/x.py, encoding/y.py",
        ),
    ],
)
def test_what_breaks_a_rule_is_found(files: dict[str, str], expected: str, tmp_path: Path) -> None:
    assert problems(write_package(tmp_path, files)) == [expected]


@pytest.mark.parametrize(
    "files",
    [
        {"index/registry.py": "table = {'a': 'papers.a.x:X'}", "papers/a/x.py": ""},
        {"papers/a/x.py": "from matchmill.papers.common import y", "papers/common/y.py": ""},
        {"index/mill/x.py": "from . import y", "index/mill/y.py": ""},
        {"operators/modules.py": "import_module(name)"},
        {"encoding/x.py": '"""Like `matchmill.language.parser`."""'},
    ],
)
def test_what_keeps_the_rules_is_not(files: dict[str, str], tmp_path: Path) -> None:
    assert problems(write_package(tmp_path, files)) == []


def write_package(folder: Path, files: dict[str, str]) -> Path:
    root = folder / "matchmill"
    for name in (
        "__init__.py",
        "errors.py",
        "engine/engine.py",
        "language/parser.py",
        "encoding/dimensions.py",
    ):
        files = {name: "", **files}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root
