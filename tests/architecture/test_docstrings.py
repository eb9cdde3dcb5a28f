"""Every public name has a docstring with its parameters and an example, and examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

# The public namespaces, and whether their examples run without anything beside the library.
NAMESPACES = {
    "matchmill": True,
    "matchmill.client": False,  # a service is needed
    "matchmill.service": False,
    "matchmill.spark": False,  # a Spark session is needed
}
# Made by us and received by users: their constructors are not public. Settings describe their
# fields themselves, which another test checks.
RESULTS = {
    "BatchRecord", "Counts", "Explanation", "Ingested", "Matches", "Operator", "ServiceSettings",
    "Settings", "ShardedEngine", "ShardedStats",
}  # fmt: skip
SECTION = re.compile(r"^ *(\w[\w ]*)\n *-{3,}$", re.MULTILINE)


def public_objects(namespace: str) -> Iterator[tuple[str, Any]]:
    """The functions and classes of a namespace, and the public methods of its classes."""
    package = importlib.import_module(namespace)
    for name in package.__all__:
        value = getattr(package, name)
        if inspect.ismodule(value) or name.startswith("__") or not callable(value):
            continue
        yield f"{namespace}.{name}", value
        if inspect.isclass(value):
            for method_name, method in vars(value).items():
                function = getattr(method, "__func__", method)
                if not method_name.startswith("_") and inspect.isfunction(function):
                    yield f"{namespace}.{name}.{method_name}", function


def parameters_of(value: Any) -> list[str]:
    if inspect.isclass(value):
        if issubclass(value, BaseException) or value.__name__ in RESULTS:
            return []
    try:
        names = list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return []
    return [name for name in names if name not in ("self", "cls")]


def problems_of(name: str, value: Any) -> Iterator[str]:
    docstring = inspect.cleandoc(value.__doc__ or "")
    sections = set(SECTION.findall(docstring))
    if not docstring:
        yield f"{name}: no docstring"
        return
    parameters = parameters_of(value)
    described = docstring.partition("\nParameters\n")[2]
    for parameter in parameters:
        if not re.search(rf"^ *(?:[\w*]+, )*\**{parameter}\b", described, re.MULTILINE):
            yield f"{name}: the parameter {parameter!r} is not described"
    if "Examples" not in sections:
        yield f"{name}: no example"


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_public_names_are_documented(namespace: str) -> None:
    if namespace == "matchmill.spark":
        pytest.importorskip("pyspark")
    problems = [
        problem for name, value in public_objects(namespace) for problem in problems_of(name, value)
    ]
    assert problems == []


def test_a_missing_part_is_found() -> None:
    def undocumented(x: int) -> None: ...

    def half(x: int, y: int) -> None:
        """Do it.

        Parameters
        ----------
        x
            A number.
        """

    assert list(problems_of("undocumented", undocumented)) == ["undocumented: no docstring"]
    assert list(problems_of("half", half)) == [
        "half: the parameter 'y' is not described",
        "half: no example",
    ]


def examples() -> Iterator[Any]:
    finder = doctest.DocTestFinder(recurse=False)
    for namespace, runs in NAMESPACES.items():
        if runs:
            for name, value in public_objects(namespace):
                for found in finder.find(value, name, module=False, globs={}):
                    if found.examples:
                        yield pytest.param(found, id=name)


@pytest.mark.parametrize("example", list(examples()))
def test_examples_run(
    example: doctest.DocTest, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=flags)
    failed, _ = runner.run(example, out=said.append)
    assert failed == 0, "".join(said)
