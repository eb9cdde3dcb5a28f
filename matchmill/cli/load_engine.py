"""What match and build share: an engine from a file or a folder, and the words about it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from matchmill.cli.progress import Progress
from matchmill.cli.rejected import SetAside, listed
from matchmill.engine.engine import Engine
from matchmill.errors import InputError
from matchmill.io.reports import SubscribeReport
from matchmill.io.subscription_files import SubscriptionRow, read_subscriptions
from matchmill.io.writers import RejectedWriter
from matchmill.operators.modules import find_in_current_folder, import_modules

__all__ = [
    "Loaded",
    "check_targets",
    "import_operators",
    "load",
    "rate",
    "refused_writer",
    "rows",
    "say",
]


def load(arguments: argparse.Namespace, aside: SetAside, progress: Progress) -> Loaded:
    """The engine, from a saved folder or from a file of subscriptions."""
    import_operators(arguments)
    start = time.perf_counter()
    path = arguments.subscriptions
    if Path(path).is_dir():
        progress.stage("reading the log")
        engine = Engine.open(path, read_only=True, index=arguments.index, progress=progress.update)
        return Loaded(engine, None, time.perf_counter() - start)
    engine = Engine(index=arguments.index) if arguments.index else Engine()
    progress.stage("reading subscriptions")
    report = engine.subscribe_many(_rows_to_load(arguments), progress=progress.update)
    for rejected in report.rejected:
        aside.add(rejected._replace(source=path))
    return Loaded(engine, report, time.perf_counter() - start)


def import_operators(arguments: argparse.Namespace) -> None:
    """Import the modules that register operators; those in the current folder are found, too."""
    if arguments.operators:
        find_in_current_folder()
    import_modules(arguments.operators, "--operators {name}: it cannot be imported: {error}")


def _rows_to_load(arguments: argparse.Namespace) -> Iterator[SubscriptionRow]:
    """With --strict nothing is read after the first row that cannot be."""
    for row in rows(arguments):
        yield row
        if row.problem is not None and arguments.strict:
            return


def rows(arguments: argparse.Namespace) -> Iterator[SubscriptionRow]:
    """The rows of the file of subscriptions."""
    return read_subscriptions(
        arguments.subscriptions,
        subscription_id=arguments.id_column,
        expression=arguments.expression_column,
        integer_ids=arguments.integer_ids,
    )


class Loaded:
    """An engine, and what to say about how it came to be."""

    def __init__(self, engine: Engine, report: SubscribeReport | None, seconds: float) -> None:
        self.engine = engine
        self._report = report
        self._seconds = seconds

    def summary(self, n_refused: int) -> str:
        if self._report is None:
            return f"subscriptions: {len(self.engine):,} opened in {self._seconds:.2f} s"
        report = self._report
        parts = [f"{report.n_accepted:,} accepted", f"{n_refused:,} refused"]
        for kind, words in (("never", "can never match"), ("always", "match every event")):
            ids = [finding.id for finding in report.warnings if finding.kind == kind]
            if ids:
                parts.append(f"{len(ids):,} {words} ({listed(ids)})")
        speed = rate(report.n_accepted + n_refused, self._seconds)
        return f"subscriptions: {', '.join(parts)}; {speed}"


def rate(count: int, seconds: float) -> str:
    per_second = f", {count / seconds:,.0f} per second" if seconds > 0 and count else ""
    return f"{seconds:.2f} s{per_second}"


def say(arguments: argparse.Namespace, lines: Iterator[str]) -> None:
    if not arguments.quiet:
        for line in lines:
            print(line, file=sys.stderr)


def check_targets(sources: Sequence[str | None], targets: Sequence[str | None]) -> None:
    """Refuse to write over what is being read, or two things to one place."""
    seen = [os.path.realpath(path) for path in sources if path is not None]
    for target in targets:
        if target is not None and target != "-":
            if os.path.realpath(target) in seen:
                raise InputError(f"{target} is read from or written to already; choose another")
            seen.append(os.path.realpath(target))


def refused_writer(arguments: argparse.Namespace, stack: ExitStack) -> RejectedWriter | None:
    if arguments.refused is None:
        return None
    return stack.enter_context(RejectedWriter(arguments.refused))
