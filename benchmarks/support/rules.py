"""Expressions of flight alerts in the words of others: rules of `rule-engine`, Python functions.

Both know two truth values, so only what makes an expression TRUE is written, negation pushed down
to the predicates, and whatever asks for the order of an attribute, or for another value than one,
is guarded against null; but only for attributes that are null in some event. That is how one would
write these rules by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from matchmill.language.expression import (
    And,
    Between,
    Compare,
    Expression,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
)
from matchmill.language.patterns import like_shape

__all__ = ["PYTHON", "RULE_ENGINE", "Dialect", "written"]

_NEGATED = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class Dialect(NamedTuple):
    """How one rule language writes an expression."""

    attribute: Callable[[str], str]
    literal: Callable[[Any], str]
    values: Callable[[str], str]  # the list of some literals, of which there are commas between
    is_null: str
    is_not_null: str
    starts: str
    ends: str


def _python_attribute(name: str) -> str:
    return f"e[{name!r}]"


PYTHON = Dialect(
    _python_attribute, repr, "{{{}}}".format, "is None", "is not None", "startswith", "endswith"
)
RULE_ENGINE = Dialect(str, repr, "[{}]".format, "== null", "!= null", "starts_with", "ends_with")


def written(
    expression: Expression, dialect: Dialect, nullable: frozenset[str], wanted: bool = True
) -> str:
    """Return what holds where the expression is TRUE; FALSE if it is not wanted."""
    if isinstance(expression, Not):
        return written(expression.operand, dialect, nullable, not wanted)
    if isinstance(expression, And | Or):
        word = " and " if isinstance(expression, And) == wanted else " or "
        parts = (written(p, dialect, nullable, wanted) for p in expression.operands)
        return f"({word.join(parts)})"
    if not isinstance(expression, Predicate):
        raise TypeError(f"no alert says {expression}")
    text, fails_on_null = _predicate(expression, dialect, wanted)
    if fails_on_null and expression.name in nullable:
        return f"({dialect.attribute(expression.name)} {dialect.is_not_null} and {text})"
    return text


def _predicate(p: Predicate, dialect: Dialect, wanted: bool) -> tuple[str, bool]:
    """Its text, and whether that is no use for null: an error, or true."""
    x, literal = dialect.attribute(p.name), dialect.literal
    if isinstance(p, IsNull):
        return f"{x} {dialect.is_not_null if p.negated == wanted else dialect.is_null}", False
    if isinstance(p, Compare):
        op = p.op if wanted else _NEGATED[p.op]
        return f"{x} {'==' if op == '=' else op} {literal(p.value)}", op != "="
    if isinstance(p, In):
        within = f"{x} in {dialect.values(', '.join(map(literal, p.values)))}"
        return (f"not ({within})", True) if p.negated == wanted else (within, False)
    if isinstance(p, Between):
        low, high = literal(p.low), literal(p.high)
        if p.negated == wanted:
            return f"({x} < {low} or {x} > {high})", True
        return f"({x} >= {low} and {x} <= {high})", True
    if isinstance(p, Like) and not p.ignore_case:
        kind, text = like_shape(p.pattern)
        method: Mapping[str, str] = {"prefix": dialect.starts, "suffix": dialect.ends}
        call = f"{x}.{method[kind]}({literal(text)})"
        return (f"not {call}" if p.negated == wanted else call), True
    raise TypeError(f"no alert says {p}")
