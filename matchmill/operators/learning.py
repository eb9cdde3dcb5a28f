"""How often predicates are true, and what they cost: learned from what was evaluated.

    predicate    n evaluations, of which n_true came out true; milliseconds in all
    operator     the same over all of its predicates: what is assumed of one not seen yet
    class        the same once more for each class of events, where classes are told apart

An estimate leans on the wider figures as long as its own are few: a predicate's on its operator's,
an operator's on the prior (true every other time, the cost it was registered with), a predicate's
within a class on the predicate's. Old evaluations are forgotten by halving, so estimates follow
events that drift. What is true among those evaluated may differ from what is true among all events,
since an order evaluates some predicates only after others came out true; that is the figure which
the order needs.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

from matchmill.operators.bindings import PredicateKey

__all__ = ["Learned"]

EventClass: TypeAlias = Hashable

_PRIOR_TRUE = 0.5
_PRIOR_WEIGHT = 2.0  # evaluations that the wider figures count as
_COST_WEIGHT = 4.0
_WINDOW = 512.0  # evaluations after which older ones count half
_LEAST_COST = 1e-4  # milliseconds
_MOST_CLASSES = 64


class _Figures:
    __slots__ = ("milliseconds", "n", "n_true")

    def __init__(self) -> None:
        self.n = self.n_true = self.milliseconds = 0.0

    def add(self, truth: bool, milliseconds: float) -> None:
        if self.n >= _WINDOW:
            self.n /= 2
            self.n_true /= 2
            self.milliseconds /= 2
        self.n += 1
        self.n_true += truth
        self.milliseconds += milliseconds

    def selectivity(self, wider: float) -> float:
        return (self.n_true + _PRIOR_WEIGHT * wider) / (self.n + _PRIOR_WEIGHT)

    def cost(self, wider: float) -> float:
        return (self.milliseconds + _COST_WEIGHT * wider) / (self.n + _COST_WEIGHT)


_NOTHING = _Figures()


class Learned:
    """Estimates for predicates. Any thread may ask and add; a lost addition does no harm."""

    def __init__(self) -> None:
        self._operators: dict[str, _Figures] = {}
        self._predicates: dict[PredicateKey, _Figures] = {}
        self._classes: dict[EventClass, dict[PredicateKey, _Figures]] = {}

    def add(
        self, key: PredicateKey, truth: bool, milliseconds: float, event_class: EventClass = None
    ) -> None:
        """Note one evaluation. An error counts as not true."""
        for figures in (
            self._operators.setdefault(key[0], _Figures()),
            self._predicates.setdefault(key, _Figures()),
        ):
            figures.add(truth, milliseconds)
        if event_class is not None:
            of_class = self._classes.get(event_class)
            if of_class is None and len(self._classes) < _MOST_CLASSES:
                of_class = self._classes.setdefault(event_class, {})
            if of_class is not None:
                of_class.setdefault(key, _Figures()).add(truth, milliseconds)

    def selectivity(self, key: PredicateKey, event_class: EventClass = None) -> float:
        """Return the chance that a predicate is true; above 0 and below 1."""
        of_operator = self._operators.get(key[0], _NOTHING).selectivity(_PRIOR_TRUE)
        own = self._predicates.get(key, _NOTHING).selectivity(of_operator)
        of_class = self._classes.get(event_class) if event_class is not None else None
        return own if of_class is None else of_class.get(key, _NOTHING).selectivity(own)

    def cost(self, key: PredicateKey, prior: float) -> float:
        """Return the milliseconds that an evaluation takes; `prior` is the cost of the operator."""
        of_operator = self._operators.get(key[0], _NOTHING).cost(prior)
        own = self._predicates.get(key, _NOTHING).cost(of_operator)
        return max(own, _LEAST_COST)

    def forget(self, key: PredicateKey) -> None:
        """Drop what is known of a predicate that is not needed any more."""
        self._predicates.pop(key, None)
        for of_class in list(self._classes.values()):
            of_class.pop(key, None)
