"""The large demo: a year of flights through the whole pipeline, with Spark. `script/demo` runs it.

    flights, alerts ─► files ─► pipeline.toml ─► ingest, build, match, stream ─► a page

Ends with exit code 1 if a match disagrees with the plain evaluation of the expression.
"""

from __future__ import annotations

import csv
import random
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import matchmill as mm
from matchmill.lab.demo.tour import BAD_ROWS, Options, disagreements, exit_code_of, options_of
from matchmill.lab.workloads.flight_alerts import flight_alerts, load_flights
from matchmill.spark.pipeline.config import read_config
from matchmill.spark.pipeline.run import Outcome, run_pipeline

__all__ = ["main"]

N_STREAMED, N_FILES = 6_000, 3
N_CHECKED_FLIGHTS, N_CHECKED_ALERTS = 60, 400

CONFIG = """\
# Written by the demo. `matchmill pipeline run` takes it as well.
output = "output"

[subscriptions]
path = "alerts.csv"

[events]
path = "flights.parquet"

[stream]
path = "incoming"
options = { maxFilesPerTrigger = 1 }
"""

WORDS = {
    "checking subscriptions": "Ingest: every row is checked, bad ones go to a quarantine table.",
    "building the engine": "Build: shards of the engine, in parallel, published in one step.",
    "matching": "Match: every flight with every alert.",
    "matching the stream": "Stream: the last flights of the year, one file per batch, once each.",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    words = "Run the flights of 2013 and made-up alerts through Spark."
    return exit_code_of(lambda: demo(options_of(argv, words)))


def demo(options: Options) -> int:
    start = time.perf_counter()
    folder = options.folder / "spark"
    shutil.rmtree(folder, ignore_errors=True)
    flights = write_inputs(options, folder)
    print("\nSpark starts now. At the first run kernels are compiled, which takes a while.")
    outcome = run_pipeline(read_config(folder / "pipeline.toml"), _Messages())
    n_wrong = check(flights, folder, outcome, options.seed)
    print(f"\nAll this took {time.perf_counter() - start:.0f} seconds. The results:")
    matches = folder / "output" / next(r.made for r in outcome.records if r.step == "match")
    for path, words in (
        (outcome.page, "the page: open it in a browser"),
        (matches, "all matches, as Parquet"),
        (folder / "output" / "engine", "the engine, for `matchmill.spark.open`"),
        (folder / "pipeline.toml", "the config; change it and `matchmill pipeline run` it"),
    ):
        print(f"  {path}\n      {words}")
    if n_wrong:
        print(f"FAILED: {n_wrong:,} answers were wrong.")
    return 1 if n_wrong else 0


class _Messages:
    """What is being done, in words, then in figures."""

    def stage(self, title: str) -> None:
        if title in WORDS:
            print(f"\n{WORDS[title]}", flush=True)

    def update(self, n_done: int) -> None:
        pass  # lines are enough for a demo that is read from top to bottom

    def line(self, text: str) -> None:
        print(f"  {text}", flush=True)


def write_inputs(options: Options, folder: Path) -> pa.Table:
    """Write the files that the pipeline reads, and return the flights that go in at once."""
    flights = load_flights()
    if options.n_events < len(flights):  # spread over the year
        flights = flights.take(np.linspace(0, len(flights) - 1, options.n_events).astype(np.int64))
    flights = flights.add_column(0, "event_id", pa.array(np.arange(len(flights))))
    n_streamed = min(N_STREAMED, len(flights) // 10)
    n_now = len(flights) - n_streamed
    now, later = flights.slice(0, n_now), flights.slice(n_now)
    (folder / "incoming").mkdir(parents=True)
    pq.write_table(now, folder / "flights.parquet", row_group_size=len(now) // 8 + 1)
    size = -(-n_streamed // N_FILES)
    for i in range(N_FILES):
        pq.write_table(later.slice(i * size, size), folder / "incoming" / f"{i}.parquet")
    with (folder / "alerts.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(("subscription_id", "expression"))
        writer.writerows(flight_alerts(options.n_subscriptions, options.seed))
        writer.writerows(BAD_ROWS)
    (folder / "pipeline.toml").write_text(CONFIG, encoding="utf-8")
    print(
        f"{len(now):,} flights as Parquet, {n_streamed:,} more to come as a stream, and"
        f" {options.n_subscriptions:,} alerts as CSV, with {len(BAD_ROWS)} bad rows among them,"
        f"\nare in {folder}."
    )
    return now


def check(flights: pa.Table, folder: Path, outcome: Outcome, seed: int) -> int:
    """Compare some answers with the plain evaluation; the number of wrong ones."""
    rng = random.Random(seed)
    rows = sorted(rng.sample(range(len(flights)), min(N_CHECKED_FLIGHTS, len(flights))))
    made = {record.step: folder / "output" / record.made for record in outcome.records}
    found: dict[int, set[str | int]] = {row: set() for row in rows}
    for pair in pq.read_table(made["match"], filters=[("event_id", "in", rows)]).to_pylist():
        found[pair["event_id"]].add(pair["subscription_id"])
    accepted = pq.read_table(made["subscriptions"] / "accepted").to_pylist()
    texts = {row["subscription_id"]: row["expression"] for row in accepted}
    matched = sorted(set().union(*found.values()))
    chosen = {
        *rng.sample(matched, min(N_CHECKED_ALERTS // 2, len(matched))),
        *rng.sample(sorted(texts), min(N_CHECKED_ALERTS // 2, len(texts))),
    }
    events = dict(zip(rows, flights.take(rows).to_pylist(), strict=True))
    wrong = disagreements({i: mm.parse(texts[i]) for i in chosen}, events, found)
    print(
        f"\nCheck: {len(rows)} flights × {len(chosen)} alerts, one by one and without an index: "
        + ("all agree." if not wrong else f"{len(wrong):,} DISAGREE.")
    )
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
