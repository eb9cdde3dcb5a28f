"""A quick call for one event: the arrays are handed over as addresses.

    places    for each array of MillArrays, BlockViews, EventState and for the output: address, rows

A call of a kernel takes about 0.1 µs for each array that it is given, and a single event needs 27,
which is more than the matching itself at a thousand subscriptions. The caller keeps all of the
arrays alive as long as their addresses are in use. There is nothing like it without compilation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from matchmill._jit import kernel
from matchmill.indexes.mill.arrays import N_FIELDS, MillArrays
from matchmill.indexes.mill.machine import pointer
from matchmill.indexes.mill.one_event import BlockViews, EventState, match_pairs

__all__ = ["places_of", "quick_match"]


def places_of(
    mill: MillArrays, views: BlockViews, state: EventState, out: np.ndarray
) -> np.ndarray:
    arrays = (*mill, *views, *state, out)
    return np.array([n for a in arrays for n in (a.ctypes.data, len(a))], np.int64)


@kernel
def _array(places: np.ndarray, n: int, dtype: Any) -> Any:
    return carray(pointer(places[2 * n]), places[2 * n + 1], dtype)


@kernel
def _table(places: np.ndarray, n: int, width: int) -> Any:
    return carray(pointer(places[2 * n]), (places[2 * n + 1], width), np.int64)


@kernel
def quick_match(places: np.ndarray, pairs: bytes) -> tuple[int, int, int]:
    """`match_pairs`."""
    mill = MillArrays(
        _array(places, 0, np.int64),
        _table(places, 1, N_FIELDS),
        _array(places, 2, np.int64),
        _array(places, 3, np.int32),
        _array(places, 4, np.uint64),
        _array(places, 5, np.uint64),
        _array(places, 6, np.uint64),
        _array(places, 7, np.int32),
        _array(places, 8, np.int64),
        _array(places, 9, np.uint8),
        _array(places, 10, np.int32),
        _table(places, 11, 4),
        _array(places, 12, np.int32),
        _array(places, 13, np.int64),
        _array(places, 14, np.uint64),
        _array(places, 15, np.int32),
        _array(places, 16, np.int64),
    )
    views = BlockViews(_array(places, 17, np.uint32), _array(places, 18, np.uint16))
    state = EventState(
        _array(places, 19, np.uint64),
        _array(places, 20, np.int32),
        _array(places, 21, np.int32),
        _array(places, 22, np.int64),
        _array(places, 23, np.int64),
        _array(places, 24, np.int32),
        _array(places, 25, np.int64),
    )
    return match_pairs(mill, views, state, pairs, _array(places, 26, np.int32))
