"""Interrupts: a call that raises has changed nothing, whatever moment an exception comes at.

The main thread is interrupted at every line of the package that it runs in a call (a trace function
raises there), and at any moment by a timer. `tests/support/interrupted_engine.py` compares.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import matchmill as mm
from matchmill.kernels import forks
from matchmill.kernels.uninterrupted import uninterrupted, uninterrupted_with
from tests.support.in_place_checks import IN_PLACE
from tests.support.interrupted_engine import CALLS, Interrupt, Subject, interrupted_at
from tests.support.tiers import first_cases


def sweep(name: str, root: Path | None, stride: int, index: str = "mill", **settings: Any) -> int:
    """Interrupt one kind of call at its lines; return how many there were."""
    n = 1
    while True:
        folder = None if root is None else root / str(n)
        subject = Subject(folder, Random(n), index, background=False, sync="never", **settings)
        for step in ("subscribe_many", "subscribe", "replace", "unsubscribe"):
            call, subject.model = getattr(subject, step)()
            call()
        call, after = getattr(subject, name)()
        where = interrupted_at(n, call)
        if where is None:
            subject.model = after
        try:
            subject.check()
            subject.check_folder()
            if n % 10 == 1 or where is None:
                subject.check_others()
                subject.check_folder()
        except Exception as error:
            raise AssertionError(f"{name}, interrupted at {where}: {error}") from error
        finally:
            subject.close()
        if where is None:
            return n - 1
        n += stride


@pytest.mark.slow
@pytest.mark.parametrize("name", ["replace", "subscribe_many"])
def test_a_call_that_is_interrupted_at_some_lines(name: str, tmp_path: Path) -> None:
    assert sweep(name, tmp_path, stride=17) > 10


@pytest.mark.parametrize("index", IN_PLACE)
@pytest.mark.parametrize("name", first_cases(1, ["replace", *CALLS]))
def test_a_call_that_is_interrupted_while_the_index_changes_in_place(
    name: str, index: str, tmp_path: Path
) -> None:
    assert sweep(name, tmp_path, stride=31, index=index) > 5


@pytest.mark.long
@pytest.mark.parametrize("is_durable", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_interrupted_at_any_line(
    name: str, is_durable: bool, tmp_path: Path
) -> None:
    assert sweep(name, tmp_path if is_durable else None, stride=1) > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", first_cases(2, range(20)))
def test_calls_that_are_interrupted_at_any_moment(seed: int, tmp_path: Path) -> None:
    """All of the seeds together are 10,000 calls, half of them in memory."""
    n_rounds = 60 if seed < 2 else 556
    command = [sys.executable, "-m", "tests.support.interrupted_engine", str(n_rounds), str(seed)]
    folder = [str(tmp_path)] if seed % 2 else []
    done = subprocess.run(
        [*command, *folder], capture_output=True, text=True, check=False, timeout=3600
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    counts = found["counts"]
    assert counts.pop("rounds") == n_rounds
    assert counts.pop("interrupts") > n_rounds // 10
    assert counts == {}, found["examples"]


# -- what it rests on -----------------------------------------------------------------------------


def test_what_is_uninterrupted_comes_to_its_end() -> None:
    has_begun, is_noticed, may_end, has_ended = (threading.Event() for _ in range(4))

    def handler(*_: object) -> None:
        if not is_noticed.is_set():
            is_noticed.set()
            raise Interrupt

    def work() -> None:
        has_begun.set()
        may_end.wait()
        has_ended.set()

    def interrupt_it() -> None:
        """A signal that comes right before the main thread waits is noticed after that."""
        has_begun.wait()
        while not is_noticed.is_set():
            os.kill(os.getpid(), signal.SIGALRM)
            is_noticed.wait(0.05)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        interrupter = threading.Thread(target=interrupt_it)
        interrupter.start()
        with pytest.raises(Interrupt):
            uninterrupted(work)
        interrupter.join()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not has_ended.is_set()
    assert uninterrupted(lambda: 1) == 1  # nobody waits for a call that was abandoned
    may_end.set()
    assert has_ended.wait(60)


def test_results_errors_and_threads() -> None:
    assert uninterrupted(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        uninterrupted(divmod, 7, 0)
    here = threading.get_ident()
    assert uninterrupted(threading.get_ident) != here
    assert uninterrupted_with(lambda ask: ask(threading.get_ident)) == here
    assert uninterrupted(lambda: uninterrupted(threading.get_ident)) != here
    with pytest.raises(ZeroDivisionError):
        uninterrupted_with(lambda ask: ask(lambda: 1 // 0))


def test_an_interrupt_in_what_is_asked_for_ends_the_work() -> None:
    ended = threading.Event()

    def work(ask: Callable[[Callable[[], Any]], Any]) -> None:
        try:
            ask(interrupt)
        finally:
            ended.set()

    def interrupt() -> None:
        raise Interrupt

    with pytest.raises(Interrupt):
        uninterrupted_with(work)
    assert ended.wait(60)


def test_a_second_interrupt_does_not_keep_a_change_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one gives the change up; the second one ends the wait for the log."""

    def interrupted(*_: object) -> None:
        raise Interrupt

    with mm.Engine.open(tmp_path / "e", create=True) as engine:
        engine.subscribe("a", "x = 1")
        store = engine._store
        with monkeypatch.context() as patched:
            patched.setattr(type(engine), "_settle", interrupted)
            patched.setattr(store, "make_visible", interrupted)
            with pytest.raises(Interrupt):
                engine.subscribe("b", "x = 1")
        assert engine.match({"x": 1}) == {"a"}
        until = time.monotonic() + 60
        while list(mm.Engine.open(tmp_path / "e", read_only=True)) != ["a"]:
            assert time.monotonic() < until, "the change is still in the log"
            time.sleep(0.01)


