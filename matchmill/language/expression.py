"""Expressions: immutable trees of conditions.

    Expression
    ├── Predicate                                         a condition on one attribute
    │   ├── Compare, In, Between, Like, RLike, InNetwork  on a value, or, with any_element, on some
    │   │                                                 element of a list
    │   ├── Contains                                      a list against given values
    │   └── IsNull, IsTrue                                presence; a bare boolean attribute
    ├── Constant                                          true, false
    ├── And, Or, Not
    └── TruthTest                                         is [not] true, false, unknown

`str(expression)` is text that parses back to an equal expression. Equality distinguishes `1` from
`true`, and treats `1` and `1.0` as the same number.
"""

from __future__ import annotations

import datetime as dt
import functools
import html
import ipaddress
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, ParamSpec, TypeAlias, TypeVar, cast

from matchmill.errors import ExpressionError, LimitError, shown
from matchmill.language.patterns import check_regex, compile_regex, like_tokens
from matchmill.language.values import Value, check_literal, region_of, visible
from matchmill.settings import Settings

__all__ = [
    "ANY_ATTRIBUTE",
    "COMPARE",
    "KEYWORDS",
    "OPPOSITES",
    "And",
    "Between",
    "Compare",
    "Constant",
    "Contains",
    "Expression",
    "In",
    "InNetwork",
    "IsNull",
    "IsTrue",
    "Like",
    "Not",
    "Operator",
    "Or",
    "Predicate",
    "RLike",
    "TruthTest",
    "check_form",
    "check_limits",
    "check_predicate",
    "literal_text",
    "name_text",
    "network",
    "walk",
    "within_the_stack",
]

P = ParamSpec("P")
T = TypeVar("T")

Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]

COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OPPOSITES: dict[Operator, Operator] = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
}

KEYWORDS = frozenset(
    {
        *("and", "or", "not", "in", "between", "like", "ilike", "rlike", "is", "null"),
        *("true", "false", "contains", "any", "all", "none", "cidr", "date", "timestamp"),
    }
)

# The name of the list of all texts of an event, which no text has in quotes.
ANY_ATTRIBUTE = "\0any attribute"

_LONGEST_REPR = 300
_PLAIN_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


