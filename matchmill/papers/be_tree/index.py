"""BE-Tree as an index: the paper's structure over clauses, insertion and deletion in place.

`build` cuts all clauses at once (the paper's BE-B) or inserts them one after the other (BE). Leaf
capacity is what there is to tune: it is given, or follows from the probability of a match by
Table 4, or is `DEFAULT_CAPACITY`. Between 20 and 80 there is little between them (1M clauses of
BE-Gen, cardinality 48, uniform or Zipf, 0.1% and 1% matching); 20 is the best of them for Zipf.

Matching leaves the tree as it is, in any number of threads. Changes are made in place, and `adjust`
is one: there is one writer, and no reader beside it.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, ClassVar

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable, empty_table
from matchmill.encoding.event_batch import EventBatch, IntervalEvents
from matchmill.errors import InputError
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.index.match_buffer import collect_matches
from matchmill.papers.be_tree.capacity import Feedback, capacity_for
from matchmill.papers.be_tree.compaction import compacted
from matchmill.papers.be_tree.interval_matching import match_wide_events
from matchmill.papers.be_tree.matching import match_events
from matchmill.papers.be_tree.parameters import (
    ADJUST_CAPACITY,
    AHEAD,
    BY_OPERATIONS,
    MAX_CAPACITY,
    N_DIMENSIONS,
    Parameters,
    check_positive,
    padded_settings,
    padded_weights,
)
from matchmill.papers.be_tree.scratch import RECYCLED, Scratch, new_scratch, with_room
from matchmill.papers.be_tree.slots import (
    N_LIVE,
    Slots,
    find_slots,
    new_slots,
    release_slots,
    take_slots,
    with_room_for,
)
from matchmill.papers.be_tree.stored_events import match_stored_events
from matchmill.papers.be_tree.tree import (
    IS_DUE,
    Tree,
    new_tree,
    nothing_sampled,
)
from matchmill.papers.be_tree.updates import (
    change,
    end_full_windows,
    end_windows_of_root,
    fill_root,
    table_words,
)
from matchmill.papers.common.array_index import flat_arrays, nested_arrays, total_bytes
from matchmill.papers.common.id_table import check_known, check_new
from matchmill.papers.common.pools import Rows, Spans, spans_with_room

__all__ = ["BeTree"]

_MIN_SIZE = 3
_NO_SLOTS = np.empty(0, np.int64)
_LARGEST_DIMENSION = (1 << 29) - 1  # a test has two bits for its kind beside it


class BeTree:
    """A tree of two-phase space cutting. Readers in any number of threads, or one writer."""

    name: ClassVar[str] = "be_tree"

    def __init__(self, tree: Tree, slots: Slots, build_seconds: float = 0.0) -> None:
        self._tree = tree
        self._slots = slots
        self._scratch: Scratch | None = None
        self._build_seconds = build_seconds
        self._candidates = 0
        self._feedback = Feedback()

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        max_capacity: int | None = None,
        matching_probability: float | None = None,
        min_size: int = _MIN_SIZE,
        self_adjust: bool = True,
        build: str = "batch",
        first: str = "popular",
        windows: str = "changes",
        threshold: float | None = None,
        alpha_subsumed: float = 1.0,
        alpha_covered: float = 1.0,
        beta: float = 1.0,
        gamma: float = 1.0,
        histogram_buckets: int = 0,
        exploration: float = 0.0,
        reinsert: bool = False,
        adjust_capacity: bool = False,
        ahead: bool = True,
        **options: Any,
    ) -> BeTree:
        """Build the index from a table.

        Parameters
        ----------
        table
            The clauses.
        statistics
            Not used.
        max_capacity
            Clauses in a leaf before it is cut; by default it is chosen by `matching_probability`.
        matching_probability
            How likely an event matches a clause, for Table 4.
        min_size
            Clauses that a dimension must have to partition a leaf.
        self_adjust
            Recycle p-nodes that rank low.
        build
            "batch", or "single" for one clause at a time.
        first
            Which dimensions partition a leaf first: "popular" ones as in the paper, or "rare" ones,
            which fewer events have.
        windows
            What fills the window of a p-node: "changes", or all "operations", events among them.
        threshold
            The Rank below which a p-node is recycled; None: 0, or losing twice the usual.
        alpha_subsumed, alpha_covered
            What a subsumed and a covered predicate count in Gain.
        beta, gamma
            What Gain and Loss count in Rank.
        histogram_buckets
            Estimate the Loss of a new p-node by a histogram of so many buckets; 0: it is nothing.
        exploration
            The share of choices of a partition that are made at random.
        reinsert
            Insert clauses again for which another p-node has come to rank higher.
        adjust_capacity
            Choose the leaf capacity by Table 4 from what has matched.
        ahead
            Prefetch memory, of which the paper says nothing.
        **options
            Ignored.
        """
        for name, value, choices in (
            ("build", build, ("batch", "single")),
            ("first", first, ("popular", "rare")),
            ("windows", windows, ("changes", "operations")),
        ):
            if value not in choices:
                raise InputError(f"{name} must be {' or '.join(choices)}, not {value!r}")
        if max_capacity is None:
            max_capacity = capacity_for(matching_probability)
        parameters = Parameters(
            max_capacity,
            min_size,
            self_adjust,
            first == "rare",
            windows == "operations",
            reinsert,
            adjust_capacity,
            histogram_buckets,
            ahead,
            alpha_subsumed,
            alpha_covered,
            beta,
            gamma,
            threshold,
            exploration,
        )
        parameters.check()
        started = time.perf_counter()
        index = cls(new_tree(parameters), new_slots())
        if build == "single":
            index.insert(table)
        else:
            index._insert_at_once(table)
        index._build_seconds = time.perf_counter() - started
        return index

    # -- matching ---------------------------------------------------------------------------------

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Match a batch of events."""
        settings = self._tree.settings
        keys = np.zeros(settings[N_DIMENSIONS], np.int64)
        return self._matches(partial(match_events, bool(settings[AHEAD])), events, keys)

    def match_intervals(self, events: IntervalEvents) -> ClauseMatches:
        """Match events that allow intervals of keys (section 3)."""
        spans = np.zeros((self._tree.settings[N_DIMENSIONS], 2), np.int64)
        return self._matches(match_wide_events, events, spans)

    def match_stored(
        self, subscriptions: IntervalEvents, *, both_ways: bool = False
    ) -> ClauseMatches:
        """Find the events of a tree that holds events, for each subscription (section 3).

        Parameters
        ----------
        subscriptions
            Intervals of keys that each subscription asks for on its dimensions.
        both_ways
            Whether the subscription must satisfy the event, too.
        """
        spans = np.zeros((self._tree.settings[N_DIMENSIONS], 3), np.int64)
        return self._matches(partial(match_stored_events, both_ways), subscriptions, spans)

    def _matches(
        self, kernel: Any, events: EventBatch | IntervalEvents, by_dimension: np.ndarray
    ) -> ClauseMatches:
        queue = np.empty(len(self._tree.nodes.cells), np.int32)

        def match_from(start: int, offsets: np.ndarray, out: np.ndarray) -> int:
            done, n_seen = kernel(self._tree, events, start, by_dimension, queue, offsets, out)
            self._candidates += n_seen
            return int(done)

        n_clauses = int(self._slots.state[N_LIVE])
        offsets, slots = collect_matches(events.n_events, n_clauses, match_from, np.int32)
        self._feedback.note(events.n_events, n_clauses, len(slots))
        return ClauseMatches(offsets, self._slots.ids[slots])

    # -- changes ----------------------------------------------------------------------------------

    def insert(self, table: ConjunctionTable) -> None:
        """Insert the clauses of a table."""
        self._change(table, self._take_slots(table), is_insertion=True)

    def delete(self, clause_ids: np.ndarray) -> None:
        """Delete clauses by their ids."""
        if len(clause_ids) > 1:
            clause_ids = np.unique(clause_ids)
        slots = find_slots(self._slots, clause_ids)
        check_known(slots)
        self._change(empty_table(), slots, is_insertion=False)
        release_slots(self._slots, slots)

    def is_adjustment_due(self) -> bool:
        """Tell whether matches have filled a window (with windows="operations")."""
        return bool(self._tree.sampled[IS_DUE])

    def adjust(self) -> int:
        """Recycle p-nodes that rank too low by recent events; return their number.

        With windows="operations" these are all whose windows are full, which otherwise waits for
        the next change below them. With windows="changes" they are the p-nodes of the root, whose
        windows end here.
        """
        self._adjust_capacity()
        by_operations = self._tree.settings[BY_OPERATIONS]
        end_windows = end_full_windows if by_operations else end_windows_of_root
        at = n_recycled = 0
        while True:
            scratch = self._scratch_with_dimensions()
            at = end_windows(self._tree, scratch, at)
            if at < 0:
                return n_recycled
            n_recycled += int(scratch.state[RECYCLED] >= 0)
            self._change(empty_table(), _NO_SLOTS, is_insertion=False)

    def set_capacity(self, max_capacity: int) -> None:
        """Change the leaf capacity for cuts to come (section 7.3.1)."""
        check_positive("max_capacity", max_capacity)
        self._tree.settings[MAX_CAPACITY] = max_capacity

    def _adjust_capacity(self) -> None:
        """Choose the capacity by the matches of recent events, if that is wanted."""
        if self._tree.settings[ADJUST_CAPACITY]:
            probability = self._feedback.matching_probability()
            if probability is not None:
                self.set_capacity(capacity_for(probability))

    def _insert_at_once(self, table: ConjunctionTable) -> None:
        """Insert the first clauses of an empty tree."""
        self._take_slots(table)
        n_words = table_words(table)
        self._tree = self._tree._replace(leaves=spans_with_room(self._tree.leaves, 2 * n_words))
        scratch = self._scratch_with_dimensions()
        fill_root(self._tree, scratch, table, n_words)
        self._change(empty_table(), _NO_SLOTS, is_insertion=False)
        self._tree = compacted(self._tree)
        self._scratch = None  # as long as all clauses

    def _change(self, table: ConjunctionTable, slots: np.ndarray, *, is_insertion: bool) -> None:
        self._adjust_capacity()
        scratch = self._scratch_with_dimensions()
        done, is_finished = 0, False
        while not is_finished:
            done, is_finished = change(self._tree, scratch, table, slots, is_insertion, done)
            if not is_finished:
                self._tree, scratch = with_room(self._tree, scratch)
                self._scratch = scratch

    def _take_slots(self, table: ConjunctionTable) -> np.ndarray:
        """Slots for the clauses of a table, if it can be inserted."""
        ids = table.clause_ids
        check_new(find_slots(self._slots, ids), ids)
        n_dimensions = table.n_dimensions
        if n_dimensions > _LARGEST_DIMENSION:
            raise InputError(
                f"dimension {n_dimensions - 1} is too large; be_tree goes to {_LARGEST_DIMENSION}"
            )
        self._slots = with_room_for(self._slots, len(ids))
        settings = self._tree.settings
        settings[N_DIMENSIONS] = max(int(settings[N_DIMENSIONS]), n_dimensions)
        n_slots = len(self._slots.ids)
        if len(self._tree.slot_nodes) < n_slots:
            slot_nodes = np.full(n_slots, -1, np.int32)
            slot_nodes[: len(self._tree.slot_nodes)] = self._tree.slot_nodes
            self._tree = self._tree._replace(slot_nodes=slot_nodes)
        return take_slots(self._slots, ids)

    def _scratch_with_dimensions(self) -> Scratch:
        if self._scratch is None:
            self._scratch = new_scratch(self._tree)
        elif len(self._scratch.touched) < self._tree.settings[N_DIMENSIONS]:
            self._tree, self._scratch = with_room(self._tree, self._scratch)
        return self._scratch

    # -- files and figures ------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all that `from_arrays` needs."""
        tree = self._tree
        named = {
            "slot_nodes": tree.slot_nodes,
            "settings": tree.settings,
            "weights": tree.weights,
        }
        for name in ("nodes", "partitions", "leaves", "directories"):
            named |= flat_arrays(getattr(tree, name), f"{name}_")
        return named | flat_arrays(self._slots, "slots_")

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> BeTree:
        """Make the same again from its arrays."""
        nodes, partitions = (nested_arrays(Rows, arrays, f"{n}_") for n in ("nodes", "partitions"))
        leaves, directories = (
            nested_arrays(Spans, arrays, f"{n}_") for n in ("leaves", "directories")
        )
        tree = Tree(
            nodes,
            partitions,
            leaves,
            directories,
            arrays["slot_nodes"],
            padded_settings(arrays["settings"]),
            padded_weights(arrays.get("weights")),
            *nothing_sampled(len(nodes.cells), len(partitions.cells)),
        )
        return cls(tree, nested_arrays(Slots, arrays, "slots_"))

    def stats(self) -> IndexStats:
        """Return the figures of this index."""
        n_bytes = total_bytes(self.arrays())
        n_clauses = int(self._slots.state[N_LIVE])
        return IndexStats(n_clauses, n_bytes, self._build_seconds, self._candidates)
