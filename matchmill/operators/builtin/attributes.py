"""`attribute('price', ?x)`: an attribute's value for constraints, which see variables only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matchmill.operators.outcome import value_key
from matchmill.operators.registry import Free, operator

__all__ = ["attribute"]


@operator(cost=0.002)
def attribute(event: Mapping[str, Any], name: str, value: Any) -> Any:
    """Binds an attribute's value, or each element of a list. With a literal in its place: whether
    the attribute, or an element, equals it. An absent attribute has no value: unknown."""
    found = event.get(name)
    if found is None:
        return None
    values = found if isinstance(found, tuple) else (found,)
    if isinstance(value, Free):
        return values
    return any(value_key(v) == value_key(value) for v in values)
