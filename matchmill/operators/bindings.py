"""Predicates that are the same, and values for variables on which all of them agree.

Two calls are one predicate if their operators and literals agree and their variables unify
(Expensive operators, section 3): p(?x, ?y) is p(?a, ?b), and is not p(?x, ?x). So a predicate is
an operator's name and its arguments with variables numbered; it is evaluated once per event, and
what it binds is renamed for each subscription.

    relation    variables   the names in one subscription, distinct
                rows        the bindings: one value for each

`find_solution` joins relations naturally and checks constraints (section 2.2), depth first, so that
the first solution is found without making the whole join:

    ?x in {1, 2, …}      ?y in {…} with ?y = ?x + 1      ?z in {…} with ?z < ?y
    every row            the rows at a key (a hash)       a range of sorted rows

A constraint that calculates, such as `?x + ?y = 7`, is a range of rows as well (`linear`).

A constraint is used, or checked, as soon as its variables are bound, which gives the same answer as
at the end. What has failed once for some values of the variables that matter later is not searched
again, so a chain of relations takes the square of their size and not a power. Relations that share
no variable and no constraint with each other are solved apart: no product of theirs is ever made.

All this does not help much with `?x * ?y * ?z * … = 1`. So every row that is tried, and the making
of the plan, is paid from a `JoinBudget`; a join that cannot pay is given up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from matchmill.language.constraint_truth import holds, term_value
from matchmill.language.expression import Operator
from matchmill.language.operator_calls import Call, Constraint, Range, Restriction
from matchmill.language.terms import Term, Variable, parts_of_terms
from matchmill.language.values import Region, Value
from matchmill.operators.linear import Linear, SortedRows, linear_form
from matchmill.operators.outcome import Binding, value_key
from matchmill.operators.registry import Argument, arguments_of

__all__ = [
    "JoinBudget",
    "JoinTooLarge",
    "PredicateKey",
    "Relation",
    "arguments_of_key",
    "find_solution",
    "predicate_key",
]

PredicateKey: TypeAlias = tuple[str, tuple[tuple[Any, ...], ...]]

_ROWS_PER_STEP = 10  # rows that are only filed cost a tenth of one that is tried
_STEPS_PER_SUM = 5  # a range of sorted sums costs more than a row that is tried
_MIRRORED: dict[Operator, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Relation(NamedTuple):
    """The bindings of one call."""

    variables: tuple[str, ...]
    rows: Sequence[Binding]


class JoinTooLarge(Exception):
    """A join that was given up: it has tried more values than it may."""


class JoinBudget:
    """How many values a join may still try."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.spent = 0

    def spend(self, steps: int) -> None:
        """Pay for some steps; raise JoinTooLarge if there are not enough left."""
        self.spent += steps
        if self.spent > self.steps:
            raise JoinTooLarge(
                f"a join has tried more than {self.steps:,} values for its variables: narrow it"
                " by constraints, or raise the setting max_join_steps"
            )


def predicate_key(call: Call) -> PredicateKey:
    """Return a key that is equal for calls that are the same predicate.

    Literals agree if they are the same to Python code, too: 1 and 1.0 are two predicates.
    """
    return call.name, tuple((type(a).__name__, a) for a in arguments_of(call))


def arguments_of_key(key: PredicateKey) -> tuple[Argument, ...]:
    """Return the arguments as the operator gets them."""
    return tuple(argument for _, argument in key[1])


# -- joins ----------------------------------------------------------------------------------------


def find_solution(
    relations: Sequence[Relation], constraints: Sequence[Restriction], budget: JoinBudget
) -> dict[str, Value] | None:
    """Return values on which all relations agree and all constraints hold; None if there are none.

    The constraints look at no attributes of the event any more (`Restriction.for_event`).

    Raises
    ------
    JoinTooLarge
        If that would take more steps than the budget has.
    """
    found: dict[str, Value] = {}
    for some_relations, some_constraints in _parts(relations, _comparisons(constraints)):
        search = _Search(_plan(some_relations, some_constraints, budget), budget)
        if not search.succeeds():
            return None
        found.update(search.values)
    return found


def _comparisons(constraints: Sequence[Restriction]) -> list[Restriction]:
    """Return constraints with two comparisons in place of each `between`."""
    found: list[Restriction] = []
    for one in constraints:
        if isinstance(one, Range) and not one.negated:
            found += (Constraint(one.term, ">=", one.low), Constraint(one.term, "<=", one.high))
        else:
            found.append(one)
    return found


class _Rows(NamedTuple):
    """Rows with equal keys; if they are sorted by a column, the keys of its values."""

    rows: list[Binding]
    sorted_keys: list[tuple[int, Any]]
    by_sum: SortedRows | None  # in place of both


class _Step(NamedTuple):
    """One relation of a join, and how its rows are found by what is bound before it."""

    live: tuple[str, ...]  # variables bound before that this step or a later one uses
    keys: tuple[Term, ...]  # of such variables: their values are the key of the rows
    rows: Mapping[tuple[Any, ...], _Rows]
    ranges: tuple[tuple[Operator, Term], ...]  # what the sorted column is compared with
    new: tuple[str, ...]  # variables that a row binds
    constraints: tuple[Restriction, ...]  # whose last variable is bound here; no keys or ranges
    cost: int  # of a row: constraints may calculate


