"""Folders of arrays that a version's manifest describes, mapped."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from matchmill.errors import FolderError
from matchmill.spark.published.versions import FolderEntry
from matchmill.storage.array_folder import Manifest, map_arrays

__all__ = ["map_folder"]


def map_folder(root: Path, name: str, entry: FolderEntry, *, verify: bool) -> dict[str, np.ndarray]:
    """Map the arrays of a folder below root; sizes are compared, with `verify` checksums too."""
    try:
        return map_arrays(root, Manifest(name, entry.arrays, [], {}), verify=verify)
    except FolderError as error:
        text = str(error).partition("; restore")[0]
        raise FolderError(
            f"{text}; restore it from a copy, match with an earlier version, or build anew"
        ) from error
