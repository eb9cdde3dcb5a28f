"""Folders of arrays: what an engine is saved as.

    FOLDER/manifest.json          format, version, what is in it, size and checksum of each array
    FOLDER/data-<random>/*.npy    one mappable file an array

A new version is written beside the old one and published by one rename of the manifest, so a crash
leaves the old version or the new one, and readers that have mapped the old one go on. Opening maps
the files; `verify` reads them once against their checksums.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from matchmill.errors import SavedIndexError

__all__ = ["FORMAT_VERSION", "SavedFolder", "open_folder", "write_folder"]

FORMAT = "matchmill engine"
FORMAT_VERSION = 1
_MANIFEST = "manifest.json"
_CHUNK = 1 << 22


class SavedFolder(NamedTuple):
    arrays: dict[str, np.ndarray]
    meta: dict[str, Any]


def write_folder(path: str | os.PathLike[str], folder: SavedFolder) -> None:
    """Write a version and publish it."""
    root = Path(path)
    if root.exists() and not root.is_dir():
        raise SavedIndexError(f"{root} is a file; give the name of a folder")
    if root.is_dir() and any(root.iterdir()) and not (root / _MANIFEST).exists():
        raise SavedIndexError(f"{root} holds other files; give a new or empty folder")
    root.mkdir(parents=True, exist_ok=True)
    data = root / f"data-{uuid4().hex[:12]}"
    data.mkdir()
    try:
        entries = {name: _write_array(data, name, a) for name, a in folder.arrays.items()}
        _sync_folder(data)
        body = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "data": data.name,
            "arrays": entries,
            "meta": folder.meta,
        }
        _publish(root, body)
    except BaseException:
        shutil.rmtree(data, ignore_errors=True)
        raise
    for old in root.glob("data-*"):
        if old != data:
            shutil.rmtree(old, ignore_errors=True)


def _write_array(data: Path, name: str, array: np.ndarray) -> dict[str, Any]:
    file = data / f"{name}.npy"
    with file.open("wb") as stream:
        np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
        stream.flush()
        os.fsync(stream.fileno())
    return {"bytes": file.stat().st_size, "crc32": _checksum(file)}


def _publish(root: Path, body: dict[str, Any]) -> None:
    text = json.dumps(body, sort_keys=True)
    document = json.dumps({"crc32": zlib.crc32(text.encode()), "body": body}, sort_keys=True)
    temporary = root / f".{_MANIFEST}-{uuid4().hex[:12]}"
    with temporary.open("w", encoding="utf-8") as stream:
        stream.write(document)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, root / _MANIFEST)
    _sync_folder(root)


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _checksum(file: Path) -> int:
    crc = 0
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            crc = zlib.crc32(chunk, crc)
    return crc


def open_folder(path: str | os.PathLike[str], *, verify: bool = True) -> SavedFolder:
    """Map a saved folder; raises SavedIndexError that names what is wrong with it."""
    root = Path(path)
    body = _read_manifest(root)
    data, entries = _contents(root, body)
    for name, entry in entries.items():
        _check_size(data / f"{name}.npy", entry)
    if verify:
        with ThreadPoolExecutor(2) as pool:
            files = [data / f"{name}.npy" for name in entries]
            for file, crc in zip(files, pool.map(_checksum, files), strict=True):
                if crc != entries[file.name.removesuffix(".npy")]["crc32"]:
                    raise _damaged(file, "its checksum does not fit")
    arrays = {name: _map_array(data / f"{name}.npy") for name in entries}
    return SavedFolder(arrays, body["meta"])


def _damaged(file: Path, what: str) -> SavedIndexError:
    return SavedIndexError(f"{file} is damaged: {what}; restore the folder, or save it anew")


def _read_manifest(root: Path) -> dict[str, Any]:
    file = root / _MANIFEST
    if not file.is_file():
        raise SavedIndexError(f"{root} holds no saved engine: there is no {_MANIFEST}")
    try:
        document = json.loads(file.read_bytes())
        body: dict[str, Any] = document["body"]
        crc = zlib.crc32(json.dumps(body, sort_keys=True).encode())
        is_intact = crc == document["crc32"]
        found_format, version = body["format"], body["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(file, "it is not a manifest") from error
    if not is_intact:
        raise _damaged(file, "its checksum does not fit")
    if found_format != FORMAT:
        raise SavedIndexError(f"{root} is not a saved engine but {found_format!r}")
    if version != FORMAT_VERSION:
        raise SavedIndexError(
            f"{root} has format version {version}, this matchmill reads {FORMAT_VERSION};"
            " build it anew from the subscriptions"
        )
    return body


def _contents(root: Path, body: dict[str, Any]) -> tuple[Path, dict[str, dict[str, int]]]:
    """The data folder and the arrays in it; nothing outside the folder is ever touched."""
    entries: dict[str, dict[str, int]] = body.get("arrays", {})
    for name in (str(body.get("data")), *entries):
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise _damaged(root / _MANIFEST, f"{name!r} is no name of a file in it")
    return root / str(body["data"]), entries


def _check_size(file: Path, entry: dict[str, int]) -> None:
    if not file.is_file():
        raise _damaged(file, "the file is missing")
    size = file.stat().st_size
    if size != entry["bytes"]:
        raise _damaged(file, f"it has {size} bytes instead of {entry['bytes']}")


def _map_array(file: Path) -> np.ndarray:
    """Copy-on-write, not read-only: kernels would be compiled again for read-only arrays."""
    try:
        mapped: np.ndarray = np.load(file, mmap_mode="c", allow_pickle=False)
        return mapped.view(np.ndarray)
    except ValueError:  # an empty array cannot be mapped
        try:
            loaded: np.ndarray = np.load(file, allow_pickle=False)
            return loaded
        except (ValueError, EOFError, OSError) as error:
            raise _damaged(file, "it is not an array") from error
