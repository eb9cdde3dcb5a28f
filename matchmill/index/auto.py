"""The default: each group of clauses in the structure in which an event costs least.

    table ─┬─► a group of clauses on the same few dimensions ─► a mask tree
           ├─► another one                                    ─► another tree
           ├─► clauses of many predicates, or that often hold ─► bitmaps
           └─► all others                                     ─► mill

`grouping.py` decides. If there is one structure only, it is used as it is.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable, take_clauses
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.array_index import ArrayIndex
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.index.bitmaps import Bitmaps
from matchmill.index.cost_model import Costs
from matchmill.index.grouping import find_groups
from matchmill.index.joined_matches import joined_matches
from matchmill.index.mask_tree import MaskTree
from matchmill.index.mill import Mill

__all__ = ["Auto"]

_PART = "part_"
_COSTS = "costs"
_STRUCTURES: dict[str, Any] = {one.name: one for one in (Mill, MaskTree, Bitmaps)}


class Auto:
    """Several structures, each with some of the clauses.

    `build` and `from_arrays` return a single structure as it is.
    """

    name: ClassVar[str] = "auto"

    def __init__(self, parts: list[Mill | ArrayIndex], costs: np.ndarray) -> None:
        self._parts = parts
        self._costs = costs  # per part and structure: estimated nanoseconds per event

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        kernel: str = "auto",
        **options: Any,
    ) -> Any:
        """Build the structures; `kernel` is mill's."""
        groups = find_groups(table, statistics)
        parts = [
            _STRUCTURES[group.structure].build(
                table if len(group.rows) == table.n_clauses else take_clauses(table, group.rows),
                statistics,
                kernel=kernel,
            )
            for group in groups
        ]
        if len(parts) == 1:
            return parts[0]
        return cls(parts, np.array([group.costs for group in groups]))

    @classmethod
    def warm(cls) -> None:
        """Compile the kernels of mill; those of other structures when data need them."""
        Mill.warm()

    def configure(self, *, kernel: str = "auto", **options: Any) -> None:
        """Choose mill's kernel."""
        for part in self._parts:
            if isinstance(part, Mill):
                part.configure(kernel=kernel)

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Return the clauses that hold for each event."""
        found = [part.match_batch(events) for part in self._parts]
        matches = found[0]
        for more in found[1:]:
            matches = joined_matches(matches, more)
        return matches

    def match_pairs(self, pairs: bytes) -> np.ndarray:
        """Return the clauses that hold for one event: the quickest way for a single one."""
        found = [ids for part in self._parts if len(ids := part.match_pairs(pairs))]
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays, to be saved and mapped."""
        arrays = {
            f"{_PART}{n}_{part.name}_{name}": array
            for n, part in enumerate(self._parts)
            for name, array in part.arrays().items()
        }
        return arrays | {_COSTS: self._costs}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Any:
        """Return what was saved."""
        if _COSTS not in arrays:
            return _structure_of(arrays).from_arrays(arrays)
        parts = []
        for n in range(len(arrays[_COSTS])):
            start = f"{_PART}{n}_"
            name = next(n for n in arrays if n.startswith(start)).removeprefix(start)
            structure = next(s for s in _STRUCTURES if name.startswith(f"{s}_"))
            start += f"{structure}_"
            own = {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}
            parts.append(_STRUCTURES[structure].from_arrays(own))
        return cls(parts, arrays[_COSTS])

    def stats(self) -> IndexStats:
        """Return figures of all structures."""
        return IndexStats(*map(sum, zip(*(part.stats() for part in self._parts), strict=True)))

    def parts(self) -> list[tuple[str, IndexStats, dict[str, float]]]:
        """Return the name and figures of each structure, and the costs that it was chosen by.

        Costs are estimated nanoseconds per event in each structure that was considered.
        """
        return [
            (part.name, part.stats(), {k: float(v) for k, v in costs.items() if v < np.inf})
            for part, costs in zip(
                self._parts, (Costs(*row)._asdict() for row in self._costs), strict=True
            )
        ]

    def clause_costs(self, events: EventBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Count how often each clause is looked at, and how often it holds, as `Mill` does.

        Structures other than mill say only which clauses hold.
        """
        found = [
            part.clause_costs(events) if isinstance(part, Mill) else _matches_of(part, events)
            for part in self._parts
        ]
        ids, looked_at, held = (np.concatenate(columns) for columns in zip(*found, strict=True))
        order = np.argsort(ids)
        return ids[order], looked_at[order], held[order]


def _structure_of(arrays: dict[str, np.ndarray]) -> Any:
    """Return the class of a single structure, by the arrays that it has."""
    if "slot_places" in arrays:
        return Mill
    return MaskTree if "blocks" in arrays else Bitmaps


def _matches_of(index: ArrayIndex, events: EventBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ids = index.clause_ids()
    found = index.match_batch(events).clause_ids
    counts = np.bincount(np.searchsorted(ids, found), minlength=len(ids))
    return ids, counts, counts
