"""Compile all kernels of the product now, instead of when they are first needed.

Numba compiles a kernel when it is first called. A service, a container image or a test run may
rather wait once, at a moment of its choice. What is compiled stays in the cache of the machine
(`matchmill/kernels/cache.py`).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pyarrow as pa

from matchmill.engine.engine import Engine
from matchmill.index.base import ClauseMatches, Warmable
from matchmill.index.registry import DEFAULT_INDEX, index_class
from matchmill.index.tombstones import NO_TOMBSTONES
from matchmill.settings import Settings

__all__ = ["warm"]

_EVENT = {"a": 1, "b": 2.5, "c": "x", "tags": ["u"], "note": "too late", "mail": "a@b"}


def warm(*, progress: bool | Callable[[int, int | None], None] = True) -> None:
    """Compile all kernels that engines need, and keep them in the cache.

    The first call on a machine takes about half a minute, later ones a second. Without it, each
    kernel is compiled when it is first needed.

    Parameters
    ----------
    progress
        True shows a progress bar on standard error, if that is a terminal. A function is called
        with the number of steps done and the number of all steps.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.warm(progress=False)
    """
    with _reporter(progress) as report:
        report(0, len(_STEPS))
        for n_done, step in enumerate(_STEPS, 1):
            step()
            report(n_done, len(_STEPS))


def _reporter(
    progress: bool | Callable[[int, int | None], None],
) -> AbstractContextManager[Callable[[int, int | None], None]]:
    if callable(progress):
        return nullcontext(progress)
    if not progress or not sys.stderr.isatty():
        return nullcontext(lambda _done, _total: None)
    return _Bar()


class _Bar:
    """A progress bar on standard error."""

    def __enter__(self) -> Callable[[int, int | None], None]:
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(stderr=True), transient=True)
        task = self._bar.add_task("compiling kernels", total=len(_STEPS))
        self._bar.start()
        return lambda done, total: self._bar.update(task, completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def _compile_index() -> None:
    """Compile the kernels of the default index."""
    index = index_class(DEFAULT_INDEX)
    if issubclass(index, Warmable):
        index.warm()


def _use_an_engine(**settings: Any) -> None:
    """Do a bit of everything."""
    engine = Engine(settings=Settings(**settings))
    engine.subscribe_many(
        [
            ("1", "a = 1 and c in ('x', 'y')"),
            ("2", "b > 2 and note like '%late%'"),
            ("3", "tags contains any ('u', 'v') or mail like '%@b'"),
            *((f"more {n}", f"a = {n} and b > 2 and note like '%x'") for n in range(9)),
        ]
    )
    engine.match(_EVENT)
    events = [{**_EVENT, "a": n} for n in range(100)]
    engine.match_many(events)
    engine.match_many(pa.Table.from_pylist(events))
    engine.unsubscribe("1")
    engine.match(_EVENT)
    engine.match_many(events)
    with tempfile.TemporaryDirectory() as folder:
        engine.save(folder)
        with Engine.open(folder) as again:
            again.match(_EVENT)
            again.subscribe("4", "a > 3 and c = 'z'")
            again.compact()


def _use_few() -> None:
    """Use too few subscriptions for an index: they are scanned."""
    _use_an_engine()


def _use_an_index() -> None:
    _use_an_engine(fresh_clauses=2)


def _match_expression() -> None:
    engine = Engine(settings=Settings(fresh_clauses=2))
    engine.subscribe_many([(str(n), f"a = {n} and b > 2 and c = 'x'") for n in range(9)])
    engine.match_expression("a between 1 and 3 and b = 4 and c = 'x'")


def _match_a_large_batch() -> None:
    """Use the kernels for large batches, and those for builds that know such events."""
    engine = Engine(settings=Settings(fresh_clauses=2))
    engine.subscribe_many([(str(n), f"a = {n % 7} and b > {n}") for n in range(99)])
    events = pa.table({"a": np.arange(2_000) % 7, "b": np.arange(2_000) % 99})
    engine.match_many(events)
    engine.compact()


def _leave_out_deleted() -> None:
    """Drop deleted clauses from matches: else the first match after a deletion would wait."""
    found = np.arange(3, dtype=np.int32)
    dead = NO_TOMBSTONES.with_ids(np.array([1]), np.arange(3))
    dead.live_ids(found)
    dead.without_dead(ClauseMatches(np.array([0, 3]), found))


_STEPS: tuple[Callable[[], None], ...] = (
    _compile_index,
    _use_few,
    _use_an_index,
    _match_expression,
    _match_a_large_batch,
    _leave_out_deleted,
)

if __name__ == "__main__":
    warm()
