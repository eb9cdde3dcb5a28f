"""`matchmill backup`: a copy of a service's folder, while it runs."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from matchmill.cli.exit_codes import ALL_GOOD
from matchmill.cli.load_engine import say
from matchmill.errors import InputError
from matchmill.service.database.open import DATABASE_NAME
from matchmill.service.database.sqlite import copy_database
from matchmill.service.secrets import SECRET_NAME

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    folder, target = Path(arguments.folder), Path(arguments.target)
    database = folder / DATABASE_NAME
    if not database.is_file():
        raise InputError(f"{folder} holds no store of a service: there is no {DATABASE_NAME}")
    if target.exists():
        raise InputError(f"{target} exists already; a backup is written to a new folder")
    unfinished = target.with_name(target.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True, mode=0o700)
    copy_database(database, unfinished / DATABASE_NAME)
    shutil.copy(folder / SECRET_NAME, unfinished / SECRET_NAME)  # with its mode
    os.replace(unfinished, target)
    say(arguments, iter([f"copied to {target}; matchmill serve {target} serves from it"]))
    return ALL_GOOD
