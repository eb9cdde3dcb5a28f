"""The matches of two indexes as one: for each event the ids of the first, then of the second."""

from __future__ import annotations

import numpy as np

from matchmill.index.base import ClauseMatches
from matchmill.kernels.jit import kernel

__all__ = ["joined_matches"]


def joined_matches(a: ClauseMatches, b: ClauseMatches) -> ClauseMatches:
    """Return the matches of both; no clause is in both."""
    if len(b.clause_ids) == 0:
        return a
    if len(a.clause_ids) == 0:
        return b
    if len(a.offsets) == 2:  # one event
        clause_ids = np.concatenate((a.clause_ids, b.clause_ids))
        return ClauseMatches(a.offsets + b.offsets, clause_ids)
    out = np.empty(len(a.clause_ids) + len(b.clause_ids), np.int64)
    _join(a.offsets, a.clause_ids, b.offsets, b.clause_ids, out)
    return ClauseMatches(a.offsets + b.offsets, out)


@kernel
def _join(
    a_offsets: np.ndarray,
    a_ids: np.ndarray,
    b_offsets: np.ndarray,
    b_ids: np.ndarray,
    out: np.ndarray,
) -> None:
    n = 0
    for e in range(len(a_offsets) - 1):
        for k in range(a_offsets[e], a_offsets[e + 1]):
            out[n] = a_ids[k]
            n += 1
        for k in range(b_offsets[e], b_offsets[e + 1]):
            out[n] = b_ids[k]
            n += 1
