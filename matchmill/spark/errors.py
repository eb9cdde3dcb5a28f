"""Errors of workers in plain words: what Spark wraps in a traceback is raised as what it was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from matchmill import errors

__all__ = ["plain_errors"]

_RAISED = re.compile(r"^matchmill\.errors\.(\w+): (.*)", re.MULTILINE | re.DOTALL)
_AFTERWORDS = re.compile(
    r"\n+\s*(?:SQLSTATE:|JVM stacktrace:|Driver stacktrace:|at [\w.$]+\().*", re.DOTALL
)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Inside the block, an error that matchmill raised in a worker is that error here too.

    Spark runs a plan when its rows are asked for, so put the block around that."""
    try:
        yield
    except PySparkException as error:
        plain = _plain(str(error))
        if plain is None:
            raise
        raise plain from None


def _plain(text: str) -> errors.MatchmillError | None:
    found = _RAISED.search(text)
    kind = getattr(errors, found[1], None) if found is not None else None
    if found is None or kind is None:
        return None
    return kind(_AFTERWORDS.sub("", found[2]).strip())  # type: ignore[no-any-return]
