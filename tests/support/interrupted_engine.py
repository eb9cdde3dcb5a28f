"""An engine whose calls are interrupted: at a line by a trace function, at any moment by a timer.

    engine      the one under test, in memory or in a folder
    model       what the calls that returned have stored: a dictionary
    interrupt   an exception of a signal handler, or of the trace function, in the middle of a call

After each call the engine, all its answers to some events, and the folder when it is opened again
must be what the model says. As a program it interrupts calls by timers and prints what it found:

    python -m tests.support.interrupted_engine ROUNDS SEED [FOLDER]
"""

from __future__ import annotations

import faulthandler
import json
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import matchmill as mm

__all__ = ["CALLS", "Interrupt", "Subject", "interrupt_by_timers"]

PACKAGE = str(Path(mm.__file__).parent)
EVENTS = [{"price": price, "genre": genre} for price in (-1, 3, 11, 19) for genre in ("a", "b")]
HANGING_SECONDS = 300  # a kernel may have to be compiled, on a busy machine


class Interrupt(KeyboardInterrupt):
    """What the handler raises."""


class Wrong(Exception):
    """The engine is not what the model says."""


class Subject:
    """An engine and its model."""

    def __init__(
        self, folder: Path | None, random: Random, index: str = "mill", **settings: Any
    ) -> None:
        self.root = folder
        self.index = index
        self.random = random
        self.settings = mm.Settings(
            **{"fresh_clauses": 4, "merge_factor": 2, "checkpoint_bytes": 4096, **settings}
        )
        self.model: dict[str, str] = {}
        self.n_ids = 0
        self.copies = tempfile.TemporaryDirectory(prefix="matchmill-copies-")
        self.engine = self.opened()

    def opened(self) -> mm.Engine:
        if self.root is None:
            return mm.Engine(index=self.index, settings=self.settings)
        return mm.Engine.open(self.root, create=True, index=self.index, settings=self.settings)

    def close(self) -> None:
        """Close the engine, and remove what was copied of it."""
        self.engine.close()
        self.copies.cleanup()

    def reopened(self) -> Subject | None:
        """Open the folder again, after the engine was closed; None without a folder."""
        if self.root is None:
            return None
        try:
            self.engine = self.opened()
        except mm.FolderError as error:
            raise Wrong(f"the folder cannot be opened: {error!r}") from error
        self.check()
        return self

    # what is called: a function that calls the engine, and the model after it

    def new_id(self) -> str:
        self.n_ids += 1
        return f"u{self.n_ids}"

    def text(self) -> str:
        limit = self.random.randrange(20)
        genre = self.random.choice("ab")
        return self.random.choice(
            [f"price < {limit}", f"price < {limit} and genre = '{genre}'", f"genre like '{genre}%'"]
        )

    def some_ids(self, n: int) -> list[str]:
        return self.random.sample(sorted(self.model), min(n, len(self.model)))

    def subscribe(self) -> tuple[Callable[[], Any], dict[str, str]]:
        new, text = self.new_id(), self.text()
        return lambda: self.engine.subscribe(new, text), {**self.model, new: text}

    def replace(self) -> tuple[Callable[[], Any], dict[str, str]]:
        ids = self.some_ids(1)
        if not ids:
            return self.subscribe()
        text = self.text()
        return (
            lambda: self.engine.subscribe(ids[0], text, replace=True),
            {**self.model, ids[0]: text},
        )

    def unsubscribe(self) -> tuple[Callable[[], Any], dict[str, str]]:
        ids = self.some_ids(1)
        if not ids:
            return self.subscribe()
        left = {key: text for key, text in self.model.items() if key not in ids}
        return lambda: self.engine.unsubscribe(ids[0]), left

    def subscribe_many(self) -> tuple[Callable[[], Any], dict[str, str]]:
        some = {self.new_id(): self.text() for _ in range(self.random.randrange(1, 12))}
        some |= {one: self.text() for one in self.some_ids(3)}
        return (
            lambda: self.engine.subscribe_many(iter(some.items()), replace=True),
            {**self.model, **some},
        )

    def unsubscribe_many(self) -> tuple[Callable[[], Any], dict[str, str]]:
        ids = self.some_ids(max(0, len(self.model) - 40))
        left = {key: text for key, text in self.model.items() if key not in ids}
        return lambda: self.engine.unsubscribe_many(ids), left

    def save(self) -> tuple[Callable[[], Any], dict[str, str]]:
        if self.root is not None:
            return self.engine.save, self.model
        return lambda: self.engine.save(Path(self.copies.name) / "copy"), self.model

    def compact(self) -> tuple[Callable[[], Any], dict[str, str]]:
        return self.engine.compact, self.model

    def match(self) -> tuple[Callable[[], Any], dict[str, str]]:
        event = self.random.choice(EVENTS)
        return lambda: self.engine.match(event), self.model

    def match_many(self) -> tuple[Callable[[], Any], dict[str, str]]:
        return lambda: self.engine.match_many(EVENTS), self.model

    # what must hold

    def check(self) -> None:
        """Compare the engine with the model."""
        stored = {key: one.expression for key, one in self.engine.items()}
        if stored != self.model or len(self.engine) != len(self.model):
            raise Wrong(_difference("in memory", self.model, stored))
        for event in EVENTS:
            self._check_answer(self.engine.match(event), event)
        for event, found in zip(EVENTS, self.engine.match_many(EVENTS), strict=True):
            self._check_answer(found, event)

    def _check_answer(self, found: set[Any], event: dict[str, Any]) -> None:
        wanted = {key for key, text in self.model.items() if _holds(text, event)}
        if found != wanted:
            raise Wrong(f"wrong answer: {sorted(found ^ wanted)} for {event}")

    def check_folder(self) -> None:
        """Compare the folder, as another process sees it, with the model."""
        if self.root is None:
            return
        try:
            reopened = mm.Engine.open(self.root, read_only=True, verify=True)
        except Exception as error:
            raise Wrong(f"the folder cannot be opened: {error!r}") from error
        stored = {key: one.expression for key, one in reopened.items()}
        if stored != self.model:
            raise Wrong(_difference("in the folder", self.model, stored))

    def check_others(self) -> None:
        """See that no lock is held: other threads can use and close the engine."""

        def use() -> None:
            self.engine.subscribe("other", "price < 5")
            self.engine.learn(EVENTS)
            self.engine.stats()
            self.engine.unsubscribe("other")
            self.engine.compact()
            self.engine.match_many(EVENTS)
            self.engine.close()

        failed: list[BaseException] = []
        thread = threading.Thread(target=_catching, args=(use, failed), daemon=True)
        thread.start()
        thread.join(HANGING_SECONDS)
        if thread.is_alive():
            raise Wrong("it hangs")
        if failed:
            raise Wrong(f"another thread failed: {failed[0]!r}") from failed[0]


