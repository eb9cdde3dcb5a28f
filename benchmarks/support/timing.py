"""What the measurements have in common: rounds, spreads, targets, one table at the end.

Contenders run interleaved, in an order that is shuffled between rounds, so that a busy machine
slows all of them equally. The median of the rounds counts, and the least and the most are shown
beside it. A ratio is taken round by round, then it is treated the same way.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

__all__ = ["Spread", "Target", "interleaved", "print_table", "ratio"]


class Spread(NamedTuple):
    """The median of some rounds, the least and the most."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Sum up some rounds."""
        rounds = list(values)
        return cls(statistics.median(rounds), min(rounds), max(rounds))

    def __str__(self) -> str:
        """Write it for a table."""
        return f"{number(self.median)} ({number(self.low)} … {number(self.high)})"


class Target(NamedTuple):
    """What a figure is meant to reach: at least, or at most, so much."""

    relation: str  # ≥ or ≤
    value: float
    unit: str = ""

    def is_met(self, figure: float) -> bool:
        """Tell whether a figure reaches the target."""
        return figure >= self.value if self.relation == "≥" else figure <= self.value

    def __str__(self) -> str:
        """Write it for a table."""
        return f"{self.relation} {self.value:g}{self.unit}"

    def verdict(self, figure: float) -> str:
        """Return the target, and whether a figure meets it."""
        return f"{self} {'met' if self.is_met(figure) else 'MISSED'}"


def interleaved(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int,
    seed: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of each contender in each round, after one call each to warm up.

    On a busy machine `time.process_time` is the better clock: CPU time of all threads.
    """
    rng = random.Random(seed)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()
    for _ in range(rounds):
        for name in rng.sample(sorted(contenders), len(contenders)):
            start = clock()
            contenders[name]()
            seconds[name].append(clock() - start)
    return seconds


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """Return the ratio of two contenders, round by round."""
    return Spread.of(a / b for a, b in zip(above, below, strict=True))


def number(value: float) -> str:
    """Three digits that matter."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def print_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[object]], notes: Sequence[str] = ()
) -> None:
    """Columns as wide as they must be; the first one, and texts, to the left."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    print(f"\n{title}\n")
    for line in (header, ["-" * width for width in widths], *cells):
        print("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip())
    if notes:
        print()
    for note in notes:
        print(note)
    sys.stdout.flush()  # a later table may take long, or never come
