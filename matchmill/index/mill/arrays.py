"""The arrays that matching reads, with an accessor for each.

    slot s        a place to file clauses under. slot_places[s] says where its blocks are in
                  `words`, 0 if it has none
    entry         one clause under one slot
    block         entries of one slot and one shape, one after the other (`words.py`)
    dimension d   one row of `dimensions`, fields below

A clause is filed under one or several slots (`build/access.py`). What its slot implies is not
tested. All that a visit reads lies in one piece of memory.

Matching kernels get the addresses of these arrays (`kernels/addresses.py`), called `mill`, and read
each through its accessor: `words_of(mill)`. The dtype of an array is declared in `MillArrays` and
nowhere else; `ids_of` and `tests_of` read `words` in pieces of 32 and of 16 bits.
docs/MILL.md shows all arrays of a small example.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from matchmill.errors import InputError
from matchmill.kernels.addresses import (
    Form,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
    accessor,
    check_arrays,
)

__all__ = ["MillArrays", "check_mill"]

# Fields of a dimension, two lines of the cache. If its edges are neighbours, the code of a key is
# how far it is above BELOW_KEY, and that of LAST_KEY at most; else LAST_KEY is below BELOW_KEY. It
# has at most two columns (-1 for none); if one is a mask, it is the first, with a RANK_START.
EDGE_START, EDGE_STOP, BELOW_KEY, LAST_KEY = range(4)
NODE_START, USED_LEVELS, ROW_START, RANK_START = range(4, 8)
FIRST_WORD, N_WORDS, DEFAULT_ROW, FIRST_COLUMN, SECOND_COLUMN = range(8, 13)
N_FIELDS = 16
SECOND_LINE = 8  # the first field in the second line of the cache

# Fields of a pair: its dimensions, its first slot, slots for each code of the first dimension.
PAIR_FIRST, PAIR_SECOND, PAIR_SLOT, PAIR_WIDTH = range(4)
N_PAIR_FIELDS = 4

# Fields of `sizes`.
GROUP_START, N_SLOTS, N_MASKS, N_POINTS, N_SHARED, N_CLAUSES, N_ENTRIES = range(7)
N_SIZES = 7


class MillArrays(NamedTuple):
    """All arrays of an index, as they are saved."""

    sizes: Int64Array
    dimensions: Annotated[np.ndarray, Form(np.int64, N_FIELDS)]
    edges: Int64Array  # of all dimensions: the keys where codes begin
    row_of_code: Int32Array  # one per code: where its row is in `rows`
    rows: UInt64Array  # words of the truth table
    access_words: UInt64Array  # shared predicates that have a group
    default_truth: UInt64Array  # the truth table of the empty event
    ranks: UInt8Array  # one per code: its bit in masks
    default_values: Int32Array  # the values in the columns of the empty event
    pairs: Annotated[np.ndarray, Form(np.int64, N_PAIR_FIELDS)]
    absent_dimensions: Int32Array  # those with entries for events without them
    slot_places: Int64Array
    words: UInt64Array  # the blocks of all slots
    pool: Int32Array  # lows and highs of the intervals of general tests, in turn
    clause_ids: Int64Array  # empty if entries hold the ids themselves, else they hold places here


sizes_of = accessor(MillArrays, "sizes")
dimensions_of = accessor(MillArrays, "dimensions")
edges_of = accessor(MillArrays, "edges")
row_of_code_of = accessor(MillArrays, "row_of_code")
rows_of = accessor(MillArrays, "rows")
access_words_of = accessor(MillArrays, "access_words")
default_truth_of = accessor(MillArrays, "default_truth")
ranks_of = accessor(MillArrays, "ranks")
default_values_of = accessor(MillArrays, "default_values")
pairs_of = accessor(MillArrays, "pairs")
absent_dimensions_of = accessor(MillArrays, "absent_dimensions")
slot_places_of = accessor(MillArrays, "slot_places")
words_of = accessor(MillArrays, "words")
pool_of = accessor(MillArrays, "pool")
ids_of = accessor(MillArrays, "words", view_as=np.uint32)
tests_of = accessor(MillArrays, "words", view_as=np.uint16)


def check_mill(mill: MillArrays) -> None:
    """Check dtypes, contiguity, and that lengths agree; InputError if something does not.

    This reads no more than a few numbers: it is done whenever an index is built or opened.
    """
    check_arrays(mill)
    if len(mill.sizes) != N_SIZES:
        raise InputError(f"array 'sizes' must have {N_SIZES} numbers, not {len(mill.sizes)}")
    n_words = (int(mill.sizes[N_SHARED]) + 63) >> 6
    for name, expected in (
        ("slot_places", int(mill.sizes[N_SLOTS])),
        ("access_words", n_words),
        ("default_truth", n_words),
        ("edges", int(mill.dimensions[:, EDGE_STOP].max(initial=0))),
        ("pool", len(mill.pool) & ~1),
    ):
        found = len(getattr(mill, name))
        if found != expected:
            raise InputError(f"array {name!r} must have {expected:,} items, not {found:,}")
    n_columns = int(mill.dimensions[:, [FIRST_COLUMN, SECOND_COLUMN]].max(initial=0)) + 1
    if len(mill.default_values) < n_columns:
        raise InputError(f"array 'default_values' must have {n_columns:,} items or more")
