"""Rows and events that were rejected: each is counted, and none is lost in silence."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from matchmill.cli.exit_codes import ALL_GOOD, SOME_REJECTED
from matchmill.errors import InputError

if TYPE_CHECKING:
    from matchmill.io.reports import Rejected

__all__ = ["RejectedRows", "listed", "one_line", "printable"]

N_SHOWN = 5  # in a summary


class RejectedRows:
    """Counts what was rejected, keeps the first few for the summary, writes all to --rejected."""

    def __init__(self, arguments: argparse.Namespace, stack: ExitStack) -> None:
        from matchmill.io.writers import RejectedWriter

        path = arguments.rejected
        self._writer = None if path is None else stack.enter_context(RejectedWriter(path))
        self._strict = getattr(arguments, "strict", False)
        self._first: list[str] = []
        self.counts: Counter[str] = Counter()

    def add(self, rows: Iterable[Rejected]) -> None:
        """Note rows; with --strict, the first one is an error."""
        for one in rows:
            text = one_line(one._replace(id=None if one.id is None else printable(one.id)))
            if self._strict:
                raise InputError(f"{text}\nnothing was written, because of --strict")
            self.counts[one.kind] += 1
            if len(self._first) < N_SHOWN:
                self._first.append(text)
            if self._writer is not None:
                self._writer.write(one)

    def lines(self) -> Iterator[str]:
        """Yield the lines of a summary."""
        n_all = self.counts.total()
        if n_all:
            yield "rejected:"
            yield from (f"  {text}" for text in self._first)
        if n_all > len(self._first):
            hint = "" if self._writer else "; --rejected FILE writes them all"
            yield f"  … and {n_all - len(self._first):,} more{hint}"

    @property
    def exit_code(self) -> int:
        """Return 3 if something was rejected."""
        return SOME_REJECTED if self.counts.total() else ALL_GOOD


def printable(value: object) -> str:
    """Return text for a message: short, and nothing in it can move a terminal's cursor."""
    text = str(value)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= 60 else text[:59] + "…"


def one_line(value: object) -> str:
    """Return text on one line of bounded length, without characters that move the cursor."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(value)).split())[:300]


def listed(values: Sequence[object]) -> str:
    """Return the first few of several, with commas."""
    first = ", ".join(map(printable, values[:N_SHOWN]))
    return first + (", …" if len(values) > N_SHOWN else "")
