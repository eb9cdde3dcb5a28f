"""Modules that register operators, imported where expressions with operators are read or asked."""

from __future__ import annotations

from collections.abc import Sequence

from matchmill.operators.modules import import_modules

__all__ = ["import_operators", "module_names"]


def module_names(operators: str | Sequence[str] | None) -> tuple[str, ...]:
    """One name, several, or none."""
    if operators is None:
        return ()
    return (operators,) if isinstance(operators, str) else tuple(operators)


def import_operators(names: Sequence[str]) -> None:
    import_modules(
        names,
        "operators={name!r} cannot be imported: {error}; the module must be on the workers too,"
        " as by spark.sparkContext.addPyFile",
    )
