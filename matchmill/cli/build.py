"""`matchmill build`: a saved engine from a file of subscriptions."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from matchmill.cli.load_engine import check_targets, load, refused_writer, say
from matchmill.cli.progress import Progress
from matchmill.cli.rejected import SetAside
from matchmill.errors import FileFormatError

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    check_targets((arguments.subscriptions,), (arguments.folder, arguments.refused))
    if Path(arguments.subscriptions).is_dir():
        raise FileFormatError(f"{arguments.subscriptions} is a folder; build reads a file")
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(arguments.quiet))
        aside = SetAside(refused_writer(arguments, stack), arguments.strict)
        loaded = load(arguments, aside, progress)
        progress.stage("saving")
        start = time.perf_counter()
        loaded.engine.save(arguments.folder)
        seconds = time.perf_counter() - start

    def summary() -> Iterator[str]:
        yield loaded.summary(aside.counts["subscription"])
        yield f"saved in {arguments.folder}; {seconds:.2f} s"
        yield from aside.lines()

    say(arguments, summary())
    return aside.exit_code
