"""What operators did: calls, errors, time. Errors are counted, and the first ones are logged."""

from __future__ import annotations

import logging
from typing import NamedTuple

from matchmill.operators.safe_call import Answer

__all__ = ["Figures", "OperatorStats"]

_log = logging.getLogger("matchmill.operators")


class OperatorStats(NamedTuple):
    name: str
    n_calls: int  # events that it was asked about
    n_true: int
    n_errors: int
    milliseconds: float
    last_error: str  # empty if there was none


class Figures:
    """Counts by operator."""

    def __init__(self) -> None:
        self._stats: dict[str, OperatorStats] = {}

    def add(self, name: str, answer: Answer) -> None:
        outcome = answer.outcome
        old = self._stats.get(name) or OperatorStats(name, 0, 0, 0, 0.0, "")
        n_errors = old.n_errors + bool(outcome.error)
        self._stats[name] = OperatorStats(
            name,
            old.n_calls + 1,
            old.n_true + (outcome.truth is True),
            n_errors,
            old.milliseconds + answer.milliseconds,
            outcome.error or old.last_error,
        )
        if outcome.error and _is_power_of_ten(n_errors):
            _log.warning("operator %s, error %d: %s", name, n_errors, outcome.error)

    def stats(self) -> list[OperatorStats]:
        """All operators that were called, by name."""
        return [self._stats[name] for name in sorted(self._stats)]


def _is_power_of_ten(n: int) -> bool:
    """A log is told of the 1st, 10th, 100th … error: it must not be flooded."""
    return str(n).rstrip("0") == "1"
