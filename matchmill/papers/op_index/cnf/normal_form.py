"""From expressions to conjunctions of disjunctions: the dual of `language/normal_form.py`.

    And  →  the disjunctions side by side, single sets on one dimension intersected
    Or   →  product of the disjunctions, sets on one dimension united

As there, only the TRUE side is kept: negation and truth tests are pushed down to the predicates,
where they pick the FALSE set or others, so what is left has two truth values. A disjunction has one
set of values per dimension and holds if one of them has the event's value. A set that is full makes
it hold always, and it is left out; no disjunction at all means TRUE, and an empty one FALSE.

Either form can be exponentially larger than the expression, so `estimate` gives the sizes of both
before any is made. They are those of the plain products, where nothing excludes or repeats
anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import NamedTuple, TypeAlias

from matchmill.errors import LimitError
from matchmill.language.expression import (
    And,
    Constant,
    Expression,
    Not,
    Predicate,
    TruthTest,
)
from matchmill.language.normal_form import Clause, Subject, truth_clauses
from matchmill.language.truth_sets import (
    ANY,
    FALSE,
    KNOWN,
    NEVER,
    NOT_FALSE,
    NOT_TRUE,
    TRUE,
    UNKNOWN,
    asked_of_all,
    asked_of_test,
    opposite,
)
from matchmill.language.value_set import ValueSet, intersect_all

__all__ = ["Disjunction", "FormSize", "FormSizes", "estimate", "prefers_cnf", "to_cnf"]

Disjunction: TypeAlias = dict[Subject, ValueSet]

_CNF_ADVANTAGE = 4


class FormSize(NamedTuple):
    """Of one normal form: its clauses, the sets in all of them, the sets of the shortest one."""

    n_clauses: int
    n_sets: int
    n_shortest: int


class FormSizes(NamedTuple):
    """The sizes of both normal forms."""

    dnf: FormSize
    cnf: FormSize


# -- sizes ----------------------------------------------------------------------------------------


def estimate(expression: Expression) -> FormSizes:
    """Return the sizes of both forms, without making them. Each is at least that of the form."""
    return _sizes(expression, TRUE)


def prefers_cnf(expression: Expression, max_clauses: int = 64) -> bool:
    """Whether the CNF is far smaller than the DNF.

    An index stores each set of a DNF once. A CNF is stored under every dimension of its shortest
    disjunction (OpIndex, section 6.1). It is far smaller if that is still a fourth of the DNF, or
    less, and if it has no more than `max_clauses` disjunctions.
    """
    dnf, cnf = estimate(expression)
    if cnf.n_clauses > max_clauses or dnf.n_clauses < 2:
        return False
    return cnf.n_sets * cnf.n_shortest * _CNF_ADVANTAGE <= dnf.n_sets


def _sizes(expression: Expression, asked: int) -> FormSizes:
    if isinstance(expression, Not):
        return _sizes(expression.operand, opposite(asked))
    if isinstance(expression, TruthTest):
        return _sizes(expression.operand, _asked_below(expression, asked))
    if isinstance(expression, Constant) or asked in (NEVER, ANY):
        nothing, something = FormSize(0, 0, 0), FormSize(1, 0, 0)
        holds = _always_has(expression, asked)
        return FormSizes(something, nothing) if holds else FormSizes(nothing, something)
    if isinstance(expression, Predicate):
        clauses = truth_clauses(expression, asked)
        lengths = [len(clause) for clause in clauses]
        dnf = FormSize(len(clauses), sum(lengths), min(lengths, default=0))
        return FormSizes(dnf, _product([FormSize(n, n, min(n, 1)) for n in lengths]))
    operands, all_of_them = _operands(expression, asked)
    parts = [_sizes(*operand) for operand in operands]
    dnfs, cnfs = [part.dnf for part in parts], [part.cnf for part in parts]
    if all_of_them:
        return FormSizes(_product(dnfs), _sum(cnfs))
    return FormSizes(_sum(dnfs), _product(cnfs))


def _asked_below(test: TruthTest, asked: int) -> int:
    return asked_of_test(test.truth, test.negated, asked)


def _always_has(expression: Expression, asked: int) -> bool:
    """Whether a constant, or anything if all or no truths are asked for, has such a truth."""
    if isinstance(expression, Constant):
        return bool(asked & (TRUE if expression.value else FALSE))
    return asked == ANY


def _operands(expression: Expression, asked: int) -> tuple[list[tuple[Expression, int]], bool]:
    """Return what `and` or `or` asks of which operands, and whether of all of them or of some."""
    if asked == UNKNOWN:
        return [(expression, NOT_TRUE), (expression, NOT_FALSE)], True
    if asked == KNOWN:
        return [(expression, TRUE), (expression, FALSE)], False
    of_all = asked_of_all(isinstance(expression, And), asked)
    return [(part, asked) for part in expression.parts], of_all


def _sum(parts: list[FormSize]) -> FormSize:
    shortest = min((part.n_shortest for part in parts if part.n_clauses), default=0)
    return FormSize(
        sum(part.n_clauses for part in parts), sum(part.n_sets for part in parts), shortest
    )


def _product(parts: list[FormSize]) -> FormSize:
    n_clauses = prod(part.n_clauses for part in parts)
    if n_clauses == 0:
        return FormSize(0, 0, 0)
    n_sets = sum(part.n_sets * (n_clauses // part.n_clauses) for part in parts)
    return FormSize(n_clauses, n_sets, sum(part.n_shortest for part in parts))


# -- the form -------------------------------------------------------------------------------------


def to_cnf(expression: Expression, max_sets: int = 10_000) -> tuple[Disjunction, ...]:
    """Return the disjunctions of an expression.

    Raise LimitError if there might be more than `max_sets` sets.
    """
    if estimate(expression).cnf.n_sets > max_sets:
        raise LimitError(
            f"the conjunctive normal form may have more than {max_sets} sets of values",
            hint="use its disjunctive form, or raise max_sets",
        )
    return tuple(_all_of([_build(expression, TRUE)]))


def _build(expression: Expression, asked: int) -> list[Disjunction]:
    if isinstance(expression, Not):
        return _build(expression.operand, opposite(asked))
    if isinstance(expression, TruthTest):
        return _build(expression.operand, _asked_below(expression, asked))
    if isinstance(expression, Constant) or asked in (NEVER, ANY):
        return [] if _always_has(expression, asked) else [{}]
    if isinstance(expression, Predicate):
        clauses = truth_clauses(expression, asked)
        return _any_of([_units(clause) for clause in clauses])
    operands, all_of_them = _operands(expression, asked)
    parts = [_build(*operand) for operand in operands]
    return _all_of(parts) if all_of_them else _any_of(parts)


def _units(clause: Clause) -> list[Disjunction]:
    return [{dimension: values} for dimension, values in clause.items()]


def _all_of(parts: list[list[Disjunction]]) -> list[Disjunction]:
    singles: dict[Subject, list[ValueSet]] = {}
    others: list[Disjunction] = []
    for disjunction in _distinct(d for part in parts for d in part):
        if len(disjunction) == 1:
            ((dimension, values),) = disjunction.items()
            singles.setdefault(dimension, []).append(values)
        else:
            others.append(disjunction)
    for dimension, sets in singles.items():
        common = intersect_all(sets)
        others.append({dimension: common} if common.edges else {})
    return [{}] if {} in others else others


def _any_of(parts: list[list[Disjunction]]) -> list[Disjunction]:
    result: list[Disjunction] = [{}]
    for part in sorted(parts, key=len):
        united = (_unite(a, b) for a in result for b in part)
        result = _distinct(both for both in united if both is not None)
    return result


def _unite(a: Disjunction, b: Disjunction) -> Disjunction | None:
    """One or the other; None if that is always so."""
    either = dict(a)
    for dimension, values in b.items():
        known = either.get(dimension)
        if known is not None:
            values = known.unite(values)
        if values.is_full:
            return None
        either[dimension] = values
    return either


def _distinct(disjunctions: Iterable[Disjunction]) -> list[Disjunction]:
    return list({frozenset(d.items()): d for d in disjunctions}.values())
