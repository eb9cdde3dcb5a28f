"""Modules that register operators, imported by their names."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from matchmill.errors import InputError, MatchmillError

__all__ = ["find_in_current_folder", "import_modules"]


def import_modules(names: Sequence[str], problem: str) -> None:
    """Import them; InputError if one cannot be. `problem` says so, with {name} and {error}."""
    for name in names:
        try:
            import_module(name)
        except MatchmillError:
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise InputError(problem.format(name=name, error=said)) from error


def find_in_current_folder() -> None:
    """Have modules of the current folder found, as Python itself does for a script there."""
    if "" not in sys.path:
        sys.path.insert(0, "")
