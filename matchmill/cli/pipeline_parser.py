"""The arguments of `matchmill pipeline` and its actions."""

from __future__ import annotations

import argparse
from typing import Any

from matchmill.cli.arguments import EXIT_CODES, add_common, add_format, formatted

__all__ = ["add_pipeline"]

STEPS = ("ingest", "statistics", "build", "match", "stream")

_ALONE = {
    "ingest": "check subscriptions and events, set bad rows aside",
    "statistics": "count the events, for the index and for you",
    "build": "build an index of the subscriptions and publish it",
    "match": "match the events",
    "stream": "match events as they come, from where the last run ended",
}


def add_pipeline(commands: Any) -> None:
    parser = formatted(
        commands.add_parser,
        "pipeline",
        prog="matchmill pipeline",
        help="files in, tables of matches and a page out, by Spark, as a config says",
        usage="matchmill pipeline init|check|run|ingest|statistics|build|match|stream|explain …",
        description=(
            "Ingest, count, build, match and stream with Spark, as a file of settings says.\n"
            "Needs pip install 'matchmill[spark]' and Java 17 or newer."
        ),
        epilog=_EPILOG + EXIT_CODES,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_init(actions)
    _add_check(actions)
    _add_run(actions)
    for name, about in _ALONE.items():
        _add_step(actions, name, about)
    _add_explain(actions)


_EPILOG = """\
examples:
  matchmill pipeline init alerts
  matchmill pipeline check alerts/pipeline.toml
  matchmill pipeline run alerts/pipeline.toml

"""


def _action(
    actions: Any, name: str, about: str, usage: str, description: str, epilog: str = ""
) -> argparse.ArgumentParser:
    parser = formatted(
        actions.add_parser,
        name,
        prog=f"matchmill pipeline {name}",
        help=about,
        usage=f"matchmill pipeline {name} {usage} [options]",
        description=description,
        epilog=epilog + EXIT_CODES,
    )
    parser.set_defaults(action=name)
    return parser


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG", help="a file *.toml, as init writes it")


def _add_init(actions: Any) -> None:
    parser = _action(
        actions, "init", "write an example of a config", "FOLDER",
        "Write FOLDER/pipeline.toml, in which every setting is explained.",
    )  # fmt: skip
    parser.add_argument("folder", metavar="FOLDER", help="where to; it is made if need be")
    add_common(parser, "pipeline")


def _add_check(actions: Any) -> None:
    parser = _action(
        actions, "check", "look for mistakes in a config", "CONFIG",
        "Say all mistakes of a config at once, each with its line. Spark is not started; exit\n"
        "code 1 if there are any.",
    )  # fmt: skip
    _add_config(parser)
    add_format(parser)
    add_common(parser, "pipeline")


def _add_run(actions: Any) -> None:
    parser = _action(
        actions, "run", "run all steps that have something new to do", "CONFIG",
        "Ingest, count, build, match and, if the config says so, stream. A step that is done\n"
        "is passed over as long as its files and settings, and the steps before it, are the\n"
        "same.",
        _RUN_EPILOG,
    )  # fmt: skip
    _add_config(parser)
    parser.add_argument(
        "--from", dest="start_at", metavar="STEP", choices=STEPS,
        help=f"run this step and all after it again; one of {', '.join(STEPS)}",
    )  # fmt: skip
    _add_force(parser)
    add_common(parser, "pipeline")


_RUN_EPILOG = """\
All goes into the config's output folder: tables in Parquet, the index, summary.html and
summary.json. A step that fails or is killed changes nothing; the next run goes on there.

"""


def _add_step(actions: Any, name: str, about: str) -> None:
    parser = _action(
        actions, name, f"only: {about}", "CONFIG",
        f"One step of a pipeline: {about}.\nThe steps before it must have been run.",
    )  # fmt: skip
    _add_config(parser)
    _add_force(parser)
    add_common(parser, "pipeline")


def _add_force(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="run also what is unchanged")


def _add_explain(actions: Any) -> None:
    parser = _action(
        actions, "explain", "show why events match subscriptions, or do not", "CONFIG",
        "Explain pairs of ingested events and subscriptions; without --pair, some matches.",
        "example:\n  matchmill pipeline explain alerts.toml --pair 4711 u42\n\n",
    )  # fmt: skip
    _add_config(parser)
    parser.add_argument(
        "--pair", nargs=2, action="append", default=[], metavar=("EVENT", "SUBSCRIPTION"),
        help="the ids of an event and of a subscription; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--limit", metavar="N", type=int, default=5, help="so many matches (default: 5)"
    )
    add_format(parser)
    add_common(parser, "pipeline")