class _Search:
    """A search in depth. What has failed once is not searched again."""

    def __init__(self, steps: Sequence[_Step], budget: JoinBudget) -> None:
        self.values: dict[str, Value] = {}
        self._steps = steps
        self._budget = budget

    def succeeds(self) -> bool:
        """Find the first solution, which is then in `values`."""
        steps, values = self._steps, self.values
        failed: set[tuple[Any, ...]] = set()
        states = [self._state(0)]
        open_rows = [self._rows_at(steps[0])]
        while open_rows:
            depth = len(open_rows) - 1
            if not self._take_row(steps[depth], open_rows[-1]):
                open_rows.pop()
                failed.add(states.pop())
                continue
            if depth + 1 == len(steps):
                return True
            state = self._state(depth + 1)
            if state not in failed:
                states.append(state)
                open_rows.append(self._rows_at(steps[depth + 1]))
        values.clear()
        return False

    def _take_row(self, step: _Step, rows: Iterator[Binding]) -> bool:
        """Bind the next row that satisfies the constraints; return False if there is none."""
        for row in rows:
            self._budget.spend(step.cost)
            self.values.update(zip(step.new, row, strict=True))
            if all(holds(one, self.values) for one in step.constraints):
                return True
        return False

    def _state(self, depth: int) -> tuple[Any, ...]:
        """Return all that the rest of the search depends on; 1 and 1.0 calculate differently."""
        live = [self.values[name] for name in self._steps[depth].live]
        return (depth, *map(type, live), *live)

    def _rows_at(self, step: _Step) -> Iterator[Binding]:
        key = tuple(_term_key(term, self.values) for term in step.keys)
        found = step.rows.get(key)
        if found is None:
            return iter(())
        if found.by_sum is not None:
            self._budget.spend(_STEPS_PER_SUM)
            return found.by_sum.candidates(self.values)
        start, stop = 0, len(found.rows)
        for op, term in step.ranges:
            first, last = _range(found.sorted_keys, op, _term_key(term, self.values))
            start, stop = max(start, first), min(stop, last)
        return iter(found.rows[start:stop])


def _term_key(term: Term, values: Mapping[str, Value]) -> tuple[int, Any]:
    """Return the key of a term; that of no value if it has none."""
    value = term_value(term, values)
    if value is None:
        return int(Region.END), None
    return (int(Region.NUMBER), value) if isinstance(value, Fraction) else value_key(value)


def _range(keys: list[tuple[int, Any]], op: Operator, key: tuple[int, Any]) -> tuple[int, int]:
    """Return the range of keys that compare as asked: only with values of the same type."""
    kind, _ = key
    if kind == Region.END:
        return 0, 0
    if op in ("<", "<="):
        stop = bisect_left(keys, key) if op == "<" else bisect_right(keys, key)
        return bisect_left(keys, (kind,)), stop
    start = bisect_left(keys, key) if op == ">=" else bisect_right(keys, key)
    return start, bisect_left(keys, (kind + 1,))


# -- the plan of a join ---------------------------------------------------------------------------


class _Chosen(NamedTuple):
    relation: Relation
    before: frozenset[str]  # bound by relations chosen earlier
    due: list[Restriction]


