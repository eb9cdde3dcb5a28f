"""Segments as named arrays: their tables, their deleted clauses, and what each index saves.

The name of a segment that changes in place ends in ` in place`. Its arrays can only be used by the
index that it names. Whoever wants another one, or trusts none, builds it from the clauses.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.base import Configurable
from matchmill.index.fresh_scan import FreshScan
from matchmill.index.in_place import InPlaceSegments, View
from matchmill.index.live_clauses import live_clauses
from matchmill.index.mixed import build_index, open_index
from matchmill.index.registry import index_class
from matchmill.index.segments import Segment, Segmented, Snapshot
from matchmill.index.tombstones import NO_TOMBSTONES, Tombstones

__all__ = ["open_segments", "segments_from_arrays", "segments_to_arrays"]

_IN_PLACE = " in place"


def segments_to_arrays(snapshot: Snapshot) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return the arrays of all segments, and the name of each segment's index."""
    arrays: dict[str, np.ndarray] = {}
    names: list[str] = []
    for n, segment in enumerate(snapshot.segments):
        parts = {f"table_{name}": a for name, a in segment.table._asdict().items()}
        if not segment.is_fresh:  # that is its table
            parts |= {f"index_{name}": a for name, a in segment.built.arrays().items()}
        parts["dead_ids"] = segment.dead.all_ids()
        arrays |= {f"segment{n}_{name}": a for name, a in parts.items()}
        names.append(segment.built.name + (_IN_PLACE if isinstance(segment.built, View) else ""))
    return arrays, names


def open_segments(
    segmented: Segmented, arrays: dict[str, np.ndarray], names: list[str], *, build: bool = False
) -> list[Segment]:
    """Return saved segments as they are to be used from now on.

    With `build` indexes are built again from their tables, and what was saved is not used: what is
    in the arrays of an index, kernels take for addresses without looking.
    """
    is_in_place = isinstance(segmented, InPlaceSegments)
    if not is_in_place and not any(name.endswith(_IN_PLACE) for name in names):
        return segments_from_arrays(arrays, names, segmented.options, build=build)
    saved = [_clauses_of(arrays, f"segment{n}_") for n in range(len(names))]
    own_name = segmented.index_class.name + _IN_PLACE
    if isinstance(segmented, InPlaceSegments) and names == [own_name] and not build:
        parts = _parts_of(arrays, "segment0_index_")
        return [segmented.opened(*saved[0], parts)]
    table = live_clauses(saved)
    return [segmented.built(table, None)] if table.n_clauses else []


def segments_from_arrays(
    arrays: dict[str, np.ndarray],
    names: list[str],
    options: Mapping[str, object] | None = None,
    *,
    build: bool = False,
) -> list[Segment]:
    """Return saved segments of indexes that are built once.

    `options` are those that their indexes were built with; `build` as for `open_segments`.
    """
    return [
        _segment_from_arrays(arrays, f"segment{n}_", name, options or {}, build)
        for n, name in enumerate(names)
    ]


def _clauses_of(arrays: dict[str, np.ndarray], prefix: str) -> tuple[ConjunctionTable, Tombstones]:
    table = ConjunctionTable(
        *(arrays[f"{prefix}table_{name}"] for name in ConjunctionTable._fields)
    )
    dead_ids = arrays[f"{prefix}dead_ids"]
    dead = NO_TOMBSTONES.with_ids(dead_ids, table.clause_ids) if len(dead_ids) else NO_TOMBSTONES
    return table, dead


def _parts_of(arrays: dict[str, np.ndarray], start: str) -> dict[str, np.ndarray]:
    return {key[len(start) :]: a for key, a in arrays.items() if key.startswith(start)}


def _segment_from_arrays(
    arrays: dict[str, np.ndarray],
    prefix: str,
    name: str,
    options: Mapping[str, object],
    build: bool,
) -> Segment:
    table, dead = _clauses_of(arrays, prefix)
    if name == FreshScan.name:
        return Segment(FreshScan(table), table, dead)
    if build:
        return Segment(build_index(index_class(name), table, None, **options), table, dead)
    built = open_index(index_class(name), _parts_of(arrays, f"{prefix}index_"))
    if isinstance(built, Configurable):
        built.configure(**options)
    return Segment(built, table, dead)