def test_an_interrupt_when_an_object_is_freed_is_not_lost() -> None:
    """What is called then must not be written in Python: what it raises, nobody gets."""
    engine = mm.Engine()
    known = len(forks._owners)
    calls: list[object] = []
    owner = type("Owner", (), {"after_fork": lambda self: None})()
    forks.renewed_after_fork(owner)
    assert len(forks._owners) == known + 1
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code) if event == "call" else None)
    try:
        del owner
    finally:
        sys.setprofile(None)
    assert len(forks._owners) == known
    assert calls == []
    assert engine.match({}) == set()


def test_rows_and_progress_run_in_the_thread_of_the_caller() -> None:
    threads = set()

    def rows() -> Iterator[tuple[str, str]]:
        for n in range(5000):
            threads.add(threading.get_ident())
            yield str(n), "x = 1"

    engine = mm.Engine()
    engine.subscribe_many(rows(), progress=lambda *_: threads.add(threading.get_ident()))
    assert threads == {threading.get_ident()}
    assert len(engine) == 5000


def test_a_load_that_is_interrupted_has_stored_nothing(tmp_path: Path) -> None:
    def rows() -> Iterator[tuple[str, str]]:
        for n in range(700):
            yield str(n), "x = 1"
        raise Interrupt

    with mm.Engine.open(tmp_path / "e", create=True) as engine:
        engine.subscribe("a", "x = 2")
        with pytest.raises(Interrupt):
            engine.subscribe_many(rows())
        assert list(engine) == ["a"]
        engine.subscribe("b", "x = 1")
        assert engine.match({"x": 1}) == {"b"}
    assert list(mm.Engine.open(tmp_path / "e", read_only=True)) == ["a", "b"]


def test_a_signal_handler_cannot_change_what_it_interrupts() -> None:
    engine = mm.Engine()
    found: list[BaseException] = []

    def handler(*_: object) -> None:
        try:
            engine.subscribe("inside", "x = 1")
        except mm.InputError as error:
            found.append(error)

    def rows() -> Iterator[tuple[str, str]]:
        yield "a", "x = 1"
        os.kill(os.getpid(), signal.SIGALRM)
        yield "b", "x = 1"

    before = signal.signal(signal.SIGALRM, handler)
    try:
        engine.subscribe_many(rows())
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(found) == 1
    assert sorted(engine) == ["a", "b"]


# -- kernels --------------------------------------------------------------------------------------

COMPILING = """
import os, signal, sys, time, threading
import matchmill as mm

def handler(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, handler)
n = 0
while True:
    try:
        signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]) * (1 + n))
        engine = mm.Engine({"a": "x = 1 and note like '%late%'"})
        assert engine.match({"x": 1, "note": "too late"}) == {"a"}
        engine.match_many([{"x": 1}])
        signal.setitimer(signal.ITIMER_REAL, 0)
        break
    except KeyboardInterrupt:
        n += 1
print(n)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seconds", first_cases(1, [0.02, 0.05, 0.1, 0.2]))
def test_an_interrupt_while_kernels_are_compiled(seconds: float, tmp_path: Path) -> None:
    environment = {**os.environ, "MATCHMILL_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", COMPILING, str(seconds)],
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
