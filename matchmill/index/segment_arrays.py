"""Segments as named arrays: their tables, their deleted clauses, and what each index saves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.base import Configurable
from matchmill.index.fresh_scan import FreshScan
from matchmill.index.registry import index_class
from matchmill.index.segments import Segment, Snapshot
from matchmill.index.tombstones import NO_TOMBSTONES

__all__ = ["segments_from_arrays", "segments_to_arrays"]


def segments_to_arrays(snapshot: Snapshot) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return the arrays of all segments, and the name of each segment's index."""
    arrays: dict[str, np.ndarray] = {}
    for n, segment in enumerate(snapshot.segments):
        parts = {f"table_{name}": a for name, a in segment.table._asdict().items()}
        if not segment.is_fresh:  # that is its table
            parts |= {f"index_{name}": a for name, a in segment.built.arrays().items()}
        parts["dead_ids"] = segment.dead.all_ids()
        arrays |= {f"segment{n}_{name}": a for name, a in parts.items()}
    return arrays, [segment.built.name for segment in snapshot.segments]


def segments_from_arrays(
    arrays: dict[str, np.ndarray],
    names: list[str],
    options: Mapping[str, object] | None = None,
    *,
    build: bool = False,
) -> list[Segment]:
    """Return saved segments; `options` are those that their indexes were built with.

    With `build` the indexes are built again from their tables, and what was saved is not used: what
    is in the arrays of an index, kernels take for addresses without looking.
    """
    return [
        _segment_from_arrays(arrays, f"segment{n}_", name, options or {}, build)
        for n, name in enumerate(names)
    ]


def _segment_from_arrays(
    arrays: dict[str, np.ndarray],
    prefix: str,
    name: str,
    options: Mapping[str, object],
    build: bool,
) -> Segment:
    table = ConjunctionTable(*(arrays[f"{prefix}table_{f}"] for f in ConjunctionTable._fields))
    dead_ids = arrays[f"{prefix}dead_ids"]
    dead = NO_TOMBSTONES.with_ids(dead_ids, table.clause_ids) if len(dead_ids) else NO_TOMBSTONES
    if name == FreshScan.name:
        return Segment(FreshScan(table), table, dead)
    if build:
        return Segment(index_class(name).build(table, None, **options), table, dead)
    start = f"{prefix}index_"
    parts = {key[len(start) :]: a for key, a in arrays.items() if key.startswith(start)}
    built = index_class(name).from_arrays(parts)
    if isinstance(built, Configurable):
        built.configure(**options)
    return Segment(built, table, dead)
