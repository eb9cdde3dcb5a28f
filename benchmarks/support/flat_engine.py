"""An engine of millions of subscriptions from the flat form of a workload, without parsing them.

    attribute     the engine's own parser and encoder are given `a = v` for every value v that the
                  attribute can have, and a predicate for each end of the line
    interval      of codes → of keys, by looking its two bounds up there
    text          of a predicate, written once for all that are equal; joined by " and "
    engine        written as a saved folder, and opened by `Engine.open`

What comes out is what `subscribe_many` makes of the same texts, once all those values are cut
points: the same table, the same index, the same texts; a test holds it to that. Parsing takes two
minutes per million, this takes some seconds.

Only for workloads with one clause per subscription and without predicates that accept absence,
which are those of `be_gen` and `ads`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import matchmill as mm
from matchmill.encoding.clause_encoder import ClauseEncoder
from matchmill.encoding.conjunction_table import ConjunctionTable, take_ranges
from matchmill.encoding.dimension_arrays import dimensions_to_arrays
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.texts import texts_of
from matchmill.engine.subscription_table import Subscriptions
from matchmill.errors import InputError
from matchmill.index.registry import index_class
from matchmill.index.segment_arrays import segments_to_arrays
from matchmill.index.segments import Segment, Snapshot
from matchmill.index.tombstones import NO_TOMBSTONES
from matchmill.kernels.csr import offsets_of
from matchmill.lab.workloads.flat import FlatSubscriptions, Workload, subscription_texts
from matchmill.language.normal_form import normalize
from matchmill.language.parser import parse
from matchmill.storage.array_folder import SavedFolder, map_arrays, read_manifest, write_folder

__all__ = ["BuildTimes", "encode_workload", "save_engine", "take_subscriptions", "workload_texts"]

_TEXTS_AT_ONCE = 250_000
_PREDICATES_AT_ONCE = 2_000_000
_CODE_BITS = 20


class BuildTimes(NamedTuple):
    """Seconds of each step."""

    encoding: float
    building: float
    writing_texts: float
    saving: float


def save_engine(
    workload: Workload,
    path: Path,
    *,
    ids: Sequence[int] | None = None,
    index: str = "mill",
) -> BuildTimes:
    """Save an engine of all subscriptions of a workload; their ids are 0, 1, … unless given."""
    flat = workload.subscriptions
    if (np.diff(flat.owners) == 0).any() or (flat.lows == 0).any():
        raise InputError(f"{workload.spec.generator}: its subscriptions are not plain conjunctions")
    times = [time.perf_counter()]
    dimensions, table = encode_workload(workload)
    times.append(time.perf_counter())
    built = index_class(index).build(table)
    times.append(time.perf_counter())
    numbers = range(flat.n_clauses) if ids is None else ids
    ones = np.ones(flat.n_clauses, np.int64)
    texts = texts_of(workload_texts(workload))
    subscriptions = Subscriptions().added(numbers, texts, ones, ones.astype(np.uint8)).made()
    times.append(time.perf_counter())
    segment = Segment(built, table, NO_TOMBSTONES)
    segment_arrays, segment_names = segments_to_arrays(Snapshot((segment,)))
    template = _saved_template(index)
    arrays = {**subscriptions.arrays(), **dimensions_to_arrays(dimensions), **segment_arrays}
    meta = {"segments": segment_names, "id_type": "int", "n_subscriptions": flat.n_clauses}
    write_folder(path, SavedFolder({**template.arrays, **arrays}, {**template.meta, **meta}))
    times.append(time.perf_counter())
    return BuildTimes(*np.diff(times).tolist())


def take_subscriptions(workload: Workload, rows: np.ndarray) -> Workload:
    """Return the same workload with some of its subscriptions, renumbered."""
    flat = workload.subscriptions
    clause_offsets, predicates = take_ranges(flat.clause_offsets, rows)
    return workload._replace(subscriptions=_of_predicates(flat, clause_offsets, predicates))


def _of_predicates(
    flat: FlatSubscriptions, clause_offsets: np.ndarray, predicates: np.ndarray
) -> FlatSubscriptions:
    interval_offsets, intervals = take_ranges(flat.interval_offsets, predicates)
    return FlatSubscriptions(
        np.arange(len(clause_offsets) - 1, dtype=np.int64),
        clause_offsets,
        flat.attributes[predicates],
        interval_offsets,
        flat.lows[intervals],
        flat.highs[intervals],
    )


def _saved_template(index: str) -> SavedFolder:
    """Return what an engine saves of itself, besides subscriptions and segments."""
    with tempfile.TemporaryDirectory() as folder:
        engine = mm.Engine(index=index)
        engine.subscribe(1, "a = 1")
        engine.save(folder)
        manifest = read_manifest(Path(folder))
        arrays = map_arrays(Path(folder), manifest, verify=False)
        return SavedFolder({name: a.copy() for name, a in arrays.items()}, manifest.meta)


# -- keys -----------------------------------------------------------------------------------------


class _Keys(NamedTuple):
    """Keys of what `_every_predicate` says: of attribute a from first[a] on."""

    n_values: np.ndarray
    first: np.ndarray
    lows: np.ndarray
    highs: np.ndarray


def encode_workload(workload: Workload) -> tuple[Dimensions, ConjunctionTable]:
    """Return the dimensions, and the table in their keys."""
    flat, domain = workload.subscriptions, workload.domain
    n_values = np.array([domain.n_values(a) for a in range(domain.n_attributes)], np.int64)
    encoder = ClauseEncoder(Dimensions())
    texts = list(_every_predicate(workload, n_values))
    for text in texts:
        encoder.add(normalize(parse(text), 1).clauses)
    dimensions, known, _ = encoder.finish(np.arange(len(texts)))
    first = offsets_of(n_values + 3)
    keys = _Keys(n_values, first, known.lows, known.highs)
    lows, highs = np.empty_like(flat.lows), np.empty_like(flat.highs)
    for start in range(0, len(flat.attributes), _PREDICATES_AT_ONCE):
        stop = min(start + _PREDICATES_AT_ONCE, len(flat.attributes))
        offsets = flat.interval_offsets[start : stop + 1]
        span = slice(offsets[0], offsets[-1])
        lows[span], highs[span] = _key_intervals(
            keys, flat.attributes[start:stop], offsets - offsets[0], flat.lows[span],
            flat.highs[span],
        )  # fmt: skip
    return dimensions, ConjunctionTable(
        np.arange(flat.n_clauses, dtype=np.int64),
        flat.clause_offsets,
        flat.attributes,
        flat.interval_offsets,
        lows,
        highs,
    )


def _key_intervals(
    keys: _Keys, attributes: np.ndarray, offsets: np.ndarray, lows: np.ndarray, highs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of codes as intervals of keys, for some predicates."""
    n_values = keys.n_values[attributes]
    counts = np.diff(offsets)
    but = np.repeat(_says_all_but(n_values, offsets, lows, highs), counts)
    attributes = np.repeat(attributes, counts)
    is_point = (lows == highs) & ~but
    is_first = (lows == 1) & ~is_point
    is_last = (highs == np.repeat(n_values, counts)) & ~is_point
    is_whole = is_first & is_last
    end = keys.first[attributes + 1]
    low_at = keys.first[attributes] + lows - 1
    high_at = keys.first[attributes] + highs - 1
    # A gap is written by its own ends: `!= 3` is below 3 and above 3, not up to 2 and from 4 on.
    low_keys = np.where(but, keys.highs[low_at - but] + 1, keys.lows[low_at])
    high_keys = np.where(but, keys.lows[high_at + but] - 1, keys.highs[high_at])
    low_keys = np.where(is_first, keys.lows[end - 2], low_keys)
    high_keys = np.where(is_last, keys.highs[end - 3], high_keys)
    return (
        np.where(is_whole, keys.lows[end - 1], low_keys),
        np.where(is_whole, keys.highs[end - 1], high_keys),
    )


