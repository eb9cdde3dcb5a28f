"""OpIndex over conjunctions of disjunctions (paper, section 6.1): bitmaps instead of counters.

A subscription is filed under each dimension of its shortest disjunction, one of which every
matching event has; of those as short, the one whose dimensions are the rarest in sum. Under each
of these pivots it has a row of its own with all its predicates. The row begins as a bit for each
disjunction; an entry that is satisfied clears the bit of its disjunction, and a row that reaches
zero matches.

    code of an entry    row << 5 | bit

Where we go beyond the paper:

- A disjunction with a predicate that accepts absence cannot be cleared by what an event has. It is
  *checked*: looked up in the table, once the bits of all others are cleared. So are those beyond
  the 30 that fit a bitmap. A subscription that has none but checked ones is looked at with every
  event.
- An event may have several pivots of a subscription. It is reported by the first that finds it.

The table is kept as it came, for checking and for building again when half of it has been deleted.
Changes are made in place: no reader may match while something is inserted or deleted.
"""

from __future__ import annotations

import time

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.encoding.flat_dictionary import Growable
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.index.match_buffer import collect_matches
from matchmill.kernels.csr import take_ranges
from matchmill.papers.common.id_table import (
    check_known,
    check_new,
    find_ids,
    new_id_table,
    with_ids,
    without_ids,
)
from matchmill.papers.op_index.cnf.cnf_table import CnfTable, empty_cnf_table, take_subscriptions
from matchmill.papers.op_index.cnf.filing import (
    assign_bits,
    bitmaps_of,
    kept_intervals,
    owners_of,
    rows_of,
)
from matchmill.papers.op_index.cnf.matching import CODE_SHIFT, CnfScratch, match_cnf_events
from matchmill.papers.op_index.counters import N_ROWS, add_rows
from matchmill.papers.op_index.filing import (
    Store,
    add_entries,
    bury,
    new_store,
    store_arrays,
    store_from_arrays,
    with_dimensions,
)
from matchmill.papers.op_index.operator_kinds import (
    OPERATORS,
    Filed,
    accepts_absence,
    filed_intervals,
)
from matchmill.papers.op_index.pivots import Frequencies, frequencies_of, frequencies_with
from matchmill.papers.op_index.search import PAIR

__all__ = ["OpIndexCnf"]


