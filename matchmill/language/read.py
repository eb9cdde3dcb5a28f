"""What may stand for an expression in a call: text, a JSON pattern, or an Expression.

Text and patterns may be of another dialect (`dialects/registry`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from matchmill.errors import ExpressionError
from matchmill.language.builder import Attribute
from matchmill.language.dialects.registry import MATCHMILL, check_dialect, dialect_reader
from matchmill.language.expression import (
    Expression,
    Predicate,
    check_form,
    check_limits,
    check_predicate,
    walk,
)
from matchmill.language.json_pattern import parse_json_pattern
from matchmill.language.operator_calls import (
    Call,
    Restriction,
    TextTest,
    check_call,
    check_constraint,
)
from matchmill.language.parser import is_pattern_text, parse_text
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["ExpressionSource", "read_expression", "read_matchmill"]

ExpressionSource: TypeAlias = str | Mapping[str, Any] | Expression | Attribute


def read_expression(
    source: object, settings: Settings = DEFAULT_SETTINGS, dialect: str = MATCHMILL
) -> Expression:
    """Return a checked expression.

    Parameters
    ----------
    source : str, mapping, Expression or Attribute
        Text, a JSON pattern (a mapping, or text that begins with a brace), an Expression, or a
        bare boolean attribute from `attr`.
    settings : Settings, optional
        The limits of an expression.
    dialect : str
        In which text and patterns are written.

    Raises
    ------
    ExpressionError
        If it cannot be read, or is none of these.
    InputError
        If there is no such dialect.
    LimitError
        If it is larger than the settings allow.
    """
    if dialect != MATCHMILL:
        read = dialect_reader(check_dialect(dialect))
        if not isinstance(source, (Expression, Attribute)):
            return read(source, settings)
    return read_matchmill(source, settings)


def read_matchmill(source: object, settings: Settings) -> Expression:
    """Return a checked expression from what is written in matchmill's own dialect."""
    if isinstance(source, str):
        if is_pattern_text(source):
            return parse_json_pattern(source, settings)
        return parse_text(source, settings)
    if isinstance(source, Mapping):
        return parse_json_pattern(source, settings)
    if isinstance(source, Expression):
        _check(source, settings)
        return source
    if isinstance(source, Attribute):
        return read_matchmill(source.alone(), settings)
    raise ExpressionError(
        f"an expression is text, a JSON pattern or an Expression, not {type(source).__name__}"
    )


def _check(expression: Expression, settings: Settings) -> None:
    """Check what was built by hand as the parser checks text."""
    check_limits(expression, settings, check_form)
    for node, _ in walk(expression):
        if isinstance(node, Predicate):
            check_predicate(node)
        elif isinstance(node, Call):
            check_call(node)
        elif isinstance(node, Restriction):
            check_constraint(node)
            if isinstance(node, TextTest):
                check_limits(node.test, settings)