CALLS = [
    "subscribe",
    "replace",
    "unsubscribe",
    "subscribe_many",
    "unsubscribe_many",
    "save",
    "compact",
    "match",
    "match_many",
]


def _catching(use: Callable[[], None], failed: list[BaseException]) -> None:
    try:
        use()
    except BaseException as error:
        failed.append(error)


def _holds(text: str, event: dict[str, Any]) -> bool:
    parts = [part.split() for part in text.split(" and ")]
    return all(
        event["price"] < int(value) if name == "price" else event["genre"] == value[1]
        for name, _, value in parts
    )


def _difference(where: str, wanted: dict[str, str], found: dict[str, str]) -> str:
    lost = sorted(key for key, text in wanted.items() if found.get(key) != text)
    extra = sorted(key for key in found if key not in wanted)
    return f"{where}: lost or changed {lost}, not acknowledged {extra}"


# -- at a line ------------------------------------------------------------------------------------


def interrupted_at(n: int, call: Callable[[], Any]) -> str | None:
    """Make a call, interrupted when the n-th line of the package begins; say where, if so."""
    n_lines = 0
    where = None

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal n_lines, where
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line" and where is None:
            n_lines += 1
            if n_lines == n:
                where = f"{frame.f_code.co_filename.removeprefix(PACKAGE)}:{frame.f_lineno}"
                raise Interrupt
        return trace

    sys.settrace(trace)
    try:
        call()
    except Interrupt:
        pass
    finally:
        sys.settrace(None)
    return where


