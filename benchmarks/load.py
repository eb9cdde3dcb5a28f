"""Load texts of several kinds through subscribe_many: seconds, bytes, peak memory.

Each kind is loaded in a process of its own, so that its peak of memory is its own. In the columns
of the parser, the same load is read row by row, on a tenth of the texts, in the same process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import matchmill as mm
from benchmarks.support.timing import print_table
from matchmill.engine import loading
from matchmill.index.segments import Segmented
from matchmill.lab.workloads.flight_alerts import flight_alerts

Rows = list[tuple[str, Any]]

_N_WORDS = 50_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("-n", type=int, default=1_000_000, help="subscriptions")
    parser.add_argument(
        "--workload", nargs="+", choices=WORKLOADS, default=["alerts", "doubles", "mixed"]
    )
    parser.add_argument("--dialect", default="matchmill", help="of patterns")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    n = arguments.n
    if arguments.child:
        rows = WORKLOADS[arguments.workload[0]](n)
        print(json.dumps(_measured(rows, arguments.dialect)))
        return 0
    table, is_whole = [], True
    for name in arguments.workload:
        command = [sys.executable, "-m", "benchmarks", "load", "--child"]
        command += ["-n", str(n), "--workload", name, "--dialect", arguments.dialect]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found = json.loads(text.splitlines()[-1])
        is_whole = is_whole and found["is_same"]
        table.append(
            (
                name,
                f"{found['seconds']:.1f}",
                f"{found['cpu'] / n * 1e6:.1f}",
                f"{found['index_cpu'] / n * 1e6:.1f}",
                f"{found['parser_cpu'] / found['parser_n'] * 1e6:.1f}",
                f"{found['bytes'] / n:.0f}",
                f"{found['peak_mib']:.0f}",
            )
        )
    print_table(
        f"{n:,} subscriptions of each kind",
        ("texts", "s", "µs CPU per text", "of it index", "by the parser", "bytes", "peak MiB"),
        table,
        ["peak: above what the input takes; bytes: of the engine, per subscription"],
    )
    return int(not is_whole)


def _measured(rows: Rows, dialect: str) -> Mapping[str, Any]:
    n_index = [0.0]
    apply = Segmented.apply

    def timed(*arguments: Any) -> Any:
        start = time.process_time()
        try:
            return apply(*arguments)
        finally:
            n_index[0] += time.process_time() - start

    Segmented.apply = timed  # type: ignore[method-assign]
    few = rows[: max(1, len(rows) // 10)]
    mm.Engine().subscribe_many(rows[:9000], dialect=dialect)  # compile or load the kernels
    n_index[0] = 0.0
    before = _peak_mib()
    start, cpu = time.perf_counter(), time.process_time()
    engine = mm.Engine()
    engine.subscribe_many(rows, dialect=dialect)
    found = {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "index_cpu": n_index[0],
        "bytes": engine.stats().n_bytes,
        "peak_mib": _peak_mib() - before,
    }
    new = mm.Engine()
    report = new.subscribe_many(few, dialect=dialect)
    loading._MANY = loading._MUCH = 1 << 60
    cpu = time.process_time()
    by_parser = mm.Engine()
    same_report = by_parser.subscribe_many(few, dialect=dialect)
    found |= {"parser_cpu": time.process_time() - cpu, "parser_n": len(few)}
    is_same = same_report.rejected == report.rejected and len(new) == len(by_parser)
    return found | {"is_same": is_same}


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# -- workloads ------------------------------------------------------------------------------------


def _alerts(n: int) -> Rows:
    """Make alerts whose constants repeat."""
    return list(flight_alerts(n))


def _doubles(n: int) -> Rows:
    """Make five ranges per text; no number occurs twice."""
    rng = Random(1)
    names = ("lat", "lon", "price", "speed", "height")

    def text() -> str:
        lows = [(name, rng.random() * 1000) for name in names]
        return " and ".join(f"{c} between {x!r} and {x + rng.random()!r}" for c, x in lows)

    return [(f"doubles {i}", text()) for i in range(n)]


def _strings(n: int) -> Rows:
    """Make lists of 3 to 20 out of 50,000 words."""
    rng = Random(2)
    words = [f"'word {k}'" for k in range(_N_WORDS)]

    def text() -> str:
        several = ", ".join(rng.choice(words) for _ in range(rng.randint(3, 20)))
        return f"brand = {rng.choice(words)} and city in ({several})"

    return [(f"strings {i}", text()) for i in range(n)]


def _mixed(n: int) -> Rows:
    """Make a third of each of those; one percent is damaged, one percent needs the parser."""
    rng = Random(3)
    rows = []
    kinds = [make(n // 3 + 1) for make in (_alerts, _doubles, _strings)]
    for i in range(n):
        name, text = kinds[i % 3][i // 3]
        odd = rng.random()
        if odd < 0.01:
            text += " and"
        elif odd < 0.02:
            text = f"note like '%{rng.randrange(1000)}%' and {text}"
        rows.append((name, text))
    return rows


def _cities(n: int) -> Rows:
    """Make lists of 1,000 out of 50,000 cities."""
    rng = Random(4)
    words = [f"'city {k:05d}'" for k in range(_N_WORDS)]
    return [(f"cities {i}", f"city in ({', '.join(rng.sample(words, 1000))})") for i in range(n)]


def _windows(n: int) -> Rows:
    """Make windows of time, to the second, and a day."""
    rng = Random(6)

    def stamp() -> str:
        day, second = rng.randrange(1, 29), rng.randrange(86_400)
        clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        return f"timestamp '2026-{rng.randrange(1, 13):02}-{day:02} {clock}'"

    def text() -> str:
        low, high = sorted((stamp(), stamp()))
        day = f"date '2026-{rng.randrange(1, 13):02}-01'"
        return f"ts between {low} and {high} and due < {day} and gate = 'G{rng.randrange(100)}'"

    return [(f"window {i}", text()) for i in range(n)]


def _json(n: int) -> Rows:
    """Make the same patterns as texts."""
    return [(name, json.dumps(pattern)) for name, pattern in _patterns(n)]


def _prices(n: int) -> Rows:
    """Make JSON patterns as texts; no number occurs twice."""
    rng = Random(7)

    def pattern() -> str:
        fields = {}
        for name in ("price", "weight", "speed"):
            low = rng.random() * 1000
            fields[name] = [{"numeric": [">=", low, "<", low + rng.random()]}]
        return json.dumps(fields | {"sku": [f"sku-{rng.randrange(10**9)}"]})

    return [(f"price {i}", pattern()) for i in range(n)]


def _patterns(n: int) -> Rows:
    """Make JSON patterns of four fields."""
    rng = Random(5)

    def pattern() -> dict[str, Any]:
        return {
            "origin": [rng.choice(["JFK", "LGA", "EWR"])],
            "dest": [f"D{rng.randrange(100)}", f"D{rng.randrange(100)}"],
            "detail": {
                "dep_delay": [{"numeric": [">", rng.randrange(300)]}],
                "carrier": [{"prefix": rng.choice("ABCDEFGH")}],
            },
        }

    return [(f"pattern {i}", pattern()) for i in range(n)]


WORKLOADS: dict[str, Callable[[int], Rows]] = {
    "alerts": _alerts,
    "doubles": _doubles,
    "mixed": _mixed,
    "strings": _strings,
    "cities": _cities,
    "windows": _windows,
    "patterns": _patterns,
    "json": _json,
    "prices": _prices,
}
