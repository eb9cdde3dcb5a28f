"""Contenders that take turns on fresh events: batch after batch, no event twice.

    batch 0    warms up, and tells how long each contender takes: who is hopeless is left out, who
               is slow gets only the first events of each batch
    batch k    every contender once, in a shuffled order, so that each finds the caches full of the
               others; CPU time, garbage collection off
    answers    compared event by event, outside of the clock, with those of the first contender

That is how an engine lives: the next events are never those that it has just seen.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from matchmill.index.base import ClauseMatches
from matchmill.lab.experiments.match_digests import Answers, summarize

__all__ = ["Call", "Figures", "take_turns"]

# Ids that hold for the first so many events of a batch: as matches, or as a collection per event.
Call = Callable[[int, int], ClauseMatches | Sequence[Collection[int]]]

_FIRST = 16  # events of batch 0 that tell whether a contender is hopeless


class Figures(NamedTuple):
    """What one contender did; without seconds it was left out for `reason`."""

    seconds: list[float]  # per event, one for each batch
    n_matches: float  # per event
    reason: str


def take_turns(
    calls: Mapping[str, Call],
    n_batches: int,
    n_events: int,
    n_subscriptions: int,
    *,
    hopeless: float = 100.0,
    seconds: float = 1.0,
    seed: int = 1,
) -> dict[str, Figures]:
    """Return figures of contenders on batches 1 … n_batches - 1 of n_events each.

    The first contender is the one to beat. One that takes `hopeless` times as long on a few events
    is left out; one that needs more than so many `seconds` for a batch gets fewer events of it.
    """
    owners = np.arange(n_subscriptions)
    first = next(iter(calls))
    sizes: dict[str, int] = {}
    left_out: dict[str, str] = {}
    fastest = _per_event(calls[first], n_events)
    for name, call in calls.items():
        each = _per_event(call, n_events)
        if name != first and each > hopeless * fastest:
            left_out[name] = f"{each / fastest:,.0f}x in a trial"
        else:
            sizes[name] = int(min(n_events, max(_FIRST, seconds / each)))
    times: dict[str, list[float]] = {name: [] for name in sizes}
    n_matches, wrong = 0, dict[str, str]()
    rng = random.Random(seed)
    for batch in range(1, n_batches):
        answers: dict[str, Answers] = {}
        for name in rng.sample(sorted(sizes), len(sizes)):
            size = sizes[name]
            found, spent = _timed(calls[name], batch, size)
            times[name].append(spent / size)
            answers[name] = summarize(_as_matches(found), owners, size)
        n_matches += int(answers[first].counts.sum())
        for name, answer in answers.items():
            problem = answer.problem or _difference(answer, answers[first])
            if problem:
                wrong.setdefault(name, f"WRONG: batch {batch}: {problem}")
    per_event = n_matches / max(1, (n_batches - 1) * sizes[first])
    return {
        name: Figures(times.get(name, []), per_event, wrong.get(name, left_out.get(name, "")))
        for name in calls
    }


def _per_event(call: Call, n_events: int) -> float:
    """Return seconds per event, from a few of them at first and all if there is time."""
    few = min(_FIRST, n_events)
    call(0, few)  # compiles
    _, spent = _timed(call, 0, few)
    if spent / few * n_events < 1.0:
        _, spent = _timed(call, 0, n_events)
        return spent / n_events
    return spent / few


def _timed(call: Call, batch: int, size: int) -> tuple[Any, float]:
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        found = call(batch, size)
        return found, time.process_time() - start
    finally:
        gc.enable()


def _difference(own: Answers, other: Answers) -> str:
    n = min(own.n_events, other.n_events)
    differ = (own.counts[:n] != other.counts[:n]) | (own.digests[:n] != other.digests[:n])
    return f"{differ.sum()} of {n} events have other matches" if differ.any() else ""


def _as_matches(found: ClauseMatches | Sequence[Collection[int]]) -> ClauseMatches:
    if isinstance(found, ClauseMatches):
        return found
    counts = np.array([len(ids) for ids in found], np.int64)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    return ClauseMatches(offsets, np.array([i for ids in found for i in ids], np.int64))
