"""The outcome of a call of an operator, checked.

An operator without variables returns

    True, False         or None, if it cannot tell: then neither it nor its negation is true

and one with variables the values that satisfy it:

    [53], {"a", "b"}    an iterable of values, if one argument is free
    53                  a single number, text or date, if one argument is free
    [(1, "a"), …]       an iterable of tuples, one value per free argument, if several are
    [], False           nothing satisfies it
    None                it cannot tell

An argument that occurs twice, as in route(?x, ?x), gets a value in both places; bindings whose two
values differ are left out here.

Anything else is an error, and an error is an outcome, too: it is counted, and the subscriptions
that asked for it do not match.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from matchmill.errors import ExpressionError
from matchmill.language.plain_values import plain_value
from matchmill.language.values import Domain, Value, domain_value, region_of
from matchmill.operators.registry import Argument, Variable

__all__ = ["Binding", "Outcome", "failed", "read_outcome", "value_key"]

Binding: TypeAlias = tuple[Value, ...]

_MOST_BINDINGS = 100_000


class Outcome(NamedTuple):
    """`bindings` has a value for each distinct variable; it is empty for a call without any."""

    truth: bool | None
    bindings: tuple[Binding, ...] = ()
    error: str = ""


def failed(error: str) -> Outcome:
    """Return the outcome of a call that failed."""
    return Outcome(None, (), error)


def read_outcome(returned: Any, arguments: Sequence[Argument]) -> Outcome:
    """Check what an operator returned. Iterating over it may run the operator's own code."""
    numbers = [a.number for a in arguments if isinstance(a, Variable)]
    if returned is None:
        return Outcome(None)
    if _is_boolean(returned):
        if returned and numbers:
            return failed("it returned True: with a variable it has to return values for it")
        return Outcome(bool(returned))
    if not numbers:
        kind = type(returned).__name__
        return failed(f"it returned a {kind}: without variables it has to return a truth value")
    return _read_bindings(returned, numbers)


def _is_boolean(returned: object) -> bool:
    return isinstance(returned, (bool, np.bool_))


def _read_bindings(returned: Any, numbers: list[int]) -> Outcome:
    is_one = len(numbers) == 1
    if is_one and (isinstance(returned, (str, dt.date)) or not isinstance(returned, Iterable)):
        returned = (returned,)
    if isinstance(returned, (str, bytes)) or not isinstance(returned, Iterable):
        return failed(f"it returned a {type(returned).__name__}, not bindings of variables")
    found: dict[Any, Binding] = {}
    for n, element in enumerate(returned):
        if n >= _MOST_BINDINGS:
            return failed(f"it returned more than {_MOST_BINDINGS} bindings")
        values = (element,) if is_one and not isinstance(element, (tuple, list)) else element
        if not isinstance(values, (tuple, list)) or len(values) != len(numbers):
            return failed(f"a binding has {len(numbers)} values, not {_shown(element)}")
        try:
            plain = [plain_value(value) for value in values]
        except ExpressionError as error:
            return failed(f"a variable cannot be bound to {_shown(values)}: {error.message}")
        binding = _distinct(plain, numbers)
        if binding is not None:
            found.setdefault(tuple(map(value_key, binding)), binding)
    return Outcome(bool(found), tuple(found.values()))


def _distinct(values: list[Value], numbers: list[int]) -> Binding | None:
    """One value per variable, in the order of their numbers; None if two places disagree."""
    by_number: dict[int, Value] = {}
    for number, value in zip(numbers, values, strict=True):
        if value_key(by_number.setdefault(number, value)) != value_key(value):
            return None
    return tuple(by_number[number] for number in sorted(by_number))


def value_key(value: Value) -> tuple[int, Domain]:
    """Return a key that is equal for equal values: 1 and 1.0, but not 1 and true."""
    return int(region_of(value)), domain_value(value)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:
        text = f"a {type(value).__name__} whose repr fails ({type(error).__name__})"
    return text if len(text) <= 60 else text[:59] + "…"
