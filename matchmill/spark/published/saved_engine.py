"""Engines that the library has saved, matched by workers as they are.

A saved engine may be changed by whoever writes to it. A plan of Spark must not be answered half by
one state and half by the next, so the driver notes the state, and workers compare it.
"""

from __future__ import annotations

from pathlib import Path

from matchmill.engine.engine import Engine
from matchmill.errors import FolderError
from matchmill.storage.array_folder import Manifest, is_saved_engine, retried

__all__ = ["check_unchanged", "id_type_of", "is_saved_engine", "state_of"]


def state_of(root: Path) -> str:
    """Name the state of a saved engine: its arrays, its logs and how long they are."""
    return retried(root, lambda manifest: _state(root, manifest))


def _state(root: Path, manifest: Manifest) -> str:
    try:
        logs = [f"{log}:{(root / log).stat().st_size}" for log in manifest.logs]
    except FileNotFoundError as error:
        raise FolderError(f"{error.filename} is missing: restore the folder") from error
    return " ".join([manifest.data, *logs])


def check_unchanged(root: Path, state: str) -> None:
    """Raise FolderError if a saved engine is not in this state."""
    if state_of(root) != state:
        raise FolderError(
            f"{root} has been changed since the match was planned: match again, or let Spark match"
            " a copy that nobody changes (engine.save(path)) or one that matchmill.spark.build made"
        )


def id_type_of(engine: Engine) -> str:
    """Name the type of an engine's ids, `str` or `int`; `str` if there are no subscriptions."""
    known = engine._store.state.subscriptions.id_type
    return "int" if known is int else "str"
