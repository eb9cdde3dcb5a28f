"""Workloads with the values that people have: the default engine beside everybody else.

Events never repeat, and contenders take turns batch by batch (`support/turns.py`). CPU time per
event; the least and the most of the batches in brackets. All matches are compared. Groups:

    flat      Arrow in, ids out, through the engine, for each index; NumPy and a compiled scan
    index     the same with --index-only: codes in, clause ids out
    nested    deep expressions: batches of Arrow, one dict at a time; A-Tree, compiled Python
              functions, with which the goal is judged
    tiny      1, 10 and 100 subscriptions, one dict at a time

    script/bench real geo4 prices --scale 0.1
    script/bench real --group nested -n 1000

"others" are all that the default is not made of: mill, the papers' indexes, A-Tree, the scan,
NumPy, compiled Python functions. "best part" is the best of our structures if it has them all.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import matchmill as mm
from benchmarks.support.real_contenders import (
    Contender,
    a_tree_contender,
    arrow_batches,
    engine_contender,
    engine_of,
    index_contender,
    numpy_contender,
    python_contenders,
    single_contender,
)
from benchmarks.support.timing import Spread, Target, number
from benchmarks.support.turns import Figures, take_turns
from matchmill.encoding.conjunction_table import take_clauses
from matchmill.errors import InputError
from matchmill.index.registry import DEFAULT_INDEX, INDEXES, index_class
from matchmill.lab.experiments.measure import table_of
from matchmill.lab.workloads.columns import expressions
from matchmill.lab.workloads.flat import Workload, event_dicts
from matchmill.lab.workloads.nested import NESTED, nested
from matchmill.lab.workloads.real import REAL, real
from matchmill.lab.workloads.registry import generate

_OURS = "default"
_INDEXES = "mill,mask_tree,bitmaps,pairs,rein,hem,counting,be_tree,pst_bloom,pst_hash,op_index,scan"
_PYTHON = ("lambdas", "function")
_TINY = (1, 10, 100)
_PROBE = 4000  # clauses of the trial build
_GOALS = {"geo": 5, "sensors": 5, "prices": 3, "timestamps": 3, "sparse": 3, "wide": 3, "ids": 2,
          "long": 2, "many": 2, "cnf": 2, "deep": 2, "tiny100": 1}  # fmt: skip
_INDEX_GOALS = {"geo": 10, "sensors": 10}


class Row(NamedTuple):
    """The figures of all contenders on one workload."""

    workload: str
    n: int
    figures: dict[str, Figures]
    contenders: dict[str, Contender]
    goal: float | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="default: all of a group")
    parser.add_argument("--group", choices=("flat", "nested", "tiny"), default="flat")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the subscriptions")
    parser.add_argument("-n", type=int, help="subscriptions of nested workloads (default: 1000)")
    parser.add_argument("--long", action="store_true", help="also a line for each contender")
    parser.add_argument("--index-only", action="store_true", help="codes in, clause ids out")
    parser.add_argument("--contenders", default=_INDEXES, help="indexes (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=1000, help="events per batch")
    parser.add_argument("--batches", type=int, default=6, help="the first one warms up")
    parser.add_argument("--hopeless", type=float, default=150, help="left out if so many times")
    parser.add_argument("--seconds", type=float, default=1.0, help="of one contender for a batch")
    parser.add_argument("--build-seconds", type=float, default=40, help="left out if it takes more")
    parser.add_argument("--seed", type=int, default=1)


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table; 1 if matches differ."""
    known = {"flat": list(REAL), "nested": list(NESTED), "tiny": [f"tiny{n}" for n in _TINY]}
    names = arguments.workloads or known[arguments.group]
    for name in names:
        if name not in known[arguments.group]:
            listed = ", ".join(known[arguments.group])
            raise InputError(f"no workload {name!r} in {arguments.group}; there are: {listed}")
    rows = []
    for name in names:
        rows.append(_GROUPS[arguments.group](name, arguments))
        _say(rows[-1])
    _print_table(rows, arguments)
    if arguments.long:
        _print_contenders(rows)
    if arguments.group == "nested":
        _print_among(rows)
    return int(any("WRONG" in f.reason for row in rows for f in row.figures.values()))


# -- flat workloads -------------------------------------------------------------------------------


