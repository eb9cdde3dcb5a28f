"""`matchmill build`: subscriptions become an engine in a folder."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack

from matchmill.cli.arguments import (
    SUBSCRIPTIONS_HELP,
    add_common,
    add_rejected,
    add_service_options,
    add_subscription_reading,
    add_types,
    examples,
    name_value_pairs,
)
from matchmill.cli.inputs import check_targets, event_sources
from matchmill.cli.loading import load
from matchmill.cli.output import say
from matchmill.cli.progress import Progress
from matchmill.cli.rejected import RejectedRows

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = "matchmill build SUBSCRIPTIONS FOLDER [options]"
    parser.description = (
        "Read subscriptions, index them and save the engine to a folder. An engine that was\n"
        "saved there before is replaced in one step."
    )
    parser.epilog = examples(
        "matchmill build alerts.parquet alerts.mill",
        "matchmill build alerts.csv alerts.mill --learn yesterday.parquet",
        "matchmill match alerts.mill flights.csv --out matches.csv",
    )
    parser.add_argument("subscriptions", metavar="SUBSCRIPTIONS", help=SUBSCRIPTIONS_HELP)
    parser.add_argument("folder", metavar="FOLDER", help="a new or empty folder, or a saved engine")
    group = parser.add_argument_group("the index")
    group.add_argument("--index", metavar="NAME", help="the index to use (default: the best one)")
    group.add_argument(
        "--index-option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        dest="index_option_texts",
        help="an option of the index; may be repeated",
    )
    add_types(group)
    group.add_argument(
        "--learn",
        metavar="EVENTS",
        action="append",
        default=[],
        help="build the index for events like those of this file; may be repeated",
    )
    add_subscription_reading(parser)
    add_rejected(parser)
    add_service_options(parser)
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Build an engine and save it."""
    check_targets((arguments.subscriptions,), (arguments.folder, arguments.rejected))
    arguments.index_options = name_value_pairs(arguments.index_option_texts, "--index-option")
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(arguments.quiet))
        rejected = RejectedRows(arguments, stack)
        loaded = load(arguments, rejected, progress)
        if arguments.learn:
            from matchmill.io.event_files import read_event_chunks
            from matchmill.io.event_sources import FileEvents

            progress.stage("learning from events")
            for source in event_sources(arguments.learn):
                loaded.engine.learn(
                    FileEvents(read_event_chunks(source, types=loaded.engine.types))
                )
            loaded.engine.compact()
        progress.stage("saving")
        start = time.perf_counter()
        loaded.engine.save(arguments.folder)
        seconds = time.perf_counter() - start

    def summary() -> Iterator[str]:
        yield loaded.summary(rejected.counts["subscription"])
        yield f"saved in {arguments.folder}; {seconds:.2f} s"
        yield from rejected.lines()

    say(arguments, summary())
    return rejected.exit_code
