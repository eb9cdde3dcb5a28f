"""Room for matches that grows as it is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from matchmill.index.base import ClauseMatches

__all__ = ["collect_matches"]

_FIRST_ROOM = 1 << 14  # an event that does not fit is matched twice, so this is on the large side


def collect_matches(
    n_events: int,
    most_per_event: int,
    match_from: Callable[[int, np.ndarray, np.ndarray], int],
    dtype: type[np.signedinteger[Any]] = np.int64,
    *,
    first_room: int = _FIRST_ROOM,
) -> ClauseMatches:
    """Call `match_from(event, out_offsets, out)` until all events are matched.

    It matches events from this one on, and returns the first for which `out` had no room, or
    n_events. It is then called again with room for `most_per_event` more.
    """
    offsets = np.zeros(n_events + 1, np.int64)
    out = np.empty(max(first_room, 4 * n_events), dtype)
    done = match_from(0, offsets, out)
    while done < n_events:
        wider = np.empty(2 * len(out) + most_per_event, dtype)
        wider[: offsets[done]] = out[: offsets[done]]
        out = wider
        done = match_from(done, offsets, out)
    return ClauseMatches(offsets, out[: offsets[-1]])
