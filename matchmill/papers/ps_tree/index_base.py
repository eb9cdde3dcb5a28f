"""What PSTBloom and PSTHash share as classes: history, scratch, matching, files and figures.

    history    events that were counted at leaves: those of the statistics and those matched since
    seen       matched events per leaf, beside the counters from statistics; not saved

Scratch is as long as there are dimensions and costs more to make than an event to match, so a call
takes one that an earlier call has left, or a new one. Between calls all keys in it are 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.index.match_buffer import collect_matches
from matchmill.papers.common.array_index import flat_arrays, nested_arrays, total_bytes
from matchmill.papers.common.id_table import check_known, check_new, find_ids
from matchmill.papers.ps_tree.access_predicates import count_history
from matchmill.papers.ps_tree.clauses import Clauses
from matchmill.papers.ps_tree.forest import KEY_ELEMENTS, Forest

__all__ = ["PSTIndex", "Scratch"]

_CHUNK = 256
_LAYOUT = 2  # of what is saved; kernels take its numbers for addresses


class Scratch(NamedTuple):
    """What one call writes to."""

    keys: np.ndarray  # int64: the event's key per dimension
    narrow_keys: np.ndarray  # int32
    signatures: np.ndarray  # int64: where a dimension's signature is, 32 * word + size, or -1
    places: np.ndarray  # int64: candidates that are prefetched while others are checked


class _Arrays(Protocol):
    @property
    def forest(self) -> Forest: ...

    @property
    def clauses(self) -> Clauses: ...


A = TypeVar("A", bound=_Arrays)


class PSTIndex(Generic[A]):
    """Changes in place: matches may run side by side, but not beside a change."""

    name: ClassVar[str]
    array_type: ClassVar[type[Any]]
    n_pair_rows: ClassVar[int]  # rows of the kernel's scratch for the pairs of one event

    def __init__(self, arrays: A, history: int = 0) -> None:
        self._arrays = arrays
        self._seen = np.zeros(len(arrays.forest.leaves.cells), np.int64)
        self._history = history
        self._learned = history  # the part of it that is saved
        self._ahead = True
        self._build_seconds = 0.0
        self._candidates = 0
        self._spare: list[Scratch] = []
        self._elements = np.zeros(KEY_ELEMENTS, np.uint8)

    def configure(self, *, ahead: bool = True, **options: Any) -> None:
        """Set options of `build` that are not in the arrays."""
        self._ahead = ahead

    @property
    def n_clauses(self) -> int:
        """Clauses that are in the index."""
        return int(self._arrays.clauses.table.n_used[0])

    def _learn(self, statistics: Statistics | None) -> None:
        if statistics is not None and statistics.n_events > 0:
            count_history(self._arrays.forest, statistics)
            self._history = self._learned = statistics.n_events

    def _check_new(self, table: ConjunctionTable) -> None:
        check_new(find_ids(self._arrays.clauses.table, table.clause_ids), table.clause_ids)

    def _check_known(self, ids: np.ndarray) -> None:
        check_known(find_ids(self._arrays.clauses.table, ids))

    def _count_new_leaves(self) -> None:
        """Give counters to leaves for which room was made."""
        missing = len(self._arrays.forest.leaves.cells) - len(self._seen)
        if missing:
            self._seen = np.concatenate((self._seen, np.zeros(missing, np.int64)))

    # -- matching ---------------------------------------------------------------------------------

    def _kernel(self) -> Callable[..., tuple[int, int]]:
        """Return the kernel.

        kernel(arrays, events, start, seen, scratch, pairs, ahead, out_offsets, out) matches from
        event `start` on and returns the first event for which `out` had no room, and how many
        clauses were checked for those before.
        """
        raise NotImplementedError

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Match a batch of events."""
        scratch = self._take_scratch(len(self._arrays.forest.trees))
        longest = int(np.diff(events.offsets).max(initial=0))
        pairs = np.empty((self.n_pair_rows, 1 + longest), np.int64)

        kernel = self._kernel()

        def match_from(start: int, offsets: np.ndarray, out: np.ndarray) -> int:
            done, n_candidates = kernel(
                self._arrays, events, start, self._seen, scratch, pairs, self._ahead, offsets, out
            )
            self._candidates += n_candidates
            return done

        matches = collect_matches(events.n_events, self.n_clauses, match_from)
        self._spare.append(scratch)
        self._history += events.n_events
        return matches

    def _take_scratch(self, n_dimensions: int) -> Scratch:
        while self._spare:
            scratch = self._spare.pop()
            if len(scratch.keys) >= n_dimensions:
                return scratch
        return Scratch(
            np.zeros(n_dimensions, np.int64),
            np.zeros(n_dimensions, np.int32),
            np.full(n_dimensions, -1, np.int64),
            np.zeros(_CHUNK, np.int64),
        )

    # -- files and figures ------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all that `from_arrays` needs."""
        more = {"history": np.array([self._learned]), "layout": np.array([_LAYOUT])}
        return flat_arrays(self._arrays) | more

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Make the index again from its arrays."""
        if "layout" not in arrays or arrays["layout"].tolist() != [_LAYOUT]:
            raise InputError(
                f"this {cls.name} was saved by another version, which stores clauses in another "
                "way; open the folder with verify=True, and it is built again"
            )
        return cls(nested_arrays(cls.array_type, arrays), int(arrays["history"][0]))

    def stats(self) -> IndexStats:
        """Return the figures of this index."""
        n_bytes = total_bytes(flat_arrays(self._arrays)) + self._seen.nbytes
        return IndexStats(self.n_clauses, n_bytes, self._build_seconds, self._candidates)
