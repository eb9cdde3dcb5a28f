"""What indexes of several papers share as classes: arrays in and out, scratch, figures.

    class Sift(ArrayIndex[SiftArrays]):
        name, array_type    its name in the registry; the NamedTuple of its arrays
        build               from a table
        _new_scratch        arrays that a call writes to; calls that are over leave theirs to others
        _kernel             kernel(arrays, events, start, *scratch, out_offsets, out) matches from
                            event `start` on and returns the first event for which `out` had no
                            room, and how many candidates it looked at for those before

An index whose arrays are named tuples inside named tuples is saved by their paths: the array
`rows` of the field `holds` is `holds_rows`.
"""

from __future__ import annotations

from collections.abc import Callable
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


class ArrayIndex(Generic[A]):
    """An index that is all arrays: built once, then only read, by any number of threads."""

    name: ClassVar[str]
    array_type: ClassVar[type[Any]]

    def __init__(self, arrays: A, build_seconds: float = 0.0) -> None:
        self._arrays = arrays
        self._build_seconds = build_seconds
        self._candidates = 0
        # Scratch of calls that are over. Taking from a list is atomic.
        self._spare: list[tuple[Any, ...]] = []

    def _new_scratch(self) -> tuple[Any, ...]:
        return ()

    def _kernel(self) -> Callable[..., tuple[int, int]]:
        raise NotImplementedError

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Match a batch of events."""
        try:
            scratch = self._spare.pop()
        except IndexError:
            scratch = self._new_scratch()

        kernel = self._kernel()

        def match_from(start: int, offsets: np.ndarray, out: np.ndarray) -> int:
            done, n_candidates = kernel(self._arrays, events, start, *scratch, offsets, out)
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
