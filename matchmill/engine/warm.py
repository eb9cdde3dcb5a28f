"""Compiles kernels in a process of its own, while the one that started it is busy with others.

The first engine on a machine has some ninety kernels to compile, one after the other: Numba has a
lock around it. Those that subscriptions need come first; this program takes up the others, in
the order in which they will be missed, and leaves them in the cache (`_jit.start_helper`).
"""

from __future__ import annotations

import tempfile

import numpy as np
import pyarrow as pa

from matchmill.engine.engine import Engine
from matchmill.index.base import ClauseMatches
from matchmill.index.mill.build.blocks import N_BLOCK_FIELDS, cut_blocks, fill_blocks
from matchmill.index.mill.match.single import match_events
from matchmill.index.tombstones import NO_TOMBSTONES
from matchmill.kernels.intrinsics import places_of

__all__ = ["main"]


def main() -> None:
    _match_nothing()
    _build_nothing()
    _use_an_engine()
    _leave_out_dead()


def _match_nothing() -> None:
    """The kernel that matches is compiled for places, whatever is there."""
    places = places_of(*(np.zeros(8, np.int64) for _ in range(32)))
    match_events(places, places, b"", 0, 0)


def _build_nothing() -> None:
    """The last steps of building an index, which the other process will come to last."""
    numbers, words = np.zeros(1, np.int64), np.empty(0, np.uint64)
    blocks = np.empty((1, N_BLOCK_FIELDS), np.int64)
    cut_blocks(numbers, numbers[:0], numbers, blocks)
    fill_blocks(
        numbers,
        words.view(np.uint16),
        numbers,
        words,
        numbers,
        np.empty(0, np.int32),
        blocks,
        words,
        words.view(np.uint32),
        words.view(np.uint16),
    )


def _use_an_engine() -> None:
    """Too few subscriptions for an index, and a bit of everything."""
    event = {"a": 1, "b": 2.5, "c": "x", "tags": ["u"], "note": "too late", "mail": "a@b"}
    engine = Engine()
    engine.subscribe_many(
        [
            ("1", "a = 1 and c in ('x', 'y')"),
            ("2", "b > 2 and note like '%late%'"),
            ("3", "tags contains any ('u', 'v') or mail like '%@b'"),
        ]
    )
    engine.match(event)
    events = [{**event, "a": n} for n in range(100)]
    engine.match_many(events)
    engine.match_many(pa.Table.from_pylist(events))
    engine.unsubscribe("1")
    engine.match(event)
    engine.match_many(events)
    with tempfile.TemporaryDirectory() as folder:
        engine.save(folder)
        with Engine.open(folder) as again:
            again.match(event)
            again.subscribe("4", "a > 3 and c = 'z'")
            again.compact()


def _leave_out_dead() -> None:
    """What an index finds, without deleted clauses: else a match would wait for the compiler."""
    found = np.arange(3, dtype=np.int32)
    dead = NO_TOMBSTONES.with_ids(np.array([1]), np.arange(3))
    dead.live_ids(found)
    dead.without_dead(ClauseMatches(np.array([0, 3]), found))


if __name__ == "__main__":
    main()
