"""Odd arguments of every public function: an answer, or an error that says what is wrong."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import matchmill as mm
from matchmill.language.evaluate import evaluate
from tests.support.odd_values import odd_call
from tests.support.tiers import first_cases

N_CALLS = 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", first_cases(6, range(300)))
def test_odd_arguments(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some of the values are paths
    random = Random(seed)
    engine = mm.Engine({"u1": "x = 1"} if seed % 2 else {1: "x = 1"})
    for n in range(N_CALLS):
        name, call = odd_call(random, engine)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of columns that are left out, and of pandas
            problem = _problem_of(call)
        assert problem is None, f"call {n}, {name}: {problem}"
    assert isinstance(engine.match({"x": 1}), set)


def _problem_of(call: Callable[[], Any]) -> str | None:
    """Make a call; describe an error that is not ours, or has no message."""
    try:
        call()
    except mm.MatchmillError as error:
        return None if str(error) and error.summary else f"{error!r} says nothing"
    except Exception:
        return traceback.format_exc()
    return None


def _deep(n: int, *, negated: bool = False) -> str:
    """Return `and` and `or` in turn, n deep."""
    text = "x = 1"
    for k in range(n):
        text = f"({text} {'or' if k % 2 else 'and'} y{k} = 'a')"
        if negated and k % 2:
            text = f"not {text}"
    return text


DEEP = {
    "and, or": _deep(199),
    "not, and, or": _deep(132, negated=True),
    "not": "not " * 198 + "x = 1",
    "alternations": "x rlike '" + "|".join(f"a{k}" for k in range(199)) + "'",
    "nested alternations": "x rlike '" + "(a|" * 199 + "b" + ")" * 199 + "'",
}


@pytest.mark.parametrize("n_frames", [0, 700])
@pytest.mark.parametrize("name", DEEP)
def test_the_deepest_expressions_print_and_match(name: str, n_frames: int) -> None:
    """Or say that the stack does not suffice, where a program has called deep into itself."""
    settings, event = mm.Settings(max_depth=200), {"x": 1, "y0": "a"}
    parsed = mm.parse(DEEP[name], settings=settings)
    engine = mm.Engine(settings=settings)
    engine.subscribe("kept", parsed)

    def work() -> None:
        assert str(parsed) == text
        assert str(engine["kept"]) == f"kept: {text}"
        for one in (
            lambda: mm.parse(text, settings=settings),
            lambda: engine.subscribe("new", text, replace=True),
            lambda: engine.match(event),
            lambda: engine.match_many([event]),
            lambda: engine.explain("kept", event).summary,
            lambda: engine.match_expression("x = 1"),
        ):
            problem = _limit_that_is_met(one)
            assert problem is None or (n_frames > 0 and "Python's stack" in problem)

    text = str(parsed)
    assert mm.parse(text, settings=settings) == parsed
    _called_from(n_frames, work)
    assert ("kept" in engine.match(event)) == (evaluate(parsed, event) is True)


def _limit_that_is_met(call: Callable[[], Any]) -> str | None:
    try:
        call()
    except mm.LimitError as error:
        return error.message
    return None


def _called_from(n_frames: int, work: Callable[[], None]) -> None:
    if n_frames:
        _called_from(n_frames - 1, work)
    else:
        work()