def _flat(name: str, arguments: argparse.Namespace) -> Row:
    spec = real(name, arguments.scale)
    n_events = arguments.batch * arguments.batches
    workload = generate(spec.changed(n_events=n_events, seed=arguments.seed))
    asked = [index for index in arguments.contenders.split(",") if index in INDEXES]
    left_out = _slow_builds(workload, asked, arguments.build_seconds)
    chosen = [index for index in asked if index not in left_out]
    if arguments.index_only:
        made = {_OURS: index_contender(DEFAULT_INDEX, workload, arguments.batch)}
        for index in chosen:
            try:
                made[index] = index_contender(index, workload, arguments.batch)
            except InputError as error:  # too large for it
                left_out[index] = str(error)
        goals = _INDEX_GOALS
    else:
        made = _engines(workload, chosen, arguments.batch, left_out)
        made["compiled scan"] = index_contender("scan", workload, arguments.batch)
        goals = _GOALS
    brute = numpy_contender(workload, arguments.batch)
    if isinstance(brute, str):
        left_out["numpy"] = brute
    else:
        made["numpy"] = brute
    return _measured(name, workload.subscriptions.n_clauses, made, left_out, goals, arguments)


def _slow_builds(workload: Workload, names: Sequence[str], limit: float) -> dict[str, str]:
    """Return the indexes that would take too long to build, by the time for a few clauses."""
    table = table_of(workload.subscriptions)
    few = take_clauses(table, range_of(min(_PROBE, table.n_clauses)))
    slow = {}
    for name in names:
        index_class(name).build(take_clauses(table, range_of(min(8, table.n_clauses))))  # compiles
        start = time.process_time()
        try:
            index_class(name).build(few)
        except InputError as error:
            slow[name] = str(error)
            continue
        expected = (time.process_time() - start) * table.n_clauses / few.n_clauses
        if expected > limit:
            slow[name] = f"to build: {expected:,.0f} s expected"
    return slow


def _engines(
    workload: Workload, indexes: Iterable[str], n_batch: int, left_out: dict[str, str]
) -> dict[str, Contender]:
    batches = arrow_batches(workload, n_batch)
    training = arrow_batches(workload._replace(events=workload.training), 512)[0]
    texts = expressions(workload)
    table = pa.table({"subscription_id": pa.array(range(len(texts))), "expression": texts})
    made = {}
    with tempfile.TemporaryDirectory() as temporary:
        engine = mm.Engine(settings=mm.Settings(background=False))
        engine.subscribe_many(table, strict=True)
        engine.save(Path(temporary) / "engine")
        engine.learn(training)
        engine.compact()
        made[_OURS] = engine_contender(engine, batches)
        for index in indexes:
            try:
                other = engine_of(Path(temporary) / "engine", index, training)
            except InputError as error:
                left_out[index] = str(error)
                continue
            made[index] = engine_contender(other, batches)
    return made


# -- expressions ----------------------------------------------------------------------------------


def _nested(name: str, arguments: argparse.Namespace) -> Row:
    n, n_events = arguments.n or 1000, arguments.batch * arguments.batches
    work = nested(name, n, n_events, arguments.seed)
    started = time.process_time()
    engine = mm.Engine(settings=mm.Settings(background=False))
    engine.subscribe_many(enumerate(work.expressions), strict=True)
    loaded = time.process_time() - started
    engine.learn(work.training)
    engine.compact()
    tables = [
        pa.Table.from_pylist(work.events[start : start + arguments.batch])
        for start in range(0, n_events, arguments.batch)
    ]
    batch = engine_contender(engine, tables)._replace(build_seconds=loaded / n * 1e6)
    made = {_OURS: batch, "match(dict)": single_contender(engine, work.events, arguments.batch)}
    made["a_tree"] = a_tree_contender(work.expressions, tables)
    made |= python_contenders(work.expressions, work.events, arguments.batch)
    return _measured(name, n, made, {}, _GOALS, arguments)


def _tiny(name: str, arguments: argparse.Namespace) -> Row:
    n, n_events = int(name.removeprefix("tiny")), arguments.batch * arguments.batches
    workload = generate(real("mixed").changed(n_subscriptions=n, n_events=n_events))
    texts, events = expressions(workload).to_pylist(), list(event_dicts(workload))
    engine = mm.Engine(settings=mm.Settings(background=False))
    engine.subscribe_many(enumerate(texts), strict=True)
    made = {_OURS: single_contender(engine, events, arguments.batch)}
    made |= python_contenders(texts, events, arguments.batch)
    return _measured(name, n, made, {}, _GOALS, arguments)


_GROUPS = {"flat": _flat, "nested": _nested, "tiny": _tiny}


# -- figures --------------------------------------------------------------------------------------


def range_of(n: int) -> np.ndarray:
    """Return the numbers below n."""
    return np.arange(n)


def _measured(
    name: str,
    n: int,
    made: dict[str, Contender],
    left_out: Mapping[str, str],
    goals: Mapping[str, float],
    arguments: argparse.Namespace,
) -> Row:
    figures = take_turns(
        {contender: one.call for contender, one in made.items()},
        arguments.batches,
        arguments.batch,
        n,
        hopeless=arguments.hopeless,
        seconds=arguments.seconds,
    )
    figures |= {contender: Figures([], 0, reason) for contender, reason in left_out.items()}
    goal = next((goal for start, goal in goals.items() if name.startswith(start)), None)
    goal = None if name.endswith("_among") else goal
    return Row(name, n, figures, made, goal)