# -- at any moment --------------------------------------------------------------------------------


def interrupt_by_timers(n_rounds: int, seed: int, folder: Path | None) -> dict[str, Any]:
    """Interrupt calls after 20 to 900 µs; return how often what was found."""
    random = Random(seed)
    counts: Counter[str] = Counter()
    examples: list[str] = []
    is_armed = False

    def handler(*_: object) -> None:
        if is_armed:
            raise Interrupt

    mm.warm()
    signal.signal(signal.SIGALRM, handler)
    subject = _new_subject(folder, random)
    for n in range(n_rounds):
        faulthandler.dump_traceback_later(HANGING_SECONDS, exit=True)
        name = random.choice(CALLS)
        call, after = getattr(subject, name)()
        has_returned = False
        seconds = random.uniform(20e-6, 900e-6)
        try:
            try:
                is_armed = True
                signal.setitimer(signal.ITIMER_REAL, seconds, 150e-6 if n % 3 == 0 else 0)
                call()
                has_returned = True
            finally:
                is_armed = False
        except Interrupt:
            counts["interrupts"] += 1
        except Exception as error:
            counts["other errors"] += 1
            examples.append(f"{name}: {error!r}")
        signal.setitimer(signal.ITIMER_REAL, 0)
        if has_returned:
            subject.model = after
        try:
            subject.check()
            if has_returned:
                subject.check_folder()
            else:  # a second interrupt may have ended the wait until the log is as it was
                _eventually(subject.check_folder)
        except Exception as error:
            kind = _kind_of(error)
            counts[kind] += 1
            examples.append(f"{name} {'returned' if has_returned else 'raised'}: {error}")
            subject = _new_subject(folder, random)
        counts["rounds"] += 1
        if n % 50 == 49:
            try:
                subject.check_others()
                subject = subject.reopened() or _new_subject(folder, random)
            except Exception as error:
                counts[_kind_of(error)] += 1
                examples.append(f"at the end: {error}")
                subject = _new_subject(folder, random)
    faulthandler.cancel_dump_traceback_later()
    return {"counts": dict(counts), "examples": examples[:20]}


def _eventually(check: Callable[[], None]) -> None:
    until = time.monotonic() + 10
    while True:
        try:
            check()
            return
        except Wrong:
            if time.monotonic() > until:
                raise
            time.sleep(0.005)


def _kind_of(error: Exception) -> str:
    text = str(error)
    if not isinstance(error, Wrong):
        return "broken engines"
    if "cannot be opened" in text:
        return "folders that do not open"
    if "lost or changed []" in text:
        return "changes of calls that raised"
    return "wrong answers" if "wrong answer" in text else "changes lost"


def _new_subject(folder: Path | None, random: Random) -> Subject:
    root = None
    if folder is not None:
        root = folder / f"engine-{random.randrange(1 << 60):x}"
    sync = random.choice(["always", "never", "seconds"])
    return Subject(root, random, sync=sync, background=random.random() < 0.7)


def main() -> None:
    """Interrupt by timers, and print what was found as one line of JSON."""
    n_rounds, seed = int(sys.argv[1]), int(sys.argv[2])
    folder = Path(tempfile.mkdtemp(dir=sys.argv[3])) if len(sys.argv) > 3 else None
    print(json.dumps(interrupt_by_timers(n_rounds, seed, folder)))
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
