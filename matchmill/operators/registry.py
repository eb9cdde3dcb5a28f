"""Operators by name: Python functions that expressions call.

    @operator(cost_ms=5)
    def loc_in(event, area):            loc_in('Bronx')
        return …                        True or False

    @operator(cost_ms=200, timeout=1.0)
    def mob_pattern(event, people):     mob_pattern(?people): `people` is a Variable then
        return [53]                     the values that satisfy it

The event is flat and cannot be changed: a read-only mapping of dotted names to values, lists as
tuples, absent values left out. Arguments are the literals of the call, and a `Variable` for each
variable. `outcome.py` says what an operator may return.

Names are one for the whole process, as imported modules are: saved engines find their operators by
name. Registering the same function again (a module reloaded, a notebook's cell) replaces it;
another function of that name is an error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias, overload

from matchmill.errors import ExpressionError, FolderError, InputError, did_you_mean, shown
from matchmill.language import operator_calls
from matchmill.language.expression import Expression
from matchmill.language.operator_calls import Call, calls_of, functions_of
from matchmill.language.term_functions import find_function, function_names
from matchmill.language.tokens import TOKEN
from matchmill.language.values import Value

__all__ = [
    "Argument",
    "Operator",
    "Variable",
    "arguments_of",
    "check_operators",
    "find_operator",
    "operator",
    "operator_names",
    "place_of_call",
    "require_operators",
    "unregister_operator",
]


@dataclass(frozen=True, slots=True)
class Variable:
    """An argument of a call that the operator has to bind, such as ``?people``.

    Parameters
    ----------
    number
        Arguments with the same number are one variable.

    Examples
    --------
    >>> import matchmill as mm
    >>> @mm.operator
    ... def initial(event, letter):
    ...     first = event["name"][0]
    ...     return first if isinstance(letter, mm.Variable) else first == letter
    >>> mm.evaluate("initial(?letter) and ?letter > 'k'", {"name": "smith"})
    True
    >>> mm.unregister_operator("initial")
    """

    number: int


_MOST = 1e9  # seconds or milliseconds

Argument: TypeAlias = Value | Variable
Function: TypeAlias = Callable[..., Any]


@dataclass(slots=True, eq=False)
class Operator:
    """A registered operator, made by `operator`. It can be called as its function.

    Parameters
    ----------
    name
        Its name in expressions.
    function
        The function.
    cost_ms
        What a call is expected to take, in milliseconds, until calls have been measured.
    timeout
        After how many seconds a call counts as an error, or None.

    Examples
    --------
    >>> import matchmill as mm
    >>> @mm.operator(cost_ms=0.1)
    ... def is_even(event, name):
    ...     return event[name] % 2 == 0
    >>> is_even
    <Operator is_even(name), 0.1 ms>
    >>> is_even({"n": 4}, "n")
    True
    >>> mm.unregister_operator("is_even")
    """

    name: str
    function: Function
    cost_ms: float
    timeout: float | None
    batch_function: Function | None = None
    _signature: inspect.Signature = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            self._signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # of some functions written in C
            raise InputError(
                f"the parameters of {shown(self.function)} cannot be seen; wrap it in a function"
            ) from None

    def __call__(self, event: Mapping[str, Any], *arguments: Any) -> Any:
        """Call the function."""
        return self.function(event, *arguments)

    def __repr__(self) -> str:
        timeout = "" if self.timeout is None else f", timeout {self.timeout:g} s"
        return f"<Operator {self.shape}, {self.cost_ms:g} ms{timeout}>"

    def batch(self, function: Function) -> Function:
        """Register a function that takes a list of events and returns a list of results.

        Parameters
        ----------
        function
            It gets the events and the arguments, and returns one result per event.

        Examples
        --------
        >>> import matchmill as mm
        >>> @mm.operator
        ... def is_even(event, name):
        ...     return event[name] % 2 == 0
        >>> @is_even.batch
        ... def are_even(events, name):
        ...     return [event[name] % 2 == 0 for event in events]
        >>> mm.unregister_operator("is_even")
        """
        self.batch_function = function
        return function

    def takes(self, n_arguments: int) -> bool:
        """Tell whether it can be called with so many arguments.

        Parameters
        ----------
        n_arguments
            How many arguments follow the event.

        Examples
        --------
        >>> from matchmill.operators.registry import find_operator
        >>> find_operator("within_km").takes(3)
        True
        """
        try:
            self._signature.bind(None, *range(n_arguments))
        except TypeError:
            return False
        return True

    @property
    def shape(self) -> str:
        """How it is called: `loc_in(area)`."""
        return f"{self.name}({', '.join(list(self._signature.parameters)[1:])})"


_operators: dict[str, Operator] = {}


@overload
def operator(function: Function, /) -> Operator: ...


@overload
def operator(
    *, name: str | None = None, cost_ms: float = 1.0, timeout: float | None = None
) -> Callable[[Function], Operator]: ...


def operator(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    cost_ms: float = 1.0,
    timeout: float | None = None,
) -> Operator | Callable[[Function], Operator]:
    """Register a function as an operator that expressions can call.

    Parameters
    ----------
    function
        A function of an event and further arguments. It returns True, False or None (unknown), or
        for a `Variable` the values that satisfy it.
    name
        Its name in expressions; by default that of the function.
    cost_ms
        What a call is expected to take, in milliseconds. Calls are measured, so this only matters
        at the beginning.
    timeout
        After how many seconds a call counts as an error; None means never.

    Returns
    -------
    Operator
        The operator, which can be called as the function.

    Raises
    ------
    InputError
        If another function has that name.

    Examples
    --------
    >>> import matchmill as mm
    >>> @mm.operator(cost_ms=0.1)
    ... def is_even(event, name):
    ...     return event[name] % 2 == 0
    >>> mm.Engine({"u1": "is_even('n') and n > 10"}).match({"n": 12})
    {'u1'}
    >>> mm.unregister_operator("is_even")
    """
    _check_positive("cost_ms", cost_ms)
    if timeout is not None:
        _check_positive("timeout", timeout)

    def register(function: Function) -> Operator:
        if not callable(function):
            raise InputError(f"an operator is a function of an event, not {shown(function)}")
        chosen = _checked_name(getattr(function, "__name__", "") if name is None else name)
        known = _operators.get(chosen)
        if known is not None and _origin(known.function) != _origin(function):
            raise InputError(
                f"there is an operator {shown(chosen)} already, {_origin(known.function)}; choose "
                "another name, or remove the old one with unregister_operator"
            )
        made = Operator(chosen, function, float(cost_ms), timeout)
        if not made._signature.parameters:
            raise InputError(f"the operator {chosen!r} takes no event: its first parameter is one")
        _operators[chosen] = made
        return made

    return register if function is None else register(function)


def unregister_operator(name: str) -> None:
    """Remove an operator; subscriptions that call it then count errors and do not match.

    Parameters
    ----------
    name
        The name of the operator.

    Raises
    ------
    InputError
        If there is no such operator.

    Examples
    --------
    >>> import matchmill as mm
    >>> @mm.operator
    ... def is_even(event, name):
    ...     return event[name] % 2 == 0
    >>> mm.unregister_operator("is_even")
    >>> "is_even" in mm.operator_names()
    False
    """
    if not isinstance(name, str) or _operators.pop(str.__str__(name), None) is None:
        near = did_you_mean(str.__str__(name), _operators) if isinstance(name, str) else ""
        raise InputError(f"there is no operator {shown(name)}{near}")


def operator_names() -> list[str]:
    """Return the names of all operators, built-in ones included.

    Examples
    --------
    >>> import matchmill as mm
    >>> "within_km" in mm.operator_names()
    True
    """
    return sorted(_operators)


def find_operator(name: str) -> Operator | None:
    """Return the operator with a name, or None."""
    return _operators.get(name)


def require_operators(where: str, names: Iterable[str]) -> None:
    """Raise FolderError for names that no operator has."""
    missing = sorted({name for name in names if not _is_registered(name)})
    if missing:
        what = "functions" if all(name.endswith("()") for name in missing) else "operators"
        raise FolderError(
            f"{where} has subscriptions with {what} that are not registered: "
            f"{', '.join(missing)}; import the module that registers them first (on the command "
            "line: --operators MODULE)"
        )


def _is_registered(name: str) -> bool:
    """Whether there is an operator, or for `name()` a function of terms."""
    if name in _operators:
        return True
    return name.endswith("()") and find_function(name.removesuffix("()")) is not None


def _check_positive(what: str, value: object) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value <= _MOST:  # type: ignore[operator]
        raise InputError(
            f"the {what} of an operator is a number above 0 and at most {_MOST:.0e},"
            f" not {shown(value)}"
        )


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise InputError(f"an operator's name is a word, not {shown(name)}; give name='…'")
    return str.__str__(name)


def _origin(function: Function) -> str:
    """Where a function was defined."""
    module = getattr(function, "__module__", None) or "?"
    return f"{module}.{getattr(function, '__qualname__', repr(function))}"


# -- calls against the registry -------------------------------------------------------------------


def check_operators(expression: Expression, text: str | None = None) -> None:
    """Raise ExpressionError, with the place in the text, for a call of an unknown operator."""
    for call in calls_of(expression):
        found = _operators.get(call.name)
        if found is None:
            raise _error(call, text, f"there is no operator {call.name!r}", _unknown_hint(call))
        if not found.takes(len(call.arguments)):
            n_arguments = len(call.arguments)
            given = f"{n_arguments} argument{'' if n_arguments == 1 else 's'}"
            message = f"{shown(call.name)} cannot be called with {given}"
            raise _error(call, text, message, f"it is called as {found.shape}")
    for applied in functions_of(expression):
        function = find_function(applied.function)
        place = _place_of_name(text, applied.function)
        if function is None:
            message = f"there is no function {applied.function!r}"
            hint = _function_hint(applied.function)
            raise ExpressionError(message, text=text, position=place, hint=hint)
        n_arguments = len(applied.arguments)
        if not function.takes(n_arguments):
            message = (
                f"the function {shown(applied.function)} does not take {n_arguments} arguments"
            )
            raise ExpressionError(message, text=text, position=place)


def _function_hint(name: str) -> str:
    if name in _operators:
        return f"it is an operator, which is a condition; let it bind its value: {name}(?x) and …"
    near = did_you_mean(name, function_names())
    return near.removeprefix("; ") or "register it with @matchmill.function"


def _place_of_name(text: str | None, name: str) -> int | None:
    """Return where a function's name stands in a text."""
    if text is None:
        return None
    tokens = [*TOKEN.finditer(text)]
    names = (name, '"' + name.replace('"', '""') + '"')
    starts = [
        one.start()
        for one, following in pairwise(tokens)
        if one.group() in names and following.group() == "("
    ]
    return starts[0] if starts else None


