"""What one contender may take, and what was measured of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from matchmill.lab.experiments.machine_info import available_bytes
from matchmill.lab.experiments.spec import Contender

__all__ = ["CLOCKS", "Budget", "Clock", "Measurement"]

Clock: TypeAlias = Literal["wall", "cpu"]
CLOCKS: dict[Clock, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass(frozen=True, slots=True)
class Budget:
    """What one contender may take at one point, and all of them together in memory."""

    seconds: float = 60.0  # to build, and again to match
    n_bytes: int = 0  # beyond what the workload takes; 0: half of the memory that is free
    scan_seconds: float = 10.0  # for the reference
    clock: Clock = "wall"  # what is measured; limits of time are always wall time

    def bytes_each(self) -> int:
        """Return the bytes for one contender."""
        return self.n_bytes or available_bytes() // 2

    def bytes_together(self) -> int:
        """Return the bytes for all contenders of a race."""
        return max(self.bytes_each(), available_bytes() * 3 // 4)


@dataclass(slots=True)
class Measurement:
    """One contender at one point.

    `status` is ok, wrong (other matches than the reference), failed (an error), slow (over its
    time), memory (over its memory), absent (no such index) or no workload.
    """

    contender: Contender
    status: str
    reason: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    rounds: list[float] = field(default_factory=list)  # µs per event
    yardsticks: list[float] = field(default_factory=list)  # µs of the yardstick, round by round
    n_events: int = 0
    n_clauses: int = 0
    build_seconds: float | None = None
    index_bytes: int | None = None
    peak_bytes: int | None = None
    candidates_per_event: float | None = None
    n_matches: int | None = None
    digest: str = ""
    reference: str = ""
    race: int | None = None  # contenders with the same number ran interleaved
