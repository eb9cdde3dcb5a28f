"""`matchmill pipeline`: from files to matches with Spark, as a config says."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matchmill.cli.actions import add_action, add_actions
from matchmill.cli.arguments import add_common, add_format, examples
from matchmill.cli.exit_codes import ALL_GOOD, NO, SOME_REJECTED
from matchmill.cli.output import print_json
from matchmill.cli.progress import Progress
from matchmill.errors import InputError

__all__ = ["add_arguments", "run"]

_CONFIG = "a file of settings, such as init writes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their arguments."""
    parser.usage = "matchmill pipeline init|check|run|explain …"
    parser.description = (
        "Ingest, count, build, match and stream with Spark, as a file of settings says.\n"
        "Needs pip install 'matchmill[spark]' and Java 17 or newer."
    )
    actions = add_actions(parser)
    _add_init(actions)
    _add_check(actions)
    _add_run(actions)
    _add_explain(actions)


def _add_init(actions: Any) -> None:
    parser = add_action(
        actions,
        "pipeline",
        "init",
        "write a config with every key explained",
        usage="FOLDER [options]",
        description="Write FOLDER/pipeline.toml, with every key explained; edit it.",
        epilog=examples("matchmill pipeline init alerts"),
    )
    parser.add_argument("folder", metavar="FOLDER", help="made if it does not exist")
    add_common(parser, settings=False)


def _add_check(actions: Any) -> None:
    parser = add_action(
        actions,
        "pipeline",
        "check",
        "find the mistakes of a config",
        usage="CONFIG [options]",
        description=(
            "Print all mistakes of a config, each with its line. Spark is not started; the exit\n"
            "code is 1 if there are any."
        ),
        epilog=examples("matchmill pipeline check alerts/pipeline.toml"),
    )
    parser.add_argument("config", metavar="CONFIG", help=_CONFIG)
    add_format(parser)
    add_common(parser, settings=False)


def _add_run(actions: Any) -> None:
    from matchmill.spark.pipeline.config_keys import STEP_NAMES

    parser = add_action(
        actions,
        "pipeline",
        "run",
        "run all steps that have something new to do",
        usage="CONFIG [options]",
        description=(
            f"Run the steps: {', '.join(STEP_NAMES)}. A step that is done is not run again as\n"
            "long as its files and settings, and the steps before it, are the same. Everything\n"
            "goes into the config's output folder: tables in Parquet, the engine, summary.html\n"
            "and summary.json. A step that fails or is killed changes nothing; the next run\n"
            "continues there."
        ),
        epilog=examples(
            "matchmill pipeline run alerts/pipeline.toml",
            "matchmill pipeline run alerts/pipeline.toml --from build",
            "matchmill pipeline run alerts/pipeline.toml --only match --force",
        ),
    )
    parser.add_argument("config", metavar="CONFIG", help=_CONFIG)
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--from", dest="start_at", metavar="STEP", choices=STEP_NAMES,
        help="run this step and all after it again",
    )  # fmt: skip
    group.add_argument(
        "--only", metavar="STEP", choices=STEP_NAMES,
        help="run this step alone; those before it must have been run",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="run also what is unchanged")
    add_common(parser, settings=False)


def _add_explain(actions: Any) -> None:
    parser = add_action(
        actions,
        "pipeline",
        "explain",
        "show why events match subscriptions, or do not",
        usage="CONFIG [options]",
        description=(
            "Explain pairs of ingested subscriptions and events; without --pair, some matches."
        ),
        epilog=examples("matchmill pipeline explain alerts/pipeline.toml --pair u42 4711"),
    )
    parser.add_argument("config", metavar="CONFIG", help=_CONFIG)
    parser.add_argument(
        "--pair", nargs=2, action="append", default=[], metavar=("SUBSCRIPTION_ID", "EVENT_ID"),
        help="the ids of a subscription and of an event; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--limit", metavar="N", type=int, default=5, help="so many matches (default: 5)"
    )
    add_format(parser)
    add_common(parser, settings=False)


def run(arguments: argparse.Namespace) -> int:
    """Run an action."""
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "init": _init,
        "check": _check,
        "run": _run,
        "explain": _explain,
    }
    return actions[arguments.action](arguments)


def _init(arguments: argparse.Namespace) -> int:
    from matchmill.spark.pipeline.config_keys import example_config

    target = Path(arguments.folder) / "pipeline.toml"
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("x", encoding="utf-8") as stream:
            stream.write(example_config())
    except FileExistsError:
        raise InputError(f"{target} exists already; give another folder") from None
    if not arguments.quiet:
        print(f"written: {target}; edit it, then: matchmill pipeline check {target}")
    return ALL_GOOD


def _check(arguments: argparse.Namespace) -> int:
    from matchmill.spark.pipeline.config import check_config

    _, mistakes = check_config(arguments.config)
    if arguments.format == "json":
        print_json([mistake._asdict() for mistake in mistakes], indent=2)
    elif mistakes:
        for mistake in mistakes:
            print(mistake)
    elif not arguments.quiet:
        print(f"{arguments.config}: no mistakes")
    return NO if mistakes else ALL_GOOD


class _Messages:
    """Progress on a terminal, and a line for each step on standard error."""

    def __init__(self, progress: Progress, quiet: bool) -> None:
        self._progress = progress
        self._quiet = quiet

    def stage(self, title: str) -> None:
        """Begin a part of a step."""
        self._progress.stage(title)
        self._progress.update(0)

    def update(self, n_done: int) -> None:
        """Show how far it is."""
        self._progress.update(n_done)

    def line(self, text: str) -> None:
        """Print a line."""
        if not self._quiet:
            print(text, file=sys.stderr, flush=True)


def _run(arguments: argparse.Namespace) -> int:
    from matchmill.spark.pipeline.config import read_config

    config = read_config(arguments.config)
    from matchmill.spark.pipeline.run import run_pipeline  # only now: it loads Spark

    with Progress(arguments.quiet) as progress:
        messages = _Messages(progress, arguments.quiet)
        outcome = run_pipeline(
            config,
            messages,
            start_at=arguments.start_at,
            only=arguments.only,
            force=arguments.force,
        )
    messages.line(f"results: {config.output}")
    messages.line(f"page: {outcome.page}")
    if outcome.n_rejected:
        messages.line(f"{outcome.n_rejected:,} rows were rejected: the page has the reasons")
    return SOME_REJECTED if outcome.n_rejected else ALL_GOOD


def _explain(arguments: argparse.Namespace) -> int:
    from matchmill.spark.pipeline.config import read_config

    config = read_config(arguments.config)
    if arguments.limit < 1:
        raise InputError(f"--limit must be at least 1, not {arguments.limit}")
    from matchmill.spark.pipeline.explain_pairs import explained_pairs

    with Progress(arguments.quiet) as progress:
        messages = _Messages(progress, arguments.quiet)
        pairs = [(event_id, id) for id, event_id in arguments.pair]
        rows = explained_pairs(config, messages, pairs, arguments.limit)
    if arguments.format == "json":
        print_json(rows, indent=2)
        return ALL_GOOD
    for row in rows:
        print(f"subscription {row['subscription_id']}, event {row['event_id']}:")
        print("  " + (row["problem"] or row["text"]).replace("\n", "\n  "))
    return ALL_GOOD
