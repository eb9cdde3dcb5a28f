"""Ranges written out value by value: what `sift` and `k_index` do to support more than equality.

    cell     one code of one dimension: edge_offsets[d] + d + code. Codes are those of a Dictionary:
             keys between two bounds that occur on a dimension have one code, absence has code 0
    list     entries[list_offsets[l]] … ascending: a clause for each predicate that holds for the
             code of the cell; or, of predicates that accept absence, that does not hold for it

A predicate that accepts absence is a "not in": nothing has to be seen for it, only something that
speaks against it, so its list entries are the codes that it refuses (Whang et al., VLDB 2009; the
enumeration is the one that BE-Tree, section 7.2, gives to both of its baselines).

A range over n codes takes n entries, so memory may explode, as BE-Tree, section 7.3, reports. How
many entries there will be is known before any memory is taken for them, and bounded by a budget.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.errors import InputError
from matchmill.index.predicate_codes import Dictionary, build_dictionary, code_of
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import int64, kernel

__all__ = [
    "MAX_POSTINGS",
    "Enumeration",
    "build_enumeration",
    "cell_of",
    "fill_lists",
    "has_cells",
]

MAX_POSTINGS = 400_000_000
_BYTES_PER_POSTING = 4


class Enumeration(NamedTuple):
    """A table whose ranges are about to become lists."""

    dictionary: Dictionary
    accepts_absence: np.ndarray  # bool, one a distinct predicate
    hold_counts: np.ndarray  # int64, one per cell: entries of predicates that hold
    fail_counts: np.ndarray  # int64, one per cell: entries of "not in" predicates that do not

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.hold_counts)

    def n_needed(self, table: ConjunctionTable) -> np.ndarray:
        """How many predicates of each clause must be seen to hold: its size."""
        is_needed = ~self.accepts_absence[self.dictionary.ids]
        before = offsets_of(is_needed)
        needed: np.ndarray = before[table.clause_offsets[1:]] - before[table.clause_offsets[:-1]]
        return needed


def build_enumeration(table: ConjunctionTable, max_postings: int) -> Enumeration:
    """Codes, and how long each list will be; an error if they are longer than allowed."""
    if isinstance(max_postings, bool) or not isinstance(max_postings, int) or max_postings < 1:
        raise InputError(f"max_postings is a positive whole number, not {max_postings!r}")
    dictionary = build_dictionary(table)
    firsts = dictionary.interval_offsets[:-1]
    accepts_absence = dictionary.lows[firsts] == 0
    n_cells = len(dictionary.edges) + dictionary.n_dimensions
    hold_counts, fail_counts = np.zeros((2, n_cells + 1), np.int64)
    _count_entries(dictionary, accepts_absence, hold_counts, fail_counts)
    n_postings = int(hold_counts.sum() + fail_counts.sum())
    if n_postings > max_postings:
        gigabytes = n_postings * _BYTES_PER_POSTING / 1e9
        raise InputError(
            f"writing out the ranges of these {table.n_clauses:,} clauses value by value takes "
            f"{n_postings:,} postings ({gigabytes:,.1f} GB), but max_postings is {max_postings:,}; "
            f"allow more, or take an index that keeps ranges as they are, such as 'counting' "
            f"or 'mill'"
        )
    return Enumeration(dictionary, accepts_absence, hold_counts[:-1], fail_counts[:-1])


def fill_lists(
    enumeration: Enumeration,
    table: ConjunctionTable,
    order: np.ndarray,
    list_offsets: np.ndarray,
    *,
    fails_apart: bool,
) -> np.ndarray:
    """Return the entries of all lists, clauses taken in this order and named by their place in it.

    With `fails_apart` there are lists of what holds, one per cell, then as many of what fails, and
    an entry is the place. Otherwise both are in one list per cell, and an entry is twice the place,
    and one more if the predicate holds.
    """
    entries = np.empty(int(list_offsets[-1]), np.uint32)
    dictionary = enumeration.dictionary
    by_dimension = np.empty(table.n_predicates, np.int64)
    places = np.empty(table.n_predicates, np.uint32)
    starts = offsets_of(np.bincount(table.dimensions))
    _sort_by_dimension(
        table.clause_offsets, table.dimensions, order, starts[:-1].copy(), by_dimension, places
    )
    _write_entries(
        dictionary,
        dictionary.ids[by_dimension],
        places,
        enumeration.accepts_absence,
        enumeration.n_cells if fails_apart else 0,
        list_offsets[:-1].copy(),
        entries,
    )
    return entries


# -- kernels --------------------------------------------------------------------------------------


@kernel
def has_cells(edge_offsets: np.ndarray, dimension: int) -> bool:
    """Whether some clause depends on a dimension.

    Multi-valued dimensions, of which an event may have any number of keys, are not among them.
    """
    if dimension >= len(edge_offsets) - 1:
        return False
    return bool(edge_offsets[dimension + 1] > edge_offsets[dimension])


@kernel
def cell_of(edge_offsets: np.ndarray, edges: np.ndarray, dimension: int, key: int) -> int:
    """Return the cell of a key; the dimension must be one of the table's."""
    start = edge_offsets[dimension]
    code = code_of(edges, start, edge_offsets[dimension + 1], key)
    return int(start + dimension + code)


