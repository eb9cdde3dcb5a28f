"""What every order of evaluation is: it walks over chains and says which condition comes next.

    chain       one alternative of a subscription: the numbers of its conditions, all of which
                must be true. Conditions with the same number are one predicate (the links between
                chains in Expensive operators, section 4.2)
    known       condition → whether it is true, for those evaluated for this event so far
    walk        a generator: it yields a condition that is not known, and by the time it goes on,
                the condition is. So the caller decides how to evaluate, and may walk for many
                events at once
    complete    called by the walk for a chain all of whose conditions are true; says which chains
                need no look any more (others of the same subscription, if variables agree)

An order never changes an answer: a chain is left out only if one of its conditions is false.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from importlib import import_module
from typing import Protocol, TypeAlias

__all__ = [
    "ORDERS",
    "Complete",
    "Estimate",
    "Known",
    "KnowsChains",
    "Strategy",
    "Walk",
    "order_class",
]

ORDERS: dict[str, str] = {
    "adaptive": "operators.adaptive:Adaptive",
    "sub_order": "papers.expensive_operators.sub_order:SubOrder",
    "greedy_path": "papers.expensive_operators.greedy_path:GreedyPath",
    "sequential": "papers.expensive_operators.sequential:Sequential",
    "naive": "papers.expensive_operators.naive:Naive",
}
"""Each order by its name; its class is imported when it is needed."""

Known: TypeAlias = Mapping[int, bool]
Complete: TypeAlias = Callable[[int], Collection[int]]
Walk: TypeAlias = Generator[int, None, None]
Estimate: TypeAlias = Callable[[int], tuple[float, float]]  # condition → (chance of true, cost)


class Strategy(Protocol):
    """An order in which conditions are evaluated."""

    def add(self, chain: int, conditions: Sequence[int]) -> None:
        """Add a chain; its conditions differ."""
        ...

    def remove(self, chain: int) -> None:
        """Remove a chain."""
        ...

    def walk(
        self, chains: Collection[int], known: Known, complete: Complete, estimate: Estimate
    ) -> Walk:
        """Decide some of the chains for one event."""
        ...


def order_class(name: str) -> Callable[[], Strategy]:
    """Return the class of an order, by its name."""
    module, _, class_name = ORDERS[name].partition(":")
    found: Callable[[], Strategy] = getattr(import_module(f"matchmill.{module}"), class_name)
    return found


class KnowsChains:
    """An order that needs no more of chains than their conditions, as they were written."""

    def __init__(self) -> None:
        self._conditions: dict[int, tuple[int, ...]] = {}

    def add(self, chain: int, conditions: Sequence[int]) -> None:
        """Add a chain."""
        self._conditions[chain] = tuple(conditions)

    def remove(self, chain: int) -> None:
        """Remove a chain."""
        del self._conditions[chain]
