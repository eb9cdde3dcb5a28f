"""A pattern of another system as a node of an expression.

    eventbridge '{"detail":{"state":["running"]}}'     the text: name of the dialect, pattern
    superset    detail.state = 'running' or …          what the index gets: the pattern implies it
    exactness   when the superset is all that the pattern says
    holds       the pattern itself, judged on the whole event

Other systems look at more of an event than expressions do: which values stand in the same element
of an array, whether a field is null or missing. So a pattern stays what it is, and an expression
that it implies finds the events for which it may hold. It is TRUE or FALSE, never unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from matchmill.language.expression import Expression, Predicate, literal_text, walk
from matchmill.language.value_set import ValueSet

__all__ = ["DialectPattern", "Exactness", "FieldNote", "Places", "has_places"]


class Exactness(Enum):
    """For which events the superset says all that the pattern says."""

    ALL = "all"
    WITHOUT_LISTS = "events without lists"
    NONE = "none"


class FieldNote(NamedTuple):
    """What a pattern wants of one field, whether the event has it, and what was found."""

    text: str
    truth: bool
    note: str


class DialectPattern(Expression):
    """A pattern of another system. Patterns of one dialect with equal text are equal."""

    __slots__ = ()

    dialect: str
    text: str  # of the pattern

    @property
    def superset(self) -> Expression:
        """An expression that is TRUE for every event for which the pattern holds."""
        raise NotImplementedError

    @property
    def exactness(self) -> Exactness:
        """When the superset says all."""
        raise NotImplementedError

    def holds(self, event: Mapping[str, Any]) -> bool:
        """Whether the pattern holds for an event that `flatten_record` returned."""
        raise NotImplementedError

    def explain(self, event: Mapping[str, Any]) -> list[list[FieldNote]]:
        """Return the alternatives of the pattern, each with what it wants of its fields."""
        raise NotImplementedError

    def _key(self) -> tuple[object, ...]:
        return (type(self), self.dialect, self.text)

    def __str__(self) -> str:
        return f"{self.dialect} {literal_text(self.text)}"


_Clause: TypeAlias = tuple[tuple[Any, ValueSet], ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Places(Predicate):
    """Sets of values of dimensions, for supersets; there is no text that says this."""

    clause: _Clause

    def __str__(self) -> str:
        return f"({self.name} in …)"


def has_places(expression: Expression) -> bool:
    """Whether some part has no text."""
    return any(isinstance(node, Places) for node, _ in walk(expression))
