"""Rows and events that could not be used: nothing is dropped in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from matchmill.cli.exit_codes import ALL_GOOD, SET_ASIDE
from matchmill.errors import InputError
from matchmill.io.reports import Rejected
from matchmill.io.writers import RejectedWriter

__all__ = ["SetAside", "listed", "shown"]

N_SHOWN = 5  # in a summary


class SetAside:
    """Rows that could not be used: counted, the first few kept, all of them written."""

    def __init__(self, writer: RejectedWriter | None, strict: bool) -> None:
        self.counts: Counter[str] = Counter()
        self._writer = writer
        self._strict = strict
        self._first: list[str] = []

    def add(self, rejected: Rejected) -> None:
        name = None if rejected.id is None else shown(rejected.id)
        text = str(rejected._replace(id=name))
        if self._strict:
            raise InputError(f"{text}\nnothing was written, because of --strict")
        self.counts[rejected.kind] += 1
        if len(self._first) < N_SHOWN:
            self._first.append(text)
        if self._writer is not None:
            self._writer.write(rejected)

    def lines(self) -> Iterator[str]:
        n_all = self.counts.total()
        if n_all:
            yield "set aside:"
            yield from (f"  {_one_line(text)}" for text in self._first)
        if n_all > len(self._first):
            hint = "" if self._writer else "; --refused FILE writes them all"
            yield f"  … and {n_all - len(self._first):,} more{hint}"

    @property
    def exit_code(self) -> int:
        return SET_ASIDE if self.counts.total() else ALL_GOOD


def shown(identifier: object) -> str:
    """An identifier for a message: nothing in it can move a terminal's cursor."""
    text = str(identifier)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= 60 else text[:59] + "…"


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:300]


def listed(identifiers: Sequence[object]) -> str:
    first = ", ".join(map(shown, identifiers[:N_SHOWN]))
    return first + (", …" if len(identifiers) > N_SHOWN else "")
