"""Predicates that are the same, and values for variables on which all of them agree.

Two calls are one predicate if their operators and literals agree and their variables unify
(Expensive operators, section 3): p(?x, ?y) is p(?a, ?b), and is not p(?x, ?x). So a predicate is
an operator's name and its arguments with variables numbered; it is evaluated once per event, and
what it binds is renamed for each subscription.

    relation    variables   the names in one subscription, distinct
                rows        the bindings: one value for each

`solutions` joins relations naturally and checks constraints (section 2.2), depth first, so that
the first solution is found without making the whole join. A constraint is checked as soon as its
variables are bound, which gives the same answer as at the end. Relations that share no variable
and no constraint with each other are solved apart: no product of theirs is ever made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from matchmill.language.operator_calls import Call, Constraint, holds
from matchmill.language.values import Value
from matchmill.operators.outcome import Binding, value_key
from matchmill.operators.registry import Argument, arguments_of

__all__ = [
    "JoinTooLarge",
    "PredicateKey",
    "Relation",
    "arguments_of_key",
    "is_satisfiable",
    "predicate_key",
    "solutions",
]

PredicateKey: TypeAlias = tuple[str, tuple[tuple[Any, ...], ...]]

_MOST_STEPS = 1_000_000


class Relation(NamedTuple):
    """The bindings of one call."""

    variables: tuple[str, ...]
    rows: Sequence[Binding]


class JoinTooLarge(Exception):
    """A join that was given up: more bindings were tried than is sensible."""


def predicate_key(call: Call) -> PredicateKey:
    """Return a key that is equal for calls that are the same predicate.

    Literals agree if they are the same to Python code, too: 1 and 1.0 are two predicates.
    """
    return call.name, tuple((type(a).__name__, a) for a in arguments_of(call))


def arguments_of_key(key: PredicateKey) -> tuple[Argument, ...]:
    """Return the arguments as the operator gets them."""
    return tuple(argument for _, argument in key[1])


# -- joins ----------------------------------------------------------------------------------------


def is_satisfiable(relations: Sequence[Relation], constraints: Sequence[Constraint]) -> bool:
    """Tell whether there are values on which all relations agree and all constraints hold."""
    parts = _parts(relations, constraints)
    return all(any(True for _ in solutions(*part)) for part in parts)


def solutions(
    relations: Sequence[Relation], constraints: Sequence[Constraint]
) -> Iterator[dict[str, Value]]:
    """Return all assignments of values to the variables, one after the other."""
    steps = _plan(relations, constraints)
    budget = [_MOST_STEPS]
    yield from _search(steps, 0, {}, budget)


class _Step(NamedTuple):
    """One relation of a join, by the values of those variables that are bound before it."""

    known: tuple[str, ...]
    new: tuple[str, ...]
    rows: Mapping[tuple[Any, ...], list[Binding]]  # values of `known` → values of `new`
    constraints: tuple[Constraint, ...]  # whose last variable is bound here


def _search(
    steps: Sequence[_Step], depth: int, values: dict[str, Value], budget: list[int]
) -> Iterator[dict[str, Value]]:
    if depth == len(steps):
        yield dict(values)
        return
    step = steps[depth]
    at = tuple(value_key(values[name]) for name in step.known)
    for row in step.rows.get(at, ()):
        budget[0] -= 1
        if budget[0] < 0:
            raise JoinTooLarge(f"a join has tried more than {_MOST_STEPS} bindings")
        values.update(zip(step.new, row, strict=True))
        if all(holds(constraint, values) for constraint in step.constraints):
            yield from _search(steps, depth + 1, values, budget)


def _plan(relations: Sequence[Relation], constraints: Sequence[Constraint]) -> list[_Step]:
    """Order relations: small ones first, then those that share a bound variable."""
    waiting = sorted(relations, key=lambda r: len(r.rows))
    unchecked = list(constraints)
    bound: set[str] = set()
    steps = []
    while waiting:
        linked = [r for r in waiting if bound.intersection(r.variables)]
        chosen = (linked or waiting)[0]
        waiting.remove(chosen)
        known = tuple(v for v in chosen.variables if v in bound)
        new = tuple(v for v in chosen.variables if v not in bound)
        bound.update(new)
        due = tuple(c for c in unchecked if bound.issuperset(c.variables))
        unchecked = [c for c in unchecked if c not in due]
        steps.append(_Step(known, new, _by_known(chosen, known, new), due))
    return steps


def _by_known(
    relation: Relation, known: Iterable[str], new: Iterable[str]
) -> dict[tuple[Any, ...], list[Binding]]:
    places = {name: i for i, name in enumerate(relation.variables)}
    key_places = [places[name] for name in known]
    new_places = [places[name] for name in new]
    found: dict[tuple[Any, ...], list[Binding]] = {}
    for row in relation.rows:
        at = tuple(value_key(row[i]) for i in key_places)
        found.setdefault(at, []).append(tuple(row[i] for i in new_places))
    return found


def _parts(
    relations: Sequence[Relation], constraints: Sequence[Constraint]
) -> Iterator[tuple[list[Relation], list[Constraint]]]:
    """Return groups of relations that share variables or constraints."""
    group_of: dict[str, set[str]] = {}
    for names in [*(r.variables for r in relations), *(c.variables for c in constraints)]:
        merged = set(names).union(*(group_of.get(name, set()) for name in names))
        for name in merged:
            group_of[name] = merged
    groups = {id(group): group for group in group_of.values()}
    for group in groups.values():
        yield (
            [r for r in relations if group.intersection(r.variables)],
            [c for c in constraints if group.intersection(c.variables)],
        )
