"""Two runs of one experiment: what got faster, what got slower, and what is noise.

A difference counts only if everything speaks for it:

    size       medians differ by at least 5 %
    minima     so do the fastest rounds, in the same direction: load from outside adds to times and
               never takes away, so it moves minima least
    quartiles  the middle halves of the rounds do not overlap
    ranks      by the exact rank-sum test it has less than 1 % of chance
    yardstick  all of this holds as well for the times relative to the yardstick, some fixed work
               that was timed beside each round: a neighbour that slows a whole run down slows that
               down, too, if not quite as much; so what is left must be more than it has moved

With five rounds each, the ranks ask that every round of one run beats every round of the other.
With fewer than five, no order is rare enough; then that is asked for, and twice the size.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import cache
from math import comb
from typing import NamedTuple

import numpy as np

from matchmill.errors import InputError
from matchmill.lab.experiments.results import Results, Summary

__all__ = ["Change", "compare", "judgement", "rank_sum_p"]

SMALLEST = 0.05
CHANCE = 0.01


class Change(NamedTuple):
    """One contender at one point, before and after.

    `label` is faster, slower, noise, broken (was fine and is not any more), mended, or gone, new
    and `not measured` (nothing to compare).
    """

    labels: str
    contender: str
    before: float | None  # µs per event
    after: float | None
    label: str
    reason: str = ""

    @property
    def ratio(self) -> float | None:
        """After / before: 2.0 takes twice as long."""
        if self.before is None or self.after is None or not self.before:
            return None
        return self.after / self.before

    @property
    def is_worse(self) -> bool:
        """Whether this is a step back."""
        return self.label in ("slower", "broken", "gone")


def compare(a: Results, b: Results) -> list[Change]:
    """Compare run a with run b, for every point and contender of either."""
    if (a.experiment.name, a.scale) != (b.experiment.name, b.scale):
        raise InputError(
            f"{a.path} is {a.experiment.name} ({a.scale}) and {b.path} is {b.experiment.name} "
            f"({b.scale}); only runs of the same experiment and scale can be compared"
        )
    before = {s.key: s for s in a.summaries()}
    after = {s.key: s for s in b.summaries()}
    return [_change(key, before.get(key), after.get(key)) for key in {**before, **after}]


def _change(key: tuple[str, str], a: Summary | None, b: Summary | None) -> Change:
    def change(label: str, reason: str = "") -> Change:
        before, after = (None if s is None else s.columns["us_per_event"] for s in (a, b))
        return Change(*key, before, after, label, reason)

    if a is None or b is None:
        return change("new" if a is None else "gone")
    if a.columns["workload"] != b.columns["workload"]:
        return change("not measured", "the workloads differ")
    if a.status != "ok" or b.status != "ok":
        label = "broken" if a.status == "ok" else "mended" if b.status == "ok" else "not measured"
        return change(label, f"{a.status} → {b.status}: {b.columns['reason']}".rstrip(": "))
    same_events = a.columns["n_events"] == b.columns["n_events"]
    if same_events and a.columns["digest"] != b.columns["digest"]:
        return change("broken", "it finds other matches than before")
    label = judgement(a.rounds, b.rounds)
    if label != "noise":
        moved = _yardstick(b) / _yardstick(a)
        if judgement(a.relative, b.relative, max(moved, 1 / moved) - 1) != label:
            return change("noise", f"the machine itself took {moved:.2f} times as long")
    return change(label)


def _yardstick(s: Summary) -> float:
    return statistics.median(t / r for t, r in zip(s.rounds, s.relative, strict=True))


def judgement(before: Sequence[float], after: Sequence[float], doubt: float = 0.0) -> str:
    """faster, slower or noise, from the times of the rounds; `doubt` is added to the 5 %."""
    ratio = statistics.median(after) / statistics.median(before)
    if ratio < 1:  # look at it the other way round
        turned = judgement(after, before, doubt) if ratio > 0 else "noise"
        return {"slower": "faster"}.get(turned, turned)
    few = min(len(before), len(after)) < 5
    smallest = 1 + doubt + SMALLEST * (2 if few else 1)
    clear = ratio >= smallest and min(after) / min(before) >= smallest
    clear = clear and bool(np.quantile(after, 0.25) > np.quantile(before, 0.75))
    separate = min(after) > max(before) if few else rank_sum_p(before, after) < CHANCE
    return "slower" if clear and separate else "noise"


def rank_sum_p(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the two-sided chance of ranks at least this uneven, if both came from one source.

    Exact, after Mann and Whitney; ties count half and are then rounded towards no difference.
    """
    n, m = len(a), len(b)
    below = sum((y > x) + 0.5 * (y == x) for x in a for y in b)
    least = int(np.ceil(min(below, n * m - below)))
    ways = sum(_n_orders(n, m, u) for u in range(least + 1))
    return min(1.0, 2 * ways / comb(n + m, n))


@cache
def _n_orders(n: int, m: int, u: int) -> int:
    """In how many orders of n and m things exactly u pairs stand the wrong way round."""
    if u < 0 or u > n * m:
        return 0
    if n == 0 or m == 0:
        return int(u == 0)
    return _n_orders(n - 1, m, u - m) + _n_orders(n, m - 1, u)