class OpIndexCnf:
    """Subscriptions in conjunctive normal form."""

    def __init__(
        self, segments: int | bool, frequencies: Frequencies, build_seconds: float = 0.0
    ) -> None:
        self._segments = segments
        self._frequencies = frequencies
        self._build_seconds = build_seconds
        self._candidates = 0
        self._clear()

    @classmethod
    def build(
        cls, table: CnfTable, statistics: Statistics | None = None, *, segments: int | bool = True
    ) -> OpIndexCnf:
        """`segments` as in `OpIndex.build`."""
        started = time.perf_counter()
        index = cls(segments, frequencies_of(statistics))
        index.insert(table)
        index._build_seconds = time.perf_counter() - started
        return index

    def _clear(self) -> None:
        self._store: Store = new_store(self._segments, CODE_SHIFT)
        self._table = _GrowingTable()
        self._is_checked = Growable(np.bool_)
        # Subscription i is row rows[k] of pivots[k], k from place_offsets[i] to the next offset.
        self._place_offsets = Growable(np.int64, np.zeros(1, np.int64))
        self._pivots = Growable(np.int64)
        self._rows = Growable(np.int64)
        self._known = new_id_table()
        self._n_dead = 0

    # -- changes ----------------------------------------------------------------------------------

    def insert(self, table: CnfTable) -> None:
        """Insert the clauses of a table."""
        ids = table.subscription_ids
        check_new(find_ids(self._known, ids), ids, "subscriptions")
        first = self._table.n_subscriptions
        numbers = np.arange(first, first + len(ids))
        self._file(table, numbers)
        self._table.extend(table)
        self._known = with_ids(self._known, ids, numbers)

    def delete(self, subscription_ids: np.ndarray) -> None:
        """Delete clauses by their ids."""
        self.bury(np.unique(subscription_ids))
        if 2 * self._n_dead > self._table.n_subscriptions:
            live = take_subscriptions(self._table.view(), np.flatnonzero(self._is_live()))
            emptied = self.emptied()
            self._frequencies = emptied._frequencies
            self._clear()
            self.insert(live)

    def bury(self, ids: np.ndarray) -> None:
        """Delete subscriptions, and leave them in the table, where all keep their positions."""
        numbers = find_ids(self._known, ids)
        check_known(numbers, "subscriptions")
        without_ids(self._known, ids)
        _, places = take_ranges(self._place_offsets.array, numbers)
        bury(self._store, self._pivots.array[places], self._rows.array[places])
        self._n_dead += len(ids)

    def emptied(self) -> OpIndexCnf:
        """Return an empty index of the same options, which knows what this one knows of events."""
        # Frequencies of subscriptions are counted again when these are inserted again.
        known = self._frequencies if self._frequencies.are_events else frequencies_of(None)
        return OpIndexCnf(self._segments, known)

    def table(self) -> CnfTable:
        """Return all subscriptions by their positions, also those that were deleted."""
        return self._table.view()

    def _is_live(self) -> np.ndarray:
        ids = self._table.view().subscription_ids
        is_live: np.ndarray = find_ids(self._known, ids) == np.arange(len(ids))
        return is_live

    def _file(self, table: CnfTable, numbers: np.ndarray) -> None:
        """Rows and entries of subscriptions with these numbers."""
        disjunctions = table.disjunctions()
        against = accepts_absence(disjunctions)
        n_dimensions = max(table.n_dimensions, len(self._store.bounds.floors))
        frequencies = frequencies_with(self._frequencies, table.dimensions, n_dimensions)
        bits = np.empty(table.n_disjunctions, np.int64)
        leads = np.empty(table.n_subscriptions, np.int64)
        assign_bits(table, against, frequencies.counts, bits, leads)
        subscriptions, pivots = rows_of(table, leads)
        filed = kept_intervals(filed_intervals(disjunctions), table, bits)
        store = with_dimensions(self._store, n_dimensions, filed)
        rows, row_numbers = add_rows(
            store.rows, pivots, bitmaps_of(table, bits)[subscriptions], numbers[subscriptions]
        )
        # Every interval once for each row of its subscription.
        owners = owners_of(table)[filed.rows]
        place_offsets = np.searchsorted(subscriptions, np.arange(table.n_subscriptions + 1))
        n_copies = np.diff(place_offsets)[owners]
        copies = np.repeat(np.arange(len(owners)), n_copies)
        _, places = take_ranges(place_offsets, owners)
        entries = Filed(*(a[copies] for a in filed))
        bit_of_predicate = np.repeat(bits, np.diff(table.disjunction_offsets))
        codes = row_numbers[places] << CODE_SHIFT | bit_of_predicate[entries.rows]
        self._store = add_entries(store._replace(rows=rows), entries, pivots[places], codes)
        self._frequencies = frequencies
        self._is_checked = self._is_checked.extended(bits < 0)
        self._place_offsets = self._place_offsets.extended(place_offsets[1:] + self._pivots.n)
        self._pivots = self._pivots.extended(pivots)
        self._rows = self._rows.extended(row_numbers)

    # -- matching ---------------------------------------------------------------------------------

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Ids of subscriptions in place of those of clauses."""
        store, table = self._store, self._table.view()
        scratch = self._scratch(events)
        is_used = False  # pages of zeros that are never written cost nothing

        def match_from(start: int, offsets: np.ndarray, out: np.ndarray) -> int:
            nonlocal is_used
            if is_used:  # of an event that is matched again, some may have been reported
                scratch.reported[:] = 0
            is_used = True
            done, n_looked_at = match_cnf_events(
                store.bounds,
                store.lists,
                store.rows,
                table,
                self._is_checked.array,
                events,
                start,
                scratch,
                offsets,
                out,
            )
            self._candidates += n_looked_at
            return done

        return collect_matches(events.n_events, table.n_subscriptions, match_from)

    def _scratch(self, events: EventBatch) -> CnfScratch:
        n_rows = int(self._store.rows.pivots[:, N_ROWS].max(initial=0))
        n_pairs = int(np.diff(events.offsets).max(initial=0))
        return CnfScratch(
            np.empty(n_rows, np.int32),
            np.empty(n_rows + 1, np.uint32),
            np.empty(int(self._store.lists.sizes.max(initial=0)), np.uint32),
            np.empty((n_pairs, PAIR), np.int64),
            np.empty((len(OPERATORS) * n_pairs, 2), np.int64),
            np.zeros(len(self._store.bounds.floors), np.int64),
            np.zeros(self._table.n_subscriptions, np.int64),
        )

    # -- files and figures ------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all that `from_arrays` needs."""
        return {
            **{f"store_{name}": a for name, a in store_arrays(self._store).items()},
            **{f"table_{name}": a for name, a in self._table.view()._asdict().items()},
            "is_live": self._is_live(),
            "is_checked": self._is_checked.array,
            "place_offsets": self._place_offsets.array,
            "place_pivots": self._pivots.array,
            "place_rows": self._rows.array,
            "frequencies": self._frequencies.counts,
            "are_events": np.array([self._frequencies.are_events]),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> OpIndexCnf:
        """Make the same again from its arrays."""
        store = store_from_arrays(
            {name[6:]: a for name, a in arrays.items() if name[:6] == "store_"}
        )
        variant = store.variant
        segments = variant.max_segments if variant.has_signatures else False
        frequencies = Frequencies(arrays["frequencies"], bool(arrays["are_events"][0]))
        index = cls(segments, frequencies)
        index._store = store
        index._table.extend(CnfTable(*(arrays[f"table_{name}"] for name in CnfTable._fields)))
        index._is_checked = Growable(np.bool_, arrays["is_checked"])
        index._place_offsets = Growable(np.int64, arrays["place_offsets"])
        index._pivots = Growable(np.int64, arrays["place_pivots"])
        index._rows = Growable(np.int64, arrays["place_rows"])
        live = np.flatnonzero(arrays["is_live"])
        index._known = with_ids(index._known, arrays["table_subscription_ids"][live], live)
        index._n_dead = len(arrays["is_live"]) - len(live)
        return index

    def stats(self) -> IndexStats:
        """`n_clauses` are subscriptions."""
        kept = (self._is_checked, self._place_offsets, self._pivots, self._rows)
        n_bytes = self._store.n_bytes + self._table.n_bytes + self._known.n_bytes
        n_bytes += sum(growable.data.nbytes for growable in kept)
        n_live = self._table.n_subscriptions - self._n_dead
        return IndexStats(n_live, n_bytes, self._build_seconds, self._candidates)


class _GrowingTable:
    """A CnfTable that grows at its end."""

    def __init__(self) -> None:
        empty = empty_cnf_table()
        self._columns = {name: Growable(a.dtype, a) for name, a in empty._asdict().items()}

    @property
    def n_subscriptions(self) -> int:
        return self._columns["subscription_ids"].n

    @property
    def n_bytes(self) -> int:
        return sum(column.data.nbytes for column in self._columns.values())

    def extend(self, table: CnfTable) -> None:
        for name, values in table._asdict().items():
            column = self._columns[name]
            if name.endswith("_offsets"):
                values = values[1:] + column.array[-1]
            self._columns[name] = column.extended(values)

    def view(self) -> CnfTable:
        return CnfTable(**{name: column.array for name, column in self._columns.items()})