def _every_predicate(workload: Workload, n_values: np.ndarray) -> Iterator[str]:
    """Of each attribute `= v` for all values, `>= v`, `<= v` and `is not null`."""
    counts = n_values + 3
    starts = np.cumsum(counts) - counts
    lows = np.arange(int(counts.sum())) - np.repeat(starts, counts) + 1
    highs = lows.copy()
    top = starts + n_values
    lows[top], highs[top] = np.maximum(n_values - 1, 1), n_values
    lows[top + 1], highs[top + 1] = 1, np.minimum(2, n_values)
    lows[top + 2], highs[top + 2] = 1, n_values
    n = np.arange(len(lows) + 1)
    attributes = np.repeat(np.arange(len(n_values), dtype=np.int32), counts)
    flat = FlatSubscriptions(n[:-1], n, attributes, n, lows, highs)
    return (text for _, text in subscription_texts(workload._replace(subscriptions=flat)))


def _says_all_but(
    n_values: np.ndarray, offsets: np.ndarray, lows: np.ndarray, highs: np.ndarray
) -> np.ndarray:
    """Whether a predicate is written by what it leaves out: one gap, or several single values."""
    starts, counts = offsets[:-1], np.diff(offsets)
    reaches = (lows[starts] == 1) & (highs[offsets[1:] - 1] == n_values)
    wide_gap = np.zeros(len(lows), np.int64)  # before interval k
    wide_gap[1:] = lows[1:] - highs[:-1] > 2
    wide_gap[starts] = 0
    no_wide_gap = np.add.reduceat(wide_gap, starts) == 0
    result: np.ndarray = reaches & (counts > 1) & ((counts == 2) | no_wide_gap)
    return result


# -- texts ----------------------------------------------------------------------------------------


def workload_texts(workload: Workload) -> pa.LargeStringArray:
    """Return the texts of all subscriptions of a workload of plain conjunctions."""
    n = workload.subscriptions.n_clauses
    parts = [
        _some_texts(take_subscriptions(workload, np.arange(s, min(n, s + _TEXTS_AT_ONCE))))
        for s in range(0, n, _TEXTS_AT_ONCE)
    ]
    return pa.concat_arrays(parts)


def _some_texts(workload: Workload) -> pa.Array:
    flat = workload.subscriptions
    counts, starts = np.diff(flat.interval_offsets), flat.interval_offsets[:-1]
    text_of = np.empty(len(counts), np.int64)
    single, several = np.flatnonzero(counts == 1), np.flatnonzero(counts > 1)
    packed = flat.attributes[single].astype(np.int64) << 2 * _CODE_BITS
    packed |= flat.lows[starts[single]] << _CODE_BITS | flat.highs[starts[single]]
    _, chosen, text_of[single] = np.unique(packed, return_index=True, return_inverse=True)
    text_of[several] = len(chosen) + np.arange(len(several))
    written = np.concatenate((single[chosen], several))
    alone = _of_predicates(flat, np.arange(len(written) + 1), written)
    texts = pa.array([t for _, t in subscription_texts(workload._replace(subscriptions=alone))])
    lists = pa.ListArray.from_arrays(
        pa.array(flat.clause_offsets, pa.int32()), texts.take(pa.array(text_of))
    )
    return pc.binary_join(lists, " and ").cast(pa.large_string())
