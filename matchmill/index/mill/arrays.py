"""The arrays that matching reads, and how they are put together.

    entry        one clause under one slot
    slot s       its entries are in `words`: slot_places[s] is place << 24 | length, or 0 if
                 there are none. They stand in blocks, one after the other, each with entries of
                 one shape:

    block        header       n entries << 40 | folded << 39 | tests an entry << 23 |
                              kind of privates << 21 | privates an entry << 1 |
                              whether another block follows
                 masks        64 bits each, only if it is folded: which tests of the dictionary
                              before it an entry needs (`folding.py`); it has no others
                 tests        16 bits each, an entry's in a row, the least likely first; padded
                              with the one that is always true, in the end to a full 32 bits
                 ids          32 bits each: the clause (or its place in `clause_ids`, if that is
                              not empty); then padded to full 64 bits
                 privates     64 bits each, an entry's in a row; their kind says which tests
                              there may be (`privates.py`)
    dictionary   header       the same with folded, no entries, and the number of its tests
                 tests        padded to full 64 bits

    dimension d  one row of `dimensions`, fields below

Matching kernels get `mill_places`: the places (`machine.py`) of all these arrays in the order of
MillArrays, and then of BlockViews.

A clause is filed under one or several slots (`access.py`). What its slot implies is not tested. All
that a visit reads lies in one piece of memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchmill.kernels.intrinsics import places_of

__all__ = ["BlockViews", "MillArrays", "mill_places", "views_of"]

# Fields of a dimension, two lines of the cache. If its edges are neighbours, the code of a key is
# how far it is above BELOW_KEY, and that of LAST_KEY at most; else LAST_KEY is below BELOW_KEY. It
# has at most two columns (-1 for none); if one is a mask, it is the first, with a RANK_START.
EDGE_START, EDGE_STOP, BELOW_KEY, LAST_KEY = range(4)
NODE_START, USED_LEVELS, ROW_START, RANK_START = range(4, 8)
FIRST_WORD, N_WORDS, DEFAULT_ROW, FIRST_COLUMN, SECOND_COLUMN = range(8, 13)
N_FIELDS = 16

# Fields of `sizes`.
GROUP_START, N_SLOTS, N_MASKS, N_POINTS, N_SHARED, N_CLAUSES, N_ENTRIES = range(7)

# Numbers of the arrays among their places.
SIZES, DIMENSIONS, EDGES, ROW_OF_CODE, ROWS, ACCESS_WORDS, DEFAULT_TRUTH = range(7)
RANKS, DEFAULT_VALUES, PAIRS, ABSENT_DIMENSIONS = range(7, 11)
SLOT_PLACES, WORDS, POOL, CLAUSE_IDS, IDS, TESTS = range(11, 17)
PAIR_WIDTH = 4

# Of the header of a block.
MOST_TESTS = 0xFFFF
FOLDED_BIT = 39


class MillArrays(NamedTuple):
    sizes: np.ndarray  # int64
    dimensions: np.ndarray  # int64, a row a dimension
    edges: np.ndarray  # int64
    row_of_code: np.ndarray  # int32
    rows: np.ndarray  # uint64
    access_words: np.ndarray  # uint64: shared predicates that have a group
    default_truth: np.ndarray  # uint64: the truth table of the empty event
    ranks: np.ndarray  # uint8
    default_values: np.ndarray  # int32: the values in the columns of the empty event
    pairs: np.ndarray  # int64, four a pair: two dimensions, first slot, slots of a code
    absent_dimensions: np.ndarray  # int32: those with entries for events without them
    slot_places: np.ndarray  # int64
    words: np.ndarray  # uint64: the blocks
    pool: np.ndarray  # int32
    clause_ids: np.ndarray  # int64: empty if entries hold the ids themselves


class BlockViews(NamedTuple):
    """The blocks in pieces of 32 and of 16 bits."""

    ids: np.ndarray
    tests: np.ndarray


def views_of(mill: MillArrays) -> BlockViews:
    return BlockViews(mill.words.view(np.uint32), mill.words.view(np.uint16))


def mill_places(mill: MillArrays, views: BlockViews) -> Any:
    return places_of(*mill, *views)
