"""Events that are expressions: `price between 20 and 40 and genre = 'classics'`.

Such an event stands for all events that satisfy it and have no attributes but those it names. A
subscription matches if it is true for one of them, so no attribute may be left without a value.

    event          any of its clauses suffices; a clause is one set of values per attribute: all
                   values where an alternative does not mention an attribute that others name
    subscription   searched for a way to be true: conditions narrow the sets, an `or` (or a `not`
                   of an `and`) tries its operands one after the other

What a text contains is only known of single texts. Where the event allows a range of texts, we
assume that one of them satisfies each `like` that is no prefix, each `rlike` and so on; where it
allows lists, that one of them has the required elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from matchmill.errors import EventError
from matchmill.language.dialects.pattern import DialectPattern, Places
from matchmill.language.evaluate import evaluate_flat
from matchmill.language.expression import (
    ANY_ATTRIBUTE,
    And,
    Constant,
    Contains,
    Expression,
    Not,
    Or,
    Predicate,
    TruthTest,
    walk,
)
from matchmill.language.normal_form import (
    TIME,
    Clause,
    dimension_of,
    is_joint,
    normalize,
    truth_clauses,
)
from matchmill.language.operator_calls import Restriction, has_restrictions
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
    is_among,
    opposite,
)
from matchmill.language.value_set import ABSENT, EMPTY, FULL, ValueSet, points, region
from matchmill.language.values import Region

__all__ = ["EventClause", "can_match", "can_match_clause", "event_clauses"]

EventClause: TypeAlias = dict[str, ValueSet]

_STRINGS, _LISTS = region(Region.STRING), region(Region.LIST)
_TIMES = region(Region.DATE).unite(region(Region.TIMESTAMP))


def event_clauses(expression: Expression, max_clauses: int = 64) -> list[EventClause]:
    """Return the alternatives of an event, each a set of values per attribute.

    Raises
    ------
    EventError
        If the expression says more than which values attributes may have.
    """
    normal = normalize(expression, max_clauses)
    if normal.has_calls:
        raise EventError(
            "as an event, an expression cannot call operators: they are asked about one event, not "
            "about all that a condition allows"
        )
    if has_restrictions(expression):
        raise EventError("as an event, an expression does not compare attributes with each other")
    if not normal.exact:
        raise EventError(
            f"as an event, this expression has more than {max_clauses} alternatives; "
            "match its alternatives one by one, or raise the setting max_clauses"
        )
    named = {node.name: FULL for node, _ in walk(expression) if isinstance(node, Predicate)}
    clauses = []
    for clause in normal.clauses:
        for dimension in map(dimension_of, clause):
            if dimension.attribute == ANY_ATTRIBUTE:
                raise EventError("as an event, an expression says nothing about any attribute")
            if dimension.derivation not in ("value", TIME):
                raise EventError(
                    f"as an event, an expression says which values {dimension.attribute!r} may "
                    "have: by =, !=, <, <=, >, >=, between, in, is null, or like with a beginning "
                    "of the text ('ab%'); not by what a text or a list contains"
                )
        own = _by_attribute(clause)
        clauses.append({**named, **own, ANY_ATTRIBUTE: _LISTS})  # its texts, whatever they are
    return clauses


def _by_attribute(clause: Clause) -> EventClause:
    """Return the set of values of each attribute. Times are themselves here, not their texts."""
    own: EventClause = {}
    for subject, values in clause.items():
        attribute, derivation, _ = dimension_of(subject)
        if derivation == TIME:
            times = values.intersect(_TIMES)
            values = times.unite(_TIMES.complement()) if ABSENT.intersect(values).edges else times
        own[attribute] = own.get(attribute, FULL).intersect(values)
    return own


def can_match(subscription: Expression, event: Expression) -> bool:
    """Whether an event that satisfies the second expression may satisfy the first."""
    return any(can_match_clause(subscription, clause) for clause in event_clauses(event))


def can_match_clause(subscription: Expression, clause: EventClause) -> bool:
    """Whether one alternative of an event may satisfy a subscription."""
    return _search([(subscription, TRUE)], clause)


_Pending: TypeAlias = list[tuple[Expression, int]]


def _search(pending: _Pending, allowed: Mapping[str, ValueSet]) -> bool:
    """Whether all pending expressions can have a truth that is asked for, with allowed values."""
    branching: _Pending = []
    pending = list(pending)
    while pending:
        expression, asked = pending.pop()
        if isinstance(expression, Not):
            pending.append((expression.operand, opposite(asked)))
        elif isinstance(expression, TruthTest):
            truths = asked_of_test(expression.truth, expression.negated, asked)
            pending.append((expression.operand, truths))
        elif asked == NEVER:
            return False
        elif isinstance(expression, Restriction):
            continue  # values may be so
        elif isinstance(expression, Constant):
            if not is_among(expression.value, asked):
                return False
        elif isinstance(expression, DialectPattern):
            if asked == UNKNOWN:
                return False
            if not asked & FALSE:
                pending.append((expression.superset, TRUE))
        elif asked == ANY or isinstance(expression, Places):
            continue  # something may be there
        elif isinstance(expression, Predicate):
            choices = _narrowed(expression, asked, allowed)
            if not choices:
                return False
            if len(choices) > 1:
                branching.append((expression, asked))
            else:
                allowed = choices[0]
        elif asked == UNKNOWN:
            pending += [(expression, NOT_TRUE), (expression, NOT_FALSE)]
        elif asked != KNOWN and asked_of_all(isinstance(expression, And), asked):
            pending.extend((part, asked) for part in _operands(expression))
        else:
            branching.append((expression, asked))
    if not branching:
        return True
    (expression, asked), *others = branching
    if isinstance(expression, Predicate):
        return any(_search(others, choice) for choice in _narrowed(expression, asked, allowed))
    if asked == KNOWN:
        return any(_search([(expression, one), *others], allowed) for one in (TRUE, FALSE))
    parts = _operands(expression)
    return any(_search([(part, asked), *others], allowed) for part in parts)


def _operands(expression: Expression) -> tuple[Expression, ...]:
    assert isinstance(expression, (And, Or))
    return expression.operands


def _narrowed(
    predicate: Predicate, asked: int, allowed: Mapping[str, ValueSet]
) -> list[Mapping[str, ValueSet]]:
    """Return what is still allowed if the predicate is as asked, for each way it can be so."""
    name = predicate.name
    values = allowed.get(name, ABSENT)
    clauses = [] if is_joint(predicate) else truth_clauses(predicate, asked)
    derivations = {dimension_of(subject).derivation for clause in clauses for subject in clause}
    if derivations <= {"value", TIME} and not _is_about_lists(predicate):
        # A clause without dimensions holds for all values.
        sets = [values.intersect(_by_attribute(clause).get(name, FULL)) for clause in clauses]
        if TIME in derivations:  # a text may stand for a time
            sets = [own.intersect(_STRINGS.complement()) for own in sets]
            sets.append(_fitting(predicate, asked, values))
    else:
        sets = [_fitting(predicate, asked, values)]
    return [{**allowed, name: own} for own in sets if not own.is_empty]


def _is_about_lists(predicate: Predicate) -> bool:
    return isinstance(predicate, Contains) or getattr(predicate, "any_element", False)


def _fitting(predicate: Predicate, asked: int, values: ValueSet) -> ValueSet:
    """Return the values that may fit a predicate on what a text or a list contains."""
    looked_at = _LISTS if _is_about_lists(predicate) else _STRINGS
    others = values.intersect(looked_at.complement()) if asked & UNKNOWN else EMPTY
    inside = values.intersect(looked_at)
    known = None if looked_at is _LISTS else _single_texts(inside)
    if known is None:
        return others.unite(inside) if asked & KNOWN else others
    name = predicate.name
    fit = (text for text in known if is_among(evaluate_flat(predicate, {name: text}), asked))
    return others.unite(points(fit))


def _single_texts(texts: ValueSet) -> list[str] | None:
    """Return the texts of a set of single texts; None if it has ranges."""
    found = []
    for low, high in texts.intervals():
        if len(low) != 3 or low[2] != 0 or high != (low[0], low[1], 1):
            return None
        found.append(str(low[1]))
    return found
