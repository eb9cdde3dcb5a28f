"""Engines in folders: made so small that all kinds of merges happen, and looked at from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matchmill as mm
from matchmill.storage.array_folder import read_manifest

__all__ = ["contents", "create", "log_of", "settings"]

SMALL = {"fresh_clauses": 4, "merge_factor": 2}


def settings(**changes: Any) -> mm.Settings:
    return mm.Settings(**SMALL, **changes)


def create(folder: Path, **changes: Any) -> mm.Engine:
    return mm.Engine.open(folder, create=True, settings=settings(**changes))


def contents(folder: Path) -> dict[Any, str]:
    """What an engine in a folder has, as others see it."""
    engine = mm.Engine.open(folder, read_only=True, verify=True)
    return {key: engine[key].expression for key in engine}


def log_of(folder: Path) -> Path:
    return folder / read_manifest(folder).logs[-1]
