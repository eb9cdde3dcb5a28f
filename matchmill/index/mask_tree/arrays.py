"""The arrays of a mask tree.

    tree dimension j   dimensions[j]; the dimensions that most clauses ask for, the most selective
                       one first. slots[d] is the j of dimension d, or -1
    edges, codes       N_EDGES numbers per tree dimension. Bucket b begins at edge b - 1 and ends
                       before edge b; codes[b] is its byte. Unused edges are LAST_KEY
    place p            a clause: leaf p // 64, lane p % 64. ids[p], or -1 for padding
    bounds             of each place the exact range on each tree dimension: low, high, low, high, …
    block              128 bytes per tree dimension: the low codes of 64 lanes, then the high ones.
                       Of a leaf the lanes are clauses. Above the leaves they are the blocks one
                       level below: the least of their lows, the greatest of their highs
    levels[l]          the first block of level l; leaves are level 0. Lane i of block b of a level
                       is block 64 b + i of the level below
    unsure[leaf]       bits of clauses that codes cannot prove: predicates of several intervals, or
                       on other dimensions. Their places are general_places, ascending; clause g of
                       them has predicates general_offsets[g] … [g + 1], as in a ConjunctionTable

A byte stands for a range of keys:

    NO_LOW 0 | ABSENT 1 | FIRST_LOW 2 | buckets 3 … 252 | LAST_HIGH 254 | NO_HIGH 255

An event has ABSENT, or the code of the bucket of its key. A range has the codes of the buckets in
which it begins and ends, so codes can only make it wider:

    it may hold     low <= code <= high on every tree dimension
    it does hold    low <  code <  high on every tree dimension

No predicate is NO_LOW … NO_HIGH. A range that reaches to the ends of all keys is FIRST_LOW … or
… LAST_HIGH. Where many ranges begin or end at the same edge, the code before its bucket is left
free (a *gap*) and stands for the edge itself, so such ranges are always proved or excluded.
"""

from __future__ import annotations

from typing import NamedTuple

from matchmill.errors import InputError
from matchmill.kernels.addresses import (
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
    accessor,
    check_arrays,
)
from matchmill.kernels.intrinsics import LANES

__all__ = [
    "ABSENT",
    "FIRST_BUCKET",
    "FIRST_LOW",
    "LAST_BUCKET",
    "LAST_HIGH",
    "LAST_KEY",
    "NO_HIGH",
    "NO_LOW",
    "N_EDGES",
    "MaskTreeArrays",
    "check_tree",
]

NO_LOW, ABSENT, FIRST_LOW, FIRST_BUCKET = 0, 1, 2, 3
LAST_BUCKET, LAST_HIGH, NO_HIGH = 252, 254, 255
N_EDGES = 256  # room for edges, a power of two
LAST_KEY = (1 << 63) - 1


class MaskTreeArrays(NamedTuple):
    """All arrays of the index, as they are saved."""

    dimensions: Int32Array
    slots: Int32Array  # one per dimension of the table
    edges: Int64Array
    codes: UInt8Array
    levels: Int64Array  # one more than there are levels
    blocks: UInt8Array
    ids: Int32Array
    clause_ids: Int64Array  # of `ids`, if those of clauses are too large
    bounds: Int64Array
    unsure: UInt64Array  # one per leaf
    general_places: Int64Array
    general_offsets: Int64Array
    general_dimensions: Int32Array
    general_intervals: Int64Array
    general_lows: Int64Array
    general_highs: Int64Array


dimensions_of = accessor(MaskTreeArrays, "dimensions")
slots_of = accessor(MaskTreeArrays, "slots")
edges_of = accessor(MaskTreeArrays, "edges")
codes_of = accessor(MaskTreeArrays, "codes")
levels_of = accessor(MaskTreeArrays, "levels")
blocks_of = accessor(MaskTreeArrays, "blocks")
ids_of = accessor(MaskTreeArrays, "ids")
bounds_of = accessor(MaskTreeArrays, "bounds")
unsure_of = accessor(MaskTreeArrays, "unsure")
general_places_of = accessor(MaskTreeArrays, "general_places")
general_offsets_of = accessor(MaskTreeArrays, "general_offsets")
general_dimensions_of = accessor(MaskTreeArrays, "general_dimensions")
general_intervals_of = accessor(MaskTreeArrays, "general_intervals")
general_lows_of = accessor(MaskTreeArrays, "general_lows")
general_highs_of = accessor(MaskTreeArrays, "general_highs")


def check_tree(tree: MaskTreeArrays) -> None:
    """Check dtypes, contiguity, and that lengths agree; InputError if something does not."""
    check_arrays(tree)
    n, n_leaves, n_general = len(tree.dimensions), len(tree.unsure), len(tree.general_places)
    n_blocks = int(tree.levels[-1]) if len(tree.levels) > 1 else 0
    n_predicates = int(tree.general_offsets[-1]) if len(tree.general_offsets) else 0
    for name, expected in (
        ("edges", n * N_EDGES),
        ("codes", n * N_EDGES),
        ("blocks", n_blocks * n * 2 * LANES),
        ("ids", n_leaves * LANES),
        ("clause_ids", n_leaves * LANES if len(tree.clause_ids) else 0),
        ("bounds", n_leaves * LANES * 2 * n),
        ("general_offsets", n_general + 1),
        ("general_dimensions", n_predicates),
        ("general_intervals", n_predicates + 1),
        ("general_lows", int(tree.general_intervals[-1]) if len(tree.general_intervals) else 0),
        ("general_highs", len(tree.general_lows)),
    ):
        found = len(getattr(tree, name))
        if found != expected:
            raise InputError(f"array {name!r} must have {expected:,} items, not {found:,}")
    if len(tree.levels) < 2 or int(tree.levels[1]) != n_leaves:
        raise InputError("array 'levels' does not fit the number of leaves")