def _plan(
    relations: Sequence[Relation], constraints: Sequence[Restriction], budget: JoinBudget
) -> list[_Step]:
    steps: list[_Step] = []
    needed: set[str] = set()
    for chosen in reversed(_ordered(relations, constraints, budget)):
        needed.update(chosen.relation.variables, *(c.variables for c in chosen.due))
        live = tuple(sorted(needed & chosen.before))
        budget.spend(len(live) + len(chosen.relation.rows) // _ROWS_PER_STEP)
        steps.append(_step(chosen, live))
    return steps[::-1]


def _ordered(
    relations: Sequence[Relation], constraints: Sequence[Restriction], budget: JoinBudget
) -> list[_Chosen]:
    """Order relations: small ones first, then those whose rows are found by what is bound."""
    waiting = sorted(relations, key=lambda relation: len(relation.rows))
    about: dict[str, list[Restriction]] = {}
    for constraint in constraints:
        for name in constraint.variables:
            about.setdefault(name, []).append(constraint)
    bound: frozenset[str] = frozenset()
    checked: set[int] = set()
    ordered = []
    while waiting:
        best, place = -1, 0
        for n, relation in enumerate(waiting):
            own = [c for name in relation.variables for c in about.get(name, ())]
            budget.spend(1 + len(own) // _ROWS_PER_STEP)
            link = _link(relation, own, bound)
            if link > best:
                best, place = link, n
        relation = waiting.pop(place)
        after = bound.union(relation.variables)
        own = [c for name in relation.variables for c in about.get(name, ())]
        due = {id(c): c for c in own if id(c) not in checked and after.issuperset(c.variables)}
        checked.update(due)
        ordered.append(_Chosen(relation, bound, list(due.values())))
        bound = after
    return ordered


def _link(relation: Relation, constraints: list[Restriction], bound: frozenset[str]) -> int:
    """Return how well the rows of a relation are found: 2 by a key, 1 by a range, else 0."""
    if not bound.isdisjoint(relation.variables):
        return 2
    known = bound.union(relation.variables)
    return max((_link_by(c, relation, bound, known) for c in constraints), default=0)


def _link_by(
    constraint: Restriction, relation: Relation, bound: frozenset[str], known: frozenset[str]
) -> int:
    if not isinstance(constraint, Constraint) or constraint.op == "!=":
        return 0
    is_found = _sides(constraint, bound, relation.variables) is not None or (
        known.issuperset(constraint.variables)
        and not bound.isdisjoint(constraint.variables)
        and linear_form(constraint, relation.variables) is not None
    )
    return is_found * (2 if constraint.op == "=" else 1)


def _sides(
    constraint: Restriction, bound: Collection[str], own: Collection[str]
) -> tuple[str, Operator, Term] | None:
    """Return (own variable, op, term of bound variables) for a constraint of this form."""
    if not isinstance(constraint, Constraint):
        return None
    mirrored = _MIRRORED.get(constraint.op, constraint.op)
    sides: tuple[tuple[Term, Operator, Term], ...] = (
        (constraint.left, constraint.op, constraint.right),
        (constraint.right, mirrored, constraint.left),
    )
    for one, op, other in sides:
        if isinstance(one, Variable) and one.name in own and one.name not in bound:
            parts = parts_of_terms((other,))
            if all(part.name in bound for part in parts if isinstance(part, Variable)):
                return one.name, op, other
    return None


def _step(chosen: _Chosen, live: tuple[str, ...]) -> _Step:
    relation, before, due = chosen
    keys: list[tuple[str, Term]] = [
        (name, Variable(name)) for name in relation.variables if name in before
    ]
    ranges: list[tuple[Operator, Term]] = []
    sorted_by = ""
    rest: list[Restriction] = []
    form = _best_form(due, before, relation)
    for constraint in due:
        sides = _sides(constraint, before, relation.variables)
        if sides is not None and sides[1] == "=":
            keys.append((sides[0], sides[2]))
        elif form is None and sides and sides[1] != "!=" and sorted_by in ("", sides[0]):
            sorted_by = sides[0]
            ranges.append(sides[1:])
        else:
            rest.append(constraint)
    return _Step(
        live,
        tuple(term for _, term in keys),
        _rows_by_key(relation, [name for name, _ in keys], before, sorted_by, form),
        tuple(ranges),
        tuple(name for name in relation.variables if name not in before),
        tuple(rest),
        1 + sum(c.n_steps for c in due),
    )


def _best_form(
    due: Sequence[Restriction], before: frozenset[str], relation: Relation
) -> Linear | None:
    """Return the constraint that calculates by which rows are best sorted, if there is one.

    `=` is best; else a comparison that need not be calculated comes first.
    """
    own = [name for name in relation.variables if name not in before]
    sides = [_sides(c, before, relation.variables) for c in due]
    forms = [linear_form(c, own) for c, side in zip(due, sides, strict=True) if side is None]
    found = [form for form in forms if form is not None]
    equal = [form for form in found if form.op == "="]
    is_sorted = any(side is not None and side[1] not in ("=", "!=") for side in sides)
    return next(iter(equal or ([] if is_sorted else found)), None)


def _rows_by_key(
    relation: Relation,
    names: list[str],
    before: Collection[str],
    sorted_by: str,
    form: Linear | None,
) -> dict[tuple[Any, ...], _Rows]:
    places = {name: i for i, name in enumerate(relation.variables)}
    key_places = [places[name] for name in names]
    new_places = [i for name, i in places.items() if name not in before]
    groups: dict[tuple[Any, ...], list[Binding]] = {}
    for row in relation.rows:
        groups.setdefault(tuple(value_key(row[i]) for i in key_places), []).append(row)
    found = {}
    for key, rows in groups.items():
        sorted_keys = []
        if sorted_by:
            at = places[sorted_by]
            rows.sort(key=lambda row: value_key(row[at]))
            sorted_keys = [value_key(row[at]) for row in rows]
        by_sum = None if form is None else SortedRows(form, rows, places, new_places)
        kept = [] if by_sum else [tuple(row[i] for i in new_places) for row in rows]
        found[key] = _Rows(kept, sorted_keys, by_sum)
    return found


def _parts(
    relations: Sequence[Relation], constraints: Sequence[Restriction]
) -> Iterator[tuple[list[Relation], list[Restriction]]]:
    """Return groups of relations that share variables or constraints."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            leader[name] = name = leader[leader[name]]
        return name

    for names in [*(r.variables for r in relations), *(c.variables for c in constraints)]:
        for name in names:
            leader[find(name)] = find(names[0])
    groups: dict[str, tuple[list[Relation], list[Restriction]]] = {}
    for relation in relations:
        groups.setdefault(find(relation.variables[0]), ([], []))[0].append(relation)
    for constraint in constraints:
        groups[find(constraint.variables[0])][1].append(constraint)
    yield from groups.values()
