"""What the operators of typed trees mean, in plain Python."""

from __future__ import annotations

import operator as op
from collections.abc import Callable
from typing import Any

MEANINGS: dict[str, Callable[[Any, list[Any]], bool]] = {
    "=": lambda v, given: v == given[0],
    "!=": lambda v, given: v != given[0],
    "<": lambda v, given: op.lt(v, given[0]),
    "<=": lambda v, given: op.le(v, given[0]),
    ">": lambda v, given: op.gt(v, given[0]),
    ">=": lambda v, given: op.ge(v, given[0]),
    "between": lambda v, given: given[0] <= v <= given[1],
    "in": lambda v, given: v in given,
    "not in": lambda v, given: v not in given,
}
