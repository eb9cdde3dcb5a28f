"""Functions that constraints apply to terms, by name: `lower(?name) = 'anna'`, `abs(?x - ?y) < 5`.

A function is quick and looks at nothing but its arguments; what takes time or needs the event is an
operator. It gets the values of its arguments: numbers (whole ones that were divided as `Fraction`),
text, dates, timestamps, booleans; of an attribute of the event maybe a tuple or an object. It
returns such a value, or None for none. It is not called if an argument has no value. If it raises,
the term has no value; the error is counted and the first, the tenth, … is logged.

Names are one for the whole process, and are apart from those of operators.
"""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar, overload

from matchmill.errors import ExpressionError, InputError, did_you_mean, shown
from matchmill.language.plain_values import plain_value
from matchmill.language.terms import Applied

__all__ = [
    "TermFunction",
    "apply_function",
    "find_function",
    "function",
    "function_names",
    "unregister_function",
]

_log = logging.getLogger("matchmill.operators")

Function: TypeAlias = Callable[..., Any]
F = TypeVar("F", bound=Function)


@dataclass(slots=True, eq=False)
class TermFunction:
    """A registered function."""

    name: str
    function: Function
    n_errors: int = 0
    _signature: inspect.Signature | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            self._signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # of some functions written in C
            self._signature = None

    def takes(self, n_arguments: int) -> bool:
        """Tell whether it can be called with so many arguments."""
        if self._signature is None:
            return True
        try:
            self._signature.bind(*range(n_arguments))
        except TypeError:
            return False
        return True

    def note_error(self, error: BaseException) -> None:
        """Count an error."""
        self.n_errors += 1
        if str(self.n_errors).rstrip("0") == "1":
            _log.warning("function %s, error %d: %s", self.name, self.n_errors, shown(error))


_functions: dict[str, TermFunction] = {}


@overload
def function(function: F, /) -> F: ...


@overload
def function(*, name: str) -> Callable[[F], F]: ...


def function(function: Function | None = None, /, *, name: str | None = None) -> Any:
    """Register a function that constraints can apply to terms.

    Parameters
    ----------
    function
        It gets the values of its arguments and returns a number, text, date, timestamp or boolean,
        or None.
    name
        Its name in expressions; by default that of the function.

    Returns
    -------
    function
        The function itself.

    Raises
    ------
    InputError
        If another function has that name.

    Examples
    --------
    >>> import matchmill as mm
    >>> @mm.function
    ... def initial(text):
    ...     return text[:1]
    >>> mm.evaluate("attribute('name', ?n) and initial(?n) = 'a'", {"name": "anna"})
    True
    >>> mm.unregister_function("initial")
    """

    def register(function: Function) -> Function:
        if not callable(function):
            raise InputError(f"this is no function: {shown(function)}")
        chosen = getattr(function, "__name__", "") if name is None else name
        if not isinstance(chosen, str) or not chosen or not chosen.isprintable():
            raise InputError(f"a function's name is a word, not {shown(chosen)}; give name='…'")
        known = _functions.get(chosen)
        if known is not None and _origin(known.function) != _origin(function):
            raise InputError(
                f"there is a function {shown(chosen)} already, {_origin(known.function)}; choose"
                " another name, or remove the old one with unregister_function"
            )
        _functions[chosen] = TermFunction(chosen, function)
        return function

    return register if function is None else register(function)


def unregister_function(name: str) -> None:
    """Remove a function; constraints with it are unknown then.

    Parameters
    ----------
    name
        The name of the function.

    Raises
    ------
    InputError
        If there is no such function.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.function(name="half")(lambda x: x / 2)(4)
    2.0
    >>> mm.unregister_function("half")
    """
    if not isinstance(name, str) or _functions.pop(name, None) is None:
        near = did_you_mean(name, _functions) if isinstance(name, str) else ""
        raise InputError(f"there is no function {shown(name)}{near}")


def function_names() -> list[str]:
    """Return the names of all functions, built-in ones included.

    Examples
    --------
    >>> import matchmill as mm
    >>> "lower" in mm.function_names()
    True
    """
    return sorted(_functions)


def find_function(name: str) -> TermFunction | None:
    """Return the function with a name, or None."""
    return _functions.get(name)


def apply_function(term: Applied, arguments: Sequence[Any]) -> Any:
    """Return what a function returns for values, or None."""
    found = _functions.get(term.function)
    if found is None:
        return None
    try:
        result = found.function(*arguments)
        if result is None or isinstance(result, Fraction):
            return result
        return plain_value(result)
    except ExpressionError as error:
        found.note_error(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it raises: the term has no value
        found.note_error(error)
    return None


def _origin(function: Function) -> str:
    module = getattr(function, "__module__", None) or "?"
    return f"{module}.{getattr(function, '__qualname__', repr(function))}"


# -- functions that come with matchmill -----------------------------------------------------------


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, Fraction, Decimal)) and not isinstance(value, bool)


def _abs(number: Any) -> Any:
    return abs(number) if _is_number(number) else None


def _floor(number: Any) -> int | None:
    return math.floor(number) if _is_number(number) else None


def _ceil(number: Any) -> int | None:
    return math.ceil(number) if _is_number(number) else None


def _round(number: Any) -> int | None:
    """Return the nearest whole number; from the middle away from zero, as in SQL."""
    if not _is_number(number):
        return None
    whole = math.floor(abs(Fraction(number)) + Fraction(1, 2))
    return -whole if number < 0 else whole


def _least(number: Any, *others: Any) -> Any:
    return min(number, *others) if all(map(_is_number, (number, *others))) else None


def _greatest(number: Any, *others: Any) -> Any:
    return max(number, *others) if all(map(_is_number, (number, *others))) else None


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, (str, tuple)) else None


def _lower(text: Any) -> str | None:
    return text.lower() if isinstance(text, str) else None


def _upper(text: Any) -> str | None:
    return text.upper() if isinstance(text, str) else None


_BUILT_IN = (_abs, _ceil, _floor, _greatest, _least, _length, _lower, _round, _upper)
for _function in _BUILT_IN:
    function(name=_function.__name__.removeprefix("_"))(_function)
