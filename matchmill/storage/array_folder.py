"""Folders of arrays: what an engine is saved as.

    FOLDER/manifest.json          format, version, what is in it, size and checksum of each array
    FOLDER/data-<random>/*.npy    one file per array, which can be mapped
    FOLDER/log-<random>           changes since the arrays were written (`change_log.py`)
    FOLDER/lock                   held by whoever writes (`folder_lock.py`)

The manifest names the data and the logs that belong to it, oldest first. A new version is written
beside the old one and published by one rename of the manifest, so a crash leaves the old version or
the new one, each with its own logs, and readers that have mapped the old one go on.

Opening maps the files. It reads the manifest and small files against their checksums, and checks
the sizes of all; `verify` reads the large ones too, which takes as long as reading does.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar
from uuid import uuid4

import numpy as np

from matchmill.errors import FolderError
from matchmill.storage.folder_lock import LOCK_NAME, FolderLock
from matchmill.storage.log_writer import create_log

__all__ = [
    "FORMAT_VERSION",
    "SHARDED_MANIFEST",
    "Manifest",
    "SavedFolder",
    "is_saved_engine",
    "map_arrays",
    "name_logs",
    "new_log_name",
    "read_manifest",
    "remove_leftovers",
    "retried",
    "sync_folder",
    "write_array",
    "write_folder",
    "write_version",
]

FORMAT = "matchmill engine"
FORMAT_VERSION = 6
_MANIFEST = "manifest.json"
SHARDED_MANIFEST = "current.json"  # of an engine that Spark built, which is another format
_SMALL_FILE = 1 << 16
_CHUNK = 1 << 22
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<|][a-z]\d)', 'fortran_order': False, 'shape': \(([\d, ]*)\), \}\s*"
)
_OWN_NAMES = re.compile(rf"{LOCK_NAME}|data-[0-9a-f]+|log-[0-9a-f]+|\.?manifest\.json.*")

T = TypeVar("T")


class SavedFolder(NamedTuple):
    """What one version of a folder holds: arrays by name, and anything that JSON can write."""

    arrays: dict[str, np.ndarray]
    meta: dict[str, Any]


class Manifest(NamedTuple):
    """Which files belong to the current version."""

    data: str
    arrays: dict[str, dict[str, int]]
    logs: list[str]
    meta: dict[str, Any]


# -- writing --------------------------------------------------------------------------------------


def write_folder(path: str | os.PathLike[str], folder: SavedFolder) -> None:
    """Write a version with an empty log and publish it, as the only writer of that folder."""
    root = Path(path)
    if root.exists() and not root.is_dir():
        raise FolderError(f"{root} is a file; give the name of a folder")
    if root.is_dir() and not is_saved_engine(root):
        if not all(_OWN_NAMES.fullmatch(file.name) for file in root.iterdir()):
            raise FolderError(f"{root} holds other files; give a new or empty folder")
    root.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(root)
    try:
        log = new_log_name()
        create_log(root / log)
        write_version(root, folder, [log])
    finally:
        lock.release()


def write_version(root: Path, folder: SavedFolder, logs: Sequence[str]) -> None:
    """Write the arrays and publish them with logs that exist; the caller holds the lock."""
    data = root / f"data-{uuid4().hex[:12]}"
    data.mkdir()
    try:
        entries = {name: write_array(data, name, a) for name, a in folder.arrays.items()}
        sync_folder(data)
        new = _write_manifest(root, Manifest(data.name, entries, list(logs), folder.meta))
    except BaseException:
        shutil.rmtree(data, ignore_errors=True)
        raise
    _publish(root, new)
    remove_leftovers(root)


def name_logs(root: Path, logs: Sequence[str]) -> None:
    """Publish the same arrays with other logs; the caller holds the lock."""
    _publish(root, _write_manifest(root, read_manifest(root)._replace(logs=list(logs))))


def new_log_name() -> str:
    """Return a name that no log has."""
    return f"log-{uuid4().hex[:12]}"


def remove_leftovers(root: Path) -> None:
    """Remove what the manifest does not name: older versions, and halves of newer ones."""
    manifest = read_manifest(root)
    for file in root.glob("data-*"):
        if file.name != manifest.data:
            shutil.rmtree(file, ignore_errors=True)
    for file in (*root.glob("log-*"), *root.glob(f".{_MANIFEST}-*")):
        if file.name not in manifest.logs:
            file.unlink(missing_ok=True)


class _Checksummed:
    """A stream that knows the checksum of all that went through it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.crc32 = 0

    def write(self, content: bytes) -> int:
        self.crc32 = zlib.crc32(content, self.crc32)
        return self._stream.write(content)


def write_array(data: Path, name: str, array: np.ndarray) -> dict[str, int]:
    """Write one array to a folder, to the disk; return what a manifest says of it."""
    file = data / f"{name}.npy"
    with file.open("wb") as stream:
        checksummed = _Checksummed(stream)
        np.save(checksummed, np.ascontiguousarray(array), allow_pickle=False)
        stream.flush()
        os.fsync(stream.fileno())
    return {"bytes": file.stat().st_size, "crc32": checksummed.crc32}


