"""Matching of conjunctions of disjunctions: bits that are cleared, disjunctions that are checked.

    code of an entry    row << CODE_SHIFT | bit

The layout of rows and lists is that of `OpIndex`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.kernels.jit import kernel
from matchmill.papers.op_index.cnf.cnf_table import CnfTable
from matchmill.papers.op_index.counters import N_ROWS, START, Rows
from matchmill.papers.op_index.lists import Lists
from matchmill.papers.op_index.operator_kinds import Bounds
from matchmill.papers.op_index.pivots import NO_PIVOT
from matchmill.papers.op_index.search import prefetch_signatures, read_pairs, satisfied_in_pivot

__all__ = ["CODE_SHIFT", "CnfScratch", "match_cnf_events"]

CODE_SHIFT = 5


class CnfScratch(NamedTuple):
    """What one call writes to."""

    bitmaps: np.ndarray  # int32, one per row of a pivot
    found: np.ndarray  # uint32
    codes: np.ndarray  # uint32
    pairs: np.ndarray  # int64
    segments: np.ndarray  # int64
    keys: np.ndarray  # int64, one per dimension
    reported: np.ndarray  # int64, one per subscription: 1 + the last event it was reported for


@kernel
def _clear_bits(codes: np.ndarray, n_codes: int, bitmaps: np.ndarray, found: np.ndarray) -> int:
    """Apply codes to the bitmaps of one pivot; rows that became zero are written to `found`."""
    n_found = 0
    for k in range(n_codes):
        code = np.int64(codes[k])
        row = code >> CODE_SHIFT
        before = np.int64(bitmaps[row])
        after = before & ~(1 << (code & ((1 << CODE_SHIFT) - 1)))
        bitmaps[row] = after
        found[n_found] = row
        n_found += after == 0 and before != 0
    return n_found


@kernel
def _checked_hold(table: CnfTable, is_checked: np.ndarray, i: int, keys: np.ndarray) -> bool:
    """Whether the checked disjunctions of a subscription hold."""
    for c in range(table.subscription_offsets[i], table.subscription_offsets[i + 1]):
        if not is_checked[c]:
            continue
        holds = False
        for p in range(table.disjunction_offsets[c], table.disjunction_offsets[c + 1]):
            key = keys[table.dimensions[p]]
            for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
                if table.lows[k] <= key <= table.highs[k]:
                    holds = True
        if not holds:
            return False
    return True


@kernel
def match_cnf_events(
    bounds: Bounds,
    lists: Lists,
    rows: Rows,
    table: CnfTable,
    is_checked: np.ndarray,
    events: EventBatch,
    start: int,
    scratch: CnfScratch,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int]:
    """Match events from `start` on.

    Returns the first one for which `out` had no room, or their number, and how many subscriptions
    were looked at for those before it.
    """
    bitmaps, found, codes, pairs, segments, keys, reported = scratch
    heads, cells = lists.heads, lists.blocks.cells
    records, initial, owners = rows.pivots, rows.initial.cells, rows.owners
    n_out = int(out_offsets[start])
    n_looked_at = 0
    for e in range(start, len(events.offsets) - 1):
        n_pairs = read_pairs(events, e, bounds, pairs)
        for j in range(n_pairs):
            keys[pairs[j, 0]] = pairs[j, 1]
        n_looked_at_before = n_looked_at
        n = n_out
        for j in range(-1, n_pairs):
            pivot = pairs[j, 0] + 1 if j >= 0 else NO_PIVOT
            n_rows = records[pivot, N_ROWS] if pivot < len(records) else 0
            if n_rows == 0:
                continue
            n_looked_at += n_rows
            first = records[pivot, START]
            if pivot == NO_PIVOT:  # all of it is checked
                n_found = n_rows
                for r in range(n_rows):
                    bitmaps[r] = initial[first + r]
                    found[r] = r
            else:
                bitmaps[:n_rows] = initial[first : first + n_rows]
                if j + 1 < n_pairs:
                    prefetch_signatures(cells, heads[pairs[j + 1, 0] + 1])
                n_codes = satisfied_in_pivot(cells, heads[pivot], pairs, n_pairs, segments, codes)
                n_found = _clear_bits(codes, n_codes, bitmaps, found)
            for k in range(n_found):
                i = owners[first + found[k]]
                if bitmaps[found[k]] != 0 or reported[i] == e + 1:
                    continue
                if _checked_hold(table, is_checked, i, keys):
                    reported[i] = e + 1
                    if n < len(out):
                        out[n] = table.subscription_ids[i]
                    n += 1
        for j in range(n_pairs):
            keys[pairs[j, 0]] = 0
        if n > len(out):
            return e, n_looked_at_before
        n_out = n
        out_offsets[e + 1] = n_out
    return len(events.offsets) - 1, n_looked_at
