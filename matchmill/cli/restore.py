"""`matchmill restore`: a folder to serve, from a backup."""

from __future__ import annotations

import argparse
import sqlite3
from pathlib import Path

from matchmill.cli.arguments import add_common, examples
from matchmill.cli.backup import copy_service
from matchmill.cli.exit_codes import ALL_GOOD
from matchmill.cli.output import say
from matchmill.errors import StoreError

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = "matchmill restore BACKUP FOLDER [options]"
    parser.description = (
        "Copy a backup to a new folder that `matchmill serve` can serve. The backup is checked\n"
        "before, and stays as it is."
    )
    parser.epilog = examples("matchmill restore alerts-2026-11-16 alerts", "matchmill serve alerts")
    parser.add_argument("backup", metavar="BACKUP", help="a folder that backup has written")
    parser.add_argument("folder", metavar="FOLDER", help="a folder that does not exist yet")
    add_common(parser, settings=False)


def run(arguments: argparse.Namespace) -> int:
    """Check a backup and copy it."""
    from matchmill.service.database.open import DATABASE_NAME

    database = Path(arguments.backup) / DATABASE_NAME
    if database.is_file():
        _check(database)
    copy_service(Path(arguments.backup), Path(arguments.folder))
    say(arguments, [f"restored; matchmill serve {arguments.folder} serves it"])
    return ALL_GOOD


def _check(database: Path) -> None:
    """Raise StoreError if the database is damaged."""
    try:
        connection = sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)
        try:
            (found,) = connection.execute("pragma quick_check(1)").fetchone()
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        found = str(error)
    if found != "ok":
        raise StoreError(f"{database} is damaged: {found}")
