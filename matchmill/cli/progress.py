"""How far a command is, on the terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

__all__ = ["Progress"]


class Progress:
    """A moving line on the terminal, once the work has taken a second."""

    def __init__(self, quiet: bool) -> None:
        self._enabled = not quiet and sys.stderr.isatty()
        self._start = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._title = ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def stage(self, title: str) -> None:
        """Begin another part of the work."""
        self._title = title
        if self._bar is not None:
            self._bar.reset(self._task, description=title, completed=0, total=None)

    def update(self, n_done: int, total: int | None = None) -> None:
        """Show how far it is, of how many if that is known."""
        if not self._enabled or time.monotonic() - self._start < 1:
            return
        if self._bar is None:
            self._show()
        count = f"{n_done:,}" if total is None else f"{n_done:,} of {total:,}"
        self._bar.update(self._task, completed=n_done, total=total, count=count)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bar
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._title, total=None, count="")
        self._bar.start()
