"""What the JVM says on standard error when Spark starts: passed on, but for what it always says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

__all__ = ["without_greetings"]

_GREETINGS = re.compile(
    rb"WARNING: Using incubator modules|Using Spark's default log4j|Setting default log level|"
    rb"To adjust logging level|.* WARN NativeCodeLoader:|Setting Spark log level"
)


@contextmanager
def without_greetings() -> Iterator[None]:
    """Around the start of Spark. The JVM, and with it the workers, goes on to write to a pipe whose
    lines are passed on as long as this process lives."""
    source, sink = os.pipe()
    own = os.dup(2)
    os.dup2(sink, 2)
    os.close(sink)
    Thread(target=_pass_on, args=(source, own), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(own, 2)


def _pass_on(source: int, target: int) -> None:
    with os.fdopen(source, "rb") as lines:
        for line in lines:
            if not _GREETINGS.match(line):
                os.write(target, line)
