"""Find equal clauses, and equal sets of numbers: exactly, in about the time of a sort.

    item i     numbers data[offsets[i] … offsets[i + 1]]
    leader     of an item: the first one that has the same numbers, in the same order

Items are sorted by a hash of 62 bits, and those with one hash compared number by number. A clause
is an item too: for each predicate its dimension with its quantifier and join, how many intervals it
has, and their bounds. Only clauses whose hash another one has are written out as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.kernels.jit import int64, kernel

__all__ = ["Items", "leaders_of", "repeated_clauses"]

_LOW = 0x7FFFFFFF
_START, _OTHER_START = 0x12345, 0x54321


class Items(NamedTuple):
    """Rows of numbers."""

    offsets: np.ndarray  # int64
    data: np.ndarray  # int64


def repeated_clauses(tables: Sequence[ConjunctionTable]) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of all clauses that occur more than once, and for each its first equal.

    The first in the order of the tables stands for all clauses that equal it.
    """
    hashes = [_hashes_of_clauses(table) for table in tables]
    is_shared = _occurs_again(np.concatenate([np.empty(0, np.int64), *hashes]))
    ids, sizes, data = [np.empty(0, np.int64)], [np.zeros(1, np.int64)], [np.empty(0, np.int64)]
    at = 0
    for table in tables:
        rows = np.flatnonzero(is_shared[at : at + table.n_clauses])
        at += table.n_clauses
        ids.append(table.clause_ids[rows])
        starts, stops = table.clause_offsets[rows], table.clause_offsets[rows + 1]
        n_intervals = table.interval_offsets[stops] - table.interval_offsets[starts]
        sizes.append(2 * (stops - starts + n_intervals))
        data.append(np.empty(int(sizes[-1].sum()), np.int64))
        _write_clauses(table, rows, data[-1])
    clause_ids = np.concatenate(ids)
    leaders = leaders_of(Items(np.cumsum(np.concatenate(sizes)), np.concatenate(data)))
    repeated = np.flatnonzero(np.bincount(leaders, minlength=len(leaders))[leaders] > 1)
    return clause_ids[repeated], clause_ids[leaders[repeated]]


def leaders_of(items: Items) -> np.ndarray:
    """Return the first equal item of each item."""
    hashes = np.empty(len(items.offsets) - 1, np.int64)
    _hash_items(items, hashes)
    leaders = np.empty(len(hashes), np.int64)
    # Stable: among equal hashes the first item comes first.
    _compare_runs(items, hashes, np.argsort(hashes, kind="stable"), leaders)
    return leaders


def _hashes_of_clauses(table: ConjunctionTable) -> np.ndarray:
    out = np.empty(table.n_clauses, np.int64)
    _hash_clauses(table, out)
    return out


def _occurs_again(hashes: np.ndarray) -> np.ndarray:
    """For each hash: whether there is another one like it."""
    out = np.zeros(len(hashes), bool)
    order = np.argsort(hashes)
    ascending = hashes[order]
    same = ascending[1:] == ascending[:-1]
    out[order[1:][same]] = True
    out[order[:-1][same]] = True
    return out


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _mix(h: Any, number: Any) -> Any:
    """One step of two hashes of 31 bits each, side by side; nothing overflows on the way."""
    low, high = number & _LOW, (number >> 31) & 0x1FFFFFFFF
    a, b = h & _LOW, h >> 31
    a = (a ^ low) * 0x01000193
    a = ((a ^ (a >> 27) ^ high) & 0x1FFFFFFFF) * 0x010001B3
    a = (a ^ (a >> 29)) & _LOW
    b = (b ^ high) * 0x00C2B2AF
    b = ((b ^ (b >> 25) ^ low) & 0x1FFFFFFFF) * 0x009E3779
    b = (b ^ (b >> 28)) & _LOW
    return (b << 31) | a


@kernel
def _quantified_dimension(table: ConjunctionTable, p: int) -> int:
    quantifier = table.quantifiers[p] if len(table.quantifiers) else 0
    quantified: int = int64(table.dimensions[p]) << 8 | quantifier
    return quantified


@kernel
def _hash_clauses(table: ConjunctionTable, out: np.ndarray) -> None:
    interval_offsets = table.interval_offsets
    for i in range(len(table.clause_ids)):
        h = int64((_OTHER_START << 31) | _START)
        for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
            h = _mix(h, _quantified_dimension(table, p))
            for k in range(interval_offsets[p], interval_offsets[p + 1]):
                h = _mix(_mix(h, table.lows[k]), table.highs[k])
        out[i] = h


@kernel
def _hash_items(items: Items, out: np.ndarray) -> None:
    for i in range(len(items.offsets) - 1):
        h = int64((_OTHER_START << 31) | _START)
        for k in range(items.offsets[i], items.offsets[i + 1]):
            h = _mix(h, items.data[k])
        out[i] = h


@kernel
def _write_clauses(table: ConjunctionTable, rows: np.ndarray, out: np.ndarray) -> None:
    n = 0
    for i in rows:
        for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
            start, stop = table.interval_offsets[p], table.interval_offsets[p + 1]
            out[n] = _quantified_dimension(table, p)
            out[n + 1] = stop - start
            n += 2
            for k in range(start, stop):
                out[n] = table.lows[k]
                out[n + 1] = table.highs[k]
                n += 2


@kernel
def _same_item(items: Items, i: int, j: int) -> bool:
    at, other = items.offsets[i], items.offsets[j]
    n = items.offsets[i + 1] - at
    if items.offsets[j + 1] - other != n:
        return False
    for k in range(n):
        if items.data[at + k] != items.data[other + k]:
            return False
    return True


@kernel
def _compare_runs(
    items: Items, hashes: np.ndarray, order: np.ndarray, out_leaders: np.ndarray
) -> None:
    """Compare each item of a run of one hash with the leaders before it.

    There is one leader, unless hashes collide.
    """
    start = 0
    for at in range(len(order)):
        i = order[at]
        if hashes[i] != hashes[order[start]]:
            start = at
        out_leaders[i] = i
        for before in range(start, at):
            j = order[before]
            if out_leaders[j] == j and _same_item(items, i, j):
                out_leaders[i] = j
                break
