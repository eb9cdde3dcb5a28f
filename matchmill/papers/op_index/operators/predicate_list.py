"""The one interface of a predicate list: all predicates of one operator below one pivot.

A predicate is a number that the caller chose, with an attribute and an operand: the list "prefix"
may hold 7 for `name` and "ab". The list says which of its predicates a value of an attribute
satisfies. It knows nothing of subscriptions, counters and pivots (paper, Figure 6: `Item` is what a
list stores, `NewItem` what the index puts around it).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

__all__ = ["PredicateList"]


class PredicateList(Protocol):
    """What a new operator has to implement. A list is made by calling its class, without arguments.

    An event may hold values of any type; a value that the operator is not defined for satisfies
    nothing.
    """

    def insert(self, predicate: int, attribute: str, operand: Any) -> None:
        """Add a predicate; raise InputError, and change nothing, if the operand is of no use."""
        ...

    def delete(self, predicate: int, attribute: str, operand: Any) -> None:
        """Remove a predicate that was inserted with this attribute and operand."""
        ...

    def match(self, attribute: str, value: Any) -> Iterable[int]:
        """Return each predicate that a value of an attribute satisfies, once, in any order."""
        ...
