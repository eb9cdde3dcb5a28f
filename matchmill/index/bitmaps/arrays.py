"""The arrays of chunked bitmaps.

    slot j         dimensions[j]: one of the dimensions that most clauses ask for. slots[d] is the
                   slot of dimension d, or -1
    edges          N_EDGES numbers per slot; unused ones are LAST_KEY. A key is in bucket b if b
                   edges are at or below it
    chunk c        clauses 512 c … 512 c + 511, the *lanes* of the chunk. ids[place] of each, or -1
                   for padding
    row r          512 bits, one per lane, 8 words: row_starts[j] is that of events without the
                   slot's dimension, then one row per bucket. A bit says that the clause may hold
                   for a key there; it has no predicate on the slot, or one that meets the bucket
    rows           of all chunks: row r of chunk c begins at word 8 (c n_rows + r)
    leads          two slots per chunk, those whose rows have the fewest bits there
    ranks[r]       how full the row is in all chunks: 0 … FULL; FULL if no bit is missing

A bound that is no edge leaves one bucket unsure: some keys there are inside and some are not.

    bounds         of lane l of chunk c: those for bound_offsets[c (512 + 1) + l] … [+ 1], counted
                   from chunk_starts[c]. A lower bound is its key, an upper one the key after it
    sides          of each: slot << 1 | is an upper bound. It fails if (bound > key) ^ is upper
    tail r of c    the bounds in the bucket of row r: tails[k], for k from
                   tail_offsets[c (2 n_rows + 1) + 2 r], counted from chunk_starts[c]; upper bounds
                   from [+ 1] on, to [+ 2]. Each is lane | place among the bounds of c << 9

What bounds cannot say (predicates of several intervals that leave a bucket unsure, predicates on
other dimensions) is *general*: bits of `general` per chunk, places ascending in general_places;
clause g of them has predicates general_offsets[g] … [g + 1], as in a ConjunctionTable.

A clause holds if its bit is set in the event's row of each slot, its bounds do not fail, and its
general predicates hold. Of a few clauses all bounds are looked at; of many, those in the tails of
the event's rows.
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
from matchmill.kernels.intrinsics import ROW_WORDS

__all__ = [
    "BOUNDS_COST",
    "CHUNK",
    "FULL",
    "LANE_BITS",
    "LAST_KEY",
    "MOST_SLOTS",
    "N_CHUNKS",
    "N_CLAUSES",
    "N_EDGES",
    "N_ROWS",
    "N_SIZES",
    "TAILS_COST",
    "BitmapArrays",
    "check_bitmaps",
]

CHUNK = 64 * ROW_WORDS  # clauses
LAST_KEY = (1 << 63) - 1
N_EDGES = 128  # room for edges of a slot, a power of two
MOST_SLOTS = 128
FULL = 31
LANE_BITS = 9  # of the lane in an item of `tails`

# Fields of `sizes`.
N_CHUNKS, N_ROWS, N_CLAUSES = range(3)
BOUNDS_COST, TAILS_COST = 3, 4  # of the bounds of a clause, of the tails of an event in a chunk
N_SIZES = 5


class BitmapArrays(NamedTuple):
    """All arrays of the index, as they are saved."""

    sizes: Int64Array
    dimensions: Int32Array
    slots: Int32Array  # one per dimension of the table
    edges: Int64Array
    row_starts: Int64Array  # one more than there are slots
    ranks: UInt8Array
    rows: UInt64Array
    leads: Int32Array
    chunk_starts: Int64Array  # one more than there are chunks
    bound_offsets: Int32Array
    bounds: Int64Array
    sides: UInt8Array
    tail_offsets: Int32Array
    tails: Int32Array
    ids: Int32Array
    clause_ids: Int64Array  # of `ids`, if those of clauses are too large
    general: UInt64Array
    general_places: Int64Array
    general_offsets: Int64Array
    general_dimensions: Int32Array
    general_intervals: Int64Array
    general_lows: Int64Array
    general_highs: Int64Array


sizes_of = accessor(BitmapArrays, "sizes")
dimensions_of = accessor(BitmapArrays, "dimensions")
slots_of = accessor(BitmapArrays, "slots")
edges_of = accessor(BitmapArrays, "edges")
row_starts_of = accessor(BitmapArrays, "row_starts")
ranks_of = accessor(BitmapArrays, "ranks")
rows_of = accessor(BitmapArrays, "rows")
leads_of = accessor(BitmapArrays, "leads")
chunk_starts_of = accessor(BitmapArrays, "chunk_starts")
bound_offsets_of = accessor(BitmapArrays, "bound_offsets")
bounds_of = accessor(BitmapArrays, "bounds")
sides_of = accessor(BitmapArrays, "sides")
tail_offsets_of = accessor(BitmapArrays, "tail_offsets")
tails_of = accessor(BitmapArrays, "tails")
ids_of = accessor(BitmapArrays, "ids")
general_of = accessor(BitmapArrays, "general")
general_places_of = accessor(BitmapArrays, "general_places")
general_offsets_of = accessor(BitmapArrays, "general_offsets")
general_dimensions_of = accessor(BitmapArrays, "general_dimensions")
general_intervals_of = accessor(BitmapArrays, "general_intervals")
general_lows_of = accessor(BitmapArrays, "general_lows")
general_highs_of = accessor(BitmapArrays, "general_highs")


def check_bitmaps(arrays: BitmapArrays) -> None:
    """Check dtypes, contiguity, and that lengths agree; InputError if something does not."""
    check_arrays(arrays)
    if len(arrays.sizes) != N_SIZES:
        raise InputError(f"array 'sizes' must have {N_SIZES} items, not {len(arrays.sizes)}")
    n_chunks, n_rows = int(arrays.sizes[N_CHUNKS]), int(arrays.sizes[N_ROWS])
    n_slots, n_places = len(arrays.dimensions), n_chunks * CHUNK
    n_general = len(arrays.general_places)
    for name, expected in (
        ("edges", n_slots * N_EDGES),
        ("row_starts", n_slots + 1),
        ("ranks", n_rows),
        ("rows", n_chunks * n_rows * ROW_WORDS),
        ("leads", 2 * n_chunks),
        ("chunk_starts", n_chunks + 1),
        ("bound_offsets", n_chunks * (CHUNK + 1)),
        ("bounds", _last(arrays.chunk_starts)),
        ("sides", len(arrays.bounds)),
        ("tail_offsets", n_chunks * (2 * n_rows + 1)),
        ("tails", len(arrays.bounds)),
        ("ids", n_places),
        ("clause_ids", n_places if len(arrays.clause_ids) else 0),
        ("general", n_chunks * ROW_WORDS),
        ("general_offsets", n_general + 1),
        ("general_dimensions", _last(arrays.general_offsets)),
        ("general_intervals", len(arrays.general_dimensions) + 1),
        ("general_lows", _last(arrays.general_intervals)),
        ("general_highs", len(arrays.general_lows)),
    ):
        found = len(getattr(arrays, name))
        if found != expected:
            raise InputError(f"array {name!r} must have {expected:,} items, not {found:,}")


def _last(offsets: Int64Array) -> int:
    return int(offsets[-1]) if len(offsets) else 0
