"""Modules that register operators, imported where expressions with operators are read or asked."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from matchmill.errors import InputError, MatchmillError

__all__ = ["import_operators", "module_names"]


def module_names(operators: str | Sequence[str] | None) -> tuple[str, ...]:
    """One name, several, or none."""
    if operators is None:
        return ()
    return (operators,) if isinstance(operators, str) else tuple(operators)


def import_operators(names: Sequence[str]) -> None:
    for name in names:
        try:
            import_module(name)
        except MatchmillError:
            raise
        except Exception as error:
            raise InputError(
                f"operators={name!r} cannot be imported: {type(error).__name__}: {error};"
                " the module must be on the workers too, as by spark.sparkContext.addPyFile"
            ) from error
