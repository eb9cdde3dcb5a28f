"""How subscriptions in conjunctive normal form are filed: which bits, which pivots, which rows.

bits[c]     the bit of disjunction c, or -1 if it is checked instead
leads[i]    the disjunction whose dimensions are the pivots of subscription i, or -1
rows        (subscription, pivot) pairs, by subscription; pivot 0 where nothing leads
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.csr import take_ranges
from matchmill.kernels.jit import kernel
from matchmill.papers.op_index.cnf.cnf_table import CnfTable
from matchmill.papers.op_index.operator_kinds import Filed
from matchmill.papers.op_index.pivots import NO_PIVOT

__all__ = ["assign_bits", "bitmaps_of", "kept_intervals", "owners_of", "rows_of"]

_BITS = 30  # of a bitmap; the next one marks dead rows


@kernel
def assign_bits(
    table: CnfTable,
    against: np.ndarray,
    counts: np.ndarray,
    out_bits: np.ndarray,
    out_leads: np.ndarray,
) -> None:
    """Assign the bit of each disjunction, or -1 if it is checked.

    The disjunction that leads to each subscription, or -1.
    """
    for i in range(len(out_leads)):
        out_leads[i] = -1
        least_size = least_sum = np.int64(0)
        for c in range(table.subscription_offsets[i], table.subscription_offsets[i + 1]):
            first, stop = table.disjunction_offsets[c], table.disjunction_offsets[c + 1]
            out_bits[c] = 0
            frequency_sum = np.int64(0)
            for p in range(first, stop):
                frequency_sum += counts[table.dimensions[p]]
                if against[p]:
                    out_bits[c] = -1
            size = stop - first
            if out_bits[c] >= 0 and (
                out_leads[i] < 0
                or size < least_size
                or (size == least_size and frequency_sum < least_sum)
            ):
                out_leads[i] = c
                least_size, least_sum = size, frequency_sum
        n_bits = 1  # the one that leads has bit 0
        for c in range(table.subscription_offsets[i], table.subscription_offsets[i + 1]):
            if out_bits[c] >= 0 and c != out_leads[i]:
                out_bits[c] = n_bits if n_bits < _BITS else -1
                n_bits += 1


def rows_of(table: CnfTable, leads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(subscription, pivot) of each row, by subscription."""
    leading = np.flatnonzero(leads >= 0)
    offsets, predicates = take_ranges(table.disjunction_offsets, leads[leading])
    subscriptions = np.repeat(leading, np.diff(offsets))
    everywhere = np.flatnonzero(leads < 0)
    pivots = table.dimensions[predicates].astype(np.int64) + 1
    subscriptions = np.concatenate((subscriptions, everywhere))
    pivots = np.concatenate((pivots, np.full(len(everywhere), NO_PIVOT)))
    order = np.argsort(subscriptions, kind="stable")
    return subscriptions[order], pivots[order]


def kept_intervals(filed: Filed, table: CnfTable, bits: np.ndarray) -> Filed:
    """Return the intervals of disjunctions that have a bit."""
    has_bit = np.repeat(bits >= 0, np.diff(table.disjunction_offsets))[filed.rows]
    return Filed(*(a[has_bit] for a in filed))


def bitmaps_of(table: CnfTable, bits: np.ndarray) -> np.ndarray:
    """Return what a row of each subscription begins as."""
    owners = np.repeat(np.arange(table.n_subscriptions), np.diff(table.subscription_offsets))
    has_bit = bits >= 0
    maps = np.zeros(table.n_subscriptions, np.int64)
    np.add.at(maps, owners[has_bit], 1 << bits[has_bit])
    return maps


def owners_of(table: CnfTable) -> np.ndarray:
    """Return the subscription of each predicate."""
    of_disjunction = np.repeat(
        np.arange(table.n_subscriptions), np.diff(table.subscription_offsets)
    )
    return np.repeat(of_disjunction, np.diff(table.disjunction_offsets))
