"""What the tests of `mill` share: one check with all of its kernels, and large tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import Statistics
from matchmill.index.mill import Mill
from matchmill.index.mill.arrays import MillArrays
from matchmill.index.mill.index import KERNELS
from matchmill.index.mill.words import Block, block_at, slot_start
from matchmill.kernels import threads as _threads
from tests.support.conformance_kit import batch_of, brute_force_arrays, check_matches

__all__ = [
    "KERNELS",
    "PRESENT",
    "blocks_of",
    "by_kernel",
    "check",
    "check_threads",
    "dense_batch",
    "flat_table",
    "keys_on",
    "some_dimensions",
]

Numbers = Sequence[int] | np.ndarray

PRESENT = 1 << 60  # above every key used here

by_kernel = pytest.mark.parametrize("kernel", KERNELS)


def check(table: ConjunctionTable, batch: EventBatch, statistics: Statistics | None = None) -> int:
    """All kernels against brute force, twice: nothing of a batch is left behind for the next.
    Returns the number of matches."""
    expected = list(brute_force_arrays(table, batch))
    for kernel in KERNELS:
        index = Mill.build(table, statistics, kernel=kernel)
        for _ in range(2):
            check_matches(index.match_batch(batch), expected)
    return sum(map(len, expected))


def blocks_of(mill: MillArrays, slot_place: int) -> Iterator[Block]:
    """Yield the blocks of a slot, dictionaries among them."""
    at, follows = slot_start(slot_place), True
    while follows:
        block = block_at(mill.words, at)
        yield block
        at, follows = block.end, block.follows


def check_threads(table: ConjunctionTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of threads builds the same."""
    alone = Mill.build(table).arrays()
    monkeypatch.setattr(_threads, "_WORTH_A_THREAD", 1)
    for n_cores in (2, 3, 8):
        cores = set(range(n_cores))
        monkeypatch.setattr(_threads.os, "sched_getaffinity", lambda _, cores=cores: cores)
        together = Mill.build(table).arrays()
        for name, array in alone.items():
            assert together[name].dtype == array.dtype, name
            np.testing.assert_array_equal(together[name], array, err_msg=name)


def flat_table(
    dimensions: Numbers,
    lows: Numbers,
    highs: Numbers,
    *,
    lengths: Numbers | int = 1,
    n_intervals: Numbers | int = 1,
    first_id: int = 0,
) -> ConjunctionTable:
    """Predicates in a row; each clause has so many of them, each of them so many intervals."""
    n_bounds = len(lows)
    n_predicates = len(dimensions)
    per_predicate = np.broadcast_to(n_intervals, n_predicates)
    n_clauses = n_predicates // lengths if isinstance(lengths, int) else len(lengths)
    per_clause = np.broadcast_to(lengths, n_clauses)
    table = ConjunctionTable(
        np.arange(first_id, first_id + n_clauses),
        np.concatenate(([0], np.cumsum(per_clause))),
        np.asarray(dimensions, np.int32),
        np.concatenate(([0], np.cumsum(per_predicate))),
        np.array(lows, np.int64),
        np.array(highs, np.int64),
    )
    assert table.clause_offsets[-1] == n_predicates
    assert table.interval_offsets[-1] == n_bounds
    return table


def some_dimensions(rng: np.random.Generator, n_clauses: int, length: int, n: int) -> np.ndarray:
    """For each clause some of n dimensions, ascending, one clause after the other."""
    steps = rng.integers(0, n // length, (n_clauses, length))
    return (steps + np.arange(length) * (n // length)).ravel()


def keys_on(dimension: int, keys: Numbers) -> EventBatch:
    return batch_of([{dimension: int(key)} for key in keys])


def dense_batch(keys: np.ndarray) -> EventBatch:
    """Events as rows of keys, one on each dimension."""
    n_events, n_dimensions = keys.shape
    return EventBatch(
        np.arange(n_events + 1) * n_dimensions,
        np.tile(np.arange(n_dimensions, dtype=np.int32), n_events),
        keys.ravel().astype(np.int64),
    )
