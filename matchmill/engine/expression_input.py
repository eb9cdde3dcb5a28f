"""Reading an expression from text, a JSON pattern or an Expression."""

from __future__ import annotations

from collections.abc import Mapping

from matchmill.language.coercion import coerced
from matchmill.language.comments import may_have_comments
from matchmill.language.dialects.pattern import DialectPattern
from matchmill.language.dialects.registry import MATCHMILL
from matchmill.language.expression import Expression
from matchmill.language.normal_form import NormalForm, normalize
from matchmill.language.operator_calls import has_calls, has_restrictions
from matchmill.language.parser import is_pattern_text
from matchmill.language.read import read_expression
from matchmill.operators.alternatives import alternatives
from matchmill.operators.registry import check_operators
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["checked_expression", "normal_form", "read_expression", "read_typed", "text_of"]


def checked_expression(
    source: object, settings: Settings = DEFAULT_SETTINGS, dialect: str = MATCHMILL
) -> Expression:
    """Read an expression; ExpressionError also for a call of an unknown operator."""
    parsed = read_expression(source, settings, dialect)
    if has_calls(parsed) or has_restrictions(parsed):
        check_operators(parsed, source if isinstance(source, str) else None)
    return parsed


def read_typed(
    source: object, types: Mapping[str, str], settings: Settings, dialect: str = MATCHMILL
) -> tuple[Expression, str]:
    """Read an expression for an engine with declared types; also return the text to store.

    Literals of attributes whose types convert are stored as they are read.
    """
    parsed = read_expression(source, settings, dialect)
    read = coerced(parsed, types)
    return read, text_of(source, parsed, dialect) if read == parsed else str(read)


def text_of(source: object, parsed: Expression, dialect: str = MATCHMILL) -> str:
    """Return the text that is stored: the user's own without comments, or what is printed."""
    is_ours = dialect == MATCHMILL and not isinstance(parsed, DialectPattern)
    if is_ours and isinstance(source, str):
        if not is_pattern_text(source) and not may_have_comments(source):
            return source.strip()
    return str(parsed)


def normal_form(source: object, parsed: Expression, settings: Settings) -> NormalForm:
    """Return the clauses of an expression; ExpressionError if it calls operators wrongly."""
    normal = normalize(parsed, settings.max_clauses, nested=True)
    text = source if isinstance(source, str) else None
    if not normal.exact and has_restrictions(parsed):
        check_operators(parsed, text)
    if normal.has_calls:
        check_operators(parsed, text)
        alternatives(parsed, settings.max_clauses, text)
    return normal
