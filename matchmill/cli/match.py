"""`matchmill match`: files in, files out."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from matchmill.cli.arguments import (
    EVENTS_HELP,
    SUBSCRIPTIONS_HELP,
    add_common,
    add_event_reading,
    add_rejected,
    add_service_options,
    add_subscription_reading,
    examples,
)
from matchmill.cli.event_files import EventFiles, matched_files, matched_remotely
from matchmill.cli.inputs import are_sigma_rules, check_targets
from matchmill.cli.loading import load
from matchmill.cli.output import rate, say
from matchmill.cli.progress import Progress
from matchmill.cli.rejected import RejectedRows
from matchmill.cli.targets import is_url, open_client
from matchmill.errors import InputError

if TYPE_CHECKING:
    from matchmill.engine.matches import Matches
    from matchmill.sigma.rules import SigmaRules

__all__ = ["add_arguments", "run"]

_RULE_COLUMNS = ("title", "level", "tags")
_LEVELS = {"critical": 0, "high": 1, "medium": 2, "low": 3, "informational": 4}
_N_BUSIEST = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = "matchmill match SUBSCRIPTIONS EVENTS … [--out FILE] [options]"
    parser.description = (
        "Write one row (event_id, subscription_id) for every subscription that an event\n"
        "satisfies. A file is written beside its place and renamed at the end: after a failure\n"
        "an older file is still there.\n\n"
        "CSV files of events: the first line names the columns. A column is boolean (true,\n"
        "false), number (0.5), date (2013-01-31) or timestamp (2013-01-31 10:00) if all its\n"
        "cells are, otherwise text; `007` is text. An empty cell is null.\n\n"
        "Rows and events that cannot be used are rejected with the reason, and the others go\n"
        "on. The summary shows the first few, --rejected writes them all."
    )
    parser.epilog = examples(
        "matchmill match alerts.csv flights.parquet --out matches.parquet",
        "matchmill match alerts.jsonl flights.csv --event-id flight --null-value NA > m.csv",
        "matchmill match alerts.mill monday.csv tuesday.csv --per-event --out matches.jsonl",
        "matchmill match rules/ logs.jsonl --dialect sigma --out hits.jsonl",
        "zcat flights.jsonl.gz | matchmill match alerts.mill - --rejected rejected.csv",
    )
    parser.add_argument("subscriptions", metavar="SUBSCRIPTIONS", help=SUBSCRIPTIONS_HELP)
    parser.add_argument("events", metavar="EVENTS", nargs="+", help=EVENTS_HELP)
    group = parser.add_argument_group("output")
    group.add_argument(
        "-o", "--out", metavar="FILE", default="-", help="where to (default: -, standard output)"
    )
    group.add_argument(
        "--format",
        choices=("csv", "jsonl", "parquet"),
        help="of the output (default: by suffix; CSV for standard output)",
    )
    group.add_argument(
        "--per-event",
        action="store_true",
        help="one row per event, with a list subscription_ids, also for events without any",
    )
    group = parser.add_argument_group("how")
    group.add_argument("--index", metavar="NAME", help="the index to use (default: the best one)")
    group.add_argument(
        "--threads", metavar="N", type=int, help="threads that match (default: as many as pay)"
    )
    add_subscription_reading(parser)
    add_event_reading(parser)
    add_rejected(parser)
    add_service_options(parser)
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Match events and write what was found."""
    from matchmill.io.writers import MatchWriter

    _check(arguments)
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(arguments.quiet))
        files = EventFiles(arguments)
        writer = stack.enter_context(
            MatchWriter(
                arguments.out,
                kind=arguments.format,
                hold_back=arguments.strict,
                per_event=arguments.per_event,
                columns=_RULE_COLUMNS if are_sigma_rules(arguments) else (),
            )
        )
        rejected = RejectedRows(arguments, stack)
        first_line, rules, found = _matches(arguments, files, rejected, progress, stack)
        progress.stage("matching events")
        start = time.perf_counter()
        n_events = n_matches = 0
        counted: list[Any] = []  # matches of each Sigma rule, batch by batch
        for matches in found:
            rejected.add(matches.rejected)
            table = matches.to_arrow(per_event=arguments.per_event)
            if rules is not None and not arguments.per_event:
                counted.append(rules.summary(table))
                table = rules.hits(table)
            writer.write(table)
            n_events += matches.n_events
            n_matches += matches.n_matches
            progress.update(n_events)
        seconds = time.perf_counter() - start

    def summary() -> Iterator[str]:
        yield first_line
        n_rejected = rejected.counts["event"]
        yield f"events: {n_events:,} read, {n_rejected:,} rejected; {rate(n_events, seconds)}"
        yield from files.lines()
        yield f"matches: {n_matches:,}" + ("" if arguments.out == "-" else f" in {arguments.out}")
        yield from _rule_lines(counted)
        if n_matches == 0 and n_events > n_rejected and arguments.subscriptions != "-":
            yield "no match: `matchmill check SUBSCRIPTIONS --events EVENTS` looks for typos"
        yield from rejected.lines()

    say(arguments, summary())
    return rejected.exit_code


def _check(arguments: argparse.Namespace) -> None:
    check_targets((arguments.subscriptions, *arguments.events), (arguments.out, arguments.rejected))
    if arguments.out == "-" == arguments.rejected:
        raise InputError("--out and --rejected cannot both be standard output")
    if [arguments.subscriptions, *arguments.events].count("-") > 1:
        raise InputError("standard input can be read only once")
    if arguments.threads is not None and arguments.threads < 1:
        raise InputError(f"--threads must be at least 1, not {arguments.threads}")


def _matches(
    arguments: argparse.Namespace,
    files: EventFiles,
    rejected: RejectedRows,
    progress: Progress,
    stack: ExitStack,
) -> tuple[str, SigmaRules | None, Iterator[Matches]]:
    """Return a line about the subscriptions, their Sigma rules, and the matches by batch."""
    if is_url(arguments.subscriptions):
        client = stack.enter_context(open_client(arguments.subscriptions, arguments))
        line = f"subscriptions: of {arguments.subscriptions}"
        return line, None, matched_remotely(client, files)
    loaded = load(arguments, rejected, progress)
    line = loaded.summary(rejected.counts["subscription"])
    return line, loaded.rules, matched_files(loaded.engine, files)


def _rule_lines(counted: list[Any]) -> Iterator[str]:
    """Yield how often rules of each level matched, and which matched most."""
    if not counted:
        return
    import pyarrow as pa

    by_rule = pa.concat_tables(counted).group_by(["level", "title", "subscription_id"])
    table = by_rule.aggregate([("n_matches", "sum")])
    rows = sorted(table.to_pylist(), key=lambda row: (-row["n_matches_sum"], row["title"]))
    levels: dict[str, list[int]] = {}
    for row in rows:
        levels.setdefault(row["level"] or "no level", []).append(row["n_matches_sum"])
    for level in sorted(levels, key=lambda name: (_LEVELS.get(name, 9), name)):
        yield f"  {level}: {sum(levels[level]):,} matches of {len(levels[level]):,} rules"
    for row in rows[:_N_BUSIEST]:
        yield f"  {row['n_matches_sum']:,} × {row['title']} ({row['level'] or 'no level'})"
