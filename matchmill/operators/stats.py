"""What operators did: calls, errors, time. Errors are counted, and the first ones are logged."""

from __future__ import annotations

import logging
from typing import NamedTuple

from matchmill.operators.safe_call import Answer

__all__ = ["Figures", "OperatorStats"]

_log = logging.getLogger("matchmill.operators")


class OperatorStats(NamedTuple):
    """What one operator did in an engine.

    Parameters
    ----------
    name
        The name of the operator.
    n_calls
        How many events it was called for.
    n_true, n_errors
        How often it was true, and how often it failed.
    total_ms
        How long all calls took, in milliseconds.
    last_error
        The last error, or an empty string.

    Examples
    --------
    >>> import matchmill as mm
    >>> engine = mm.Engine({"u1": "within_km(40.7, -74.0, 5)"})
    >>> engine.match({"lat": 40.7, "lon": -74.01})
    {'u1'}
    >>> engine.stats().operators[0].n_calls
    1
    """

    name: str
    n_calls: int
    n_true: int
    n_errors: int
    total_ms: float
    last_error: str

    def __str__(self) -> str:
        error = f"; last error: {self.last_error}" if self.last_error else ""
        return (
            f"{self.n_calls:,} calls, {self.n_true:,} true, {self.n_errors:,} errors,"
            f" {self.total_ms:,.1f} ms{error}"
        )


class Figures:
    """Counts by operator."""

    def __init__(self) -> None:
        self._stats: dict[str, OperatorStats] = {}
        self.n_joins_given_up = 0

    def add(self, name: str, answer: Answer) -> None:
        """Count one call."""
        outcome = answer.outcome
        old = self._stats.get(name) or OperatorStats(name, 0, 0, 0, 0.0, "")
        n_errors = old.n_errors + bool(outcome.error)
        self._stats[name] = OperatorStats(
            name,
            old.n_calls + 1,
            old.n_true + (outcome.truth is True),
            n_errors,
            old.total_ms + answer.milliseconds,
            outcome.error or old.last_error,
        )
        if outcome.error and _is_power_of_ten(n_errors):
            _log.warning("operator %s, error %d: %s", name, n_errors, outcome.error)

    def add_join_given_up(self, reason: str) -> None:
        """Count a join that was given up."""
        self.n_joins_given_up += 1
        if _is_power_of_ten(self.n_joins_given_up):
            _log.warning("join %d given up: %s", self.n_joins_given_up, reason)

    def stats(self) -> list[OperatorStats]:
        """Return the figures of all operators that were called, by name."""
        return [self._stats[name] for name in sorted(self._stats)]


def _is_power_of_ten(n: int) -> bool:
    """Tell whether an error is logged: the 1st, 10th, 100th …, so that the log is not flooded."""
    return str(n).rstrip("0") == "1"
