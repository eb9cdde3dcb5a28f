"""What indexes of several papers share as classes: arrays in and out, scratch, figures.

    class KIndex(ArrayIndex[KIndexArrays, None]):
        name, array_type    its name in the registry; the NamedTuple of its arrays
        build               from a table
        _new_scratch        arrays that a call writes to; calls that are over leave theirs to others
        _match_events       its kernel, called as `index.match_buffer.collect_matches` wants it

An index whose arrays are named tuples inside named tuples is saved by their paths: the array
`rows` of the field `holds` is `holds_rows`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, get_type_hints

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches, IndexStats
from matchmill.index.match_buffer import collect_matches

__all__ = ["ArrayIndex", "flat_arrays", "nested_arrays", "total_bytes"]


def flat_arrays(nested: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """Name the arrays in named tuples of named tuples by their paths."""
    named: dict[str, np.ndarray] = {}
    for field, value in zip(nested._fields, nested, strict=True):
        path = f"{prefix}{field}"
        named |= {path: value} if isinstance(value, np.ndarray) else flat_arrays(value, f"{path}_")
    return named


def nested_arrays(kind: Any, named: dict[str, np.ndarray], prefix: str = "") -> Any:
    """Make a named tuple of this class from what `flat_arrays` returned."""
    hints = get_type_hints(kind)
    return kind(
        *(
            named[f"{prefix}{field}"]
            if hints[field] is np.ndarray
            else nested_arrays(hints[field], named, f"{prefix}{field}_")
            for field in kind._fields
        )
    )


def total_bytes(arrays: dict[str, np.ndarray]) -> int:
    """Return the bytes of arrays by name."""
    return sum(array.nbytes for array in arrays.values())


class _Arrays(Protocol):
    @property
    def clause_ids(self) -> np.ndarray: ...


A = TypeVar("A", bound=_Arrays)
S = TypeVar("S")


class ArrayIndex(Generic[A, S]):
    """An index that is all arrays: built once, then only read, by any number of threads."""

    name: ClassVar[str]
    array_type: ClassVar[type[Any]]

    def __init__(self, arrays: A, build_seconds: float = 0.0) -> None:
        self._arrays = arrays
        self._build_seconds = build_seconds
        self._candidates = 0
        self._spare: list[S] = []  # of calls that are over; taking from a list is atomic

    def _new_scratch(self) -> S:
        raise NotImplementedError

    def _match_events(
        self, scratch: S, events: EventBatch, start: int, offsets: np.ndarray, out: np.ndarray
    ) -> tuple[int, int]:
        """Match from `start` on; the first event for which `out` had no room, and candidates."""
        raise NotImplementedError

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Match a batch of events."""
        try:
            scratch = self._spare.pop()
        except IndexError:
            scratch = self._new_scratch()

        def match_from(start: int, offsets: np.ndarray, out: np.ndarray) -> int:
            done, n_candidates = self._match_events(scratch, events, start, offsets, out)
            self._candidates += n_candidates
            return done

        matches = collect_matches(events.n_events, len(self._arrays.clause_ids), match_from)
        self._spare.append(scratch)
        return matches

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all that `from_arrays` needs."""
        return flat_arrays(self._arrays)

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Make the index again from its arrays."""
        return cls(nested_arrays(cls.array_type, arrays))

    def stats(self) -> IndexStats:
        """Return the figures of this index."""
        n_clauses = len(self._arrays.clause_ids)
        n_bytes = total_bytes(self.arrays())
        return IndexStats(n_clauses, n_bytes, self._build_seconds, self._candidates)
