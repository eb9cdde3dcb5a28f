"""A guided tour: many alerts, a year of flights, every match. `script/demo --tour` runs it.

    load → subscribe → match → check → look at matches and near misses → save and open

Ends with exit code 1 if a match disagrees with the plain evaluation of the expression.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import stat
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import matchmill as mm
from matchmill.io.writers import MatchWriter
from matchmill.kernels.cache import cache_bases
from matchmill.lab.workloads.flight_alerts import N_FLIGHTS, flight_alerts, load_flights

__all__ = ["main"]

WIDTH = 100
CHUNK = 16_384
N_CHECKED_FLIGHTS = 200
N_CHECKED_ALERTS = 500
N_THREADS = min(4, os.cpu_count() or 1)

Pair = tuple[str, str]
Event = dict[str, Any]
Found = dict[int, set[str | int]]  # by row of the flights

# Mistakes that people make, to show what becomes of them.
BAD_ROWS: tuple[Pair, ...] = (
    ("bad-operator", "origin = 'JFK' and dep_delay => 60"),
    ("bad-quotes", "carrier = \"UA\" and dest = 'SFO'"),
    ("bad-word", "tailnum like 'N1%' adn month = 7"),
    ("bad-list", "dest in () and dep_delay > 30"),
    ("alert-000000", "origin = 'LGA' and dep_time is null"),
)

# (attribute, change, in words): a flight that is nearly like another one
WHAT_IFS = (
    ("dep_delay", 10, "10 minutes later"),
    ("arr_delay", 15, "landing 15 minutes later"),
    ("day", 1, "one day later"),
)


class Options(NamedTuple):
    n_subscriptions: int
    n_events: int
    seed: int
    folder: Path


class Outcome(NamedTuple):
    """What matching all flights gave."""

    n_matches: int
    seconds: float  # by the clock, writing included
    match_seconds: float  # of the processor in all threads, matching alone
    busiest: list[tuple[str | int, int]]
    kept: Found  # the matches of a few flights, for a closer look


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    screen = Screen(_console())
    words = "Match the flights that left New York in 2013 with made-up alerts."
    return exit_code_of(lambda: tour(options_of(argv, words), screen))


def exit_code_of(run: Callable[[], int]) -> int:
    """Run, and return the exit code; say what goes wrong in one line."""
    try:
        return run()
    except (mm.MatchmillError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        return 130


def tour(options: Options, screen: Screen) -> int:
    """All steps; 0 if every answer was right."""
    start = time.perf_counter()
    rng = random.Random(options.seed)

    screen.headline("A year of flights and those who care about some of them")
    flights = load(options, screen)
    alerts = generate(options, screen)
    warm_up(alerts, flights, screen)

    screen.headline("Subscribe")
    engine, subscribe_seconds = subscribe(alerts, screen)

    screen.headline("Match every flight with every alert")
    kept_rows = sorted(rng.sample(range(len(flights)), min(N_CHECKED_FLIGHTS, len(flights))))
    outcome = match_all(engine, flights, kept_rows, options.folder / "matches.parquet", screen)

    screen.headline("Check the answers one by one, without an index")
    events = dict(zip(kept_rows, flights.take(kept_rows).to_pylist(), strict=True))
    n_wrong = check(engine, events, outcome.kept, rng, screen)

    screen.headline("The busiest alerts")
    show_busiest(engine, outcome.busiest, screen)
    screen.headline("Why they match")
    show_matches(engine, events, outcome.kept, screen)
    screen.headline("Near misses: what would have matched")
    show_near_misses(engine, events, outcome.kept, screen)

    screen.headline("Save, and open again")
    n_wrong += save_and_open(engine, flights, options.folder, screen)

    screen.headline("In figures")
    show_figures(engine, len(flights), outcome, subscribe_seconds, screen)
    pq.write_table(flights, options.folder / "flights.parquet")
    show_files(options.folder, screen)
    screen.line(f"All this took {time.perf_counter() - start:.0f} seconds.")
    if n_wrong:
        screen.line(f"[bold red]FAILED: {n_wrong:,} answers were wrong.[/]")
    return 1 if n_wrong else 0


# -- the screen -----------------------------------------------------------------------------------


class Screen:
    """Headlines, lines and progress: bars that go away on a terminal, plain lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._n_headlines = 0

    def headline(self, text: str) -> None:
        self._n_headlines += 1
        self.console.print(f"\n[bold cyan]{self._n_headlines}  {escape(text)}[/]")

    def line(self, markup: str = "") -> None:
        self.console.print(f"   {markup}" if markup else "")

    def text(self, text: str, indent: int = 3) -> None:
        """Text as it is, line by line, without markup."""
        for line in text.splitlines():
            self.console.print(_cut(" " * indent + line, WIDTH), markup=False)

    @contextmanager
    def progress(self, title: str, total: int) -> Iterator[Callable[[int], None]]:
        """Yield a function that takes how many are done."""
        if not self.console.is_terminal:
            yield _quarters(self, title, total)
            return
        columns = (
            TextColumn("   {task.description}"),
            BarColumn(40),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.console, transient=True) as bar:
            task = bar.add_task(title, total=total)
            yield lambda n_done: bar.update(task, completed=n_done)