def _write_manifest(root: Path, manifest: Manifest) -> Path:
    """Write a manifest under a name from which `_publish` renames it."""
    body = {"format": FORMAT, "version": FORMAT_VERSION, **manifest._asdict()}
    text = json.dumps(body, sort_keys=True)
    document = json.dumps({"crc32": zlib.crc32(text.encode()), "body": body}, sort_keys=True)
    temporary = root / f".{_MANIFEST}-{uuid4().hex[:12]}"
    with temporary.open("w", encoding="utf-8") as stream:
        stream.write(document)
        stream.flush()
        os.fsync(stream.fileno())
    return temporary


def _publish(root: Path, temporary: Path) -> None:
    sync_folder(root)  # first the names of what the manifest speaks of
    os.replace(temporary, root / _MANIFEST)
    sync_folder(root)


def sync_folder(path: Path) -> None:
    """Make names in a folder survive a crash of the machine."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -- reading --------------------------------------------------------------------------------------


def retried(root: Path, read: Callable[[Manifest], T]) -> T:
    """Read a version; repeat that if a writer has replaced and removed it meanwhile."""
    while True:
        manifest = read_manifest(root)
        try:
            return read(manifest)
        except FolderError:
            if read_manifest(root) == manifest:
                raise


def is_saved_engine(root: Path) -> bool:
    """Return whether `Engine.save` made a folder; raise FolderError if Spark did."""
    if (root / _MANIFEST).is_file():
        return True
    if (root / SHARDED_MANIFEST).is_file():
        raise FolderError(
            f"{root} is an engine that matchmill.spark.build made: open it with"
            " matchmill.spark.open, or read its subscriptions with"
            " spark.read.format('matchmill').load(path)"
        )
    return False


def map_arrays(root: Path, manifest: Manifest, *, verify: bool) -> dict[str, np.ndarray]:
    """Map the arrays of a version, after a check of all sizes and of small files' checksums."""
    files = {name: root / manifest.data / f"{name}.npy" for name in manifest.arrays}
    for name, entry in manifest.arrays.items():
        _check_size(files[name], entry)
    checked = [n for n, e in manifest.arrays.items() if verify or e["bytes"] <= _SMALL_FILE]
    try:
        with ThreadPoolExecutor(2) as pool:
            crcs = pool.map(_checksum, [files[name] for name in checked])
            for name, crc in zip(checked, crcs, strict=True):
                if crc != manifest.arrays[name]["crc32"]:
                    raise _damaged(files[name], "its checksum does not fit")
        return {name: _map_array(file) for name, file in files.items()}
    except FileNotFoundError as error:  # removed after its size was checked
        raise _damaged(Path(error.filename), "the file is missing") from error


def _checksum(file: Path) -> int:
    crc = 0
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            crc = zlib.crc32(chunk, crc)
    return crc


def _damaged(file: Path, what: str) -> FolderError:
    return FolderError(f"{file} is damaged: {what}; restore the folder, or save the engine again")


def read_manifest(root: Path) -> Manifest:
    """Read the manifest of a folder; raise FolderError that names what is wrong with it."""
    file = root / _MANIFEST
    if not is_saved_engine(root):
        raise FolderError(f"{root} holds no saved engine: there is no {_MANIFEST}")
    try:
        document = json.loads(file.read_bytes())
        body: dict[str, Any] = document["body"]
        crc = zlib.crc32(json.dumps(body, sort_keys=True).encode())
        is_intact = crc == document["crc32"]
        found_format, version = body.pop("format"), body.pop("version")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(file, "it is not a manifest") from error
    if not is_intact:
        raise _damaged(file, "its checksum does not fit")
    if found_format != FORMAT:
        raise FolderError(f"{root} is not a saved engine but {found_format!r}")
    if version != FORMAT_VERSION:
        raise FolderError(
            f"{root} has format version {version}, this matchmill reads {FORMAT_VERSION};"
            " build it again from the subscriptions"
        )
    try:
        manifest = Manifest(**body)
    except TypeError as error:
        raise _damaged(file, "it is not a manifest") from error
    # Nothing outside the folder is ever touched.
    for name in (manifest.data, *manifest.logs, *manifest.arrays):
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise _damaged(file, f"{name!r} is no name of a file in it")
    return manifest


def _check_size(file: Path, entry: dict[str, int]) -> None:
    try:
        size = file.stat().st_size
    except FileNotFoundError:
        raise _damaged(file, "the file is missing") from None
    if size != entry["bytes"]:
        raise _damaged(file, f"it has {size} bytes instead of {entry['bytes']}")


def _map_array(file: Path) -> np.ndarray:
    """Map a file copy-on-write: kernels would be compiled again for read-only arrays.

    The header is read here: NumPy uses Python's own parser, which fails now and then when several
    threads use it at once (Python 3.11 and 3.12).
    """
    with file.open("rb") as stream:
        start = stream.read(len(_NPY_MAGIC) + 2)
        n_header = int.from_bytes(start[len(_NPY_MAGIC) :], "little")
        header = _NPY_HEADER.fullmatch(stream.read(n_header))
    if not start.startswith(_NPY_MAGIC) or header is None:
        raise _damaged(file, "it is not an array")
    dtype = np.dtype(header[1].decode())
    shape = tuple(int(n) for n in header[2].split(b",") if n.strip())
    if 0 in shape:  # cannot be mapped
        return np.empty(shape, dtype)
    offset = len(start) + n_header
    if offset + math.prod(shape) * dtype.itemsize != file.stat().st_size:
        raise _damaged(file, "it is not as long as it says")
    mapped = np.memmap(file, dtype, mode="c", offset=offset, shape=shape)
    return mapped.view(np.ndarray)
