"""From keys to codes, and from codes to slots: one scalar helper each, for all kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.index.mill.arrays import (
    BELOW_KEY,
    EDGE_START,
    EDGE_STOP,
    LAST_KEY,
    NODE_START,
    PAIR_SLOT,
    PAIR_WIDTH,
    SECOND_LINE,
    USED_LEVELS,
)
from matchmill.index.mill.words import level_word
from matchmill.index.predicate_codes import code_of
from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import int64, kernel

__all__ = [
    "MOST_LEVELS",
    "code_of_key",
    "find_levels",
    "group_slot",
    "is_even",
    "pair_slot",
    "prefetch_fields",
]

MOST_LEVELS = 64  # of a dimension


@kernel
def prefetch_fields(fields: np.ndarray, d: Any) -> None:
    """Start to load both lines of a dimension."""
    prefetch(fields, d)
    prefetch(fields, (d, SECOND_LINE))


@kernel
def is_even(fields: np.ndarray, d: int) -> bool:
    """Return whether the edges of a dimension are neighbours, so that no search is needed."""
    return bool(fields[d, BELOW_KEY] <= fields[d, LAST_KEY])


@kernel
def even_code(below: int, last_key: int, key: int) -> int:
    """Return the code of a key on a dimension whose edges are neighbours."""
    return min(max(key, below), last_key) - below


@kernel
def code_of_key(fields: np.ndarray, edges: np.ndarray, d: int, key: int) -> int:
    """Return the code of a key on a dimension."""
    below, last_key = fields[d, BELOW_KEY], fields[d, LAST_KEY]
    code = even_code(below, last_key, key)
    if last_key < below:
        code = code_of(edges, fields[d, EDGE_START], fields[d, EDGE_STOP], key)
    return code


@kernel
def find_levels(fields: np.ndarray, d: int, out_levels: np.ndarray) -> int:
    """Write the levels in use of a dimension (`level_word`), the lowest first; return how many.

    Level 0 is among them unless there are none. Code 0 visits no other.
    """
    slot, levels = fields[d, NODE_START], fields[d, USED_LEVELS]
    last_code = fields[d, EDGE_STOP] - fields[d, EDGE_START]
    n = 0
    level = int64(0)
    while levels != 0:
        out_levels[n] = level_word(slot, level)
        n += levels & 1
        slot += (last_code >> level) + 1
        level += 1
        levels >>= 1
    return int(n)


@kernel
def group_slot(group_start: int, word: int) -> int:
    """Return the group slot of bit 0 in a word of the truth table; those of other bits follow."""
    return group_start + (word << 6)


@kernel
def pair_slot(pairs: np.ndarray, p: int, first: int, second: int) -> int:
    """Return the slot of two codes on the dimensions of a pair."""
    return int(pairs[p, PAIR_SLOT] + first * pairs[p, PAIR_WIDTH] + second)