@kernel
def _count_entries(
    dictionary: Dictionary,
    accepts_absence: np.ndarray,
    out_holds: np.ndarray,
    out_fails: np.ndarray,
) -> None:
    """Count by differences: an interval adds its uses at its start, takes them off behind its end.

    Both arrays have one element more than there are cells.
    """
    interval_offsets, lows, highs = dictionary.interval_offsets, dictionary.lows, dictionary.highs
    for q in range(len(accepts_absence)):
        d = int64(dictionary.dimensions[q])
        first, last = dictionary.edge_offsets[d] + d, dictionary.edge_offsets[d + 1] + d
        uses = int64(dictionary.uses[q])
        if accepts_absence[q]:
            out_fails[first] += uses
            out_fails[last + 1] -= uses
            for k in range(interval_offsets[q], interval_offsets[q + 1]):
                out_fails[first + lows[k]] -= uses
                out_fails[first + highs[k] + 1] += uses
        else:
            for k in range(interval_offsets[q], interval_offsets[q + 1]):
                out_holds[first + lows[k]] += uses
                out_holds[first + highs[k] + 1] -= uses
    for cell in range(1, len(out_holds)):
        out_holds[cell] += out_holds[cell - 1]
        out_fails[cell] += out_fails[cell - 1]


@kernel
def _sort_by_dimension(
    clause_offsets: np.ndarray,
    dimensions: np.ndarray,
    order: np.ndarray,
    cursors: np.ndarray,
    out_predicates: np.ndarray,
    out_places: np.ndarray,
) -> None:
    """Predicates by dimension, so that few lists are written to at a time."""
    for place in range(len(order)):
        row = order[place]
        for p in range(clause_offsets[row], clause_offsets[row + 1]):
            at = cursors[dimensions[p]]
            cursors[dimensions[p]] += 1
            out_predicates[at] = p
            out_places[at] = place


@kernel
def _write_entries(
    dictionary: Dictionary,
    ids: np.ndarray,
    places: np.ndarray,
    accepts_absence: np.ndarray,
    fails_from: int,
    cursors: np.ndarray,
    out: np.ndarray,
) -> None:
    dimensions, edge_offsets = dictionary.dimensions, dictionary.edge_offsets
    interval_offsets, lows, highs = dictionary.interval_offsets, dictionary.lows, dictionary.highs
    scale, mark = (1, 0) if fails_from > 0 else (2, 1)
    for i in range(len(ids)):
        q = ids[i]
        d = int64(dimensions[q])
        first, last = edge_offsets[d] + d, edge_offsets[d + 1] + d
        entry: Any = int64(places[i]) * scale
        if accepts_absence[q]:
            cell = first
            for k in range(interval_offsets[q], interval_offsets[q + 1]):
                for c in range(cell, first + lows[k]):
                    out[cursors[fails_from + c]] = entry
                    cursors[fails_from + c] += 1
                cell = first + highs[k] + 1
            for c in range(cell, last + 1):
                out[cursors[fails_from + c]] = entry
                cursors[fails_from + c] += 1
        else:
            entry += mark
            for k in range(interval_offsets[q], interval_offsets[q + 1]):
                for c in range(first + lows[k], first + highs[k] + 1):
                    out[cursors[c]] = entry
                    cursors[c] += 1
