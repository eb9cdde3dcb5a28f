"""`matchmill check`: mistakes in subscriptions, typos among them, or damage to a saved engine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from matchmill.cli.arguments import (
    SUBSCRIPTIONS_HELP,
    add_common,
    add_event_reading,
    add_format,
    add_service_options,
    add_subscription_reading,
    examples,
)
from matchmill.cli.event_files import EventFiles
from matchmill.cli.exit_codes import ALL_GOOD, NO
from matchmill.cli.inputs import are_sigma_rules, file_rows, file_sources, subscription_rows
from matchmill.cli.output import print_json, say
from matchmill.cli.progress import Progress
from matchmill.cli.rejected import N_SHOWN, one_line, printable
from matchmill.cli.targets import engine_settings, import_operators, is_engine_folder, is_url
from matchmill.errors import MatchmillError

if TYPE_CHECKING:
    from matchmill.engine.engine import Engine
    from matchmill.io.formats import Source
    from matchmill.io.reports import CheckReport, Finding, Rejected
    from matchmill.settings import Settings

__all__ = ["add_arguments", "run"]

_MISTAKES = frozenset({"unknown_attribute", "wrong_type"})  # of which an event is the witness
_TITLES = {
    "unknown_attribute": "ask for an attribute that the events do not have",
    "wrong_type": "compare with a type that the events never have",
    "never": "never true",
    "always": "always true",
    "slow_pattern": "have a slow pattern",
    "costly": "are costly",
    "duplicate": "are there already",
    "contained": "say something twice",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = "matchmill check SUBSCRIPTIONS [--events FILE …] [options]"
    parser.description = (
        "Report every row that cannot be used, with the place of the mistake, and the\n"
        "subscriptions that need a second look: they can never match or always do, or are there\n"
        "twice. With a sample of events also attributes that no event has, comparisons with a\n"
        "type that an attribute never has, and conditions that were never or always true. Of a\n"
        "folder made by build, read every file against its checksum, too.\n\n"
        "A sample has to be large enough for a finding: 20 to 100 events for an attribute,\n"
        "1,000 for a condition. Rejected rows, unknown attributes and wrong types give the\n"
        "exit code 1, other findings do not."
    )
    parser.epilog = examples(
        "matchmill check alerts.csv",
        "matchmill check alerts.csv --events yesterday.parquet",
        "matchmill check alerts.jsonl --format json > report.json",
        "matchmill check alerts.mill",
    )
    parser.add_argument("subscriptions", metavar="SUBSCRIPTIONS", help=SUBSCRIPTIONS_HELP)
    parser.add_argument(
        "--events",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help="a sample of events to compare with: files, folders of them or quoted patterns",
    )
    add_format(parser)
    add_subscription_reading(parser)
    add_event_reading(parser, event_id=False)
    add_service_options(parser)
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check subscriptions, and the files of a saved engine."""
    from matchmill.engine.engine import Engine

    import_operators(arguments)
    as_text = arguments.format == "text"
    files = EventFiles(arguments) if arguments.events else None
    with Progress(arguments.quiet or (as_text and sys.stdout.isatty())) as progress:
        settings = engine_settings(arguments)
        text = arguments.subscriptions
        is_folder = is_engine_folder(text) and not are_sigma_rules(arguments)
        if is_folder:
            progress.stage("reading all files")
            engine = Engine.open(
                text, read_only=True, verify=True, settings=settings, progress=progress.update
            )
            rejected: list[Rejected] = []
        else:
            progress.stage("checking subscriptions")
            engine = Engine(settings=settings)
            rejected = [] if is_url(text) else _load(engine, arguments, progress)
            if is_url(text):
                engine.subscribe_many(row for _, row in subscription_rows(arguments))
        progress.stage("reading events")
        with engine:
            report = engine.check(files.chunks() if files is not None else None)
        report = replace(report, rejected=[*rejected, *report.rejected])
    if not as_text:
        print_json(report.to_dict(), indent=2)
    elif not arguments.quiet:
        _print(report, is_folder=is_folder)
        say(arguments, files.lines() if files is not None else ())
    kinds = {one.kind for one in report.warnings}
    return NO if report.rejected or kinds & _MISTAKES else ALL_GOOD


