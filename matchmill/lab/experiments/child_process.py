"""Work in a forked process that may be stopped: by time, by memory, or by its own mistakes.

    parent: child = Child(work)             child: work(tell)
            child.listen(take)              ──►
            take(message)              ◄──         tell(message)
            the clock starts again     ◄──         tell.step("building", seconds)
            listen is over             ◄──         tell.pause() waits
            child.go_on(value, take)   ──►         … and returns the value

The child sees all that the parent has, without a copy, and gives nothing back but its messages:
when it dies, runs out of memory or hangs, the parent goes on and knows why. (Threads would share
the fate of the process, and a pool that pickles would copy gigabytes of subscriptions.) While a
child pauses it takes no time, so several with something built can take turns.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

__all__ = [
    "Child",
    "Ended",
    "Tell",
    "limited_memory",
    "process_bytes",
    "reset_peak",
    "run_in_child",
]

Status: TypeAlias = Literal["ok", "failed", "slow", "memory"]


class Ended(NamedTuple):
    """How a child ended, and the reason in words if not well."""

    status: Status
    reason: str = ""


class Tell:
    """The child's side of the pipe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __call__(self, message: Any) -> None:
        """Send a message to the parent."""
        self._connection.send(("message", message))

    def step(self, what: str, seconds: float) -> None:
        """From now on the child does `what`, and is stopped if that takes longer."""
        self._connection.send(("step", (what, seconds)))

    def pause(self) -> Any:
        """Wait until the parent says that it goes on, and with what."""
        self._connection.send(("pause", None))
        return self._connection.recv()

    def end(self, ended: Ended) -> None:
        """Report how the work ended."""
        self._connection.send(("end", ended))


_open: set[Connection] = set()  # the parent's ends of the pipes to its children


class Child:
    """The parent's side: a process that does `work`, with pauses."""

    def __init__(self, work: Callable[[Tell], None]) -> None:
        self._connection, far_end = Pipe()
        # What a signal raises inside of the hooks of a fork, Python drops: Ctrl-C would be lost.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        with warnings.catch_warnings():
            # Newer Pythons warn of threads at a fork: ours (Arrow's pool) rest in the child.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid == 0:
            # With another child's pipe open in this one, that one would outlive the parent.
            for connection in (self._connection, *_open):
                connection.close()
            _child(work, Tell(far_end), mask)
        far_end.close()
        _open.add(self._connection)
        self._is_there = True
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # a Ctrl-C that has waited raises
        except BaseException:
            self.stop()
            raise

    def listen(self, take: Callable[[Any], None]) -> Ended | None:
        """Hear the child until it pauses (None) or ends. Does not raise for what it does."""
        try:
            ended = _listen(self._connection, take)
        except EOFError:  # it went without a word
            _, status = os.waitpid(self._pid, 0)
            self._is_there = False
            return _death(status)
        return ended

    def go_on(self, value: Any, take: Callable[[Any], None]) -> Ended | None:
        """Let a child that pauses go on, and listen."""
        with suppress(BrokenPipeError):  # it died in its pause, which `listen` finds out
            self._connection.send(value)
        return self.listen(take)

    def stop(self) -> None:
        """End the child."""
        _open.discard(self._connection)
        self._connection.close()
        if self._is_there:
            self._is_there = False
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


def run_in_child(work: Callable[[Tell], None], take: Callable[[Any], None]) -> Ended:
    """Run `work`, which has no pauses, in a child; `take` gets its messages."""
    child = Child(work)
    try:
        ended = child.listen(take)
        assert ended is not None, "it paused"
        return ended
    finally:
        child.stop()


def _child(work: Callable[[Tell], None], tell: Tell, mask: set[int | signal.Signals]) -> NoReturn:
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, who ends us
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        gc.freeze()  # a collection would touch, and so copy, every page of the parent's objects
        try:
            work(tell)
            ended = Ended("ok")
        except MemoryError as error:
            ended = Ended("memory", str(error) or "out of memory")
        except BaseException as error:  # noqa: BLE001, RUF100
            ended = Ended("failed", _in_words(error))
        _lift_memory_limit()
        tell.end(ended)
    finally:
        os._exit(0)


def _in_words(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}{where}" if text else type(error).__name__ + where


def _listen(connection: Connection, take: Callable[[Any], None]) -> Ended | None:
    what, seconds = "starting", 60.0
    deadline = time.monotonic() + seconds
    while True:
        if not connection.poll(max(0.0, deadline - time.monotonic())):
            return Ended("slow", f"{what} took more than {seconds:.3g} s")
        kind, content = connection.recv()
        if kind == "pause":
            return None
        if kind == "end":
            ended: Ended = content
            return ended if ended.status == "ok" else Ended(ended.status, f"{what}: {ended.reason}")
        if kind == "step":
            what, seconds = content
            deadline = time.monotonic() + seconds
        else:
            take(content)


def _death(status: int) -> Ended:
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == signal.SIGKILL:  # not by us: the system ran out of memory
        return Ended("memory", "the system ended it (SIGKILL), most likely for lack of memory")
    name = signal.Signals(number).name if number else f"exit code {os.WEXITSTATUS(status)}"
    return Ended("failed", f"the process died: {name}")


# -- memory ---------------------------------------------------------------------------------------


@contextmanager
def limited_memory(n_bytes: int) -> Iterator[None]:
    """No more than this many bytes of address space beyond those in use; MemoryError beyond."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    in_use = process_bytes("VmSize")
    if in_use is None:  # no Linux: there is nothing to count from
        yield
        return
    limit = in_use + n_bytes
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _lift_memory_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def process_bytes(name: Literal["VmSize", "VmRSS", "VmHWM"]) -> int | None:
    """Bytes of this process: its address space, what is in memory, the most that ever was."""
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            for line in lines:
                if line.startswith(name + ":"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def reset_peak() -> None:
    """Let VmHWM start again from what is in memory now."""
    with suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
