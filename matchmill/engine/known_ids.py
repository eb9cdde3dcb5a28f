"""The ids that were asked for, as Python objects: making them takes longer than matching.

    numbers    7 2 9
    objects    [..., 'u2', ..., 'u7', ..., None, …]   by number; None: nobody has asked for it yet

An id that was found once is found again by taking a pointer. Two such tables, by number and by
clause, are shared by all versions of the subscriptions of one engine. Any thread may read and fill
them: each entry can have one value only, and a table that is too short is replaced by a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

__all__ = ["KnownIds", "ObjectTable"]

Make: TypeAlias = Callable[[np.ndarray], list[Any]]

_MOST_KNOWN = 2_000_000  # objects in one table, of some 60 bytes each


class ObjectTable:
    """Number → object, made at first use."""

    __slots__ = ("_n_known", "_objects")

    def __init__(self) -> None:
        self._objects = np.empty(0, object)
        self._n_known = 0

    def set_of(self, numbers: np.ndarray, n: int, make: Make) -> set[Any]:
        """Return the objects of some numbers, which are below n, as a set."""
        if len(self._objects) >= n:
            found = set(self._objects[numbers].tolist())
            if None not in found:
                return found
        return set(self.list_of(numbers, n, make))

    def list_of(self, numbers: np.ndarray, n: int, make: Make) -> list[Any]:
        """Return the objects of some numbers, which are below n."""
        objects = self._objects
        if len(objects) < n or self._n_known > _MOST_KNOWN:
            objects = self._replaced(n)
        found: list[Any] = objects[numbers].tolist()
        if None in found:
            missing = np.unique(numbers[[each is None for each in found]])
            made = np.empty(len(missing), object)
            made[:] = make(missing)
            objects[missing] = made
            self._n_known += len(missing)
            found = objects[numbers].tolist()
        return found

    def _replaced(self, n: int) -> np.ndarray:
        objects = np.empty(max(n, len(self._objects)), object)
        if self._n_known > _MOST_KNOWN:
            self._n_known = 0
        else:
            objects[: len(self._objects)] = self._objects
        self._objects = objects
        return objects


class KnownIds:
    """The ids of one engine that were asked for."""

    def __init__(self) -> None:
        self.of_number = ObjectTable()
        self.of_clause = ObjectTable()
