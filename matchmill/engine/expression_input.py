"""Reading an expression from text, a JSON pattern or an Expression."""

from __future__ import annotations

from collections.abc import Mapping

from matchmill.errors import ExpressionError
from matchmill.language.builder import Attribute
from matchmill.language.expression import Expression, Predicate, check_limits, check_predicate, walk
from matchmill.language.json_pattern import parse_json_pattern
from matchmill.language.normal_form import NormalForm, normalize
from matchmill.language.operator_calls import (
    Call,
    Constraint,
    check_call,
    check_constraint,
    has_calls,
)
from matchmill.language.parser import parse
from matchmill.operators.alternatives import alternatives
from matchmill.operators.registry import check_operators
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["checked_expression", "normal_form", "read_expression", "text_of"]


def read_expression(source: object, settings: Settings = DEFAULT_SETTINGS) -> Expression:
    """Read text, a JSON pattern (a mapping, or text that begins with a brace) or an Expression."""
    if isinstance(source, str):
        if source.lstrip()[:1] == "{":
            return parse_json_pattern(source, settings)
        return parse(source, settings)
    if isinstance(source, Mapping):
        return parse_json_pattern(source, settings)
    if isinstance(source, Expression):
        check_limits(source, settings)
        for node, _ in walk(source):
            if isinstance(node, Predicate):
                check_predicate(node)
            elif isinstance(node, Call):
                check_call(node)
            elif isinstance(node, Constraint):
                check_constraint(node)
        return source
    if isinstance(source, Attribute):  # a bare boolean attribute
        return read_expression(source.is_true(), settings)
    raise ExpressionError(
        f"an expression is text, a JSON pattern or an Expression, not {type(source).__name__}"
    )


def checked_expression(source: object, settings: Settings = DEFAULT_SETTINGS) -> Expression:
    """Read an expression; ExpressionError also for a call of an unknown operator."""
    parsed = read_expression(source, settings)
    if has_calls(parsed):
        check_operators(parsed, source if isinstance(source, str) else None)
    return parsed


def text_of(source: object, parsed: Expression) -> str:
    """Return the text that is stored: the user's own, or what the expression prints as."""
    if isinstance(source, str) and source.lstrip()[:1] != "{":
        return source.strip()
    return str(parsed)


def normal_form(source: object, parsed: Expression, settings: Settings) -> NormalForm:
    """Return the clauses of an expression; ExpressionError if it calls operators wrongly."""
    normal = normalize(parsed, settings.max_clauses, with_parts=True)
    if normal.has_calls:
        text = source if isinstance(source, str) else None
        check_operators(parsed, text)
        alternatives(parsed, settings.max_clauses, text)
    return normal
