"""Files that a command reads: paths, quoted patterns, standard input."""

from __future__ import annotations

import argparse
import glob
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from matchmill.cli.targets import is_engine_folder, is_url, open_client, open_engine
from matchmill.errors import FileFormatError, InputError

if TYPE_CHECKING:
    from matchmill.io.formats import Source
    from matchmill.io.subscription_files import SubscriptionRow

__all__ = [
    "are_sigma_rules",
    "check_targets",
    "event_sources",
    "file_rows",
    "file_sources",
    "subscription_rows",
]

STANDARD_INPUT = "-"
_EXPRESSION = re.compile(r"\S +(?:[=<>!]=?|in|like|is|between|contains) +\S")


def file_sources(text: str) -> list[Source]:
    """Return the files that a path, a folder of files, a quoted pattern or - stands for."""
    from matchmill.io.formats import check_file, folder_files

    if text == STANDARD_INPUT:
        return [_standard_input()]
    if not os.path.exists(text) and glob.has_magic(text):
        found = sorted(glob.glob(text, recursive=True))
        if not found:
            raise FileFormatError(f"no file has a name like {text}")
        return [source for path in found for source in file_sources(path)]
    if not os.path.exists(text) and _EXPRESSION.search(text):
        raise FileFormatError(
            f"{text}: there is no such file",
            hint="is it an expression? `matchmill backtest EXPRESSION EVENTS` tries one",
        )
    if os.path.isdir(text):
        return [check_file(path) for path in folder_files(text)]
    return [check_file(text)]


def event_sources(texts: Sequence[str]) -> list[Source]:
    """Return the files of all arguments EVENTS."""
    if texts.count(STANDARD_INPUT) > 1:
        raise InputError("standard input can be read only once")
    return [source for text in texts for source in file_sources(text)]


def _standard_input() -> Source:
    """Read standard input to its end; its first bytes tell its format."""
    from matchmill.io.formats import open_bytes, plain_words, source_of_bytes

    data = sys.stdin.buffer.read()
    if data.startswith(b"PAR1"):
        return source_of_bytes(data, "parquet", STANDARD_INPUT)
    source = source_of_bytes(data, "csv", STANDARD_INPUT)
    with plain_words(source.path), closing(open_bytes(source)) as stream:
        start = stream.read(1 << 16).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:1] in (b"{", b"["):
        return source_of_bytes(data, "jsonl", STANDARD_INPUT)
    header = start.partition(b"\n")[0]
    has_tabs = b"\t" in header and b"," not in header
    return source_of_bytes(data, "csv", STANDARD_INPUT, "\t" if has_tabs else ",")


def file_rows(source: Source, arguments: argparse.Namespace) -> Iterator[SubscriptionRow]:
    """Read the rows of one file of subscriptions, with the columns that the options name."""
    from matchmill.io.subscription_files import read_subscriptions

    return read_subscriptions(
        source,
        subscription_id=arguments.subscription_id,
        expression=arguments.expression_column,
        integer_ids=arguments.integer_ids,
        options=("--subscription-id", "--expression"),
    )


def are_sigma_rules(arguments: argparse.Namespace) -> bool:
    """Return whether SUBSCRIPTIONS are files of Sigma rules, and not an engine or a service."""
    text = arguments.subscriptions
    is_saved = os.path.exists(os.path.join(text, "manifest.json"))
    return arguments.dialect == "sigma" and not is_url(text) and not is_saved


def subscription_rows(arguments: argparse.Namespace) -> Iterator[tuple[str, SubscriptionRow]]:
    """Read the rows of SUBSCRIPTIONS, whatever it is, each with the name of its source."""
    from matchmill.io.subscription_files import SubscriptionRow

    text = arguments.subscriptions
    if is_url(text):
        with open_client(text, arguments, settings_are_local=True) as client:
            for one in client.subscriptions():
                yield text, SubscriptionRow(one.id, one.expression)
    elif is_engine_folder(text):
        with open_engine(text, arguments, read_only=True) as engine:
            for stored in engine.subscriptions():
                yield text, SubscriptionRow(stored.id, stored.expression)
    else:
        for source in file_sources(text):
            for row in file_rows(source, arguments):
                yield str(source.path), row


def check_targets(sources: Sequence[str | None], targets: Sequence[str | None]) -> None:
    """Raise InputError if a file would be written that is read, or two to one place."""
    seen = [os.path.realpath(path) for path in sources if path is not None]
    for target in targets:
        if target is not None and target != STANDARD_INPUT:
            if os.path.realpath(target) in seen:
                raise InputError(f"{target} is read from or written to already; choose another")
            seen.append(os.path.realpath(target))