def _quarters(screen: Screen, title: str, total: int) -> Callable[[int], None]:
    """Progress in at most three lines: at a quarter, half and three quarters of much work."""
    marks = [total * quarter // 4 for quarter in (1, 2, 3)] if total > 100_000 else []

    def update(n_done: int) -> None:
        if marks and n_done >= marks[0]:
            screen.line(f"{title}: {n_done:,} of {total:,} …")
            while marks and n_done >= marks[0]:
                marks.pop(0)

    return update


def _console() -> Console:
    console = Console(highlight=False, soft_wrap=False)
    # Elsewhere than on a terminal rich would assume 80 columns.
    console.width = min(WIDTH, console.width) if console.is_terminal else WIDTH
    return console


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _rate(n: int, what: str, seconds: float) -> str:
    return " ".join([f"{n / seconds:,.0f}", *what.split(), "per second"])


# -- loading --------------------------------------------------------------------------------------


def load(options: Options, screen: Screen) -> pa.Table:
    start = time.perf_counter()
    flights = load_flights()
    if options.n_events < len(flights):  # spread over the year
        flights = flights.take(np.linspace(0, len(flights) - 1, options.n_events).astype(np.int64))
    screen.line(
        f"{len(flights):,} flights with {flights.num_columns} attributes,"
        f" read in {time.perf_counter() - start:.1f} s"
    )
    return flights


def generate(options: Options, screen: Screen) -> list[Pair]:
    start = time.perf_counter()
    alerts = list(flight_alerts(options.n_subscriptions, options.seed))
    screen.line(
        f"{len(alerts):,} alerts, made up in {time.perf_counter() - start:.1f} s, for example:"
    )
    for identifier, expression in alerts[:4]:
        screen.text(f"{identifier}  {expression}", indent=5)
    return alerts


def warm_up(alerts: list[Pair], flights: pa.Table, screen: Screen) -> None:
    """Have all kernels compiled, so that the times to come are those of the work itself."""
    is_cold = not any(any(base.glob("matchmill.*")) for base in cache_bases().readable())
    if is_cold:
        screen.line("The first run compiles the kernels for this machine and keeps them …")
    start = time.perf_counter()
    some = flights.slice(0, 200)
    for fresh_clauses in (1, 4096):  # few clauses and many are matched by different kernels
        engine = mm.Engine(settings=mm.Settings(fresh_clauses=fresh_clauses))
        engine.subscribe_many(alerts[:200])
        engine.match_many(some)
        with tempfile.TemporaryDirectory(prefix="matchmill-demo-") as folder:
            engine.save(folder)
            mm.Engine.open(folder).match_many(some)
    if is_cold:
        screen.line(f"compiled in {time.perf_counter() - start:.0f} s; later runs skip this")


def subscribe(alerts: list[Pair], screen: Screen) -> tuple[mm.Engine, float]:
    """Make an engine with all alerts, and the seconds that took; bad rows are shown."""
    middle = len(alerts) // 2
    rows = [*alerts[:middle], *BAD_ROWS, *alerts[middle:]]
    engine = mm.Engine()
    start = time.perf_counter()
    with screen.progress("subscribing", len(rows)) as progress:
        report = engine.subscribe_many(rows, progress=lambda n_done, _: progress(n_done))
    seconds = time.perf_counter() - start
    screen.line(
        f"[bold]{report.n_accepted:,} accepted, {report.n_rejected:,} rejected[/]"
        f" in {seconds:.1f} s: {_rate(report.n_accepted, '', seconds)},"
        f" {engine.stats().n_bytes / len(engine):.0f} bytes each"
    )
    screen.line("Bad rows are rejected with their reason, the others go in:")
    for rejected in report.rejected:
        screen.text(f"row {rejected.row:,}, {rejected.id}: {_reason(rows, rejected)}", indent=5)
    return engine, seconds


def _reason(rows: list[Pair], rejected: mm.Rejected) -> str:
    """Return the reason, with a caret under the place if the expression is at fault."""
    try:
        mm.parse(rows[rejected.row][1])
    except mm.ExpressionError as error:
        return str(error).replace("\n", "\n  ")
    return rejected.reason


# -- matching -------------------------------------------------------------------------------------


def match_all(
    engine: mm.Engine, flights: pa.Table, kept_rows: list[int], path: Path, screen: Screen
) -> Outcome:
    """Match chunk by chunk; all pairs go to a file, counts and a few results are kept."""
    n_matches, match_seconds = 0, 0.0
    counts = np.zeros(len(engine), np.int64)  # by number: the place of an alert among the ids
    kept: Found = {}
    start = time.perf_counter()
    with MatchWriter(path) as writer, screen.progress("matching", len(flights)) as progress:
        for first, matches, seconds in _chunks_matched(engine, flights):
            match_seconds += seconds
            n_matches += matches.n_matches
            pairs = matches.to_arrow()
            counts += np.bincount(matches.numbers, minlength=len(counts))
            writer.write(pairs.set_column(0, "event_id", pc.add(pairs["event_id"], first)))
            here = range(first, first + matches.n_events)
            kept |= {row: matches[row - first] for row in kept_rows if row in here}
            progress(here.stop)
    seconds = time.perf_counter() - start
    screen.line(
        f"[bold]{n_matches:,} matches[/] found and written in {seconds:.1f} s:"
        f" {_rate(len(flights), 'flights', seconds)},"
        f" {n_matches / len(flights):.1f} alerts a flight"
    )
    return Outcome(n_matches, seconds, match_seconds, _busiest(list(engine), counts), kept)


def _chunks_matched(
    engine: mm.Engine, flights: pa.Table
) -> Iterator[tuple[int, mm.Matches, float]]:
    """(first row, matches, seconds) of each chunk. Any number of threads may match at once."""
    pending: deque[Future[tuple[int, mm.Matches, float]]] = deque()
    with ThreadPoolExecutor(N_THREADS) as pool:
        for first in range(0, len(flights), CHUNK):
            pending.append(pool.submit(_match_chunk, engine, flights, first))
            if len(pending) > N_THREADS:  # results wait here, so memory stays bounded
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _match_chunk(engine: mm.Engine, flights: pa.Table, first: int) -> tuple[int, mm.Matches, float]:
    start = time.thread_time()  # of the processor: other programs do not count
    matches = engine.match_many(flights.slice(first, CHUNK))
    return first, matches, time.thread_time() - start


def _busiest(ids: list[str | int], counts: np.ndarray) -> list[tuple[str | int, int]]:
    """Return the ten alerts with the most matches."""
    return [(ids[i], int(counts[i])) for i in np.argsort(-counts, kind="stable")[:10]]


# -- checking -------------------------------------------------------------------------------------


def check(
    engine: mm.Engine,
    events: dict[int, Event],
    found: Found,
    rng: random.Random,
    screen: Screen,
) -> int:
    """Compare with the plain evaluation of a sample of alerts; the number of wrong answers."""
    matched = sorted(set().union(*found.values()), key=str)  # others match hardly ever
    chosen = {*_some(matched, rng), *_some(list(engine), rng)}
    expressions = {identifier: mm.parse(engine[identifier].expression) for identifier in chosen}
    wrong = disagreements(expressions, events, found)
    n_true = sum(len(found[row] & chosen) for row in events)
    screen.line(
        f"{len(events)} flights × {len(chosen)} alerts = {len(events) * len(chosen):,} pairs,"
        f" {n_true:,} of them matches: "
        + ("[bold green]all agree[/]" if not wrong else f"[bold red]{len(wrong):,} DISAGREE[/]")
    )
    for row, identifier in wrong[:5]:
        claim = "a match" if identifier in found[row] else "no match"
        screen.text(f"{identifier} on flight {row}: the engine says {claim}")
        screen.text(str(engine.explain(identifier, events[row])), indent=5)
    return len(wrong)


def _some(ids: list[str | int], rng: random.Random) -> list[str | int]:
    return rng.sample(ids, min(N_CHECKED_ALERTS // 2, len(ids)))


def disagreements(
    expressions: dict[str | int, mm.Expression],
    events: dict[int, Event],
    found: Found,
) -> list[tuple[int, str | int]]:
    """Return the (event, alert) for which what was found is not what the expression says."""
    return [
        (row, identifier)
        for row, event in events.items()
        for identifier, expression in expressions.items()
        if (mm.evaluate(expression, event) is True) != (identifier in found[row])
    ]


# -- a closer look --------------------------------------------------------------------------------


def show_busiest(engine: mm.Engine, busiest: list[tuple[str | int, int]], screen: Screen) -> None:
    for identifier, n_matches in busiest:
        screen.text(f"{identifier}  {n_matches:>7,}  {engine[identifier].expression}")


def show_matches(
    engine: mm.Engine,
    events: dict[int, Event],
    found: Found,
    screen: Screen,
) -> None:
    """For three flights, the alert with most to say."""
    rows = [row for row in events if found[row]]
    for row in rows[:: max(1, len(rows) // 3)][:3]:
        explained = [engine.explain(i, events[row]) for i in sorted(found[row], key=str)[:200]]
        screen.text(describe(events[row]))
        screen.text(str(max(explained, key=_n_leaves)), indent=5)


def show_near_misses(
    engine: mm.Engine,
    events: dict[int, Event],
    found: Found,
    screen: Screen,
) -> None:
    """Three flights that lack one condition: found by matching flights that differ a little."""
    shown: set[int] = set()
    for attribute, change, words in WHAT_IFS:
        rows = [r for r in events if events[r][attribute] is not None and r not in shown]
        altered = [{**events[r], attribute: events[r][attribute] + change} for r in rows]
        near = engine.match_many(altered)
        for k, row in enumerate(rows):
            gained = sorted(near[k] - found[row], key=str)
            missed = [engine.explain(identifier, events[row]) for identifier in gained]
            missed = [explanation for explanation in missed if explanation.n_missing == 1]
            if missed:
                shown.add(row)
                alerts = "alert" if len(gained) == 1 else "alerts"
                screen.text(f"{describe(events[row])}; {words}, {len(gained)} more {alerts}:")
                screen.text(str(max(missed, key=_n_leaves)), indent=5)
                break
    if not shown:
        screen.line("There are none among the flights looked at.")


def _n_leaves(explanation: mm.Explanation) -> int:
    return sum(map(_n_leaves, explanation.parts)) if explanation.parts else 1


def describe(flight: Event) -> str:
    """`B6 371, LGA → FLL on 2013-01-07, 5 minutes early`."""
    delay = flight["dep_delay"]
    if delay is None:
        how = "cancelled"
    else:
        minutes = f"{abs(delay)} minute{'' if abs(delay) == 1 else 's'}"
        how = f"left {minutes} {'late' if delay > 0 else 'early'}" if delay else "left on time"
    day = f"{flight['year']}-{flight['month']:02}-{flight['day']:02}"
    return (
        f"{flight['carrier']} {flight['flight']}, {flight['origin']} → {flight['dest']}"
        f" on {day}: {how}"
    )


# -- files and figures ----------------------------------------------------------------------------


def save_and_open(engine: mm.Engine, flights: pa.Table, folder: Path, screen: Screen) -> int:
    """Return the number of flights that the opened engine matches differently."""
    path = folder / "alerts.mill"
    start = time.perf_counter()
    engine.save(path)
    saved = time.perf_counter()
    opened = mm.Engine.open(path)
    seconds = time.perf_counter() - saved
    n_bytes = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    some = flights.slice(0, 1000)
    before, after = engine.match_many(some), opened.match_many(some)
    n_wrong = sum(a != b for a, b in zip(before, after, strict=True))
    same = "[bold green]the same matches[/]" if not n_wrong else "[bold red]OTHER MATCHES[/]"
    screen.line(
        f"saved {n_bytes / 1e6:.0f} MB in {saved - start:.1f} s,"
        f" opened in {seconds * 1000:.0f} ms; it gives {same}"
    )
    return n_wrong


def show_figures(
    engine: mm.Engine, n_events: int, outcome: Outcome, subscribe_seconds: float, screen: Screen
) -> None:
    stats = engine.stats()
    n = stats.n_subscriptions
    each = outcome.match_seconds / n_events * 1e6
    for name, figure, remark in (
        ("subscriptions", f"{n:,}", _rate(n, "", subscribe_seconds)),
        ("events", f"{n_events:,}", _rate(n_events, "", outcome.seconds)),
        ("matches", f"{outcome.n_matches:,}", _rate(outcome.n_matches, "", outcome.seconds)),
        ("µs per event", f"{each:,.1f}", f"of one core; {N_THREADS} threads at work"),
        ("bytes per subscription", f"{stats.n_bytes / n:,.0f}", _parts_of_bytes(stats)),
    ):
        screen.line(f"{name:<20}  [bold]{figure:>12}[/]   {remark}")


def _parts_of_bytes(stats: mm.EngineStats) -> str:
    n = stats.n_subscriptions
    return (
        f"index {stats.bytes['indexes'] / n:.0f}, table {stats.bytes['tables'] / n:.0f},"
        f" ids and texts {stats.bytes['subscriptions'] / n:.0f}"
    )


def show_files(folder: Path, screen: Screen) -> None:
    screen.line()
    screen.text(f"The results are in {folder}:")
    for name, words in (
        ("matches.parquet", "all pairs of event (row of flights.parquet, from 0) and subscription"),
        ("flights.parquet", "the events"),
        ("alerts.mill", "the saved engine, for `matchmill match alerts.mill flights.parquet`"),
    ):
        screen.text(f"{name:<16} {words}", indent=5)


# -- options --------------------------------------------------------------------------------------


def options_of(argv: Sequence[str] | None, description: str) -> Options:
    parser = argparse.ArgumentParser(prog="script/demo", description=description)
    parser.add_argument("--subscriptions", type=_count, default=200_000, help="default: 200,000")
    parser.add_argument("--events", type=_count, default=N_FLIGHTS, help="default: all 336,776")
    parser.add_argument("--seed", type=int, default=1, help="of alerts and samples (default: 1)")
    parser.add_argument("--folder", type=Path, help="for the results (default: a temporary one)")
    given = parser.parse_args(argv)
    folder: Path = given.folder or _temporary_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return Options(given.subscriptions, given.events, given.seed, folder)


def _count(text: str) -> int:
    digits = text.replace(",", "").replace("_", "")
    if not digits.isdecimal() or int(digits) < 1:
        raise argparse.ArgumentTypeError(f"a number from 1 on is expected, not {text!r}")
    return int(digits)


def _temporary_folder() -> Path:
    """Return the same folder each time, so that runs do not pile up, unless it is in use."""
    folder = Path(tempfile.gettempdir()) / f"matchmill-demo-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
        return folder
    return Path(tempfile.mkdtemp(prefix="matchmill-demo-"))


if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # where ✓ cannot be shown
    sys.exit(main())
