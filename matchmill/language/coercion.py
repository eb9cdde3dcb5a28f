"""Literals on attributes with declared types that convert: read as the values of events are.

    types = {"EventID": "number-or-text"}
    EventID = '4624'  ─►  EventID = 4624          values 4624 and '4624' are the number 4624
    EventID in ('7', 'none')  ─►  EventID in (7, 'none')

With these types a rule may write a value in one form and an event in another, in both directions.
Patterns stay what they are: they are about text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from matchmill.language.attribute_types import CONVERTING, typed_value
from matchmill.language.expression import (
    And,
    Between,
    Compare,
    Contains,
    Expression,
    In,
    Not,
    Or,
    Predicate,
    TruthTest,
    within_the_stack,
)
from matchmill.language.values import Opaque, Value, region_of

__all__ = ["coerced", "converts"]


def converts(types: Mapping[str, str]) -> bool:
    """Whether some declared type converts literals."""
    return not CONVERTING.isdisjoint(types.values())


@within_the_stack
def coerced(expression: Expression, types: Mapping[str, str]) -> Expression:
    """Return an expression with the literals of attributes read as their declared types."""
    kinds = {name: kind for name, kind in types.items() if kind in CONVERTING}
    if not kinds or expression.attributes.isdisjoint(kinds):
        return expression
    return _coerced(expression, kinds)


def _coerced(node: Expression, kinds: Mapping[str, str]) -> Expression:
    if isinstance(node, (And, Or)):
        return type(node)(tuple(_coerced(part, kinds) for part in node.operands))
    if isinstance(node, Not):
        return Not(_coerced(node.operand, kinds))
    if isinstance(node, TruthTest):
        return TruthTest(_coerced(node.operand, kinds), node.truth, node.negated)
    kind = kinds.get(node.name) if isinstance(node, Predicate) else None
    return node if kind is None else _coerced_condition(node, kind)


def _coerced_condition(node: Any, kind: str) -> Expression:
    made: Expression = node
    if isinstance(node, Compare):
        made = replace(node, value=_literal(node.value, kind))
    elif isinstance(node, (In, Contains)):
        made = replace(node, values=tuple(_literal(value, kind) for value in node.values))
    elif isinstance(node, Between):
        low, high = _literal(node.low, kind), _literal(node.high, kind)
        if region_of(low) == region_of(high):
            made = replace(node, low=low, high=high)
    return made


def _literal(value: Value, kind: str) -> Value:
    read: Any = typed_value(value, kind)
    return value if isinstance(read, Opaque) else read
