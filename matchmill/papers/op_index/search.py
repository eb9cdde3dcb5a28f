"""From an event to the codes of the entries that it satisfies, one predicate list after the other.

    pair    dimension, key, the signature bits of both hashes, and which lists can hold the key at
            all: below the floor of a dimension nothing is AT_MOST, above its ceiling AT_LEAST

All of that is computed once per event, though every pivot is searched with it.

Lists are spread over all of memory, and a search waits for each line that it reads. So a pivot is
done in three steps, each of which asks for what the next one reads: the signatures (while the pivot
before is searched), the segments that signatures do not exclude, their entries.
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.conjunction_table import ABSENT_KEY
from matchmill.encoding.event_batch import EventBatch
from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import int64, kernel
from matchmill.papers.op_index.list_block import (
    CODE_MASK,
    DIMENSION_SHIFT,
    FOREST,
    HEAD,
    SHAPE,
    ends_of,
    entries_of,
    signature_bit,
)
from matchmill.papers.op_index.operator_kinds import AT_LEAST, AT_MOST, BETWEEN, EQUAL, Bounds
from matchmill.papers.op_index.prefix_trie import ENTRY

__all__ = ["PAIR", "prefetch_signatures", "read_pairs", "satisfied_in_pivot"]

PAIR = 6
_DIMENSION, _KEY, _VALUE_BIT, _DIMENSION_BIT, _IS_ABOVE, _IS_BELOW = range(PAIR)
_SIGNATURE_LINES = 4


@kernel
def read_pairs(events: EventBatch, e: int, bounds: Bounds, pairs: np.ndarray) -> int:
    """Write the pairs of an event that say something, and return how many."""
    floors, ceilings = bounds.floors, bounds.ceilings
    n = 0
    for k in range(events.offsets[e], events.offsets[e + 1]):
        dimension, key = int64(events.dimensions[k]), events.keys[k]
        if dimension < len(floors) and key != ABSENT_KEY:
            pairs[n, _DIMENSION] = dimension
            pairs[n, _KEY] = key
            pairs[n, _VALUE_BIT] = signature_bit(EQUAL, dimension, key)
            pairs[n, _DIMENSION_BIT] = signature_bit(BETWEEN, dimension, key)
            pairs[n, _IS_ABOVE] = key >= floors[dimension]
            pairs[n, _IS_BELOW] = key <= ceilings[dimension]
            n += 1
    return n


@kernel
def prefetch_signatures(cells: np.ndarray, blocks: np.ndarray) -> None:
    """Prefetch the signatures of some lists.

    How many they are is not known without reading them; most lists have all they may have.
    """
    for operator in range(len(blocks)):
        if blocks[operator] >= 0:
            for line in range(_SIGNATURE_LINES):
                # Behind the last block there may be less than that.
                prefetch(cells, min(blocks[operator] + 8 * line, len(cells) - 1))


@kernel
def _find_segments(
    cells: np.ndarray,
    block: int,
    operator: int,
    pairs: np.ndarray,
    n_pairs: int,
    out: np.ndarray,
    n_out: int,
) -> int:
    """Append (cell of a segment's bounds, pair) where the signature does not exclude the pair.

    The middle of the segment, where a search begins, is prefetched then.
    """
    shape = cells[block + SHAPE] & 255
    mask = (1 << shape) - 1
    ends, entries = ends_of(block, shape), entries_of(block, shape)
    bit_column = _VALUE_BIT if operator == EQUAL else _DIMENSION_BIT
    half = ENTRY // 2 if operator == BETWEEN else 1
    for p in range(n_pairs):
        segment = pairs[p, _DIMENSION] & mask
        if (cells[block + HEAD + segment] >> pairs[p, bit_column]) & 1 != 0:
            slot = ends + segment
            out[n_out, 0] = slot
            out[n_out, 1] = p
            n_out += 1
            prefetch(cells, entries + half * (cells[slot] + cells[slot + 1]))
    return n_out


@kernel
def _satisfied_codes(
    cells: np.ndarray,
    block: int,
    operator: int,
    pairs: np.ndarray,
    segments: np.ndarray,
    first: int,
    stop: int,
    out: np.ndarray,
    n_out: int,
) -> int:
    """Append the codes of satisfied entries in some segments of one list."""
    is_forest = cells[block + SHAPE] & FOREST != 0
    entries = entries_of(block, cells[block + SHAPE] & 255)
    width = ENTRY if operator == BETWEEN else 2
    is_above = 1 if operator == BETWEEN else 0
    for g in range(first, stop):
        slot, p = segments[g, 0], segments[g, 1]
        dimension, key = pairs[p, _DIMENSION], pairs[p, _KEY]
        # The first entry of the dimension with a value of `sought`, or above it for intervals.
        sought = 0 if operator == AT_LEAST else key
        low, high = cells[slot], cells[slot + 1]
        end = high
        while low < high:
            middle = (low + high) >> 1
            here = cells[entries + width * middle + 1] >> DIMENSION_SHIFT
            value = cells[entries + width * middle] - is_above
            if here < dimension or (here == dimension and value < sought):
                low = middle + 1
            else:
                high = middle
        at = entries + width * low
        stop = entries + width * end
        if operator == EQUAL:
            while at < stop and cells[at] == key and cells[at + 1] >> DIMENSION_SHIFT == dimension:
                out[n_out] = cells[at + 1] & CODE_MASK
                n_out += 1
                at += 2
        elif operator == AT_MOST:
            if pairs[p, _IS_ABOVE]:
                while at < stop and cells[at + 1] >> DIMENSION_SHIFT == dimension:
                    out[n_out] = cells[at + 1] & CODE_MASK
                    n_out += 1
                    at += 2
        elif operator == AT_LEAST:
            if pairs[p, _IS_BELOW]:
                while (
                    at < stop and cells[at] <= key and cells[at + 1] >> DIMENSION_SHIFT == dimension
                ):
                    out[n_out] = cells[at + 1] & CODE_MASK
                    n_out += 1
                    at += 2
        else:
            start = entries + ENTRY * cells[slot]
            at -= ENTRY
            while at >= start and cells[at + 1] >> DIMENSION_SHIFT == dimension:
                back = cells[at + 3]
                if cells[at + 2] >= key:
                    out[n_out] = cells[at + 1] & CODE_MASK
                    n_out += 1
                    if not is_forest:
                        back = 1
                if back == 0:
                    break
                at -= ENTRY * back
    return n_out


@kernel
def satisfied_in_pivot(
    cells: np.ndarray,
    blocks: np.ndarray,
    pairs: np.ndarray,
    n_pairs: int,
    segments: np.ndarray,
    out: np.ndarray,
) -> int:
    """Write the codes of all satisfied entries of a pivot, given the blocks of its lists."""
    n_segments = 0
    for operator in range(len(blocks)):
        if blocks[operator] >= 0:
            n_segments = _find_segments(
                cells, blocks[operator], operator, pairs, n_pairs, segments, n_segments
            )
    n_out = g = 0
    for operator in range(len(blocks)):
        block = blocks[operator]
        if block < 0:
            continue
        stop = g
        end = entries_of(block, cells[block + SHAPE] & 255)
        while stop < n_segments and block < segments[stop, 0] < end:
            stop += 1
        n_out = _satisfied_codes(cells, block, operator, pairs, segments, g, stop, out, n_out)
        g = stop
    return n_out
