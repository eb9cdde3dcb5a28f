"""Engines in folders: made so small that all kinds of merges happen, and looked at from outside."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import matchmill as mm
from matchmill.storage.array_folder import read_manifest

__all__ = ["change_array", "contents", "create", "log_of", "replace_array", "settings"]

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


def change_array(folder: Path, name: str, change: Callable[[np.ndarray], object]) -> None:
    """Change an array in place, as somebody does who makes the checksums fit."""
    array = np.load(folder / read_manifest(folder).data / f"{name}.npy")
    change(array)
    replace_array(folder, name, array)


def replace_array(folder: Path, name: str, array: np.ndarray) -> None:
    """Put another array in the place of one, as somebody does who makes the checksums fit."""
    file = folder / read_manifest(folder).data / f"{name}.npy"
    np.save(file, array)
    content = file.read_bytes()
    document = json.loads((folder / "manifest.json").read_text())
    body = document["body"]
    body["arrays"][name] = {"bytes": len(content), "crc32": zlib.crc32(content)}
    crc = zlib.crc32(json.dumps(body, sort_keys=True).encode())
    (folder / "manifest.json").write_text(json.dumps({"crc32": crc, "body": body}))