class Expression:
    """What an event has to satisfy; made by `parse` or `attr`, combined with `&`, `|` and `~`.

    `str()` is the text, which parses back to an equal expression. Expressions are immutable; equal
    ones are interchangeable as keys of dictionaries.

    Attributes
    ----------
    attributes : frozenset of str
        The names of all attributes that the expression mentions.

    Examples
    --------
    >>> import matchmill as mm
    >>> late = mm.parse("origin = 'JFK' and dep_delay > 60")
    >>> late & ~mm.attr("carrier").is_in("AA", "UA")
    Expression("origin = 'JFK' and dep_delay > 60 and carrier not in ('AA', 'UA')")
    >>> sorted(late.attributes)
    ['dep_delay', 'origin']
    """

    __slots__ = ()
    _precedence: ClassVar[int] = 4

    def __and__(self, other: Expression) -> Expression:
        return And((self, other)) if isinstance(other, Expression) else NotImplemented

    def __or__(self, other: Expression) -> Expression:
        return Or((self, other)) if isinstance(other, Expression) else NotImplemented

    def __invert__(self) -> Expression:
        return Not(self)

    def __repr__(self) -> str:
        text = str(self)
        if len(text) > _LONGEST_REPR:
            text = text[: _LONGEST_REPR - 1] + "…"
        escaped = visible(text.replace("\\", "\\\\").replace('"', '\\"'))
        return f'Expression("{escaped}")'

    def _repr_html_(self) -> str:
        return f"<code>{html.escape(str(self), quote=False)}</code>"

    def is_true(self) -> Expression:
        """Require that the expression is true, and make false of unknown.

        Examples
        --------
        >>> import matchmill as mm
        >>> (mm.attr("x") > 5).is_true()
        Expression("(x > 5) is true")
        """
        return TruthTest(self, True)

    def is_not_true(self) -> Expression:
        """Require that the expression is false or unknown.

        Examples
        --------
        >>> import matchmill as mm
        >>> (mm.attr("x") > 5).is_not_true()
        Expression("(x > 5) is not true")
        """
        return TruthTest(self, True, True)

    def is_false(self) -> Expression:
        """Require that the expression is false, not unknown.

        Examples
        --------
        >>> import matchmill as mm
        >>> (mm.attr("x") > 5).is_false()
        Expression("(x > 5) is false")
        """
        return TruthTest(self, False)

    def is_not_false(self) -> Expression:
        """Require that the expression is true or unknown.

        Examples
        --------
        >>> import matchmill as mm
        >>> (mm.attr("x") > 5).is_not_false()
        Expression("(x > 5) is not false")
        """
        return TruthTest(self, False, True)

    def is_unknown(self) -> Expression:
        """Require that the expression is unknown: a value is missing, or of another type.

        Examples
        --------
        >>> import matchmill as mm
        >>> (mm.attr("x") > 5).is_unknown()
        Expression("(x > 5) is unknown")
        """
        return TruthTest(self, None)

    def is_not_unknown(self) -> Expression:
        """Require that the expression is true or false.

        Examples
        --------
        >>> import matchmill as mm
        >>> (mm.attr("x") > 5).is_not_unknown()
        Expression("(x > 5) is not unknown")
        """
        return TruthTest(self, None, True)

    @property
    def attributes(self) -> frozenset[str]:
        """The names of all attributes that the expression mentions.

        Examples
        --------
        >>> import matchmill as mm
        >>> sorted(mm.parse("geo.lat > 40 or geo.lat is null").attributes)
        ['geo.lat']
        """
        names: set[str] = set()
        for node, _ in walk(self):
            names |= {node.name} if isinstance(node, Predicate) else node.event_attributes
        names.discard(ANY_ATTRIBUTE)
        return frozenset(names)

    @property
    def event_attributes(self) -> frozenset[str]:
        """The attributes that a constraint on variables looks at."""
        return frozenset()

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value: combine with & | ~, not and, or, not")

    def _key(self) -> tuple[object, ...]:
        return (type(self), *(_identity(getattr(self, f.name)) for f in fields(self)))  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expression):
            return NotImplemented
        return self is other or self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The subexpressions directly below this one."""
        return ()


def _identity(value: object) -> object:
    """Return a value that equals only values of the same meaning (1 is not true)."""
    if isinstance(value, tuple):
        return tuple(_identity(v) for v in value)
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, dt.datetime):
        return ("timestamp", value)
    return value


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constant(Expression):
    """`true` or `false`."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class And(Expression):
    """All of its subexpressions."""

    _precedence: ClassVar[int] = 2
    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "operands", _flat(self.operands, And))

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The subexpressions."""
        return self.operands

    def __str__(self) -> str:
        return _text_of(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Or(Expression):
    """At least one of its subexpressions."""

    _precedence: ClassVar[int] = 1
    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "operands", _flat(self.operands, Or))

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The subexpressions."""
        return self.operands

    def __str__(self) -> str:
        return _text_of(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Not(Expression):
    """The opposite; unknown stays unknown."""

    _precedence: ClassVar[int] = 3
    operand: Expression

    def __post_init__(self) -> None:
        if not isinstance(self.operand, Expression):
            raise ExpressionError(f"not an expression: {shown(self.operand)}")

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The one subexpression."""
        return (self.operand,)

    def __str__(self) -> str:
        return _text_of(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TruthTest(Expression):
    """`(price > 5) is not true`: whether an expression has a truth. Never unknown."""

    operand: Expression
    truth: bool | None  # None is unknown
    negated: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.operand, Expression):
            raise ExpressionError(f"not an expression: {shown(self.operand)}")
        if self.truth is not None and type(self.truth) is not bool:
            raise ExpressionError(f"a truth is True, False or None, not {shown(self.truth)}")
        if type(self.negated) is not bool:
            raise ExpressionError(f"negated is True or False, not {shown(self.negated)}")

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The one subexpression."""
        return (self.operand,)

    @property
    def test(self) -> str:
        """The words behind the operand."""
        word = "unknown" if self.truth is None else "true" if self.truth else "false"
        return f"is {_not(self.negated)}{word}"

    def __invert__(self) -> Expression:
        return TruthTest(self.operand, self.truth, not self.negated)

    def __str__(self) -> str:
        return _text_of(self)


def _flat(operands: tuple[Expression, ...], kind: type[And] | type[Or]) -> tuple[Expression, ...]:
    out: list[Expression] = []
    for operand in operands:
        if isinstance(operand, kind):
            out.extend(operand.operands)
        elif isinstance(operand, Expression):
            out.append(operand)
        else:
            raise ExpressionError(f"not an expression: {shown(operand)}")
    if len(out) < 2:
        raise ExpressionError(f"{kind.__name__} takes at least two expressions")
    return tuple(out)


def _text_of(expression: Expression) -> str:
    """Return the text; without recursion, so no tree can exhaust the stack."""
    pieces: list[str] = []
    left: list[str | Expression] = [expression]
    while left:
        part = left.pop()
        if isinstance(part, str):
            pieces.append(part)
        elif isinstance(part, Not):
            at_least = 5 if isinstance(part.operand, TruthTest) else 3
            left += (*_wrapped(part.operand, at_least), "not ")
        elif isinstance(part, TruthTest):
            at_least = 4 if isinstance(part.operand, IsTrue) else 5
            left += (f" {part.test}", *_wrapped(part.operand, at_least))
        elif isinstance(part, (And, Or)):
            word, at_least = (" and ", 3) if isinstance(part, And) else (" or ", 2)
            for operand in part.operands[:0:-1]:
                left += (*_wrapped(operand, at_least), word)
            left += _wrapped(part.operands[0], at_least)
        else:
            pieces.append(str(part))
    return "".join(pieces)


def _wrapped(expression: Expression, at_least: int) -> tuple[str | Expression, ...]:
    """Return the pieces of an operand, the last one first."""
    return (expression,) if expression._precedence >= at_least else (")", expression, "(")


# -- predicates -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Predicate(Expression):
    """A condition on one attribute."""

    name: str

    def __invert__(self) -> Expression:
        # `any(x) not in (1, 2)` is not the opposite of `any(x) in (1, 2)`.
        negated = getattr(self, "negated", None)
        if negated is None or getattr(self, "any_element", False):
            return Not(self)
        node: Any = self  # a class that has the field
        return cast("Expression", replace(node, negated=not negated))

    def _operand(self) -> str:
        name = name_text(self.name)
        is_inside = getattr(self, "any_element", False) and self.name != ANY_ATTRIBUTE
        return f"any({name})" if is_inside else name


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compare(Predicate):
    """`price <= 580`."""

    op: Operator
    value: Value
    any_element: bool = False

    def __str__(self) -> str:
        return f"{self._operand()} {self.op} {literal_text(self.value)}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class In(Predicate):
    """`carrier in ('AA', 'UA')`."""

    values: tuple[Value, ...]
    negated: bool = False
    any_element: bool = False

    def __str__(self) -> str:
        return f"{self._operand()} {_not(self.negated)}in {_list_text(self.values)}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Between(Predicate):
    """`price between 10 and 20`, both ends included."""

    low: Value
    high: Value
    negated: bool = False
    any_element: bool = False

    def __str__(self) -> str:
        ends = f"{literal_text(self.low)} and {literal_text(self.high)}"
        return f"{self._operand()} {_not(self.negated)}between {ends}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Like(Predicate):
    r"""`name like 'ab%'`: `%` any text, `_` one character, `\` takes the next one literally."""

    pattern: str
    negated: bool = False
    ignore_case: bool = False
    any_element: bool = False

    def __str__(self) -> str:
        word = "ilike" if self.ignore_case else "like"
        return f"{self._operand()} {_not(self.negated)}{word} {literal_text(self.pattern)}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RLike(Predicate):
    """`name rlike '^a+b'`: RE2 syntax, found anywhere in the text."""

    pattern: str
    negated: bool = False
    any_element: bool = False

    def __str__(self) -> str:
        return f"{self._operand()} {_not(self.negated)}rlike {literal_text(self.pattern)}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InNetwork(Predicate):
    """`address in cidr ('10.0.0.0/8', '::1/128')`, on text that is an IP address."""

    networks: tuple[str, ...]
    negated: bool = False
    any_element: bool = False

    def __str__(self) -> str:
        return f"{self._operand()} {_not(self.negated)}in cidr {_list_text(self.networks)}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Contains(Predicate):
    """`tags contains any ('a', 'b')`, on a list."""

    mode: Literal["any", "all", "none"]
    values: tuple[Value, ...]

    def __str__(self) -> str:
        if self.mode == "any" and len(self.values) == 1:
            return f"{self._operand()} contains {literal_text(self.values[0])}"
        return f"{self._operand()} contains {self.mode} {_list_text(self.values)}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IsNull(Predicate):
    """`gate is null`; with negated, `gate is not null`."""

    negated: bool = False

    def __str__(self) -> str:
        return f"{self._operand()} is {_not(self.negated)}null"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IsTrue(Predicate):
    """A bare boolean attribute."""

    def __str__(self) -> str:
        return self._operand()


# -- text -----------------------------------------------------------------------------------------


def _not(negated: bool) -> str:
    return "not " if negated else ""


def _list_text(values: tuple[Any, ...]) -> str:
    return "(" + ", ".join(literal_text(v) for v in values) + ")"


def name_text(name: str) -> str:
    """Return a name as it is written in text, quoted if it must be."""
    if name == ANY_ATTRIBUTE:
        return "any attribute"
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def literal_text(value: Value) -> str:
    """Return a literal as it is written in text."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return f"timestamp '{value.isoformat(' ')}'"
    if isinstance(value, dt.date):
        return f"date '{value.isoformat()}'"
    return repr(value)


def network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Return the network of text such as `10.0.0.0/8`; raise ExpressionError if it is none."""
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ExpressionError(
            f"not a network: {error}", hint="write an address and a prefix length: '10.0.0.0/8'"
        ) from None


# -- limits ---------------------------------------------------------------------------------------


def within_the_stack(function: Callable[P, T]) -> Callable[P, T]:
    """Have a function that calls itself for subexpressions raise LimitError if Python cannot."""

    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> T:
        try:
            return function(*arguments, **keywords)
        except RecursionError:
            raise LimitError(
                "the expression is nested too deep for what is left of Python's stack",
                hint="simplify it, call from fewer functions, or use sys.setrecursionlimit",
            ) from None

    return call


def walk(expression: Expression) -> Iterator[tuple[Expression, int]]:
    """Yield all nodes with their depth; without recursion, so no tree can exhaust the stack."""
    stack = [(expression, 1)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack.extend((part, depth + 1) for part in node.parts)


def _n_values(node: Expression) -> int:
    if isinstance(node, (In, Contains)):
        return len(node.values)
    if isinstance(node, InNetwork):
        return len(node.networks)
    return 2 if isinstance(node, Between) else 1


def check_limits(
    expression: Expression,
    settings: Settings,
    check: Callable[[Predicate], None] | None = None,
) -> None:
    """Raise LimitError if an expression is deeper or larger than the settings allow.

    `check` is called first with each condition.
    """
    n_conditions = n_values = 0
    for node, depth in walk(expression):
        if depth > settings.max_depth:
            raise LimitError(
                f"the expression is nested more than {settings.max_depth} deep",
                hint="simplify it, or raise the setting max_depth",
            )
        if isinstance(node, Predicate):
            if check is not None:
                check(node)
            n_conditions += 1
            n_values += _n_values(node)
            if n_conditions > settings.max_conditions or n_values > settings.max_values:
                raise LimitError(
                    f"the expression has more than {settings.max_conditions} conditions or"
                    f" {settings.max_values} literals",
                    hint="split it, or raise the settings max_conditions and max_values",
                )
            if isinstance(node, Like) and len(node.pattern) > settings.max_pattern_length:
                raise LimitError(
                    f"a pattern is longer than {settings.max_pattern_length} characters",
                    hint="shorten it, or raise the setting max_pattern_length",
                )
            if isinstance(node, RLike):
                check_regex(node.pattern, settings.max_pattern_program)


_PLAIN_TYPES = (bool, int, float, str, dt.date, dt.datetime)


_FORMS: dict[str, tuple[type, str]] = {
    "op": (str, "an operator of comparison"),
    "mode": (str, "any, all or none"),
    "pattern": (str, "text"),
    "values": (tuple, "a tuple of values"),
    "networks": (tuple, "a tuple of texts"),
    "negated": (bool, "True or False"),
    "ignore_case": (bool, "True or False"),
    "any_element": (bool, "True or False"),
}


def check_form(node: Predicate) -> None:
    """Raise ExpressionError for a condition, built by hand, with parts of a wrong type."""
    if type(node.name) is not str or not node.name:
        raise ExpressionError(f"an attribute's name is a non-empty string, not {shown(node.name)}")
    check_literal(node.name)
    if node.name == ANY_ATTRIBUTE and not getattr(node, "any_element", False):
        raise ExpressionError("any attribute takes a comparison or a condition on text")
    for field in fields(node):
        kind, wanted = _FORMS.get(field.name, (object, ""))
        value = getattr(node, field.name)
        if kind is not object and type(value) is not kind:
            raise ExpressionError(
                f"the field {field.name} of {type(node).__name__} is {wanted}, not {shown(value)}",
                hint="build the expression with matchmill.attr, which converts values",
            )
        if field.name == "pattern":
            check_literal(value)
    if isinstance(node, InNetwork) and any(type(text) is not str for text in node.networks):
        raise ExpressionError(f"networks are texts, not {shown(node.networks)}")


def check_predicate(node: Predicate) -> None:
    """Raise ExpressionError for a condition, built by hand, that no text could have given."""
    check_form(node)
    values = _literals(node)
    if values == ():
        raise ExpressionError("a list of values must not be empty")
    for value in values or ():
        check_literal(value)
        if type(value) not in _PLAIN_TYPES or getattr(value, "tzinfo", None) is not None:
            raise ExpressionError(
                f"{shown(value)} of type {type(value).__name__} cannot be written as a literal",
                hint="build the expression with matchmill.attr, which converts values",
            )
    if isinstance(node, Compare) and node.op not in COMPARE:
        raise ExpressionError(f"there is no operator {shown(node.op)}")
    if isinstance(node, Contains) and node.mode not in ("any", "all", "none"):
        raise ExpressionError(f"contains takes any, all or none, not {shown(node.mode)}")
    if isinstance(node, Between) and region_of(node.low) != region_of(node.high):
        raise ExpressionError("the two ends of between must be of one type")
    if isinstance(node, Like):
        like_tokens(node.pattern)
    elif isinstance(node, RLike):
        compile_regex(node.pattern)
    elif isinstance(node, InNetwork):
        for text in node.networks:
            network(text)


def _literals(node: Predicate) -> tuple[Any, ...] | None:
    """Return all literals of a condition; None if it has none."""
    if isinstance(node, (In, Contains)):
        return node.values
    if isinstance(node, InNetwork):
        return node.networks
    if isinstance(node, Compare):
        return (node.value,)
    if isinstance(node, Between):
        return (node.low, node.high)
    return (node.pattern,) if isinstance(node, (Like, RLike)) else None
