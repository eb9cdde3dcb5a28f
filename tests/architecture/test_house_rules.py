"""Habits of this code base that a machine can check."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import matchmill
from matchmill.settings import Settings, list_settings

PACKAGE = Path(matchmill.__file__).parent
REPOSITORY = Path(__file__).parents[2]
SOURCES = sorted(PACKAGE.rglob("*.py"))
SCRIPTS = sorted(
    path
    for folder in (REPOSITORY / "script", REPOSITORY / ".ci")
    for path in folder.iterdir()
    if path.is_file() and path.suffix != ".py"
)

# Each compiles in its own way, past the cache folder and the options of `jit.kernel`.
NUMBA_COMPILERS = {
    "cfunc", "generated_jit", "guvectorize", "jit", "jit_module", "jitclass", "njit", "stencil",
    "vectorize",
}  # fmt: skip


def label(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


# --- kernels --------------------------------------------------------------------------


def numba_compilers_in(tree: ast.Module) -> Iterator[str]:
    """Uses of Numba's own decorators: imported by name, or as attributes of the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "numba":
            for alias in node.names:
                if alias.name in NUMBA_COMPILERS:
                    yield f"line {node.lineno}: from {node.module} import {alias.name}"
        elif isinstance(node, ast.Attribute) and node.attr in NUMBA_COMPILERS:
            if ast.unparse(node.value).partition(".")[0] in ("numba", "nb"):
                yield f"line {node.lineno}: {ast.unparse(node)}"


def misplaced_kernels_in(tree: ast.Module) -> Iterator[str]:
    """Kernels that are not plain functions of a module, decorated by the bare name."""
    at_top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [ast.unparse(decorator) for decorator in node.decorator_list]
            if any(re.fullmatch(r"(jit\.)?kernel\(.*\)", name) for name in names):
                yield f"line {node.lineno}: {node.name}: @kernel takes no arguments"
            if {"kernel", "jit.kernel"} & set(names) and id(node) not in at_top:
                yield f"line {node.lineno}: {node.name}: a kernel stands at the top of its module"


@pytest.mark.parametrize("path", SOURCES, ids=label)
def test_kernels_are_made_by_our_decorator(path: Path) -> None:
    tree = parse(path)
    if path != PACKAGE / "kernels" / "jit.py":
        assert list(numba_compilers_in(tree)) == [], (
            "use `from matchmill.kernels.jit import kernel`"
        )
    assert list(misplaced_kernels_in(tree)) == []


@pytest.mark.parametrize(
    "text",
    [
        "from numba import njit",
        "import numba\n@numba.njit(cache=True)\ndef f(): ...",
        "from numba.experimental import jitclass",
        "import numba.experimental\n@numba.experimental.jitclass\nclass C: ...",
    ],
)
def test_numbas_own_decorators_are_found(text: str) -> None:
    assert list(numba_compilers_in(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "class C:\n    @kernel\n    def f(self): ...",
        "def outer():\n    @jit.kernel\n    def f(): ...",
        "@kernel(parallel=True)\ndef f(): ...",
    ],
)
def test_misplaced_kernels_are_found(text: str) -> None:
    assert list(misplaced_kernels_in(ast.parse(text)))


# --- scripts --------------------------------------------------------------------------


@pytest.mark.parametrize("path", SCRIPTS, ids=label)
def test_scripts_can_be_run(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("#!/usr/bin/env bash\n")
    assert os.access(path, os.X_OK), "chmod +x"
    checked = subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("path", SCRIPTS, ids=label)
def test_scripts_stop_at_errors(path: Path) -> None:
    assert re.search(r"^set -euo pipefail$", path.read_text(encoding="utf-8"), re.MULTILINE)


def test_scripts_name_no_tests() -> None:
    """Markers choose tests: a name in a script would select nothing after a renaming."""
    text = (REPOSITORY / "script" / "test").read_text(encoding="utf-8")
    commands = re.sub(r"(?m)#.*$", "", text)
    assert not re.search(r"\s-k\s|\btest_\w+|::test", commands)
    folders = set(re.findall(r"\btests/[\w/]+", commands))
    assert folders
    assert [folder for folder in folders if not (REPOSITORY / folder).is_dir()] == []


# --- documentation --------------------------------------------------------------------


def test_settings_are_documented() -> None:
    pages = sorted((REPOSITORY / "docs").rglob("*.md"))
    documentation = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    names = [setting.name for setting in list_settings(Settings)]
    assert [name for name in names if f"`{name}`" not in documentation] == []


def test_settings_have_help_and_one_name_each() -> None:
    names = [setting.name for setting in list_settings(Settings)]
    assert len(set(names)) == len(names)
    assert all(setting.help.strip() for setting in list_settings(Settings))
