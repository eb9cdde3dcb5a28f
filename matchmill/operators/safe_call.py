"""Calling an operator so that its failures affect nothing else.

    raises, returns nonsense     an Outcome with the error, whatever it raises: SystemExit and
                                 CancelledError, too. Only KeyboardInterrupt ends the match
    takes too long               the same; the call goes on in a thread of its own, which is asked
                                 to stop and given up
    changes the event            it cannot: it gets a read-only view, lists as tuples; only objects,
                                 which it gets as they are, could be changed

An operator with a timeout is called in a thread, because only a thread can be waited for with a
limit wherever the engine itself is called. Python code is stopped by an exception that is raised
inside it; a call that waits outside of Python cannot be stopped, so an operator of which many calls
hang is not called again until some of them have come back.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from matchmill.language.flatten import FlatEvent
from matchmill.language.values import Opaque
from matchmill.operators.outcome import Outcome, failed, read_outcome
from matchmill.operators.registry import Argument, Operator

__all__ = ["Answer", "FrozenEvent", "ask", "ask_batch", "attribute_of", "frozen_event"]

FrozenEvent = Mapping[str, Any]

_MOST_HANGING = 8
_SCALARS = frozenset((str, int, float, bool))


class Answer(NamedTuple):
    """What a call returned, and how long it took."""

    outcome: Outcome
    milliseconds: float


def frozen_event(flat: Mapping[str, Any]) -> FrozenEvent:
    """Return an event that cannot be changed; objects, records and arrays are as they came."""
    values = {k: v if type(v) in _SCALARS else _frozen(v) for k, v in flat.items()}
    if isinstance(flat, FlatEvent):
        values |= flat.whole
    return MappingProxyType(values)


def attribute_of(flat: Mapping[str, Any]) -> Callable[[str], Any]:
    """Return the function with which constraints look at an event: lists are tuples."""

    def value_of(name: str) -> Any:
        value = flat.get(name)
        return value if isinstance(value, Opaque) else _frozen(value)  # which has no value

    return value_of


def _frozen(value: Any) -> Any:
    if isinstance(value, Opaque):
        return value.value
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def ask(operator: Operator, event: FrozenEvent, arguments: Sequence[Argument]) -> Answer:
    """Call an operator for one event."""

    def call() -> list[Outcome]:
        return [_contained(lambda: operator.function(event, *arguments), arguments)]

    (outcome,), milliseconds = _timed(operator, call, 1)
    return Answer(outcome, milliseconds)


def ask_batch(
    operator: Operator, events: Sequence[FrozenEvent], arguments: Sequence[Argument]
) -> list[Answer]:
    """Call an operator for several events at once, if it has a function for that.

    If the call fails as a whole, there is one call per event, so that a bad event does not affect
    the others.
    """
    function = operator.batch_function
    if function is None or len(events) == 1:
        return [ask(operator, event, arguments) for event in events]

    def call() -> list[Outcome] | None:
        try:
            returned = list(function(list(events), *arguments))
        except BaseException as error:  # single calls find the event that fails
            if _ends_the_match(error):
                raise
            return None
        if len(returned) != len(events):
            return None
        return [_contained(lambda one=one: one, arguments) for one in returned]  # type: ignore[misc]

    outcomes, milliseconds = _timed(operator, call, len(events))
    if outcomes is None:
        return [ask(operator, event, arguments) for event in events]
    return [Answer(outcome, milliseconds / len(events)) for outcome in outcomes]


def _contained(call: Callable[[], Any], arguments: Sequence[Argument]) -> Outcome:
    """Return what a call returned, or its error. Reading it may run the operator's code, too."""
    try:
        return read_outcome(call(), arguments)
    except BaseException as error:  # an error is an outcome
        if _ends_the_match(error):
            raise
        return failed(_in_words(error))


def _ends_the_match(error: BaseException) -> bool:
    """Whether an error is not the operator's own: Ctrl-C, or its time is up."""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup((KeyboardInterrupt, _Stopped)) is not None
    return isinstance(error, (KeyboardInterrupt, _Stopped))


def _in_words(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException as second:  # of the operator's own class
        if _ends_the_match(second):
            raise
        text = ""
    text = text if len(text) <= 200 else text[:199] + "…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# -- timeouts ----------------------------------------------------------------------------------


class _Stopped(BaseException):
    """Raised inside of a call that took too long."""


_hanging: dict[str, list[threading.Thread]] = {}


def _timed(operator: Operator, call: Callable[[], Any], n_events: int) -> tuple[Any, float]:
    """Return the result of a call and the milliseconds that it took."""
    start = time.perf_counter()
    if operator.timeout is None:
        result = call()
    else:
        result = _within(operator, call, operator.timeout * n_events, n_events)
    return result, (time.perf_counter() - start) * 1000


def _within(operator: Operator, call: Callable[[], Any], seconds: float, n_events: int) -> Any:
    hanging = [thread for thread in _hanging.get(operator.name, ()) if thread.is_alive()]
    if len(hanging) >= _MOST_HANGING:
        return [failed(f"{len(hanging)} calls of it hang; it is not called until some end")] * (
            n_events
        )
    result: list[Any] = []
    ended: list[BaseException] = []

    def work() -> None:
        try:
            result.append(call())
        except _Stopped:  # nobody waits for it any more
            pass
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=work, name=f"operator {operator.name}", daemon=True)
    thread.start()
    thread.join(seconds)
    if result:
        return result[0]
    if ended:
        raise ended[0]
    _stop(thread)
    _hanging[operator.name] = [*hanging, thread]
    return [failed(f"it took more than {seconds:.3g} s")] * n_events


def _stop(thread: threading.Thread) -> None:
    """Raise _Stopped inside of a thread: at its next step, if it takes one in Python."""
    number = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(_Stopped))
