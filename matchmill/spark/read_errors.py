"""Errors of Spark about files, said so that they name the file and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from matchmill.errors import FileFormatError

__all__ = ["naming_files"]

_BAD_FILE = re.compile(r"Encountered error while reading file (\S+?)\.?(?:\s|$)")
_NO_PATH = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (\S+?)\.?(?:\s|$)")


@contextmanager
def naming_files() -> Iterator[None]:
    """Around whatever makes Spark read files."""
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