def _unknown_hint(call: Call) -> str:
    folded = call.name.lower().replace("_", "")
    close = [n for n in operator_names() if n.lower().replace("_", "") == folded]
    if close:
        return f"did you mean {close[0]}?"
    return "register it with @matchmill.operator, or import the module that does"


def _error(call: Call, text: str | None, message: str, hint: str) -> ExpressionError:
    return ExpressionError(message, text=text, position=place_of_call(text, call), hint=hint)


def place_of_call(text: str | None, call: Call) -> int | None:
    """Return where a call stands in the text that it was read from."""
    if text is None:
        return None
    tokens = [*TOKEN.finditer(text)]
    names = (call.name, '"' + call.name.replace('"', '""') + '"')
    starts = [
        i
        for i in range(len(tokens) - 1)
        if tokens[i].group() in names and tokens[i + 1].group() == "("
    ]
    n_arguments = [_n_arguments(tokens[i + 1 :]) for i in starts]
    wanted = len(call.arguments)
    alike = [i for i, n in zip(starts, n_arguments, strict=True) if n == wanted] or starts
    return tokens[alike[0]].start() if alike else None


def _n_arguments(tokens: Sequence[Any]) -> int:
    """Count the arguments between this parenthesis and the one that closes it."""
    texts = [token.group() for token in tokens[: 1 + 2 * 10_000]]
    end = texts.index(")") if ")" in texts else len(texts)
    return texts[:end].count(",") + (end > 1)


def arguments_of(call: Call) -> tuple[Argument, ...]:
    """Return the arguments as an operator gets them: variables numbered by first occurrence."""
    numbers = {name: i for i, name in enumerate(call.variables)}
    return tuple(
        Variable(numbers[a.name]) if isinstance(a, operator_calls.Variable) else a
        for a in call.arguments
    )
