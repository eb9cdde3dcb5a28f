"""Expressions as requests hold them: text, or a JSON pattern as an object."""

from __future__ import annotations

from typing import Any, NamedTuple

from matchmill.engine.expression_input import normal_form, read_expression
from matchmill.errors import ExpressionError
from matchmill.language.dialects.registry import MATCHMILL
from matchmill.language.expression import Expression
from matchmill.language.normal_form import NormalForm
from matchmill.service.json_body import compact
from matchmill.settings import Settings

__all__ = ["CheckedExpression", "checked_expression"]


class CheckedExpression(NamedTuple):
    """An expression that can be subscribed with; `text` is what is stored."""

    text: str
    parsed: Expression
    normal: NormalForm


def checked_expression(
    given: str | dict[str, Any], settings: Settings, dialect: str = MATCHMILL
) -> CheckedExpression:
    """Read and check an expression; ExpressionError if it cannot be used."""
    if isinstance(given, str):
        return _checked(given, settings, dialect)
    try:
        text = compact(given)
    except (ValueError, RecursionError):
        message = "the pattern has an infinite number, or is nested too deeply"
        raise ExpressionError(message) from None
    try:
        return _checked(text, settings, dialect)
    except ExpressionError as error:  # a position in a text that the caller has not seen
        raise type(error)(error.message, hint=error.hint) from None


def _checked(text: str, settings: Settings, dialect: str) -> CheckedExpression:
    parsed = read_expression(text, settings, dialect)
    normal = normal_form(text, parsed, settings)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ExpressionError(
            "the expression holds half of a character", text=text, position=error.start
        ) from None
    stored = text if dialect == MATCHMILL else str(parsed)
    return CheckedExpression(stored, parsed, normal)
