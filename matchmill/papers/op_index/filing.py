"""Lists, rows and bounds of an OpIndex together, and how they change.

`OpIndex` counts and `OpIndexCnf` clears bits, but both file entries under pivots in the same way; a
`Variant` says what differs in the layout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.errors import InputError
from matchmill.papers.common.pools import Spans, spans_with_room
from matchmill.papers.op_index.counters import (
    DEAD,
    N_DEAD,
    N_ROWS,
    START,
    Rows,
    free_dead_rows,
    new_rows,
    with_pivots,
)
from matchmill.papers.op_index.list_block import DIMENSION_SHIFT, entry_width
from matchmill.papers.op_index.lists import (
    Lists,
    merge_entries,
    new_lists,
    room_for,
    sweep_pivot,
)
from matchmill.papers.op_index.operator_kinds import (
    AT_MOST,
    BETWEEN,
    OPERATORS,
    Bounds,
    Filed,
    bounds_with,
    classify,
    new_bounds,
)

__all__ = [
    "SEGMENTS",
    "Store",
    "Variant",
    "add_entries",
    "bury",
    "new_store",
    "segments_of",
    "store_arrays",
    "store_from_arrays",
    "with_dimensions",
]

SEGMENTS = 32  # of the paper, section 7.1
_MOST_SEGMENTS = 1 << 16
_DEAD_SHARE = 4  # a pivot is swept when one in so many rows is dead


class Variant(NamedTuple):
    """What distinguishes the forms of the index."""

    max_segments: int
    has_signatures: bool
    code_shift: int  # code >> code_shift is a row


class Store(NamedTuple):
    """All arrays of the index."""

    variant: Variant
    bounds: Bounds
    lists: Lists
    rows: Rows

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays."""
        return sum(a.nbytes for a in store_arrays(self).values())


def segments_of(segments: int | bool) -> int:
    """Check the option `segments`: a power of two, or False for none."""
    if isinstance(segments, bool):
        return SEGMENTS if segments else 1
    if not isinstance(segments, int) or segments < 1 or segments & (segments - 1):
        raise InputError(f"segments is a power of two, or False for OpIndex-BS, not {segments!r}")
    if segments > _MOST_SEGMENTS:
        raise InputError(f"segments is a power of two up to {_MOST_SEGMENTS}, not {segments}")
    return segments


def new_store(segments: int | bool, code_shift: int) -> Store:
    """Make an empty store."""
    variant = Variant(segments_of(segments), segments is not False, code_shift)
    return Store(variant, new_bounds(), new_lists(), new_rows())


def with_dimensions(store: Store, n_dimensions: int, filed: Filed) -> Store:
    """With pivots and bounds for so many dimensions."""
    n_pivots = n_dimensions + 1
    lists = store.lists
    missing = n_pivots - len(lists.heads)
    if missing > 0:
        lists = lists._replace(
            heads=np.concatenate((lists.heads, np.full((missing, len(OPERATORS)), -1))),
            sizes=np.concatenate((lists.sizes, np.zeros(missing, np.int64))),
        )
    return store._replace(
        bounds=bounds_with(store.bounds, n_dimensions, filed),
        lists=lists,
        rows=with_pivots(store.rows, n_pivots),
    )


# -- entries --------------------------------------------------------------------------------------


def add_entries(store: Store, filed: Filed, pivots: np.ndarray, codes: np.ndarray) -> Store:
    """Add an entry for each interval, under its pivot. The lists are sorted and merged once."""
    operators = classify(filed, store.bounds)
    is_first = int(store.lists.blocks.state[0]) == 0
    store, n_longest = _with_room(store, operators, pivots, is_first)
    scratch = np.empty(n_longest, np.int64)
    for operator in OPERATORS:
        chosen = np.flatnonzero(operators == operator)
        if len(chosen) == 0:
            continue
        dimensions = filed.dimensions[chosen]
        values = (filed.highs if operator == AT_MOST else filed.lows)[chosen]
        highs = filed.highs[chosen]
        order = np.arange(len(chosen))
        if operator == BETWEEN:
            order = order[_stable_order(-highs)]
        for keys in (values, dimensions, pivots[chosen]):
            order = order[_stable_order(keys[order])]
        entries = np.zeros((len(chosen), entry_width(operator)), np.int64)
        entries[:, 0] = values[order]
        entries[:, 1] = dimensions[order].astype(np.int64) << DIMENSION_SHIFT
        entries[:, 1] |= codes[chosen[order]]
        if operator == BETWEEN:
            entries[:, 2] = highs[order]
        _merge(store, operator, pivots[chosen[order]], entries, is_first, scratch)
    return store


