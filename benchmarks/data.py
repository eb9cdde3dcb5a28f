"""Events in, ids out: end to end from Python objects, text, JSON lines and Arrow.

One row per figure: add a function with `@row`. It returns a call and what its time is divided by.
Figures are CPU time, of child processes too, unless the call returns a figure itself.
`--before FOLDER` measures the same rows with the package in another checkout, in turns.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matchmill as mm


class Size(NamedTuple):
    """How much to measure."""

    n_events: int
    share: float  # of the subscriptions of each row

    def of(self, n: int) -> int:
        """Return how many subscriptions a row has."""
        return max(1, int(n * self.share))


Measured = tuple[Callable[[], object], int]  # a call, and the number of units in it


class Row(NamedTuple):
    """One figure: what it is called, its unit, its goal, and what to measure."""

    name: str
    goal: float | None
    unit: str
    prepare: Callable[[Size], Measured]


ROWS: list[Row] = []


def row(
    name: str, goal: float | None = None, unit: str = "µs per event"
) -> Callable[[Callable[[Size], Measured]], Callable[[Size], Measured]]:
    """Add a row to the table."""

    def add(prepare: Callable[[Size], Measured]) -> Callable[[Size], Measured]:
        ROWS.append(Row(name, goal, unit, prepare))
        return prepare

    return add


def one_by_one(engine: mm.Engine, events: Iterable[Any]) -> None:
    """Match events by `match`, each for itself."""
    for event in events:
        engine.match(event)


# -- wide and sparse events -----------------------------------------------------------------------


def equalities(n: int, n_attributes: int, values: list[Any], seed: int = 1) -> mm.Engine:
    """Return subscriptions with three equalities each."""
    draw = random.Random(seed)
    texts = {}
    for i in range(n):
        names = draw.sample(range(n_attributes), 3)
        texts[i] = " and ".join(f"a{name} = {draw.choice(values)!r}" for name in names)
    return mm.Engine(texts)


def events_with(n: int, n_attributes: int, n_each: int, values: list[Any]) -> list[dict[str, Any]]:
    """Return events that have some of the attributes each."""
    draw = random.Random(2)
    names = [f"a{i}" for i in range(n_attributes)]
    return [{name: draw.choice(values) for name in draw.sample(names, n_each)} for _ in range(n)]


@row("2,000 sparse attributes, 20 per event, 10k subscriptions: list of dicts", 15)
def sparse_list(size: Size) -> Measured:
    values = list(range(10))
    engine = equalities(size.of(10_000), 2000, values)
    events = events_with(size.n_events, 2000, 20, values)
    return partial(engine.match_many, events, threads=1), len(events)


@row("the same, one by one", 15)
def sparse_single(size: Size) -> Measured:
    values = list(range(10))
    engine = equalities(size.of(10_000), 2000, values)
    events = events_with(size.n_events, 2000, 20, values)
    return partial(one_by_one, engine, events), len(events)


@row("200 attributes per event, 1k subscriptions: list of dicts", 15)
def wide_list(size: Size) -> Measured:
    values = [f"v{i}" for i in range(10)]
    engine = equalities(size.of(1000), 200, values)
    events = events_with(size.n_events, 200, 200, values)
    return partial(engine.match_many, events, threads=1), len(events)


@row("the same, one by one", 15)
def wide_single(size: Size) -> Measured:
    values = [f"v{i}" for i in range(10)]
    engine = equalities(size.of(1000), 200, values)
    events = events_with(size.n_events, 200, 200, values)
    return partial(one_by_one, engine, events), len(events)


@row("200 attributes per event, 20 of them asked for: list of dicts", 15)
def wide_unasked_list(size: Size) -> Measured:
    values = [f"v{i}" for i in range(10)]
    engine = equalities(size.of(1000), 20, values)
    events = events_with(size.n_events, 200, 200, values)
    return partial(engine.match_many, events, threads=1), len(events)


@row("the same, one by one", 15)
def wide_unasked_single(size: Size) -> Measured:
    values = [f"v{i}" for i in range(10)]
    engine = equalities(size.of(1000), 20, values)
    events = events_with(size.n_events, 200, 200, values)
    return partial(one_by_one, engine, events), len(events)


@row("200,000 attributes, 50 per event, 100k subscriptions: list of dicts", 30)
def world_list(size: Size) -> Measured:
    values = list(range(10))
    engine = equalities(size.of(100_000), 200_000, values)
    events = events_with(size.n_events, 200_000, 50, values)
    return partial(engine.match_many, events, threads=1), len(events)


@row("the same, one by one", 30)
def world_single(size: Size) -> Measured:
    values = list(range(10))
    engine = equalities(size.of(100_000), 200_000, values)
    events = events_with(size.n_events, 200_000, 50, values)
    return partial(one_by_one, engine, events), len(events)


@row("Arrow table of 1,000 columns, 10 of them asked for")
def wide_arrow(size: Size) -> Measured:
    import pyarrow as pa

    values = [f"v{i}" for i in range(10)]
    engine = equalities(size.of(1000), 10, values)
    draw = random.Random(3)
    n = min(size.n_events, 2000)
    table = pa.table({f"a{i}": draw.choices(values, k=n) for i in range(1000)})
    return partial(engine.match_many, table, threads=1), n


# -- what comes out -------------------------------------------------------------------------------


def _matching(size: Size, ids: Callable[[int], Any]) -> tuple[mm.Engine, list[dict[str, Any]]]:
    n = 50_000
    engine = mm.Engine({ids(i): f"a = {i % 100} and b < {100 + i}" for i in range(n)})
    return engine, [{"a": i % 100, "b": 0, "c": i} for i in range(max(100, size.n_events // 10))]


@row("500 matches per event: one by one, ids are texts", 25)
def many_matches_text(size: Size) -> Measured:
    engine, events = _matching(size, lambda i: f"subscription-{i}")
    return partial(one_by_one, engine, events), len(events)


@row("500 matches per event: one by one, ids are numbers", 25)
def many_matches_number(size: Size) -> Measured:
    engine, events = _matching(size, lambda i: i)
    return partial(one_by_one, engine, events), len(events)


@row("500 matches per event: a list of dicts, then its sets", 25)
def many_matches_list(size: Size) -> Measured:
    engine, events = _matching(size, lambda i: f"subscription-{i}")
    return lambda: list(engine.match_many(events, threads=1)), len(events)


# -- fixed costs ----------------------------------------------------------------------------------


def _tiny(n: int) -> Callable[[Size], Measured]:
    def prepare(size: Size) -> Measured:
        draw = random.Random(4)
        texts = {i: f"origin = 'A{draw.randrange(20)}' and delay > {i}.5" for i in range(n)}
        engine = mm.Engine(texts)
        events = [
            {"origin": f"A{draw.randrange(20)}", "delay": draw.random() * 100, "carrier": "UA"}
            for _ in range(size.n_events)
        ]
        return partial(one_by_one, engine, events), len(events)

    return prepare


row("1 subscription, one dict at a time", 1.5)(_tiny(1))
row("10 subscriptions, one dict at a time", 2)(_tiny(10))
row("100 subscriptions, one dict at a time", 4)(_tiny(100))


# -- text -----------------------------------------------------------------------------------------

_WORDS = [f"{a}{b}{c}" for a in "bdfgklmn" for b in "aeiou" for c in "rstxz"]


def _phrases(n: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(_WORDS, k=8)) for _ in range(n)]


def _texts(pattern: Callable[[random.Random], str], n: int) -> Callable[[Size], Measured]:
    def prepare(size: Size) -> Measured:
        draw = random.Random(5)
        engine = mm.Engine({i: pattern(draw) for i in range(size.of(n))})
        events = [{"title": title} for title in _phrases(size.n_events, 6)]
        return partial(engine.match_many, events, threads=1), len(events)

    return prepare


def _two(draw: random.Random) -> str:
    return f"{draw.choice(_WORDS)} {draw.choice(_WORDS)}"


row("title like 'x%' at 5k, new texts")(_texts(lambda d: f"title like '{_two(d)}%'", 5000))
row("title like '%x' at 5k, new texts")(_texts(lambda d: f"title like '%{_two(d)}'", 5000))
row("title ilike '%x%' at 5k, new texts")(_texts(lambda d: f"title ilike '%{_two(d)}%'", 5000))
row("title like 'x%y_z%' at 5k, new texts")(
    _texts(lambda d: f"title like '{d.choice(_WORDS)}%{_two(d)}_{d.choice('bdf')}%'", 5000)
)
row("title rlike 'x.*y' at 500, new texts")(
    _texts(lambda d: f"title rlike '{d.choice(_WORDS)}[a-m]? {d.choice(_WORDS)}$'", 500)
)


@row("title ilike '%x%' at 5k, texts that repeat: list of dicts")
def repeated_texts(size: Size) -> Measured:
    draw = random.Random(5)
    engine = mm.Engine({i: f"title ilike '%{_two(draw)}%'" for i in range(size.of(5000))})
    phrases = _phrases(200, 6)
    events = [{"title": draw.choice(phrases)} for _ in range(size.n_events)]
    return partial(engine.match_many, events, threads=1), len(events)


@row("title rlike at 500, texts that repeat: list of dicts")
def repeated_regexes(size: Size) -> Measured:
    draw = random.Random(5)
    words = [(draw.choice(_WORDS), draw.choice(_WORDS)) for _ in range(size.of(500))]
    engine = mm.Engine({i: f"title rlike '{a}[a-m]? {b}$'" for i, (a, b) in enumerate(words)})
    phrases = _phrases(200, 6)
    events = [{"title": draw.choice(phrases)} for _ in range(size.n_events)]
    return partial(engine.match_many, events, threads=1), len(events)


@row("load 10,000 ilike '%…%' alternatives and match once", 1, "s")
def load_alternatives(size: Size) -> Measured:
    n = size.of(10_000)
    text = " or ".join(f"title ilike '%x{i}y%'" for i in range(n))

    def load() -> None:
        engine = mm.Engine(settings=mm.Settings(max_conditions=n, max_clauses=n))
        engine.subscribe("all", text)
        assert engine.match({"title": "the X7Y of it"}) == {"all"}

    return load, 1_000_000


# -- a nightly job --------------------------------------------------------------------------------

_PRODUCTS_PER_EVENT = 500  # of the option --events: a million by default
_MEGABYTE = 1024  # in the units of ru_maxrss


def _product_files(size: Size, folder: Path, *, lists: bool) -> tuple[Path, Path]:
    """Write searches and products; return their paths."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(7)
    n, at_once = size.n_events * _PRODUCTS_PER_EVENT, 50_000
    tags = np.array([f"tag-{i}" for i in range(2000)])
    often = 1.0 / np.arange(1, 2001)
    products = folder / "products.parquet"
    writer = None
    for start in range(0, n, at_once):
        k = min(at_once, n - start)
        columns = {
            "sku": [f"sku-{i}" for i in range(start, start + k)],
            "title": [f"product number {i} of the shop" for i in range(start, start + k)],
            "brand": [f"brand-{i}" for i in draw.integers(0, 500, k)],
            "category": [f"category-{i}" for i in draw.integers(0, 200, k)],
            "price": np.round(draw.lognormal(3, 1, k), 2),
        }
        if lists:
            columns["tags"] = list(tags[draw.choice(2000, (k, 5), p=often / often.sum())])
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(products, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    pick = random.Random(8)
    searches = folder / "searches.jsonl"
    with searches.open("w") as file:
        for i in range(size.of(50_000)):
            low = round(pick.lognormvariate(3, 1), 2)
            some = [f"'tag-{pick.randrange(2000)}'" for _ in range(2)]
            what = f"tags contains any ({', '.join(some)}) and " if lists else ""
            text = (
                f"{what}category = 'category-{pick.randrange(200)}'"
                f" and price between {low} and {round(1.3 * low, 2)}"
            )
            file.write(json.dumps({"subscription_id": f"search-{i}", "expression": text}) + "\n")
    return searches, products


def _nightly(*, lists: bool, memory: bool) -> Callable[[Size], Measured]:
    def prepare(size: Size) -> Measured:
        folder = Path(tempfile.mkdtemp(prefix="matchmill-bench-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        searches, products = _product_files(size, folder, lists=lists)
        command = [sys.executable, "-m", "matchmill", "match", searches, products, "--quiet"]

        def match() -> float | None:
            subprocess.run([*command, "--out", folder / "hits.parquet"], check=True)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / _MEGABYTE
            return peak if memory else None

        return match, 1_000_000

    return prepare


row("nightly job: 50k searches, 1M products, no lists", 30, "s")(
    _nightly(lists=False, memory=False)
)
row("its peak of memory", 1000, "MB")(_nightly(lists=False, memory=True))
row("nightly job with `tags contains any`", 30, "s")(_nightly(lists=True, memory=False))
row("its peak of memory with `tags contains any`", 1000, "MB")(_nightly(lists=True, memory=True))


# -- measuring ------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("--events", type=int, default=2000, help="per row")
    parser.add_argument("--share", type=float, default=1.0, help="of each row's subscriptions")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name contains this")
    parser.add_argument("--before", metavar="FOLDER", help="another checkout to compare with")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    from benchmarks.support.timing import Spread, Target, number, print_table, ratio

    here = str(Path(__file__).parents[1])
    folders = {"now": here, **({"before": arguments.before} if arguments.before else {})}
    lines = []
    for n, each in enumerate(ROWS):
        if arguments.only not in each.name:
            continue
        found = _in_turns(n, folders, arguments)
        now, before = found["now"], found.get("before")
        median = statistics.median(now)
        lines.append(
            (
                each.name if each.name != "the same, one by one" else "… the same, one by one",
                Spread.of(before) if before else "",
                Spread.of(now),
                each.unit,
                number(ratio(before, now).median) if before else "",
                Target("≤", each.goal).verdict(median) if each.goal is not None else "",
            )
        )
        print(*lines[-1], sep="  ", flush=True)
    header = ("figure", "before", "now", "unit", "times as fast", "goal")
    print_table("Events in, ids out: CPU time", header, lines)
    return 0


def _in_turns(n: int, folders: dict[str, str], arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure one row with each checkout, a process each, round by round."""
    command = [sys.executable, __file__, str(n), str(arguments.events), str(arguments.share)]
    children = {
        name: subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": folder},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, folder in folders.items()
    }
    found: dict[str, list[float]] = {name: [] for name in folders}
    try:
        for _ in range(arguments.rounds + 1):  # the first round warms up
            for name, child in children.items():
                found[name].append(_answer(child, f"row {n}, {name}"))
    finally:
        for child in children.values():
            child.communicate()
    return {name: figures[1:] for name, figures in found.items()}


def _answer(child: subprocess.Popen[str], name: str) -> float:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("\n")
    child.stdin.flush()
    answer = child.stdout.readline()
    if not answer:
        raise SystemExit(f"{name}: the process has failed")
    return float(answer)


def _measure() -> None:
    """Be the process that measures one row: a line in, a figure out."""
    n, n_events, share = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    call, n_units = ROWS[n].prepare(Size(n_events, share))
    for _ in sys.stdin:
        gc.collect()
        start = _cpu_seconds()
        figure = call()
        if not isinstance(figure, float):
            figure = (_cpu_seconds() - start) / n_units * 1e6
        print(figure, flush=True)


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    _measure()
