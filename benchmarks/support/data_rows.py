"""The table of `script/bench data`: one row per figure.

A row is a function with `@row` that returns a call and what its time is divided by. Figures are CPU
time, of child processes too, unless the call returns a figure itself. Each round has events of its
own, since `match` keeps answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import matchmill as mm

__all__ = ["ROWS", "TURNS", "Measured", "Row", "Size", "as_list", "one_by_one", "row"]


class Size(NamedTuple):
    """How much to measure."""

    n_events: int
    share: float  # of the subscriptions of each row

    def of(self, n: int) -> int:
        """Return how many subscriptions a row has."""
        return max(1, int(n * self.share))


Measured = tuple[Callable[[], object], int]  # a call, and the number of units in it


class Row(NamedTuple):
    """One figure: what it is called, its unit, its goal, and what to measure."""

    name: str
    goal: float | None
    unit: str
    prepare: Callable[[Size], Measured]


ROWS: list[Row] = []
TURNS = 8  # lists of events, one per round


def row(
    name: str, goal: float | None = None, unit: str = "µs per event"
) -> Callable[[Callable[[Size], Measured]], Callable[[Size], Measured]]:
    """Add a row to the table."""

    def add(prepare: Callable[[Size], Measured]) -> Callable[[Size], Measured]:
        ROWS.append(Row(name, goal, unit, prepare))
        return prepare

    return add


def one_by_one(engine: mm.Engine, events: Sequence[Any]) -> Measured:
    """Match events by `match`, each for itself."""
    n = len(events) // TURNS
    turns = cycle(range(0, n * TURNS, n))

    def match() -> None:
        start = next(turns)
        for event in events[start : start + n]:
            engine.match(event)

    return match, n


def as_list(engine: mm.Engine, events: Sequence[Any]) -> Measured:
    """Match lists of dicts by `match_many`."""
    n = len(events) // TURNS
    turns = cycle(range(0, n * TURNS, n))

    def match() -> None:
        start = next(turns)
        engine.match_many(events[start : start + n], threads=1)

    return match, n
