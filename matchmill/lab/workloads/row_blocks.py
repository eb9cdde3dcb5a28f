"""Workloads block by block: any block alone, the same rows wherever and whenever it is made.

    rows      0 … 65,535    65,536 … 131,071    …
    block          0               1

What all rows have in common (bases, words, selectivities) is drawn from the seed; a block's own
rows are drawn from the seed and the block's number. Block 0 is drawn as `generate` draws, so that a
workload of one block is the same both ways.

Generators that cannot be cut so are made whole and sliced: those that read a file, and those whose
subscriptions must all differ. They are small by nature.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from matchmill.lab.workloads.flat import FlatEvents, FlatSubscriptions, Workload
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.spec import WorkloadSpec

__all__ = ["BLOCK_ROWS", "block_sizes", "event_block", "subscription_block"]

BLOCK_ROWS = 1 << 16

# Streams of random numbers that all blocks share; what begins with one of these is one of them.
_SHARED_STREAMS: dict[str, tuple[str, ...]] = {
    "ads": ("bases", "pilot"),
    "be_gen": ("bases", "pilot"),
    "op_index": (),
    "op_index_prefix": ("op_index words", "op_index popular words"),
    "operators": ("operators weights", "operators costs", "operators selectivities"),
    "two_stage": (),
}
_AFTER_TEXT = 256  # no byte of a stream's name: keeps the number of the block apart from it


@dataclass(frozen=True, slots=True)
class _BlockSpec(WorkloadSpec):
    """A spec whose rows are those of one block."""

    block: int = 0

    def random(self, stream: str) -> np.random.Generator:
        if self.block == 0 or stream.startswith(_SHARED_STREAMS[self.generator]):
            return WorkloadSpec.random(self, stream)
        words = [self.seed, *stream.encode(), _AFTER_TEXT, self.block]
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


def block_sizes(n_rows: int) -> Iterator[int]:
    """How many rows each block has: the same number, but for the last one."""
    for start in range(0, n_rows, BLOCK_ROWS):
        yield min(BLOCK_ROWS, n_rows - start)


def subscription_block(spec: WorkloadSpec, block: int) -> Workload:
    """Make the subscriptions of one block, numbered from 0; no events."""
    size = _size(spec.n_subscriptions, block)
    if _can_be_cut(spec):
        return _generate_block(spec, block, size, 0)
    whole = _whole(*_key(spec))
    start = block * BLOCK_ROWS
    some = _sliced_subscriptions(whole.subscriptions, start, start + size)
    return whole._replace(subscriptions=some, events=_NO_EVENTS, training=_NO_EVENTS)


def event_block(spec: WorkloadSpec, block: int) -> Workload:
    """Make the events of one block; no subscriptions."""
    size = _size(spec.n_events, block)
    if _can_be_cut(spec):
        return _generate_block(spec, block, 0, size)
    whole = _whole(*_key(spec))
    start = block * BLOCK_ROWS
    return whole._replace(
        subscriptions=_sliced_subscriptions(whole.subscriptions, 0, 0),
        events=_sliced_events(whole.events, start, start + size),
        training=_NO_EVENTS,
    )


_NO_EVENTS = FlatEvents(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))


def _size(n_rows: int, block: int) -> int:
    return max(0, min(BLOCK_ROWS, n_rows - block * BLOCK_ROWS))


def _can_be_cut(spec: WorkloadSpec) -> bool:
    if spec.generator == "two_stage":  # in w0 … w3 no predicate may occur in two blocks
        return spec.parameters.get("workload") == "subscriptions"
    return spec.generator in _SHARED_STREAMS


def _generate_block(
    spec: WorkloadSpec, block: int, n_subscriptions: int, n_events: int
) -> Workload:
    return generate(
        _BlockSpec(spec.generator, n_subscriptions, n_events, 0, spec.seed, spec.parameters, block)
    )


def _key(spec: WorkloadSpec) -> tuple[Any, ...]:
    sizes = spec.n_subscriptions, spec.n_events, spec.n_training_events, spec.seed
    return (spec.generator, *sizes, tuple(sorted(spec.parameters.items())))


@lru_cache(maxsize=1)
def _whole(
    generator: str, n_subscriptions: int, n_events: int, n_training: int, seed: int, parameters: Any
) -> Workload:
    return generate(
        WorkloadSpec(generator, n_subscriptions, n_events, n_training, seed, dict(parameters))
    )


def _sliced_subscriptions(flat: FlatSubscriptions, start: int, stop: int) -> FlatSubscriptions:
    first, last = np.searchsorted(flat.owners, [start, stop]).tolist()
    clause_offsets = flat.clause_offsets[first : last + 1]
    p, q = int(clause_offsets[0]), int(clause_offsets[-1])
    interval_offsets = flat.interval_offsets[p : q + 1]
    i, j = int(interval_offsets[0]), int(interval_offsets[-1])
    return FlatSubscriptions(
        flat.owners[first:last] - start,
        clause_offsets - p,
        flat.attributes[p:q],
        interval_offsets - i,
        flat.lows[i:j],
        flat.highs[i:j],
    )


def _sliced_events(events: FlatEvents, start: int, stop: int) -> FlatEvents:
    offsets = events.offsets[start : stop + 1]
    p, q = int(offsets[0]), int(offsets[-1])
    return FlatEvents(offsets - p, events.attributes[p:q], events.codes[p:q])