def _load(engine: Engine, arguments: argparse.Namespace, progress: Progress) -> list[Rejected]:
    """Read all files into an engine; print each bad row with the place of its mistake."""
    rejected: list[Rejected] = []
    as_text = arguments.format == "text"
    if are_sigma_rules(arguments):
        from matchmill.sigma import load as load_rules

        rules = load_rules(
            arguments.subscriptions,
            pipelines=arguments.sigma_pipeline,
            settings=engine.settings,
        )
        engine.subscribe_many(rules, progress=progress.update)
        if as_text:
            for one in rules.rejected:
                print(f"{one.source}: {printable(one.id)}: {one_line(one.reason)}")
        return rules.rejected
    for source in file_sources(arguments.subscriptions):
        rows = file_rows(source, arguments)
        report = engine.subscribe_many(rows, dialect=arguments.dialect, progress=progress.update)
        found = [
            one._replace(source=str(source.path), reason=_as_found(one.reason))
            for one in report.rejected
        ]
        rejected += found
        if found and as_text:
            for line in _shown(found, source, arguments, engine.settings):
                print(line)
    return rejected


def _as_found(reason: str) -> str:
    """Say of an id that two files have what is said of one that a file has twice."""
    return reason.removesuffix("; replace=True replaces it")


def _shown(
    rejected: list[Rejected], source: Source, arguments: argparse.Namespace, settings: Settings
) -> Iterator[str]:
    """Yield `alerts.csv:4: u3: reason`, and below it the place in the expression.

    The rows are read again: nothing of them was kept.
    """
    from matchmill.engine.expression_input import checked_expression

    by_row = {one.row: one for one in rejected}
    ids = {str(one.id) for one in rejected if one.id is not None}
    places: dict[str, str] = {}
    for number, row in enumerate(file_rows(source, arguments)):
        one = by_row.get(number)
        place = f"{source.path}:{row.line}" if row.line else f"{source.path}, row {number}"
        if one is None:
            if str(row.id) in ids:
                places.setdefault(str(row.id), place)
            continue
        id = "" if one.id is None else f"{printable(one.id)}: "
        first = places.get(str(one.id)) if "occurs twice" in one.reason else None
        yield f"{place}: {id}{one_line(one.reason)}" + (f": first in {first}" if first else "")
        if row.problem is None:
            try:
                checked_expression(row.expression, settings, arguments.dialect)
            except MatchmillError as error:
                _, *rest = str(error).split("\n")
                for text in rest:
                    if not text.startswith("hint: "):
                        yield "  " + "".join(c if c.isprintable() else "�" for c in text)


def _print(report: CheckReport, *, is_folder: bool) -> None:
    n_events = sum(one.kind == "event" for one in report.rejected)
    n_rejected = len(report.rejected) - n_events
    if is_folder:
        print(f"{report.n_subscriptions:,} subscriptions; every file is whole")
    else:
        print(f"{report.n_subscriptions:,} accepted, {n_rejected:,} rejected")
    if report.n_events or n_events:
        print(f"events: {report.n_events:,} looked at, {n_events:,} rejected")
    for bad in [one for one in report.rejected if one.kind == "event"][:N_SHOWN]:
        print(f"  {one_line(bad)}")
    by_kind: dict[str, list[Finding]] = {}
    for one in report.warnings:
        by_kind.setdefault(one.kind, []).append(one)
    for kind, some in by_kind.items():
        print(f"{len(some):,} {_TITLES[kind]}:")
        for one in some[:N_SHOWN]:
            print(f"  {one_line(one._replace(id=printable(one.id)))}")
        if len(some) > N_SHOWN:
            print(f"  … and {len(some) - N_SHOWN:,} more; --format json has them all")
