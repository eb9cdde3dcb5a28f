"""`matchmill publish`: send events to a service."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack

from matchmill.cli.arguments import (
    EVENTS_HELP,
    add_common,
    add_event_reading,
    add_rejected,
    add_service_options,
    examples,
)
from matchmill.cli.event_files import EventFiles
from matchmill.cli.output import say
from matchmill.cli.progress import Progress
from matchmill.cli.rejected import RejectedRows
from matchmill.cli.targets import needs_url, open_client
from matchmill.errors import MatchmillError

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = "matchmill publish URL EVENTS … [options]"
    parser.description = (
        "Publish the events of files. With --event-id, an event that was published before is\n"
        "not published again, so the command can be repeated. Dates and times are sent as text."
    )
    parser.epilog = examples(
        "matchmill publish http://127.0.0.1:8080 flights.csv --event-id flight",
        "matchmill publish http://127.0.0.1:8080 - < flights.jsonl",
    )
    parser.add_argument("url", metavar="URL", help="the URL of a service")
    parser.add_argument("events", metavar="EVENTS", nargs="+", help=EVENTS_HELP)
    add_event_reading(parser)
    add_rejected(parser, strict=False)
    add_service_options(parser)
    add_common(parser, settings=False)


def run(arguments: argparse.Namespace) -> int:
    """Publish events."""
    from matchmill.client.event_sources import source_rows

    needs_url(arguments.url)
    files = EventFiles(arguments)
    n_published = n_matches = 0
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(arguments.quiet))
        client = stack.enter_context(open_client(arguments.url, arguments))
        rejected = RejectedRows(arguments, stack)
        progress.stage("publishing events")
        try:
            for number, source in enumerate(files.sources):
                rows = source_rows(source, files.csv_columns.get(number), files.types)
                for report in client.publish_batches(rows, event_id=arguments.event_id):
                    n_published += report.n_published
                    n_matches += report.n_matches
                    rejected.add(one._replace(source=source.name) for one in report.rejected)
                    progress.update(n_published)
        except MatchmillError:
            print(f"matchmill: {n_published:,} events had been published before", file=sys.stderr)
            raise

    def summary() -> Iterator[str]:
        yield f"events: {n_published:,} published, {rejected.counts.total():,} rejected"
        yield f"matches: {n_matches:,}"
        yield from rejected.lines()

    say(arguments, summary())
    return rejected.exit_code
