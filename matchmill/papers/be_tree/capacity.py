"""Leaf capacity (section 7.3.1): by Table 4, from a probability that is given or was seen."""

from __future__ import annotations

from matchmill.errors import InputError

__all__ = ["DEFAULT_CAPACITY", "Feedback", "capacity_for"]

DEFAULT_CAPACITY = 20
_MEMORY = 1 << 12  # events; more are halved
_FEWEST_EVENTS = 64  # to choose a capacity by


def capacity_for(matching_probability: float | None) -> int:
    """Table 4; without a probability, what does well with most."""
    if matching_probability is None:
        return DEFAULT_CAPACITY
    if not 0 <= matching_probability <= 1:
        raise InputError(f"matching_probability is {matching_probability}; it is from 0 to 1")
    if matching_probability < 0.01:
        return 5
    return 20 if matching_probability < 0.1 else 160


class Feedback:
    """How many of the clauses recent events have matched. Counts fade as new ones come.

    Threads may lose each other's counts, which does no harm to a share.
    """

    def __init__(self) -> None:
        self._n_events = self._n_pairs = self._n_matched = 0

    def note(self, n_events: int, n_clauses: int, n_matched: int) -> None:
        """Note a batch of events."""
        if self._n_events >= _MEMORY:
            self._n_events, self._n_pairs, self._n_matched = (
                self._n_events // 2,
                self._n_pairs // 2,
                self._n_matched // 2,
            )
        self._n_events += n_events
        self._n_pairs += n_events * n_clauses
        self._n_matched += n_matched

    def matching_probability(self) -> float | None:
        """Return the share of pairs of event and clause that matched, if there were enough."""
        if self._n_events < _FEWEST_EVENTS or self._n_pairs == 0:
            return None
        return min(1.0, self._n_matched / self._n_pairs)
