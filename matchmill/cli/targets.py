"""Folders and services: what the argument TARGET names, opened."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from matchmill.errors import FolderError, InputError

if TYPE_CHECKING:
    from matchmill.client import Client
    from matchmill.engine.engine import Engine
    from matchmill.settings import Settings

__all__ = [
    "engine_settings",
    "import_operators",
    "is_engine_folder",
    "is_url",
    "needs_url",
    "open_client",
    "open_engine",
    "optional_ticket",
    "the_ticket",
]


_MANIFESTS = ("manifest.json", "current.json")  # of one engine, of one in shards


def is_url(text: str) -> bool:
    """Tell whether a TARGET is the URL of a service."""
    return text.startswith(("http://", "https://"))


def is_engine_folder(text: str) -> bool:
    """Tell whether a path is a folder that holds an engine, and not files of data."""
    from matchmill.errors import FileFormatError
    from matchmill.io.formats import folder_files

    if not os.path.isdir(text):
        return False
    if any(os.path.exists(os.path.join(text, name)) for name in _MANIFESTS):
        return True
    try:
        folder_files(text)
    except FileFormatError:
        return True  # opening it says what is missing
    return False


def needs_url(text: str) -> str:
    """Return the URL of a service; InputError if it is none."""
    if not is_url(text):
        raise InputError(f"{text!r} is not the URL of a service, such as http://127.0.0.1:8080")
    return text


def open_client(
    url: str, arguments: argparse.Namespace, *, settings_are_local: bool = False
) -> Client:
    """Make a client with the key of --key-file or MATCHMILL_KEY."""
    from matchmill.client import Client

    if getattr(arguments, "settings", None) and not settings_are_local:
        raise InputError("--setting has no effect on a service; give it to matchmill serve")
    key = _secret(arguments.key_file, "MATCHMILL_KEY")
    return Client(url, key=key, timeout=arguments.timeout)


def optional_ticket(arguments: argparse.Namespace) -> str | None:
    """Return the ticket of --ticket-file or MATCHMILL_TICKET, if there is one."""
    return _secret(arguments.ticket_file, "MATCHMILL_TICKET")


def the_ticket(arguments: argparse.Namespace) -> str:
    """Return the ticket; InputError if there is none."""
    ticket = optional_ticket(arguments)
    if ticket is None:
        raise InputError(
            "this needs the subscription's ticket: set MATCHMILL_TICKET, or give --ticket-file FILE"
        )
    return ticket


def _secret(path: str | None, variable: str) -> str | None:
    if path is None:
        return os.environ.get(variable) or None
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text") from None
    if not text:
        raise InputError(f"{path} is empty")
    return text


def engine_settings(arguments: argparse.Namespace) -> Settings | None:
    """Return the settings that --setting changes, None if it changes none."""
    from matchmill.settings import Settings, parse_settings

    return parse_settings(Settings, arguments.settings) if arguments.settings else None


def open_engine(folder: str, arguments: argparse.Namespace, *, read_only: bool) -> Engine:
    """Open the engine in a folder."""
    from matchmill.engine.engine import Engine

    if not os.path.isdir(folder):
        what = "is a file" if os.path.exists(folder) else "does not exist"
        raise FolderError(
            f"{folder} {what}; a TARGET is a folder made by build, or the URL of a service",
            hint="`matchmill build SUBSCRIPTIONS FOLDER` makes one",
        )
    settings = engine_settings(arguments)
    try:
        return Engine.open(folder, read_only=read_only, settings=settings)
    except FolderError as error:  # it names the argument of the library
        made = "`matchmill build SUBSCRIPTIONS FOLDER` makes one"
        error.message = error.message.replace("create=True makes a new one", made)
        raise


def import_operators(arguments: argparse.Namespace) -> None:
    """Import the modules that register operators; those in the current folder are found, too."""
    from matchmill.operators.modules import find_in_current_folder, import_modules

    if arguments.operators:
        find_in_current_folder()
    import_modules(arguments.operators, "--operators {name}: it cannot be imported: {error}")
