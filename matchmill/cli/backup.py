"""`matchmill backup`: a copy of a service's folder, while it runs."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from matchmill.cli.arguments import add_common, examples
from matchmill.cli.exit_codes import ALL_GOOD
from matchmill.cli.output import say
from matchmill.errors import InputError

__all__ = ["add_arguments", "copy_service", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = "matchmill backup FOLDER TO [options]"
    parser.description = (
        "Write a consistent copy of a service's store and its secret key to a new folder. The\n"
        "service may be running. Engines are not copied: they are made from the store. A store\n"
        "in PostgreSQL is backed up with its own tools; then copy FOLDER/secret."
    )
    parser.epilog = examples(
        "matchmill backup alerts alerts-2026-11-16", "matchmill restore alerts-2026-11-16 alerts"
    )
    parser.add_argument("folder", metavar="FOLDER", help="the folder that is served")
    parser.add_argument("target", metavar="TO", help="a folder that does not exist yet")
    add_common(parser, settings=False)


def run(arguments: argparse.Namespace) -> int:
    """Copy the folder of a service."""
    copy_service(Path(arguments.folder), Path(arguments.target))
    again = f"matchmill restore {arguments.target} FOLDER"
    say(arguments, [f"copied to {arguments.target}; {again} brings it back"])
    return ALL_GOOD


def copy_service(folder: Path, target: Path) -> None:
    """Copy store and secret to a new folder, which appears whole or not at all."""
    from matchmill.service.database.open import DATABASE_NAME
    from matchmill.service.database.sqlite import copy_database
    from matchmill.service.secrets import SECRET_NAME

    database = folder / DATABASE_NAME
    if not database.is_file():
        raise InputError(f"{folder} holds no store of a service: there is no {DATABASE_NAME}")
    if target.exists():
        raise InputError(f"{target} exists already; choose a new folder")
    unfinished = target.with_name(target.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True, mode=0o700)
    copy_database(database, unfinished / DATABASE_NAME)
    shutil.copy(folder / SECRET_NAME, unfinished / SECRET_NAME)  # with its mode
    os.replace(unfinished, target)
