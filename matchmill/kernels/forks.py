"""What a forked child has to put right before it does anything else.

A child has one thread, and a copy of all memory: also of locks that other threads of its parent
held at that moment. Nobody will ever release them. So whoever owns a lock, a thread or a descriptor
that a child must not use says so here, and is renewed in the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from functools import partial
from types import TracebackType
from typing import Protocol

__all__ = ["ForkLock", "renewed_after_fork"]


class Renewable(Protocol):
    """What has to be put right in a forked child."""

    def after_fork(self) -> None:
        """Replace locks, forget threads, close descriptors; without waiting for anything."""
        ...


# By number, not in a WeakSet: that one compares, and notes removals with a lock of its own.
_owners: dict[int, weakref.ref[Renewable]] = {}


def renewed_after_fork(owner: Renewable) -> None:
    """Have `after_fork` of an object called in every child that is forked while it lives."""
    number = id(owner)
    # Not a function in Python: what a signal handler raises inside of that, nobody gets.
    _owners[number] = weakref.ref(owner, partial(_owners.pop, number))


class ForkLock:
    """A lock that is free in a forked child; for what is whole at any time, and cheap to own."""

    __slots__ = ("_lock", "_process")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = _process

    def __enter__(self) -> None:
        if self._process is not _process:
            with _renewing:
                if self._process is not _process:
                    self._lock, self._process = threading.Lock(), _process
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()


_process = object()  # another one in each process
_renewing = threading.Lock()


def _in_child() -> None:
    global _process, _renewing
    _process, _renewing = object(), threading.Lock()
    for reference in list(_owners.values()):
        owner = reference()
        if owner is not None:
            owner.after_fork()


os.register_at_fork(after_in_child=_in_child)
