"""What time it is, with a clock that may jump.

    wall clock ──────┐ they agree, up to a minute ─► the wall clock
    elapsed time ────┘ they do not                ─► what it was, plus the elapsed time,
                                                     until the jump has lasted for a while

A machine's clock is wrong now and then: after a start without a network, after a mistake of an
operator, in a virtual machine that was resumed. Elapsed time does not jump. So a jump of the wall
clock is believed when it has lasted for `DOUBT_SECONDS`; until then time goes on as before.

What was deleted cannot come back, so deletion by age needs more: see `database/horizon.py`.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Protocol

from matchmill.service.database.rows import MINUTE, SECOND

__all__ = ["DOUBT_SECONDS", "ClockSource", "SteadyClock", "SystemClock", "system_clock"]

DOUBT_SECONDS = 300
_TOLERANCE = MINUTE  # smaller steps are adjustments, and followed at once

logger = logging.getLogger("matchmill.service")


class ClockSource(Protocol):
    """The clocks of a machine, in whole microseconds."""

    def wall(self) -> int:
        """Return the present since 1970, as far as the machine knows."""
        ...

    def elapsed(self) -> int:
        """Return the time since some moment; it never jumps."""
        ...


def system_clock() -> int:
    """Return what the machine knows as the present, in microseconds since 1970."""
    return time.time_ns() // 1000


class SystemClock:
    """The clocks of this machine."""

    def wall(self) -> int:
        """Return the present since 1970, as far as the machine knows."""
        return system_clock()

    def elapsed(self) -> int:
        """Return the time since the machine was started, with that in which it slept."""
        clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return time.clock_gettime_ns(clock) // 1000


class SteadyClock:
    """A wall clock whose jumps are doubted; any thread may ask.

    Parameters
    ----------
    source
        The clocks of the machine.
    """

    def __init__(self, source: ClockSource) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._offset = source.wall() - source.elapsed()
        self._doubted: tuple[int, int] | None = None  # another offset, and since when it is there

    def __call__(self) -> int:
        """Return the present in microseconds since 1970."""
        with self._lock:
            elapsed = self._source.elapsed()
            offset = self._source.wall() - elapsed
            if abs(offset - self._offset) <= _TOLERANCE:
                self._offset, self._doubted = offset, None
            else:
                self._doubt(offset, elapsed)
            return elapsed + self._offset

    def elapsed(self) -> int:
        """Return the time since some moment; it never jumps."""
        return self._source.elapsed()

    @property
    def doubted_seconds(self) -> float:
        """Return by how much the wall clock is ahead of this one, if it has jumped; else 0."""
        self()
        doubted = self._doubted
        return 0.0 if doubted is None else (doubted[0] - self._offset) / SECOND

    def _doubt(self, offset: int, elapsed: int) -> None:
        if self._doubted is None or abs(offset - self._doubted[0]) > _TOLERANCE:
            self._doubted = (offset, elapsed)
            seconds = (offset - self._offset) / SECOND
            logger.warning(
                "the clock of the machine jumped by %.0f s; it is believed if it stays there for"
                " %d s",
                seconds,
                DOUBT_SECONDS,
            )
        elif elapsed - self._doubted[1] >= DOUBT_SECONDS * SECOND:
            logger.warning("the clock of the machine is believed from now on")
            self._offset, self._doubted = offset, None
