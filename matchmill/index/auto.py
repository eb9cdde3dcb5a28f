"""The default: each group of clauses in the structure in which an event costs least.

    table ─┬─► a group of clauses on the same few dimensions ─► a mask tree
           ├─► another one                                    ─► another tree
           └─► all others                                     ─► mill

`grouping.py` decides. If there is one structure only, it is used as it is.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable, take_clauses
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.index.grouping import tree_groups
from matchmill.index.joined_matches import joined_matches
from matchmill.index.mask_tree import MaskTree
from matchmill.index.mill import Mill

__all__ = ["Auto"]

_PART = "part_"


class Auto:
    """Several structures, each with some of the clauses: mill, if there are any for it, is first.

    `build` and `from_arrays` return a single structure as it is.
    """

    name: ClassVar[str] = "auto"

    def __init__(self, parts: list[Mill | MaskTree]) -> None:
        self._parts = parts

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
        groups = tree_groups(table, statistics)
        if not groups:
            return Mill.build(table, statistics, kernel=kernel)
        others = np.ones(table.n_clauses, bool)
        for group in groups:
            others[group.rows] = False
        parts: list[Mill | MaskTree] = []
        if others.any():
            rest = take_clauses(table, np.flatnonzero(others))
            parts.append(Mill.build(rest, statistics, kernel=kernel))
        parts += [MaskTree.build(take_clauses(table, g.rows), statistics) for g in groups]
        return parts[0] if len(parts) == 1 else cls(parts)

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
        return {
            f"{_PART}{n}_{part.name}_{name}": array
            for n, part in enumerate(self._parts)
            for name, array in part.arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Any:
        """Return what was saved."""
        if not any(name.startswith(_PART) for name in arrays):
            return (Mill if "slot_places" in arrays else MaskTree).from_arrays(arrays)
        parts: list[Mill | MaskTree] = []
        while True:
            for structure in (Mill, MaskTree):
                start = f"{_PART}{len(parts)}_{structure.name}_"
                own = {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}
                if own:
                    parts.append(structure.from_arrays(own))
                    break
            else:
                return cls(parts)

    def stats(self) -> IndexStats:
        """Return figures of all structures."""
        return IndexStats(*map(sum, zip(*(part.stats() for part in self._parts), strict=True)))

    def clause_costs(self, events: EventBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Count how often each clause is looked at, and how often it holds, as `Mill` does.

        Trees say only which clauses hold.
        """
        found = [
            part.clause_costs(events) if isinstance(part, Mill) else _matches_of(part, events)
            for part in self._parts
        ]
        ids, looked_at, held = (np.concatenate(columns) for columns in zip(*found, strict=True))
        order = np.argsort(ids)
        return ids[order], looked_at[order], held[order]


def _matches_of(tree: MaskTree, events: EventBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ids = tree.clause_ids()
    found = tree.match_batch(events).clause_ids
    counts = np.bincount(np.searchsorted(ids, found), minlength=len(ids))
    return ids, counts, counts
