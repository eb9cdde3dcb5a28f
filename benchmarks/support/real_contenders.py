"""Who is measured by `script/bench real`: our indexes behind the engine, a scan, NumPy, Python.

engine    a table of Arrow in, ids of subscriptions out, through `Engine.match_many`
index     codes in, ids of clauses out: the index alone
numpy     codes in: two arrays of bounds per attribute, compared for all clauses at once
python    dicts in: each expression as a compiled Python function, or all of them in one

Codes are given to NumPy and to the compiled scan for nothing, which flatters them.
"""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import matchmill as mm
from benchmarks.support.rules import PYTHON, written
from benchmarks.support.turns import Call
from matchmill.encoding.events.arrow import read_table
from matchmill.engine.opening import open_for_writing
from matchmill.index.base import ClauseMatches
from matchmill.index.event_sample import build_statistics
from matchmill.index.mixed import build_index
from matchmill.index.registry import index_class
from matchmill.lab.experiments.measure import event_batch, table_of
from matchmill.lab.workloads.columns import arrow_events
from matchmill.lab.workloads.flat import Workload
from matchmill.language.read import read_expression
from matchmill.papers.baselines.a_tree import ATree

__all__ = [
    "Contender",
    "a_tree_contender",
    "arrow_batches",
    "engine_contender",
    "engine_of",
    "index_contender",
    "numpy_contender",
    "python_contenders",
    "single_contender",
]

_SETTINGS = mm.Settings(background=False)
_MOST_DIMENSIONS = 64  # of NumPy's brute force


class Contender(NamedTuple):
    """How to ask it, and what it takes."""

    call: Call
    n_bytes: float  # per subscription; nan where it means nothing
    build_seconds: float  # of the index, per million


def engine_of(folder: Path, index: str, training: Any) -> mm.Engine:
    """Return an engine of a saved folder, with this index, built for events like these.

    It works on a copy. `Engine.open` would build the index twice: before and after learning.
    """
    copy = folder.with_name(f"{folder.name}_{index}")
    shutil.copytree(folder, copy)
    options: dict[str, Any] = dict.fromkeys(("index_options", "types"), None)
    options |= {"verify": False, "index": index, "settings": _SETTINGS, "progress": lambda *_: None}
    engine = mm.Engine.__new__(mm.Engine)
    engine._start(*open_for_writing(copy, None, options), copy)
    engine.learn(training)
    engine.compact()
    shutil.rmtree(copy)
    return engine


def engine_contender(engine: mm.Engine, batches: Sequence[pa.Table]) -> Contender:
    """Return an engine that is asked with tables."""

    def call(batch: int, size: int) -> ClauseMatches:
        table = batches[batch]
        found = engine.match_many(table if size == len(table) else table[:size], threads=1)
        return ClauseMatches(found.offsets, found.subscription_ids().to_numpy())

    segments = engine.stats().index
    n = max(1, len(engine))
    return Contender(
        call,
        sum(s.n_bytes for s in segments) / n,
        sum(s.build_seconds for s in segments) / n * 1e6,
    )


def index_contender(name: str, workload: Workload, n_batch: int) -> Contender:
    """Return an index alone, which is asked with codes."""
    table = table_of(workload.subscriptions)
    known = build_statistics(event_batch(workload.training), table.n_dimensions)
    built = build_index(index_class(name), table, known)
    events = event_batch(workload.events)

    def call(batch: int, size: int) -> ClauseMatches:
        return built.match_batch(events.slice(batch * n_batch, batch * n_batch + size))

    stats, n = built.stats(), max(1, table.n_clauses)
    return Contender(call, stats.n_bytes / n, stats.build_seconds / n * 1e6)


def numpy_contender(workload: Workload, n_batch: int) -> Contender | str:
    """Return brute force over bounds, or why there is none."""
    flat, n_dimensions = workload.subscriptions, workload.domain.n_attributes
    if n_dimensions > _MOST_DIMENSIONS:
        return f"more than {_MOST_DIMENSIONS} attributes"
    if len(flat.lows) != len(flat.attributes):
        return "predicates of several intervals"
    owners = np.repeat(np.arange(flat.n_clauses), np.diff(flat.clause_offsets))
    lows = np.zeros((n_dimensions, flat.n_clauses), np.int64)
    highs = np.full((n_dimensions, flat.n_clauses), np.iinfo(np.int64).max)
    lows[flat.attributes, owners], highs[flat.attributes, owners] = flat.lows, flat.highs
    used = np.unique(flat.attributes).tolist()
    events = event_batch(workload.events)

    def call(batch: int, size: int) -> ClauseMatches:
        found = []
        keys = np.zeros(n_dimensions, np.int64)
        for e in range(batch * n_batch, batch * n_batch + size):
            span = slice(events.offsets[e], events.offsets[e + 1])
            keys[:] = 0
            keys[events.dimensions[span]] = events.keys[span]
            holds = np.ones(flat.n_clauses, bool)
            for d in used:
                holds &= lows[d] <= keys[d]
                holds &= highs[d] >= keys[d]
            found.append(np.flatnonzero(holds))
        offsets = np.concatenate(([0], np.cumsum([len(ids) for ids in found])))
        return ClauseMatches(offsets, np.concatenate(found))

    n_bytes = (lows.nbytes + highs.nbytes) * len(used) / n_dimensions
    return Contender(call, n_bytes / max(1, flat.n_clauses), float("nan"))


def arrow_batches(workload: Workload, n_batch: int) -> list[pa.Table]:
    """Return all events as tables."""
    events = workload.events
    starts = range(0, events.n_events, n_batch)
    return [arrow_events(workload, events, s, s + n_batch) for s in starts]


def python_contenders(
    expressions: Sequence[str], events: Sequence[Any], n_batch: int
) -> dict[str, Contender]:
    """Return compiled Python functions: one per expression, and all expressions in one."""
    rules = [written(read_expression(text), PYTHON, frozenset()) for text in expressions]
    names: dict[str, Any] = {"datetime": datetime}
    functions = [eval(f"lambda e: {rule}", names) for rule in rules]
    lines = "".join(f"\n    if {rule}: add({i})" for i, rule in enumerate(rules))
    exec(f"def every(e):\n    found = []; add = found.append{lines}\n    return found", names)
    every = names["every"]

    def one_by_one(batch: int, size: int) -> list[list[int]]:
        some = events[batch * n_batch : batch * n_batch + size]
        return [[i for i, holds in enumerate(functions) if holds(e)] for e in some]

    def at_once(batch: int, size: int) -> list[list[int]]:
        return [every(e) for e in events[batch * n_batch : batch * n_batch + size]]

    nan = float("nan")
    return {"lambdas": Contender(one_by_one, nan, nan), "function": Contender(at_once, nan, nan)}


def a_tree_contender(expressions: Sequence[str], tables: Sequence[pa.Table]) -> Contender:
    """Return A-Tree, which is asked with tables."""
    tree = ATree([read_expression(text) for text in expressions])

    def call(batch: int, size: int) -> ClauseMatches:
        return tree.match_columns(read_table(tables[batch][:size]).columns())

    n = max(1, len(expressions))
    return Contender(call, tree.n_bytes / n, tree.build_seconds / n * 1e6)


def single_contender(engine: mm.Engine, events: Sequence[Any], n_batch: int) -> Contender:
    """Return an engine that is asked with one dict at a time."""

    def call(batch: int, size: int) -> list[set[Any]]:
        match = engine.match
        return [match(e) for e in events[batch * n_batch : batch * n_batch + size]]

    return Contender(call, float("nan"), float("nan"))