def _is_part(name: str) -> bool:
    """Tell whether the default may be made of it; mill, which was the default, is an `other`."""
    if name not in INDEXES or name in ("mill", "scan", "lists"):
        return name == "match(dict)"
    return index_class(name).__module__.startswith("matchmill.index.")


def _best(row: Row, *, parts: bool) -> tuple[str, float]:
    found = [
        (Spread.of(f.seconds).median, name)
        for name, f in row.figures.items()
        if f.seconds and name != _OURS and _is_part(name) == parts
    ]
    seconds, name = min(found, default=(float("nan"), "–"))
    return name, seconds * 1e6


def _us(figures: Figures) -> str:
    return str(Spread.of([s * 1e6 for s in figures.seconds]))


def _say(row: Row) -> None:
    for name, f in row.figures.items():
        figure = f"{_us(f)} µs" if f.seconds else "left out"
        print(f"{row.workload} {name}: {figure} {f.reason}", file=sys.stderr, flush=True)


_HEADER = (
    "workload", "subscriptions", "matches", "default, µs", "best other", "µs", "ratio", "goal",
    "best part, µs", "B/sub.", "build, s/1M", "all others, µs",
)  # fmt: skip


def _print_table(rows: Sequence[Row], arguments: argparse.Namespace) -> None:
    print(f"\n| {' | '.join(_HEADER)} |\n|{'---|' * len(_HEADER)}")
    for row in rows:
        print(f"| {' | '.join(_cells(row))} |")
    what = "Index alone. " if arguments.index_only else ""
    print(
        f"\n{what}Batches of {arguments.batch:,} events, {arguments.batches - 1} of them measured, "
        f"taking turns; CPU time; load {os.getloadavg()[0]:.1f}."
    )
    for row in rows:
        reasons = [f"{name}: {f.reason}" for name, f in row.figures.items() if f.reason]
        if reasons:
            print(f"Left out or wrong on {row.workload}: {'; '.join(reasons)}.")


def _cells(row: Row) -> list[str]:
    ours, own = row.figures[_OURS], row.contenders[_OURS]
    other, other_us = _best(row, parts=False)
    part, part_us = _best(row, parts=True)
    ratio = other_us / (Spread.of(ours.seconds).median * 1e6)
    python = _PYTHON[:1] if row.workload.startswith("tiny") else _PYTHON
    judged = min(
        (Spread.of(f.seconds) for n, f in row.figures.items() if n in python and f.seconds),
        default=Spread(other_us / 1e6, 0, 0),
    )
    reached = judged.median / Spread.of(ours.seconds).median
    verdict = "" if row.goal is None else Target("≥", row.goal, "x").verdict(round(reached, 2))
    rest = sorted(
        (Spread.of(f.seconds).median, name)
        for name, f in row.figures.items()
        if f.seconds and name not in (_OURS, other)
    )
    return [
        row.workload, f"{row.n:,}", number(ours.n_matches), _us(ours), other, number(other_us),
        f"**{ratio:.1f}x**", verdict, "–" if part == "–" else f"{part} {number(part_us)}",
        number(own.n_bytes), number(own.build_seconds),
        ", ".join(f"{name} {number(s * 1e6)}" for s, name in rest),
    ]  # fmt: skip


def _print_contenders(rows: Sequence[Row]) -> None:
    """Print time, memory and construction of each contender."""
    header = (
        "workload",
        "contender",
        "µs per event",
        "times the default's",
        "B/sub.",
        "build, s/1M",
    )
    print(f"\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for row in rows:
        ours = Spread.of(row.figures[_OURS].seconds).median
        for name, f in row.figures.items():
            if f.seconds:
                one = row.contenders[name]
                times = number(Spread.of(f.seconds).median / ours)
                figures = (_us(f), times, number(one.n_bytes), number(one.build_seconds))
                print(f"| {row.workload} | {name} | {' | '.join(figures)} |")


def _print_among(rows: Sequence[Row]) -> None:
    """Print what one expression among plain ones costs, if both were measured."""
    by_name = {row.workload: row for row in rows}
    plain = by_name.get("plain")
    for name in ("or_among", "cnf_among"):
        if plain is None or name not in by_name:
            continue
        for way in (_OURS, "match(dict)"):
            with_it = Spread.of(by_name[name].figures[way].seconds).median
            without = Spread.of(plain.figures[way].seconds).median
            print(
                f"{name}, {way}: {number(with_it * 1e6)} µs, plain ones alone "
                f"{number(without * 1e6)} µs: {with_it / without:.2f}x"
            )
