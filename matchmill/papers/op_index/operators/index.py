"""OpIndex over operators that a user can add.

    lists[pivot]      a PredicateList for each operator that a subscription of this pivot has
    predicates        number → subscription
    n_needed          how many predicates each subscription has

A subscription is filed under its rarest attribute. An event asks the lists of the pivots that it
has, each with all of its values, and a subscription of which as many predicates are satisfied as it
has matches. So a list below a pivot that the event does not have, however dear its operator, is
not asked: an expression on `name` is evaluated only for events that have what is rarer than `name`.

    s1: name regex "a.c"                 pivot name
    s2: name prefix "ab", size >= 3      name is in a subscription already, size in none: pivot size
    event {name: "abc"}                  asks the lists of pivot name, and finds s1; the prefix list
                                         below size is not asked

The rarest attribute is the one of the fewest subscriptions so far, or of the smallest number in
`frequencies`. Of equals an attribute with `=` is taken, and then the first.

Changes are made in place: no reader may match while something is inserted or deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from matchmill.errors import DuplicateIdError, InputError, UnknownIdError, did_you_mean, shown
from matchmill.language.flatten import flatten_event
from matchmill.papers.op_index.operators.ordered_lists import (
    AtLeastList,
    AtMostList,
    EqualList,
    OneOfList,
)
from matchmill.papers.op_index.operators.predicate_list import PredicateList
from matchmill.papers.op_index.operators.text_lists import PrefixList, RegexList, SuffixList

__all__ = ["OPERATORS", "Condition", "ExtensibleOpIndex"]

OPERATORS: dict[str, Callable[[], PredicateList]] = {
    "=": EqualList,
    "<=": AtMostList,
    ">=": AtLeastList,
    "in": OneOfList,
    "prefix": PrefixList,
    "suffix": SuffixList,
    "regex": RegexList,
}


class Condition(NamedTuple):
    """One predicate of a subscription."""

    attribute: str
    operator: str
    operand: Any


class _Filed(NamedTuple):
    pivot: str
    predicates: tuple[tuple[int, Condition], ...]


class ExtensibleOpIndex:
    """Subscriptions as conjunctions of conditions, in lists by pivot and operator."""

    def __init__(
        self,
        operators: Mapping[str, Callable[[], PredicateList]] | None = None,
        *,
        frequencies: Mapping[str, int] | None = None,
    ) -> None:
        """`operators` are added to OPERATORS; `frequencies` say how many events have attributes."""
        self._operators = {**OPERATORS, **(operators or {})}
        self._known_frequencies = frequencies
        self._frequencies: Counter[str] = Counter()
        self._lists: dict[str, dict[str, PredicateList]] = {}
        self._filed: dict[Hashable, _Filed] = {}
        self._owners: dict[int, Hashable] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._filed)

    def subscribe(self, id: Hashable, conditions: Sequence[tuple[str, str, Any]]) -> None:
        """Store a subscription; if a list rejects an operand, nothing has changed."""
        if id in self._filed:
            raise DuplicateIdError(f"there is a subscription {shown(id)} already; delete it first")
        checked = [self._checked(condition) for condition in conditions]
        if not checked:
            raise InputError("a subscription has at least one condition")
        pivot = self._pivot_of(checked)
        filed: list[tuple[int, Condition]] = []
        try:
            for condition in checked:
                lists = self._lists.setdefault(pivot, {})
                if condition.operator not in lists:
                    lists[condition.operator] = self._operators[condition.operator]()
                number = self._next + len(filed)
                lists[condition.operator].insert(number, condition.attribute, condition.operand)
                filed.append((number, condition))
        except BaseException:
            self._take_out(pivot, filed)
            raise
        self._next += len(filed)
        self._filed[id] = _Filed(pivot, tuple(filed))
        self._owners |= {number: id for number, _ in filed}
        self._frequencies.update({condition.attribute for condition in checked})

    def unsubscribe(self, id: Hashable) -> None:
        """Remove a subscription."""
        if id not in self._filed:
            raise UnknownIdError(f"there is no subscription {shown(id)}")
        filed = self._filed.pop(id)
        self._take_out(filed.pivot, filed.predicates)
        for number, _ in filed.predicates:
            del self._owners[number]
        self._frequencies.subtract({condition.attribute for _, condition in filed.predicates})

    def match(self, event: Any) -> set[Any]:
        """Return the ids of the subscriptions that an event satisfies."""
        values = flatten_event(event)
        found: set[Any] = set()
        for pivot in values:
            n_satisfied: Counter[Hashable] = Counter()
            for predicates in self._lists.get(pivot, {}).values():
                for attribute, value in values.items():
                    n_satisfied.update(
                        self._owners[number] for number in predicates.match(attribute, value)
                    )
            found |= {id for id, n in n_satisfied.items() if n == len(self._filed[id].predicates)}
        return found

    def _checked(self, condition: tuple[str, str, Any]) -> Condition:
        attribute, operator, operand = condition
        if not isinstance(attribute, str) or not attribute:
            raise InputError(f"the attribute of a condition is a name, not {shown(attribute)}")
        if operator not in self._operators:
            hint = did_you_mean(str(operator), self._operators)
            raise InputError(
                f"there is no operator {shown(operator)}; there are: "
                f"{', '.join(self._operators)}{hint}"
            )
        return Condition(attribute, operator, operand)

    def _pivot_of(self, conditions: list[Condition]) -> str:
        known = self._frequencies if self._known_frequencies is None else self._known_frequencies
        rarest = min(conditions, key=lambda c: (known.get(c.attribute, 0), c.operator != "="))
        return rarest.attribute

    def _take_out(self, pivot: str, filed: Sequence[tuple[int, Condition]]) -> None:
        """Remove predicates; lists without predicates stay until the pivot has none."""
        lists = self._lists.get(pivot, {})
        for number, condition in filed:
            lists[condition.operator].delete(number, condition.attribute, condition.operand)
