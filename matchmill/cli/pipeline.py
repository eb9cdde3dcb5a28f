"""`matchmill pipeline`: configs checked, and the way from files to matches run as they say."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from matchmill.cli.exit_codes import ALL_GOOD, NO, SET_ASIDE
from matchmill.cli.progress import Progress
from matchmill.errors import InputError
from matchmill.spark.pipeline.config import check_config, read_config
from matchmill.spark.pipeline.config_keys import example_config

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "init": _init,
        "check": _check,
        "explain": _explain,
    }
    return actions.get(arguments.action, _run)(arguments)


def _init(arguments: argparse.Namespace) -> int:
    target = Path(arguments.folder) / "pipeline.toml"
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("x", encoding="utf-8") as stream:
            stream.write(example_config())
    except FileExistsError:
        raise InputError(f"{target} is there already; give another folder") from None
    if not arguments.quiet:
        print(f"written: {target}; edit it, then: matchmill pipeline check {target}")
    return ALL_GOOD


def _check(arguments: argparse.Namespace) -> int:
    _, mistakes = check_config(arguments.config)
    if arguments.format == "json":
        print(json.dumps([m._asdict() for m in mistakes], indent=2, ensure_ascii=False))
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
        self._progress.stage(title)
        self._progress.update(0)

    def update(self, n_done: int) -> None:
        self._progress.update(n_done)

    def line(self, text: str) -> None:
        if not self._quiet:
            print(text, file=sys.stderr, flush=True)


def _run(arguments: argparse.Namespace) -> int:
    config = read_config(arguments.config)
    from matchmill.spark.pipeline.run import run_pipeline  # only now: it loads Spark

    with Progress(arguments.quiet) as progress:
        messages = _Messages(progress, arguments.quiet)
        outcome = run_pipeline(
            config,
            messages,
            only=None if arguments.action == "run" else arguments.action,
            start_at=getattr(arguments, "start_at", None),
            force=arguments.force,
        )
    messages.line(f"results: {config.output}")
    messages.line(f"page: {outcome.page}")
    if outcome.n_rejected:
        messages.line(f"{outcome.n_rejected:,} rows were rejected: the page has their reasons")
    return SET_ASIDE if outcome.n_rejected else ALL_GOOD


def _explain(arguments: argparse.Namespace) -> int:
    config = read_config(arguments.config)
    if arguments.limit < 1:
        raise InputError(f"--limit must be at least 1, not {arguments.limit}")
    from matchmill.spark.pipeline.explain_pairs import explained_pairs

    with Progress(arguments.quiet) as progress:
        messages = _Messages(progress, arguments.quiet)
        rows = explained_pairs(config, messages, arguments.pair, arguments.limit)
    if arguments.format == "json":
        print(json.dumps(rows, indent=2, ensure_ascii=False, default=str))
        return ALL_GOOD
    for row in rows:
        print(f"event {row['event_id']}, subscription {row['subscription_id']}:")
        print("  " + (row["problem"] or row["text"]).replace("\n", "\n  "))
    return ALL_GOOD
