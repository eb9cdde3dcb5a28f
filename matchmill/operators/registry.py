"""Operators by name: Python callables that are asked about an event.

    @operator(cost=5)
    def loc_in(event, area):            loc_in('Bronx')
        return …                        a truth value

    @operator(cost=200, time_limit=1.0)
    def mob_pattern(event, people):     mob_pattern(?people): `people` is a Free argument then
        return [53]                     the values that satisfy it

The event is flat and cannot be changed: a read-only mapping of dotted names to values, lists as
tuples, absent values left out. Arguments are the literals of the call, and a `Free` for each
variable. What may be returned is told in `outcome.py`.

Names are one for the whole process, as imported modules are: saved engines find their operators by
name. Registering the same function again (a module reloaded, a notebook's cell) replaces it;
another function of that name is an error.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, overload

from matchmill.errors import ExpressionError, FolderError, InputError
from matchmill.language.expression import Expression
from matchmill.language.operator_calls import Call, Variable, calls_of
from matchmill.language.tokens import TOKEN
from matchmill.language.values import Value

__all__ = [
    "Argument",
    "Free",
    "Operator",
    "arguments_of",
    "check_operators",
    "find_operator",
    "operator",
    "operator_names",
    "place_of_call",
    "require_operators",
    "unregister",
]


@dataclass(frozen=True, slots=True)
class Free:
    """An argument that the operator is to bind. Those with the same number are one variable."""

    number: int


Argument: TypeAlias = Value | Free
Function: TypeAlias = Callable[..., Any]


@dataclass(slots=True, eq=False)
class Operator:
    """A registered operator. It can be called as the function that it was made from."""

    name: str
    function: Function
    cost: float  # what a call is expected to take, in milliseconds, until it is known better
    time_limit: float | None  # seconds
    batch_function: Function | None = None
    _signature: inspect.Signature = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._signature = inspect.signature(self.function)

    def __call__(self, event: Mapping[str, Any], *arguments: Any) -> Any:
        return self.function(event, *arguments)

    def batch(self, function: Function) -> Function:
        """Register a function that takes a list of events at once and returns as many results."""
        self.batch_function = function
        return function

    def takes(self, n_arguments: int) -> bool:
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
    *, name: str | None = None, cost: float = 1.0, time_limit: float | None = None
) -> Callable[[Function], Operator]: ...


def operator(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    cost: float = 1.0,
    time_limit: float | None = None,
) -> Operator | Callable[[Function], Operator]:
    """Register a function of an event and arguments, under its own name or another.

    `cost` is what a call is expected to take, in milliseconds; what calls do take is learned.
    A call that takes longer than `time_limit` seconds counts as an error.
    """
    _check_positive("cost", cost)
    if time_limit is not None:
        _check_positive("time_limit", time_limit)

    def register(function: Function) -> Operator:
        chosen = _checked_name(name or getattr(function, "__name__", ""))
        known = _operators.get(chosen)
        if known is not None and _origin(known.function) != _origin(function):
            raise InputError(
                f"there is an operator {chosen!r} already, {_origin(known.function)}; choose "
                "another name, or take the old one away with unregister"
            )
        made = Operator(chosen, function, float(cost), time_limit)
        if not made._signature.parameters:
            raise InputError(f"the operator {chosen!r} takes no event: its first parameter is one")
        _operators[chosen] = made
        return made

    return register if function is None else register(function)


def unregister(name: str) -> None:
    """Forget an operator; subscriptions that use it then count errors and do not match."""
    if _operators.pop(name, None) is None:
        raise InputError(f"there is no operator {name!r}")


def find_operator(name: str) -> Operator | None:
    return _operators.get(name)


def operator_names() -> list[str]:
    return sorted(_operators)


def require_operators(where: str, names: Iterable[str]) -> None:
    """Raise FolderError for names that no operator has."""
    missing = sorted({name for name in names if name not in _operators})
    if missing:
        raise FolderError(
            f"{where} has subscriptions with operators that are not registered: "
            f"{', '.join(missing)}; import the module that registers them first (on the command "
            "line: --operators MODULE)"
        )


def _check_positive(what: str, value: object) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value < math.inf:  # type: ignore[operator]
        raise InputError(f"the {what} of an operator is a number above 0, not {value!r}")


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise InputError(f"an operator's name is a word, not {name!r}; give name='…'")
    return name


def _origin(function: Function) -> str:
    """Where a function was defined."""
    module = getattr(function, "__module__", None) or "?"
    return f"{module}.{getattr(function, '__qualname__', repr(function))}"


# -- calls against the registry -------------------------------------------------------------------


def check_operators(expression: Expression, text: str | None = None) -> None:
    """Raise ExpressionError, with the place in the text, for a call that nobody can answer."""
    for call in calls_of(expression):
        found = _operators.get(call.name)
        if found is None:
            raise _error(call, text, f"there is no operator {call.name!r}", _unknown_hint(call))
        if not found.takes(len(call.arguments)):
            n_arguments = len(call.arguments)
            given = f"{n_arguments} argument{'' if n_arguments == 1 else 's'}"
            message = f"{call.name!r} cannot be called with {given}"
            raise _error(call, text, message, f"it is called as {found.shape}")


def _unknown_hint(call: Call) -> str:
    folded = call.name.lower().replace("_", "")
    close = [n for n in operator_names() if n.lower().replace("_", "") == folded]
    if close:
        return f"did you mean {close[0]}?"
    return "register it with @matchmill.operator, or import the module that does"


def _error(call: Call, text: str | None, message: str, hint: str) -> ExpressionError:
    return ExpressionError(message, text=text, position=place_of_call(text, call), hint=hint)


def place_of_call(text: str | None, call: Call) -> int | None:
    """Where a call stands in the text that it was read from."""
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
    """How many arguments stand between this parenthesis and the one that closes it."""
    texts = [token.group() for token in tokens[: 1 + 2 * 10_000]]
    end = texts.index(")") if ")" in texts else len(texts)
    return texts[:end].count(",") + (end > 1)


def arguments_of(call: Call) -> tuple[Argument, ...]:
    """The arguments as an operator gets them: variables numbered in order of their first places."""
    numbers = {name: i for i, name in enumerate(call.variables)}
    return tuple(Free(numbers[a.name]) if isinstance(a, Variable) else a for a in call.arguments)
