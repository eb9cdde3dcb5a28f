"""From expressions to clauses: a clause is one set of values per dimension.

An event matches if the expression is TRUE, so only the TRUE side is kept: negations are pushed down
to the predicates, where they select the predicate's FALSE set, and truth tests, where they select
any set of truths (`truth_sets`). `x > 5 is not true` is the complement of the set of `x > 5`: other
numbers, other types, and absence, as one set. Then

    And  →  product of the clauses, sets on one dimension intersected
    Or   →  the clauses side by side, single sets on one dimension united

A dimension is (attribute, derivation, argument):

    value                     the value itself, of any type
    time                      the date or timestamp that the value is, or that its text stands for
    reversed, lower, lower_reversed, address
                              a text made from the text: suffixes become prefixes, `ilike`
                              becomes `like`, IP addresses become sortable
    substring, lower_substring, like, lower_like, regex   (argument: the pattern)
                              a flag: TRUE if it holds, absent if not

Lists have *multi-valued* dimensions, on which one event has any number of values:

    each, each.reversed, each.substring, …       of the elements of a list
    values, values.reversed, values.substring, … of the elements of a list, or of a value by itself
    each.without_substring, …                    a flag of texts in which the pattern is not found:
                                                 "some text without x" is about one element

A clause says of such a dimension that some value is in a set (`Some`), or that none is (`NoneOf`).
So `tags contains any ('a', 'b')` is one set, and `contains all` a set per value: some value is in
the first and some value in the second, which is not to say that one value is in both. Therefore

    And  keeps the sets apart
    Or   unites the sets of `Some`, and keeps those of `NoneOf` apart

`P(value) or P(some element)`, the form of every field of a JSON pattern, is one set on `values`.

Calls of operators are left out, as if nothing were known of them: what remains is a superset, for
whose matches the operators are called. Of comparisons of attributes with each other, and of what is
calculated from them, only this remains: that the attributes have values that can be compared.

Sizes are bounded on the way up. Where a product or a sum would exceed the clause limit, as that of
`(a = 1 or b = 2) and (c = 3 or d = 4) and …` soon does, an operand is kept whole, as one of

    AnyOf    its alternatives, inside of the clause, which is *nested* then: a tree of `and` and
             `or`, as large as the expression. Operands with calls, too.
    hull     the one clause that the operand implies. The result is then marked inexact: a superset,
             whose candidates have to be checked with the expression itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

from matchmill.language.dialects.pattern import (
    DialectPattern,
    Exactness,
    Places,
)
from matchmill.language.expression import (
    OPPOSITES,
    And,
    Between,
    Compare,
    Constant,
    Contains,
    Expression,
    In,
    InNetwork,
    IsNull,
    IsTrue,
    Like,
    Not,
    Or,
    Predicate,
    RLike,
    TruthTest,
    within_the_stack,
)
from matchmill.language.operator_calls import (
    Arithmetic,
    Call,
    EventAttribute,
    Membership,
    NullTest,
    Range,
    Restriction,
    TextTest,
    has_calls,
)
from matchmill.language.patterns import like_shape, network_bounds
from matchmill.language.terms import parts_of_terms
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
from matchmill.language.value_set import (
    ABSENT,
    EMPTY,
    PRESENT,
    ValueSet,
    intersect_all,
    interval,
    point,
    points,
    region,
    string_prefix,
    unite_all,
)
from matchmill.language.values import (
    INT64_MAX,
    INT64_MIN,
    TIMES,
    Region,
    Value,
    fold_case,
    next_number,
    region_of,
)

__all__ = [
    "EACH",
    "FLAG_DERIVATIONS",
    "TIME",
    "VALUES",
    "WITHOUT",
    "AnyOf",
    "Clause",
    "Dimension",
    "NoneOf",
    "NormalForm",
    "Some",
    "Subject",
    "dimension_of",
    "disjunctions_of",
    "is_joint",
    "multi_valued",
    "normalize",
    "predicate_clauses",
    "scalar_clauses",
    "truth_clauses",
]


class Dimension(NamedTuple):
    """What a set of values is about: an attribute, and what is derived from its value."""

    attribute: str
    derivation: str = "value"
    argument: str = ""


class Some(NamedTuple):
    """Of a multi-valued dimension: some value is in the set. A clause may have several."""

    dimension: Dimension
    values: ValueSet  # the same as what the clause maps it to
    quantifier: Literal["some"] = "some"  # tuples are equal if their fields are

    @property
    def attribute(self) -> str:
        """The attribute of the dimension."""
        return self.dimension.attribute


class NoneOf(NamedTuple):
    """Of a multi-valued dimension: no value is in the set. A clause may have several."""

    dimension: Dimension
    values: ValueSet  # the same as what the clause maps it to
    quantifier: Literal["none"] = "none"

    @property
    def attribute(self) -> str:
        """The attribute of the dimension."""
        return self.dimension.attribute


class AnyOf(NamedTuple):
    """Alternatives inside of a clause, which maps it to TRUE: one of these clauses holds."""

    alternatives: tuple[tuple[tuple[Subject, ValueSet], ...], ...]  # their items
    height: int  # how many AnyOf there are in one another, this one included


Subject: TypeAlias = "Dimension | Some | NoneOf | AnyOf"
Clause: TypeAlias = dict[Subject, ValueSet]

TIME = "time"
EACH, VALUES = "each", "values"
WITHOUT = "without_"
_FLAGS = {"substring", "lower_substring", "like", "lower_like", "regex"}
FLAG_DERIVATIONS = frozenset(_FLAGS | {WITHOUT + flag for flag in _FLAGS})

# Clauses wider than this count more than once towards the limit, so that a long conjunction is not
# copied many times over.
_WIDTH = 64

# If clauses may be nested, a product has at most so many clauses, or as many as its factors have.
_FEW = 16
_HIGHEST = 30  # of AnyOf in one another: indexes have no more joins (`conjunction_table.py`)

_TRUE_FLAG = point(True)
_STRING = region(Region.STRING)
_LIST = region(Region.LIST)


def multi_valued(derivation: str) -> tuple[str, str]:
    """Divide the derivation of a multi-valued dimension: `each.lower` is ("each", "lower").

    The first part is empty for other derivations.
    """
    kind, _, inner = derivation.partition(".")
    return (kind, inner or "value") if kind in (EACH, VALUES) else ("", derivation)


def dimension_of(subject: Subject) -> Dimension:
    """Return the dimension of what a clause has a set for, which is not `AnyOf`."""
    assert not isinstance(subject, AnyOf), "alternatives have many dimensions"
    return subject if isinstance(subject, Dimension) else subject.dimension


class NormalForm(NamedTuple):
    """Clauses, any of which suffices; if they are not exact, a match must be confirmed."""

    clauses: tuple[Clause, ...]
    exact: bool
    has_calls: bool = False  # of operators, which then decide; such a form is not exact
    is_exact_without_lists: bool = False  # for events without lists, where it is not exact

    @property
    def is_nested(self) -> bool:
        """Whether some clause has alternatives inside of it."""
        return any(isinstance(subject, AnyOf) for clause in self.clauses for subject in clause)

    @property
    def kind(self) -> Literal["never", "always", "ordinary"]:
        """Whether the expression can match nothing, matches everything, or neither."""
        if not self.clauses:
            return "never"
        return "always" if self.exact and {} in self.clauses else "ordinary"


class _Limits(NamedTuple):
    n_products: int
    n_alternatives: int
    nested: bool  # whether clauses may be nested


@within_the_stack
def normalize(expression: Expression, max_clauses: int = 64, *, nested: bool = False) -> NormalForm:
    """Return the clauses of an expression, at most `max_clauses`; nested ones or hulls."""
    limits = _Limits(max_clauses, max_clauses, nested)
    if isinstance(expression, DialectPattern):
        clauses, says_all = _build(expression.superset, TRUE, limits)
        exact = says_all and expression.exactness == Exactness.ALL
        without_lists = says_all and expression.exactness == Exactness.WITHOUT_LISTS
        return NormalForm(tuple(clauses), exact, False, without_lists)
    clauses, exact = _build(expression, TRUE, limits)
    return NormalForm(tuple(clauses), exact, not exact and has_calls(expression))


def disjunctions_of(
    expression: Expression, max_clauses: int = 64
) -> list[tuple[Compare, ...]] | None:
    """Return the parts of a conjunction of disjunctions of comparisons, the smallest first.

    None if it is something else, or if `normalize` does more than to put it into one nested clause
    (it also unites comparisons of one attribute within a part, which changes no match).
    """
    if type(expression) is not And:
        return None
    groups: list[tuple[Compare, ...]] = []
    singles: set[str] = set()
    n_products, n_alternatives = 1, 0
    for operand in expression.operands:
        group: Any = operand.operands if type(operand) is Or else (operand,)
        if len(group) > max_clauses or not all(map(_is_plain_comparison, group)):
            return None
        names = {part.name for part in group}
        if len(group) == 1:
            if not singles.isdisjoint(names):
                return None  # they may exclude each other
            singles |= names
        elif len(names) == 1:
            return None  # one set of values, in truth
        else:
            n_products *= len(names)  # comparisons of one attribute are one alternative
            n_alternatives += len(names)
        groups.append(group)
    if n_products <= min(max_clauses, max(_FEW, n_alternatives)):
        return None
    return sorted(groups, key=len)


def _is_plain_comparison(part: Expression) -> bool:
    if type(part) is not Compare or part.any_element:
        return False
    value = part.value
    if type(value) is int:
        return INT64_MIN <= value <= INT64_MAX
    return type(value) is float or type(value) is str


_Built: TypeAlias = tuple[list[Clause], bool]


def _build(expression: Expression, asked: int, limits: _Limits) -> _Built:
    """Return clauses under which the expression has one of the truths that are asked for."""
    if isinstance(expression, Predicate):
        return _build_predicate(expression, asked, limits)
    if isinstance(expression, Not):
        return _build(expression.operand, opposite(asked), limits)
    if isinstance(expression, TruthTest):
        return _build(expression.operand, _asked_of_operand(expression, asked), limits)
    if asked in (NEVER, ANY):
        return ([{}] if asked else []), True
    if isinstance(expression, Constant):
        return ([{}] if asked & (TRUE if expression.value else FALSE) else []), True
    if isinstance(expression, Restriction) and not expression.variables:
        return [restriction_clause(expression, asked) if asked & UNKNOWN == 0 else {}], False
    if isinstance(expression, (Call, Restriction)):
        return [{}], False
    if isinstance(expression, DialectPattern):
        return _build_pattern(expression, asked, limits)
    assert isinstance(expression, (And, Or))
    if asked == UNKNOWN:
        return _build_product([(expression, NOT_TRUE), (expression, NOT_FALSE)], limits)
    if asked == KNOWN:
        return _build_sum([(expression, TRUE), (expression, FALSE)], limits)
    operands = [(operand, asked) for operand in expression.operands]
    if asked_of_all(isinstance(expression, And), asked):
        return _build_product(operands, limits)
    return _build_sum(operands, limits)


def _asked_of_operand(node: TruthTest, asked: int) -> int:
    return asked_of_test(node.truth, node.negated, asked)


def _build_predicate(predicate: Predicate, asked: int, limits: _Limits) -> _Built:
    if is_joint(predicate):
        clauses = predicate_clauses(predicate, asked == TRUE) if asked in (TRUE, FALSE) else [{}]
        return clauses, False
    clauses = truth_clauses(predicate, asked)
    if len(clauses) > limits.n_alternatives:
        return _whole((clauses, True), limits)
    return clauses, True


_COMPARABLE = PRESENT.intersect(_LIST.unite(region(Region.OBJECT)).complement())
_NUMBER = region(Region.NUMBER)


def restriction_clause(restriction: Restriction, asked: int) -> Clause:
    """Return what a restriction on attributes, which is TRUE or FALSE, says of their values.

    Its terms have values, so all attributes are there. What is calculated with is a number.
    """
    if isinstance(restriction, NullTest):
        return {}
    terms = restriction.terms
    if isinstance(restriction, Range):
        is_inside = asked == (FALSE if restriction.negated else TRUE)
        terms = terms if is_inside else terms[:1]  # one end may be enough
    elif isinstance(restriction, Membership):
        terms = terms[:1]  # members without values are left out
    clause: Clause = {}
    own = _STRING if isinstance(restriction, TextTest) else _COMPARABLE
    for term in terms:
        if isinstance(term, EventAttribute):
            _narrow(clause, term, own)
    for part in parts_of_terms(terms):
        if isinstance(part, EventAttribute):
            _narrow(clause, part, PRESENT)
        elif isinstance(part, Arithmetic):
            for operand in (part.left, part.right):
                if isinstance(operand, EventAttribute):
                    _narrow(clause, operand, _NUMBER)
    return clause


def _narrow(clause: Clause, attribute: EventAttribute, values: ValueSet) -> None:
    dimension = Dimension(attribute.name)
    clause[dimension] = clause[dimension].intersect(values) if dimension in clause else values


def _build_pattern(pattern: DialectPattern, asked: int, limits: _Limits) -> _Built:
    """Return clauses of a pattern, which is never unknown."""
    if asked == UNKNOWN:
        return [], True
    if asked == KNOWN:
        return [{}], True
    if asked & FALSE:
        return [{}], False
    clauses, says_all = _build(pattern.superset, TRUE, limits)
    return clauses, says_all and pattern.exactness == Exactness.ALL


_Asked: TypeAlias = tuple[Expression, int]


def _build_product(operands: list[_Asked], limits: _Limits) -> _Built:
    """Return clauses under which all operands have the truths that are asked for."""
    few = limits._replace(n_alternatives=limits.n_products)  # what is multiplied has to be few
    return _all_of([_build(*operand, few) for operand in operands], few)


def _build_sum(operands: list[_Asked], limits: _Limits) -> _Built:
    """Return clauses under which some operand has the truths that are asked for."""
    parts = [_build(*operand, limits) for operand in operands]
    if all(truths == TRUE for _, truths in operands):
        expressions = tuple(expression for expression, _ in operands)
        if any(_on_elements(expression) is not None for expression in expressions):
            parts = _with_fields(expressions, parts)
    clauses, exact = _any_of(parts)
    if len(clauses) > limits.n_alternatives:
        clauses = _distinct(clauses)
    if len(clauses) > limits.n_alternatives:
        return _whole((clauses, exact), limits)
    return clauses, exact


def _whole(built: _Built, limits: _Limits) -> _Built:
    """Replace many clauses by one."""
    clauses, exact = built
    inside = (s for clause in clauses for s in clause if isinstance(s, AnyOf))
    height = 1 + max((any_of.height for any_of in inside), default=0)
    if not limits.nested or height > _HIGHEST:
        return [_hull(clauses)], False
    whole = AnyOf(tuple(tuple(clause.items()) for clause in clauses), height)
    return [{whole: _TRUE_FLAG}], exact


def _all_of(parts: list[_Built], limits: _Limits) -> _Built:
    if any(not clauses for clauses, _ in parts):
        return [], True
    factors = sorted((part for part in parts if len(part[0]) > 1), key=lambda part: len(part[0]))
    most = limits.n_products
    if limits.nested:  # a product that is larger than its factors is not worth it
        most = min(most, max(_FEW, sum(len(clauses) for clauses, _ in factors)))
    wholes: list[_Built] = []
    n_products = 1
    for n, (clauses, _) in enumerate(factors):
        n_products *= len(clauses)
        if n_products > most:  # all or none, so that nothing is evaluated for each product
            n = 0 if limits.nested else n
            wholes = [_whole(part, limits) for part in factors[n:]]
            factors = factors[:n]
            break
    singles = [part for part in parts if len(part[0]) == 1] + wholes
    exact = all(part_exact for _, part_exact in singles + factors)
    common = _intersection([clauses[0] for clauses, _ in singles])
    if common is None:
        return [], True
    result: list[Clause] = [common]
    for clauses, part_exact in factors:
        if _product_size(result, clauses) > limits.n_products * _WIDTH:
            (clauses, is_exact) = _whole((clauses, part_exact), limits)
            exact = exact and is_exact
        products = (_conjoin(a, b) for a in result for b in clauses)
        result = _distinct(both for both in products if both is not None)
        if not result:
            return [], True
    return result, exact


def _product_size(a: list[Clause], b: list[Clause]) -> int:
    """Return the size of the product: a clause counts as its sets, and as _WIDTH at least."""
    return sum(max(_WIDTH, len(x) + len(y)) for x in a for y in b)


def _intersection(clauses: list[Clause]) -> Clause | None:
    """Return the conjunction of all clauses; None if they exclude each other."""
    if len(clauses) == 1:
        return clauses[0]
    gathered: dict[Subject, list[ValueSet]] = {}
    for clause in clauses:
        for subject, values in clause.items():
            gathered.setdefault(subject, []).append(values)
    together = {subject: intersect_all(sets) for subject, sets in gathered.items()}
    return together if all(values.edges for values in together.values()) else None


def _conjoin(a: Clause, b: Clause) -> Clause | None:
    """Return the conjunction of two clauses; None if they exclude each other."""
    both = dict(a)
    for subject, values in b.items():
        known = both.get(subject)
        if known is not None:
            values = known.intersect(values)
            if not values.edges:
                return None
        both[subject] = values
    return both


def _any_of(parts: list[_Built]) -> _Built:
    exact = True
    singles: dict[Subject, list[ValueSet]] = {}
    clauses: list[Clause] = []
    for part, part_exact in parts:
        exact = exact and part_exact
        for clause in part:
            if len(clause) == 1:
                ((subject, values),) = clause.items()
                if not isinstance(subject, NoneOf):  # all values are together, by dimension
                    if isinstance(subject, Some):
                        subject = Some(subject.dimension, EMPTY)
                    singles.setdefault(subject, []).append(values)
                    continue
            clauses.append(clause)
    for subject, sets in singles.items():
        united = unite_all(sets)
        if isinstance(subject, Some):
            clauses.append({Some(subject.dimension, united): united})
        elif united.is_full:
            return [{}], exact
        else:
            clauses.append({subject: united})
    return ([{}] if {} in clauses else clauses), exact


def _distinct(clauses: Iterable[Clause]) -> list[Clause]:
    return list({frozenset(clause.items()): clause for clause in clauses}.values())


def _hull(clauses: list[Clause]) -> Clause:
    """Return the one clause that all imply: the dimensions that they share, sets united.

    Of the sets of a multi-valued dimension one per clause does.
    """
    subjects: list[list[Subject]] = [
        [s for s in clause if not isinstance(s, AnyOf)] for clause in clauses
    ]
    shared = set(map(dimension_of, subjects[0]))
    for others in subjects[1:]:
        shared &= set(map(dimension_of, others))
    hull: Clause = {}
    for dimension in sorted(shared):
        kept: list[list[Any]] = [
            [s for s in some if dimension_of(s) == dimension] for some in subjects
        ]
        for kind in (Dimension, Some):
            own = [[s for s in some if isinstance(s, kind)] for some in kept]
            if not all(own):
                continue
            values = unite_all([c[some[0]] for c, some in zip(clauses, own, strict=True)])
            if kind is Some:
                hull[Some(dimension, values)] = values
            elif not values.is_full:
                hull[dimension] = values
    return hull


# -- a value or an element ------------------------------------------------------------------------


def _on_elements(part: Expression) -> Predicate | None:
    """Return a predicate on some element as one on the value; None for anything else."""
    if isinstance(part, Contains) and part.mode == "any":
        return In(part.name, part.values)
    if getattr(part, "any_element", False):
        return _on_the_value(part)
    return None


def _on_the_value(predicate: Any) -> Predicate:
    """Return a predicate on some element as one on the value."""
    same: Predicate = replace(predicate, any_element=False)
    return same


def _with_fields(operands: tuple[Expression, ...], parts: list[_Built]) -> list[_Built]:
    """Make one clause of a predicate on the value and the same predicate on some element."""
    fields: dict[Any, tuple[int, Clause]] = {}
    for i, operand in enumerate(operands):
        predicate = _on_elements(operand)
        if predicate is not None:
            clauses = scalar_clauses(predicate)
            if len(clauses) == 1 and not is_joint(operand):
                fields[_comparable(clauses[0])] = (i, _some(VALUES, clauses[0]))
    out = list(parts)
    for i, (clauses, exact) in enumerate(parts):
        if not exact or len(clauses) != 1 or _on_elements(operands[i]) is not None:
            continue
        twin = fields.get(_comparable(clauses[0]))
        if twin is not None:
            out[i] = [twin[1]], True
            out[twin[0]] = [], True
    return out


def _comparable(clause: Clause) -> Any:
    """Write "after 5" as "before the next number", so that equal sets of numbers are equal."""
    return frozenset(
        (
            subject,
            tuple(
                (Region.NUMBER, next_number(edge[1], 1), 0)
                if edge[0] == Region.NUMBER and edge[2:] == (1,)
                else edge
                for edge in values.edges
            ),
        )
        for subject, values in clause.items()
    )


def _some(kind: str, clause: Clause) -> Clause:
    """Return the clause that some value of a multi-valued dimension satisfies another clause."""
    dimension, values = _on_several(kind, clause)
    return {Some(dimension, values): values}


def _on_several(kind: str, clause: Clause) -> tuple[Dimension, ValueSet]:
    """Return the multi-valued dimension and the set of the clause of a predicate on a scalar."""
    ((subject, values), *others) = clause.items()
    if others:  # it is a text, and a flag is absent
        ((subject, _),) = others
        flag = dimension_of(subject)
        subject, values = flag._replace(derivation=WITHOUT + flag.derivation), _TRUE_FLAG
    dimension = dimension_of(subject)
    inner = "" if dimension.derivation == "value" else f".{dimension.derivation}"
    return dimension._replace(derivation=kind + inner), values


# -- predicates -----------------------------------------------------------------------------------


def _one(dimension: Dimension, values: ValueSet) -> list[Clause]:
    return [{dimension: values}] if values.edges else []


def predicate_clauses(predicate: Predicate, wanted: bool) -> list[Clause]:
    """Return clauses under which a predicate is TRUE (wanted) or FALSE (not wanted)."""
    if isinstance(predicate, IsNull):
        return _one(Dimension(predicate.name), PRESENT if predicate.negated == wanted else ABSENT)
    if isinstance(predicate, IsTrue):
        return _one(Dimension(predicate.name), point(wanted))
    if isinstance(predicate, Places):
        return [dict(predicate.clause)] if wanted else [{}]
    if isinstance(predicate, Contains):
        return _contains_clauses(predicate, wanted)
    if getattr(predicate, "any_element", False):
        return _element_clauses(_on_the_value(predicate), wanted)
    return _value_clauses(predicate, wanted)


def truth_clauses(predicate: Predicate, asked: int) -> list[Clause]:
    """Return clauses under which a predicate, which is not joint, has one of some truths."""
    if asked in (TRUE, FALSE):
        return predicate_clauses(predicate, asked == TRUE)
    if asked in (NEVER, ANY):
        return [{}] if asked else []
    if asked == KNOWN:
        parts = [(predicate_clauses(predicate, wanted), True) for wanted in (True, False)]
        return _any_of(parts)[0]
    excluded: list[Clause] = []
    if not asked & TRUE:
        excluded += predicate_clauses(predicate, True)
    if not asked & FALSE:
        excluded += predicate_clauses(predicate, False)
    return _none_of(excluded)


def _none_of(clauses: list[Clause]) -> list[Clause]:
    """Return the clauses under which none of some clauses holds."""
    result: list[Clause] = [{}]
    for clause in clauses:
        ways = [_unless(subject, values) for subject, values in clause.items()]
        products = (_conjoin(a, b) for a in result for b in ways if b is not None)
        result = _distinct(c for c in products if c is not None and not _contradicts_itself(c))
    return result


def _unless(subject: Subject, values: ValueSet) -> Clause | None:
    """Return the clause that holds if the set of a subject does not; None if it always does."""
    if isinstance(subject, Some):
        return {NoneOf(subject.dimension, values): values}
    if isinstance(subject, NoneOf):
        return {Some(subject.dimension, values): values}
    others = values.complement()
    return {subject: others} if others.edges else None


def _contradicts_itself(clause: Clause) -> bool:
    """Whether some value and no value of a multi-valued dimension has to be in one set."""
    return any(isinstance(s, Some) and NoneOf(s.dimension, s.values) in clause for s in clause)


def scalar_clauses(predicate: Predicate) -> list[Clause]:
    """Return the clauses under which a predicate on a scalar is TRUE.

    It is one at most, but for `in` with times and other values.
    """
    return _value_clauses(predicate, True)


def _contains_clauses(predicate: Contains, wanted: bool) -> list[Clause]:
    name, values = predicate.name, predicate.values
    if predicate.mode != "all":
        return _element_clauses(In(name, values), wanted == (predicate.mode == "any"))
    each = [_element_clauses(In(name, (value,)), wanted)[0] for value in values]
    if not wanted:
        return _distinct(each)
    together: Clause = {}
    for clause in each:
        together.update(clause)
    return [together]


def _element_clauses(predicate: Predicate, wanted: bool) -> list[Clause]:
    """Return the clauses under which there is a list, and some or no element is as it should."""
    clauses = scalar_clauses(predicate)
    is_list: Clause = {Dimension(predicate.name): _LIST}
    if not clauses:
        return [] if wanted else [is_list]
    if _mixes_times(predicate) and predicate.negated:  # type: ignore[attr-defined]
        return [is_list]  # a superset: this is about two dimensions of one element
    if wanted:
        return [_some(EACH, clause) for clause in clauses]
    none: Clause = {}
    for dimension, values in (_on_several(EACH, clause) for clause in clauses):
        none[NoneOf(dimension, values)] = values
    return [{**is_list, **none}]


def _mixes_times(predicate: Predicate) -> bool:
    """Whether this is `in` with times and other values, which are on two dimensions."""
    if not isinstance(predicate, In):
        return False
    return len({_compared("", value) for value in predicate.values}) > 1


def is_joint(predicate: Expression) -> bool:
    """Whether the clauses of a predicate are a superset: it is about two dimensions of one element.

    Some element is not in `('2013-01-31', date '2013-01-31')` if it is neither this text nor the
    text of this date.
    """
    return (
        isinstance(predicate, In)
        and predicate.any_element
        and predicate.negated
        and _mixes_times(predicate)
    )


def _flag(
    name: str, derivation: str, argument: str, universe: ValueSet, wanted: bool
) -> list[Clause]:
    flag = Dimension(name, derivation, argument)
    if wanted:
        return [{flag: _TRUE_FLAG}]
    return [{Dimension(name): universe, flag: ABSENT}]


def _value_clauses(predicate: Predicate, wanted: bool) -> list[Clause]:
    """Return the clauses of a predicate on a scalar."""
    if isinstance(predicate, Compare):
        op = predicate.op if wanted else OPPOSITES[predicate.op]
        return _one(_compared(predicate.name, predicate.value), _compare_set(op, predicate.value))
    wanted = wanted != predicate.negated  # type: ignore[attr-defined]
    if isinstance(predicate, In):
        return _in_clauses(predicate, wanted)
    if isinstance(predicate, Between):
        kind = region_of(predicate.low)
        values = interval(kind, predicate.low, predicate.high)
        if not wanted:
            values = region(kind).intersect(values.complement())
        return _one(_compared(predicate.name, predicate.low), values)
    if isinstance(predicate, Like):
        return _like_clauses(predicate, wanted)
    if isinstance(predicate, RLike):
        return _flag(predicate.name, "regex", predicate.pattern, _STRING, wanted)
    assert isinstance(predicate, InNetwork)
    addresses = EMPTY
    for text in predicate.networks:
        low, high = network_bounds(text)
        addresses = addresses.unite(interval(Region.STRING, low, high))
    if not wanted:
        addresses = _STRING.intersect(addresses.complement())
    return _one(Dimension(predicate.name, "address"), addresses)


def _compared(name: str, literal: Value) -> Dimension:
    """Return the dimension on which an attribute is compared with a literal."""
    return Dimension(name, TIME if region_of(literal) in TIMES else "value")


def _in_clauses(predicate: In, wanted: bool) -> list[Clause]:
    """Return the clauses of `in`: a text may equal a text, and also stand for a time."""
    groups: dict[Dimension, list[Value]] = {}
    for value in predicate.values:
        groups.setdefault(_compared(predicate.name, value), []).append(value)
    members = {dimension: points(values) for dimension, values in groups.items()}
    if wanted:
        return [{dimension: values} for dimension, values in members.items()]
    # None of the values is equal, and some of them can be compared.
    unequal: Clause = {dimension: values.complement() for dimension, values in members.items()}
    clauses: list[Clause] = []
    for dimension, values in groups.items():
        known = _regions(tuple(values)).intersect(unequal[dimension])
        if not known.is_empty:
            clauses.append({**unequal, dimension: known})
    return clauses


def _compare_set(op: str, value: Value) -> ValueSet:
    kind = region_of(value)
    if op == "=":
        return point(value)
    if op == "!=":
        return region(kind).intersect(point(value).complement())
    if op == "<":
        return interval(kind, None, value, open_high=True)
    if op == "<=":
        return interval(kind, None, value)
    if op == ">":
        return interval(kind, value, None, open_low=True)
    return interval(kind, value, None)


def _regions(values: tuple[Value, ...]) -> ValueSet:
    union = EMPTY
    for kind in sorted({region_of(v) for v in values}):
        union = union.unite(region(kind))
    return union


def _like_clauses(predicate: Like, wanted: bool) -> list[Clause]:
    lower = "lower" if predicate.ignore_case else ""
    pattern = fold_case(predicate.pattern) if lower else predicate.pattern
    kind, text = like_shape(pattern)
    if kind == "general" or (kind == "substring" and text):
        derivation = "like" if kind == "general" else "substring"
        if lower:
            derivation = f"lower_{derivation}"
        return _flag(predicate.name, derivation, text, _STRING, wanted)
    if kind == "suffix":
        derivation = "lower_reversed" if lower else "reversed"
        values = string_prefix(text[::-1])
    else:
        derivation = lower or "value"
        values = point(text) if kind == "exact" else string_prefix(text)
    if not wanted:
        values = _STRING.intersect(values.complement())
    return _one(Dimension(predicate.name, derivation), values)
