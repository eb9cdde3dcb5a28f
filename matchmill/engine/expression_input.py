"""What may stand for an expression in a call: text, a JSON pattern, or the thing itself."""

from __future__ import annotations

from matchmill.language.expression import Expression
from matchmill.language.normal_form import NormalForm, normalize
from matchmill.language.parser import is_pattern_text
from matchmill.language.read import read_expression
from matchmill.operators.alternatives import alternatives
from matchmill.operators.registry import check_operators
from matchmill.settings import Settings

__all__ = ["normal_form", "read_expression", "text_of"]


def text_of(source: object, parsed: Expression) -> str:
    """The text that is kept of an expression: the user's own, or what its tree prints as."""
    if isinstance(source, str) and not is_pattern_text(source):
        return source.strip()
    return str(parsed)


def normal_form(source: object, parsed: Expression, settings: Settings) -> NormalForm:
    """The clauses of an expression; ExpressionError if it calls operators that are not there, or in
    a way that has no meaning."""
    normal = normalize(parsed, settings.max_clauses, with_parts=True)
    if normal.has_calls:
        text = source if isinstance(source, str) else None
        check_operators(parsed, text)
        alternatives(parsed, settings.max_clauses, text)
    return normal
