"""Errors of Spark in plain words: what a worker raised, and which file could not be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from matchmill import errors
from matchmill.errors import FileFormatError

__all__ = ["naming_files", "plain_errors"]

_RAISED = re.compile(r"^matchmill\.errors\.(\w+): (.*)", re.MULTILINE | re.DOTALL)
_AFTERWORDS = re.compile(
    r"\n+\s*(?:SQLSTATE:|JVM stacktrace:|Driver stacktrace:|at [\w.$]+\().*", re.DOTALL
)
_BAD_FILE = re.compile(r"Encountered error while reading file (\S+?)\.?(?:\s|$)")
_NO_PATH = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (\S+?)\.?(?:\s|$)")


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise an error that matchmill raised in a worker as that error, without Spark's traceback.

    Spark runs a plan when its rows are needed, so put the block around that.

    Examples
    --------
    >>> with ms.plain_errors():  # doctest: +SKIP
    ...     matches.collect()
    """
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
    message, _, hint = _AFTERWORDS.sub("", found[2]).strip().partition("\nhint: ")
    return kind(message, hint=hint)  # type: ignore[no-any-return]


@contextmanager
def naming_files() -> Iterator[None]:
    """Raise errors about files as FileFormatError that names the file and what to do."""
    try:
        yield
    except Exception as error:
        # Classic sessions and Spark Connect raise different classes; the text is the same.
        text = str(error)
        if found := _BAD_FILE.search(text):
            raise FileFormatError(
                f"{found[1]} is not what its name says, cut short or damaged; restore it, or move"
                " it away and read the others"
            ) from error
        if found := _NO_PATH.search(text):
            raise FileFormatError(f"{found[1]}: there is no such file or folder") from error
        raise
