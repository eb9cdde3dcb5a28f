"""The dialect `sigma`: one rule as YAML stands for an expression."""

from __future__ import annotations

from matchmill.errors import ExpressionError
from matchmill.language.expression import Expression
from matchmill.settings import Settings
from matchmill.sigma.rules import convert

__all__ = ["read_sigma"]


def read_sigma(source: object, settings: Settings) -> Expression:
    """Return the expression of a rule."""
    if not isinstance(source, str):
        raise ExpressionError(
            f"with dialect 'sigma' an expression is the YAML of one rule, not"
            f" {type(source).__name__}"
        )
    return convert(source, settings=settings)
