"""Check what a machine has fetched of a version against the version's own manifest."""

from __future__ import annotations

import json
from pathlib import Path

from matchmill.errors import FolderError

__all__ = ["compare_with_manifest"]


def compare_with_manifest(where: str, target: Path, known: dict[str, tuple[int, int]]) -> None:
    """Compare sizes and checksums of what came, by name, with those that the manifest states."""
    try:
        body = json.loads((target / "manifest.json").read_bytes())["body"]
        parts = [body["dimensions"], *body["shards"]]
    except (OSError, ValueError, KeyError, TypeError):
        return  # whoever opens the version says what is wrong with it
    for part in parts:
        for name, entry in part["arrays"].items():
            file = f"{part['folder']}/{name}.npy"
            if known.get(file) != (entry["bytes"], entry["crc32"]):
                raise FolderError(
                    f"{where}/{file} is damaged: its size or checksum does not fit; restore it from"
                    " a copy, match with an earlier version, or build again"
                )
