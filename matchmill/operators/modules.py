"""Modules that register operators, imported by their names."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from matchmill.errors import InputError, MatchmillError

__all__ = ["find_in_current_folder", "import_modules", "import_operators", "module_names"]


def import_modules(names: Sequence[str], problem: str) -> None:
    """Import modules; `problem` is the text of the error, with {name} and {error}."""
    for name in names:
        try:
            import_module(name)
        except MatchmillError:
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise InputError(problem.format(name=name, error=said)) from error


def module_names(operators: str | Sequence[str] | None) -> tuple[str, ...]:
    """Turn one name, several or none into a tuple."""
    if operators is None:
        return ()
    return (operators,) if isinstance(operators, str) else tuple(operators)


def import_operators(names: Sequence[str]) -> None:
    """Import modules of operators in a worker of Spark, or for it."""
    import_modules(
        names,
        "operators={name!r} cannot be imported: {error}; the module must be on the workers too,"
        " as by spark.sparkContext.addPyFile",
    )


def find_in_current_folder() -> None:
    """Let modules of the current folder be found, as Python does for a script there."""
    if "" not in sys.path:
        sys.path.insert(0, "")