def _with_room(
    store: Store, operators: np.ndarray, pivots: np.ndarray, is_first: bool
) -> tuple[Store, int]:
    """With room for entries of these operators and pivots, and the longest list that moves."""
    room = longest = 0
    for operator in OPERATORS:
        touched, counts = _counted(pivots[operators == operator], len(store.lists.heads))
        n_exact, n_spans, n_longest = room_for(
            store.lists, operator, touched, counts, store.variant.max_segments
        )
        room += n_exact if is_first else n_spans
        longest = max(longest, n_longest)
    blocks = spans_with_room(store.lists.blocks, room)
    return store._replace(lists=store.lists._replace(blocks=blocks)), longest


def _stable_order(keys: np.ndarray) -> np.ndarray:
    """NumPy sorts short integers by their digits, which is several times faster."""
    lowest = int(keys.min())
    if int(keys.max()) - lowest < 1 << 16:
        keys = (keys - lowest).astype(np.uint16)
    return np.argsort(keys, kind="stable")


def _counted(pivots: np.ndarray, n_pivots: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct pivots, ascending, and how often each is there."""
    if len(pivots) < n_pivots:
        return np.unique(pivots, return_counts=True)
    counts = np.bincount(pivots)
    touched = np.flatnonzero(counts)
    return touched, counts[touched]


def _merge(
    store: Store,
    operator: int,
    pivots: np.ndarray,
    entries: np.ndarray,
    is_first: bool,
    scratch: np.ndarray,
) -> None:
    starts = np.flatnonzero(np.concatenate(([True], np.diff(pivots) != 0)))
    merge_entries(
        store.lists,
        operator,
        pivots[starts],
        np.append(starts, len(pivots)),
        entries.reshape(-1),
        store.variant.max_segments,
        store.variant.has_signatures,
        is_first,
        scratch,
    )


# -- deletion -------------------------------------------------------------------------------------


def bury(store: Store, pivots: np.ndarray, rows: np.ndarray) -> None:
    """Rows count for nothing from now on; a pivot with many of them is swept."""
    records = store.rows.pivots
    store.rows.initial.cells[records[pivots, START] + rows] = DEAD
    np.add.at(records[:, N_DEAD], pivots, 1)
    for pivot in np.unique(pivots):
        if records[pivot, N_DEAD] * _DEAD_SHARE > records[pivot, N_ROWS]:
            initial = store.rows.initial.cells[records[pivot, START] :]
            sweep_pivot(
                store.lists,
                pivot,
                initial,
                DEAD,
                store.variant.code_shift,
                store.variant.has_signatures,
            )
            free_dead_rows(store.rows, pivot)


# -- files ----------------------------------------------------------------------------------------


def store_arrays(store: Store) -> dict[str, np.ndarray]:
    """Return the arrays of a store by name."""
    return {
        "variant": np.array(store.variant, np.int64),
        **store.bounds._asdict(),
        "heads": store.lists.heads,
        "sizes": store.lists.sizes,
        **{f"blocks_{name}": a for name, a in store.lists.blocks._asdict().items()},
        "pivots": store.rows.pivots,
        **{f"initial_{name}": a for name, a in store.rows.initial._asdict().items()},
        "owners": store.rows.owners,
    }


def store_from_arrays(arrays: dict[str, np.ndarray]) -> Store:
    """Make a store again from its arrays."""
    max_segments, has_signatures, code_shift = map(int, arrays["variant"])
    return Store(
        Variant(max_segments, bool(has_signatures), code_shift),
        Bounds(arrays["floors"], arrays["ceilings"]),
        Lists(arrays["heads"], arrays["sizes"], _spans(arrays, "blocks")),
        Rows(arrays["pivots"], _spans(arrays, "initial"), arrays["owners"]),
    )


def _spans(arrays: dict[str, np.ndarray], name: str) -> Spans:
    return Spans(*(arrays[f"{name}_{field}"] for field in Spans._fields))
