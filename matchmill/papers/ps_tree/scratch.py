"""What `pst_bloom` and `pst_hash` share as classes: arrays as files, and scratch to match with.

Scratch is as long as there are dimensions and costs more to make than an event to match, so calls
take one that an earlier call has left, or a new one. Between calls all keys in it are 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.errors import InputError
from matchmill.kernels.jit import kernel
from matchmill.papers.ps_tree.id_table import IdTable, find_id

__all__ = ["Scratch", "ScratchPool", "check_known", "check_new", "flat_arrays", "nested_arrays"]

_CHUNK = 256


class Scratch(NamedTuple):
    keys: np.ndarray  # int64: the event's key a dimension
    narrow_keys: np.ndarray  # int32
    signatures: np.ndarray  # int64: where a dimension's signature is, 32 * word + size, or -1
    places: np.ndarray  # int64: candidates that are fetched from memory while others are checked


class ScratchPool:
    def __init__(self) -> None:
        self._free: list[Scratch] = []

    def take(self, n_dimensions: int) -> Scratch:
        while self._free:
            scratch = self._free.pop()
            if len(scratch.keys) >= n_dimensions:
                return scratch
        return Scratch(
            np.zeros(n_dimensions, np.int64),
            np.zeros(n_dimensions, np.int32),
            np.full(n_dimensions, -1, np.int64),
            np.zeros(_CHUNK, np.int64),
        )

    def give(self, scratch: Scratch) -> None:
        self._free.append(scratch)


def flat_arrays(nested: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """The arrays in named tuples of named tuples, by their path."""
    named: dict[str, np.ndarray] = {}
    for field, value in zip(nested._fields, nested, strict=True):
        path = f"{prefix}{field}"
        named |= {path: value} if isinstance(value, np.ndarray) else flat_arrays(value, f"{path}_")
    return named


def nested_arrays(like: Any, named: dict[str, np.ndarray], prefix: str = "") -> Any:
    """The inverse of `flat_arrays`, given something of the same structure."""
    return type(like)(
        *(
            named[f"{prefix}{field}"]
            if isinstance(value, np.ndarray)
            else nested_arrays(value, named, f"{prefix}{field}_")
            for field, value in zip(like._fields, like, strict=True)
        )
    )


def check_new(known: IdTable, table: ConjunctionTable) -> None:
    ids = table.clause_ids
    n_known = count_known(known.cells, ids)
    if n_known or (len(ids) > 1 and len(np.unique(ids)) < len(ids)):
        raise InputError(
            f"{n_known} of these {len(ids)} clauses are in the index, or some come twice; none was "
            "inserted: delete them first, or give other ids"
        )


def check_known(known: IdTable, ids: np.ndarray) -> None:
    n_missing = len(ids) - count_known(known.cells, ids)
    if n_missing:
        raise InputError(
            f"{n_missing} of these {len(ids)} clauses are not in the index; none was deleted"
        )


@kernel
def count_known(cells: np.ndarray, ids: np.ndarray) -> int:
    n = 0
    for k in range(len(ids)):
        if find_id(cells, ids[k]) >= 0:
            n += 1
    return n
