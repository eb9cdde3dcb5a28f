"""Work that no signal handler can interrupt.

Python runs signal handlers in the main thread only, between any two steps of whatever runs there,
also inside of libraries. What a handler raises (KeyboardInterrupt after Ctrl-C, an alarm's timeout)
can end a change half-way, leave a lock held for ever, or end the process if it comes while machine
code is made. So what changes anything shared does not run in the main thread:

    main thread     hands a call over and waits for it        about 15 µs
    other threads   make the call themselves                  nothing

If a handler raises while the main thread waits, the main thread goes on with that, and the call
comes to its end in its own thread. Whoever needs its outcome undone has to see to that.

    uninterrupted(function, …)      return what the call returns, or raise what it raises
    uninterrupted_with(work)        the same; `work` gets a function `ask`, with which it has the
                                    main thread call something, such as code of the user
    prepared_call(function)         return what has the function called by another thread, soon;
                                    no handler runs between its call and that

One thread is always ready, and others are started as they are needed. The process ends after all
calls have.
"""

from __future__ import annotations

import atexit
import os
import threading
from _thread import allocate_lock, get_ident
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

__all__ = ["Ask", "is_interruptible", "prepared_call", "uninterrupted", "uninterrupted_with"]

T = TypeVar("T")

Ask: TypeAlias = Callable[[Callable[[], Any]], Any]


class _Abandoned(BaseException):
    """The main thread was interrupted and does not answer any more."""


_ABANDONED = (None, _Abandoned())


class _Call:
    """A call of the main thread, and how it ended."""

    __slots__ = ("arguments", "error", "function", "keywords", "over", "result")

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.keywords = keywords
        self.result: Any = None
        self.error: BaseException | None = None
        self.over: Callable[[], object] = _nothing  # is called at the end

    def run(self) -> None:
        try:
            self.result = self.function(*self.arguments, **self.keywords)
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            self.error = error
        self.over()

    def outcome(self) -> Any:
        if self.error is None:
            return self.result
        try:
            raise self.error
        finally:
            self.error = None  # its traceback refers to this frame, and so to this object


def _nothing() -> None:
    pass


class _Threads:
    """The threads that make the calls. Only they change the counts, under the lock."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[_Call] = SimpleQueue()
        self.main = threading.main_thread().ident
        self.has_started = False
        self.lock = allocate_lock()
        self.n_ready = 0
        self.idle = threading.Event()
        self.idle.set()
        self.n_busy = 0

    def put(self, call: _Call) -> None:
        """Have a call made; used by the main thread, which may be interrupted anywhere."""
        if not self.has_started:
            self.start()
            self.has_started = True
        self.calls.put(call)

    def start(self) -> None:
        thread = threading.Thread(target=self.serve, name="matchmill calls", daemon=True)
        thread.start()

    def serve(self) -> None:
        with self.lock:
            self.n_ready += 1
        while True:
            call = self.calls.get()
            with self.lock:
                self.n_ready -= 1
                self.n_busy += 1
                self.idle.clear()
                is_last = self.n_ready == 0
            if is_last:  # this call may be abandoned, and the next one must not wait for it
                self.start()
            call.run()
            del call
            with self.lock:
                self.n_ready += 1
                self.n_busy -= 1
                if self.n_busy == 0:
                    self.idle.set()

    def wait(self) -> None:
        """Wait for the end of all calls, abandoned ones too."""
        self.idle.wait()


_threads = _Threads()


def _start_again() -> None:
    global _threads  # noqa: PLW0603 - a fork has none of its parent's threads
    _threads = _Threads()


os.register_at_fork(after_in_child=_start_again)


@atexit.register
def _wait() -> None:
    """Let the process end after calls that were abandoned: they may be writing to a folder."""
    _threads.wait()


def is_interruptible() -> bool:
    """Tell whether this is the main thread, where signal handlers run."""
    return get_ident() == _threads.main


def uninterrupted(function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
    """Return what a function returns; no signal handler runs inside of it.

    Parameters
    ----------
    function
        What to call. If it needs the thread of its caller, `uninterrupted_with` has a way.
    *arguments, **keywords
        Its arguments.
    """
    if get_ident() != _threads.main:
        return function(*arguments, **keywords)
    call = _Call(function, arguments, keywords)
    over = allocate_lock()
    over.acquire()
    call.over = over.release
    _threads.put(call)
    over.acquire()
    result: T = call.outcome()
    return result


def prepared_call(function: Callable[[], object]) -> Callable[[], object]:
    """Return a function that has another thread call `function`, and does not wait for it.

    It is for what must be done after an interrupt, in spite of further interrupts: it is not
    written in Python, so no signal handler runs inside of it, or before it if it is called next
    after an assignment.

    Parameters
    ----------
    function
        What to call. It raises nothing.
    """
    return partial(_threads.calls.put, _Call(function, (), {}))


def uninterrupted_with(work: Callable[[Ask], T]) -> T:
    """Return what `work` returns; no signal handler runs inside of it, but for what it asks for.

    Parameters
    ----------
    work
        Gets a function `ask`: what is passed to that is called in the main thread, and `ask`
        returns what it returns or raises what it raises. If a handler raises there, or while the
        main thread waits, `ask` raises in its turn, and `work` has to end.
    """
    if get_ident() != _threads.main:
        return work(lambda question: question())
    questions: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
    answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def ask(question: Callable[[], Any]) -> Any:
        questions.put(question)
        answer, error = answers.get()
        if error is not None:
            raise error
        return answer

    call = _Call(work, (ask,), {})
    call.over = lambda: questions.put(None)
    try:
        _threads.put(call)
        while (question := questions.get()) is not None:
            answers.put(_answer(question))
    except BaseException:
        # No other step may come before this one: the next interrupt could be there already.
        answers.put(_ABANDONED)
        raise
    result: T = call.outcome()
    return result


def _answer(question: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return question(), None
    except Exception as error:  # noqa: BLE001 - whoever asks gets it
        return None, error
