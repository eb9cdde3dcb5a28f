"""Operators that come with matchmill: importing this registers them.

`attribute('price', ?x)` binds the value of an attribute, for constraints, which see only variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from matchmill.language.flatten import flatten_event
from matchmill.language.values import Region, region_of
from matchmill.operators.builtin import geography as geography
from matchmill.operators.builtin import text_distance as text_distance
from matchmill.operators.outcome import value_key
from matchmill.operators.registry import Variable, operator

__all__ = ["attribute", "geography", "text_distance"]


@operator(cost_ms=0.002)
def attribute(event: Mapping[str, Any], name: str, value: Any) -> Any:
    """Bind the value of an attribute, or each element of a list.

    With a literal instead of a variable: tell whether the attribute, or an element, equals it. An
    absent attribute has no value: unknown. So has an object, and one in a list is left out.
    """
    found = event.get(name)
    if isinstance(found, np.ndarray):
        found = flatten_event({name: found}).get(name)
    if found is None or region_of(found) == Region.OBJECT:
        return None
    values = found if isinstance(found, (tuple, list)) else (found,)
    values = [v for v in values if region_of(v) != Region.OBJECT]
    if isinstance(value, Variable):
        return values
    return any(value_key(v) == value_key(value) for v in values)
