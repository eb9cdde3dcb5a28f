"""Subscriptions that are conjunctions of disjunctions, in flat arrays.

    subscription i    subscription_ids[i]; its disjunctions are
                      subscription_offsets[i] … subscription_offsets[i + 1]
    disjunction c     its predicates are disjunction_offsets[c] … disjunction_offsets[c + 1]
    predicate p       dimensions[p]; its intervals are interval_offsets[p] … interval_offsets[p + 1]
    interval k        lows[k] <= key <= highs[k]

A subscription holds if each of its disjunctions does, a disjunction if one of its predicates does.
So one without disjunctions always holds, and one with an empty disjunction never. Inside a
disjunction dimensions ascend and occur once; other disjunctions may have them again. Keys and
intervals are those of a ConjunctionTable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from matchmill.encoding.clause_encoder import encode_clauses
from matchmill.encoding.conjunction_table import ConjunctionTable, empty_table, take_clauses
from matchmill.encoding.cut_points import Relabelling
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.event_batch import EventBatch
from matchmill.kernels.csr import take_ranges
from matchmill.papers.common.list_flags import ListFlags
from matchmill.papers.op_index.cnf.normal_form import Disjunction

__all__ = ["CnfTable", "EncodedCnf", "empty_cnf_table", "encode_cnf", "take_subscriptions"]


class CnfTable(NamedTuple):
    """Subscriptions as conjunctions of disjunctions."""

    subscription_ids: np.ndarray  # int64
    subscription_offsets: np.ndarray  # int64
    disjunction_offsets: np.ndarray  # int64
    dimensions: np.ndarray  # int32
    interval_offsets: np.ndarray  # int64
    lows: np.ndarray  # int64
    highs: np.ndarray  # int64

    @property
    def n_subscriptions(self) -> int:
        """Number of subscriptions."""
        return len(self.subscription_ids)

    @property
    def n_disjunctions(self) -> int:
        """Number of disjunctions."""
        return len(self.disjunction_offsets) - 1

    @property
    def n_dimensions(self) -> int:
        """One more than the largest dimension used."""
        return int(self.dimensions.max(initial=-1)) + 1

    def disjunctions(self) -> ConjunctionTable:
        """Return the disjunctions as rows of a table of the same layout, numbered from 0."""
        return ConjunctionTable(
            np.arange(self.n_disjunctions),
            self.disjunction_offsets,
            self.dimensions,
            self.interval_offsets,
            self.lows,
            self.highs,
        )


class EncodedCnf(NamedTuple):
    """A table, the dimensions it speaks of, and the relabellings that older tables need."""

    dimensions: Dimensions
    table: CnfTable
    relabellings: dict[int, list[Relabelling]]
    flags: ListFlags

    def events(self, events: EventBatch) -> EventBatch:
        """Return events as the table needs them, with the flags of their lists."""
        return self.flags.events(events)


def encode_cnf(
    dimensions: Dimensions,
    subscriptions: Sequence[Sequence[Disjunction]],
    subscription_ids: np.ndarray,
) -> EncodedCnf:
    """Conjunctions of disjunctions of value sets. A disjunction is encoded as a clause is."""
    disjunctions = [d for subscription in subscriptions for d in subscription]
    encoded = encode_clauses(dimensions, disjunctions, np.arange(len(disjunctions)))
    offsets = np.cumsum([0, *(len(subscription) for subscription in subscriptions)])
    flags = ListFlags.of(encoded.table, len(encoded.dimensions))
    table = _from_disjunctions(subscription_ids.astype(np.int64), offsets, flags.table)
    return EncodedCnf(encoded.dimensions, table, encoded.relabellings, flags)


def empty_cnf_table() -> CnfTable:
    """Return a table without subscriptions."""
    return _from_disjunctions(np.empty(0, np.int64), np.zeros(1, np.int64), empty_table())


def take_subscriptions(table: CnfTable, rows: np.ndarray) -> CnfTable:
    """Return some subscriptions, by their position."""
    offsets, disjunctions = take_ranges(table.subscription_offsets, rows)
    taken = take_clauses(table.disjunctions(), disjunctions)
    return _from_disjunctions(table.subscription_ids[rows], offsets, taken)


def _from_disjunctions(
    ids: np.ndarray, offsets: np.ndarray, disjunctions: ConjunctionTable
) -> CnfTable:
    return CnfTable(ids, offsets, *disjunctions[1:6])
