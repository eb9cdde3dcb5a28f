"""Progress of long calls: a bar on the terminal, a function of the caller, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from matchmill.errors import InputError

__all__ = ["Progress", "Report", "reporting"]

Report: TypeAlias = Callable[[int, int | None], None]
"""Called with how much is done and how much there is, or None if that is not known."""

Progress: TypeAlias = bool | Report


@contextmanager
def reporting(progress: Progress, title: str) -> Iterator[Report | None]:
    """Provide the function that a long call reports to; None if nobody wants to know."""
    if progress is False or progress is None:
        yield None
    elif progress is True:
        with _bar(title) as report:
            yield report
    elif callable(progress):
        yield progress
    else:
        raise InputError(
            f"progress is True, False or a function of (done, total), not {type(progress).__name__}"
        )


@contextmanager
def _bar(title: str) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.progress import Progress as Bar
    from rich.text import Text

    class RateColumn(ProgressColumn):
        """How many per second."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.0f} per second")

    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        RateColumn(),
    )
    with Bar(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
