"""Whatever an operator does, the others go on: errors, nonsense, hanging, changing the event."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.operators import safe_call as calling
from matchmill.operators.outcome import Outcome, read_outcome
from matchmill.operators.registry import Variable, find_operator
from matchmill.operators.safe_call import ask, ask_batch, frozen_event

ONE, TWO, TWICE = (Variable(0),), (Variable(0), "c", Variable(1)), (Variable(0), Variable(0))


# -- what is returned -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "arguments", "outcome"),
    [
        (True, (), Outcome(True)),
        (False, ("a",), Outcome(False)),
        (np.bool_(True), (), Outcome(True)),
        (None, (), Outcome(None)),
        (None, ONE, Outcome(None)),
        (False, ONE, Outcome(False)),
        ([], ONE, Outcome(False)),
        (53, ONE, Outcome(True, ((53,),))),
        ("text", ONE, Outcome(True, (("text",),))),
        (dt.date(2013, 1, 31), ONE, Outcome(True, ((dt.date(2013, 1, 31),),))),
        ([1, 1.0, True, 1], ONE, Outcome(True, ((1,), (True,)))),
        ([(1,)], ONE, Outcome(True, ((1,),))),
        (np.arange(2), ONE, Outcome(True, ((0,), (1,)))),
        ((n for n in (1, 2)), ONE, Outcome(True, ((1,), (2,)))),
        ([(1, "a"), (2, "b")], TWO, Outcome(True, ((1, "a"), (2, "b")))),
        ([(1, 2), (3, 3.0)], TWICE, Outcome(True, ((3,),))),
        ([(1, 2)], TWICE, Outcome(False)),
    ],
)
def test_what_may_be_returned(returned: Any, arguments: Any, outcome: Outcome) -> None:
    assert read_outcome(returned, arguments) == outcome


@pytest.mark.parametrize(
    ("returned", "arguments", "words"),
    [
        (1, (), "truth value"),
        ("yes", (), "truth value"),
        ([], (), "truth value"),
        (True, ONE, "has to return values"),
        (float("nan"), ONE, "NaN"),
        ([None], ONE, "null"),
        ([2**80], ONE, "beyond 64 bits"),
        ([object()], ONE, "cannot be bound"),
        ([1], TWO, "has 2 values"),
        ([(1, 2, 3)], TWO, "has 2 values"),
        ("ab", TWO, "not bindings"),
        (5, TWO, "not bindings"),
        (range(200_000), ONE, "more than 100000"),
    ],
)
def test_nonsense_is_an_error(returned: Any, arguments: Any, words: str) -> None:
    outcome = read_outcome(returned, arguments)
    assert outcome.truth is None
    assert words in outcome.error


# -- what is done ---------------------------------------------------------------------------------


class Spiteful(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words for it")


def spiteful_values(event: Any, value: Any) -> Any:
    yield 1
    raise ValueError("half way")


def raising(error: BaseException) -> Callable[[Any], Any]:
    def raises(event: Any) -> Any:
        raise error

    return raises


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("no good"), "ValueError: no good"),
        (Spiteful(), "Spiteful"),
        (SystemExit(3), "SystemExit: 3"),
        (RecursionError(), "RecursionError"),
        (MemoryError(), "MemoryError"),
    ],
)
@pytest.mark.parametrize("timeout", [None, 5.0])
def test_errors_are_outcomes(error: BaseException, words: str, timeout: float | None) -> None:
    made = mm.operator(name="raises", timeout=timeout)(raising(error))
    outcome, milliseconds = ask(made, {}, ())
    assert outcome == Outcome(None, (), words)
    assert milliseconds >= 0


def test_an_interruption_is_the_users_own() -> None:
    made = mm.operator(name="interrupted")(raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        ask(made, {}, ())


def test_values_that_fail_half_way_are_an_error() -> None:
    made = mm.operator(name="half")(spiteful_values)
    assert ask(made, {}, ONE).outcome.error == "ValueError: half way"


def test_an_event_cannot_be_changed() -> None:
    @mm.operator
    def changes(event: Any, how: str) -> bool:
        if how == "set":
            event["price"] = 0
        elif how == "delete":
            del event["price"]
        else:
            event["tags"].append("new")
        return True

    flat = {"price": 5, "tags": ["a"]}
    event = frozen_event(flat)
    for how in ("set", "delete", "append"):
        assert "Error" in ask(changes, event, (how,)).outcome.error
    assert flat == {"price": 5, "tags": ["a"]}
    assert event["tags"] == ("a",)


# -- time limits ----------------------------------------------------------------------------------


def test_a_call_that_hangs_is_given_up_and_stopped() -> None:
    started: list[threading.Thread] = []

    @mm.operator(timeout=0.05)
    def spins(event: Any) -> bool:
        started.append(threading.current_thread())
        while True:
            time.sleep(0.001)

    assert "more than 0.05 s" in ask(spins, {}, ()).outcome.error
    started[0].join(10)
    assert not started[0].is_alive()


def test_calls_that_cannot_be_stopped_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "_MOST_HANGING", 2)
    end = threading.Event()

    @mm.operator(timeout=0.5)  # enough for a thread to begin on a busy machine
    def waits(event: Any) -> bool:
        return end.wait(60)

    errors = [ask(waits, {}, ()).outcome.error for _ in range(4)]
    assert ["more than" in error for error in errors] == [True, True, False, False]
    assert "2 calls of it hang" in errors[2]
    end.set()
    for thread in calling._hanging["waits"]:
        thread.join(10)
    assert ask(waits, {}, ()).outcome == Outcome(True)


def test_within_its_limit_a_call_is_like_any_other() -> None:
    made = mm.operator(name="quick", timeout=30)(lambda event, a: a)
    assert ask(made, {}, (True,)).outcome == Outcome(True)


# -- batches --------------------------------------------------------------------------------------


def with_batch(function: Callable[..., Any]) -> mm.Operator:
    made = mm.operator(name="batched")(lambda event, a: event["n"] > a)
    made.batch(function)
    return made


EVENTS = [frozen_event({"n": n}) for n in range(4)]


def test_a_batch_is_one_call() -> None:
    sizes = []

    def at_once(events: Any, a: int) -> Any:
        sizes.append(len(events))
        return [event["n"] > a for event in events]

    answers = ask_batch(with_batch(at_once), EVENTS, (1,))
    assert [answer.outcome.truth for answer in answers] == [False, False, True, True]
    assert sizes == [4]


@pytest.mark.parametrize("returned", ["raise", [True], None, 7], ids=str)
def test_a_batch_that_fails_is_asked_one_by_one(returned: Any) -> None:
    def at_once(events: Any, a: int) -> Any:
        if returned == "raise":
            raise ValueError
        return returned

    answers = ask_batch(with_batch(at_once), EVENTS, (1,))
    assert [answer.outcome.truth for answer in answers] == [False, False, True, True]


def test_nonsense_in_a_batch_is_the_error_of_one_event() -> None:
    answers = ask_batch(with_batch(lambda events, a: [True, "x", None, False]), EVENTS, (1,))
    assert [answer.outcome.truth for answer in answers] == [True, None, None, False]
    assert [bool(answer.outcome.error) for answer in answers] == [False, True, False, False]


# -- the registry ---------------------------------------------------------------------------------


def test_a_function_may_be_registered_again_but_no_other_under_its_name() -> None:
    def make(n: int) -> Any:
        def thing(event: Any) -> bool:
            return bool(n)

        return thing

    mm.operator(make(1))
    mm.operator(make(2))
    with pytest.raises(mm.InputError, match=r"there is an operator 'thing' already, .*make"):
        mm.operator(name="thing")(lambda event: True)
    assert "thing" in mm.operator_names()
    mm.unregister_operator("thing")
    with pytest.raises(mm.InputError, match="no operator 'thing'"):
        mm.unregister_operator("thing")


@pytest.mark.parametrize(
    "options", [{"cost_ms": 0}, {"cost_ms": -1}, {"timeout": float("inf")}, {"cost_ms": "1"}]
)
def test_bad_options(options: Any) -> None:
    with pytest.raises(mm.InputError, match="a number above 0"):
        mm.operator(**options)(lambda event: True)


def test_bad_functions() -> None:
    with pytest.raises(mm.InputError, match="takes no event"):
        mm.operator(name="none")(lambda: True)
    with pytest.raises(mm.InputError, match="is a word"):
        mm.operator(name="two\nlines")(lambda event: True)


def test_an_operator_is_still_a_function() -> None:
    @mm.operator(cost_ms=3)
    def near(event: Any, a: int) -> bool:
        return bool(event["n"] == a)

    assert near({"n": 1}, 1) is True
    assert find_operator("near") is near
    assert (near.cost_ms, near.timeout) == (3.0, None)


def test_a_log_is_not_flooded(caplog: pytest.LogCaptureFixture) -> None:
    mm.operator(name="fails")(raising(ValueError("no good")))
    engine = mm.Engine()
    engine.subscribe("a", "fails()")
    with caplog.at_level(logging.WARNING, "matchmill.operators"):
        for _ in range(20):
            assert engine.match({"x": 1}) == set()
    assert [record.getMessage() for record in caplog.records] == [
        "operator fails, error 1: ValueError: no good",
        "operator fails, error 10: ValueError: no good",
    ]


# -- what is no Exception -------------------------------------------------------------------------


class Odd(BaseException):
    """Not even an Exception, and says nothing without raising again."""

    def __str__(self) -> str:
        raise GeneratorExit


ENDINGS = [
    asyncio.CancelledError("cancelled"),
    GeneratorExit(),
    SystemExit(3),
    Odd(),
    BaseExceptionGroup("several", [asyncio.CancelledError(), ValueError()]),
]


@pytest.mark.parametrize("timeout", [None, 30])
@pytest.mark.parametrize("error", ENDINGS, ids=lambda error: type(error).__name__)
def test_what_an_operator_raises_ends_no_match(error: BaseException, timeout: Any) -> None:
    def later() -> Any:
        yield 1
        raise error

    def at_once(events: Any, n: int) -> Any:
        raise error

    mm.operator(name="ends", timeout=timeout)(raising(error))
    mm.operator(name="ends_later", timeout=timeout)(lambda event, n: later())
    mm.operator(name="in_batches", timeout=timeout)(lambda event, n: event["n"] == n).batch(at_once)
    texts = ("ends() or n = 1", "ends_later(?x) or n = 1", "in_batches(1)", "n = 1")
    engine = mm.Engine({text: text for text in texts})
    assert engine.match({"n": 1}) == set(texts)
    assert list(engine.match_many([{"n": 1}, {"n": 2}])) == [set(texts), set()]
    stats = {one.name: one for one in engine.stats().operators}
    assert type(error).__name__ in stats["ends"].last_error
    assert stats["ends_later"].n_errors == 1
    assert mm.explain("ends()", {}).truth is None


@pytest.mark.parametrize("timeout", [None, 30])
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), BaseExceptionGroup("both", [ValueError(), KeyboardInterrupt()])]
)
def test_ctrl_c_in_an_operator_ends_the_match(error: BaseException, timeout: Any) -> None:
    def at_once(events: Any) -> Any:
        raise error

    mm.operator(name="stop", timeout=timeout)(raising(error)).batch(at_once)
    engine = mm.Engine({"a": "stop()"})
    for match in (lambda: engine.match({"n": 1}), lambda: engine.match_many([{"n": 1}] * 3)):
        with pytest.raises(type(error)):
            match()
