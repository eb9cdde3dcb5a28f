"""Folders of arrays: what an engine is saved as.

    FOLDER/manifest.json          format, version, what is in it, size and checksum of each array
    FOLDER/data-<random>/*.npy    one file per array, which can be mapped
    FOLDER/log-<random>           changes since the arrays were written (`change_log.py`)
    FOLDER/lock                   held by whoever writes (`folder_lock.py`)

The manifest names the data and the logs that belong to it, oldest first, and says where each log
ends that nothing is appended to any more. A new version is written beside the old one and published
by one rename of the manifest, so a crash leaves the old version or the new one, each with its own
logs, and readers that have mapped the old one go on.

Opening maps the files. It reads the manifest and small files against their checksums, and checks
the sizes of all; `verify` reads the large ones too, which takes as long as reading does.

A writer works on the folder that it has opened (`directory.py`), not on what is found under its
name later. It replaces a manifest only if that is one of ours, and removes only names of ours.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import numpy as np

from matchmill.errors import FolderError
from matchmill.storage.change_log import LogEnd
from matchmill.storage.directory import Directory, opened, write_all
from matchmill.storage.folder_lock import LOCK_NAME, FolderLock
from matchmill.storage.log_writer import create_log

__all__ = [
    "FORMAT_VERSION",
    "SHARDED_MANIFEST",
    "Manifest",
    "SavedFolder",
    "finish_logs",
    "is_saved_engine",
    "lock_folder",
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
FORMAT_VERSION = 9
_MANIFEST = "manifest.json"
SHARDED_MANIFEST = "current.json"  # of an engine that Spark built, which is another format
_SMALL_FILE = 1 << 16
_CHUNK = 1 << 22
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<|][a-z]\d)', 'fortran_order': False, 'shape': \(([\d, ]*)\), \}\s*"
)
_DATA = re.compile(r"data-[0-9a-f]{12}")
_LOG = re.compile(r"log-[0-9a-f]{12}")
_NEW_MANIFEST = re.compile(r"\.manifest\.json-[0-9a-f]{12}")
_OWN_NAMES = (re.compile(LOCK_NAME), re.compile(r"manifest\.json"), _DATA, _LOG, _NEW_MANIFEST)

_notices = logging.getLogger("matchmill")

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
    finished: dict[str, list[int]] = {}  # noqa: RUF012 - never changed; bytes, records of a log


# -- writing --------------------------------------------------------------------------------------


def lock_folder(path: str | os.PathLike[str], *, create: bool) -> FolderLock:
    """Lock a folder that an engine may be written to; `create` makes it if there is none.

    FolderError if something else is there. That is looked at again under the lock, because another
    process may have written meanwhile.
    """
    root = Path(path)
    try:
        if create:
            root.mkdir(parents=True, exist_ok=True)
        with opened(root) as folder:
            _check_ours(folder)
    except FileExistsError:
        raise FolderError(f"{root} is a file; give the name of a folder") from None
    except OSError as error:
        raise _not_writable(root, error) from error
    lock = FolderLock(root)
    try:
        _check_ours(lock.directory)
    except BaseException:
        lock.release()
        raise
    return lock


def _not_writable(root: Path, error: OSError) -> FolderError:
    return FolderError(f"{root} cannot be written to ({error.strerror or error})")


def _check_ours(folder: Directory) -> None:
    """Raise FolderError if a folder holds what no engine has written."""
    if not is_saved_engine(folder):
        if not all(_is_own(name) for name in folder.names()):
            raise FolderError(f"{folder.path} holds other files; give a new or empty folder")


def _is_own(name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in _OWN_NAMES)


def write_folder(path: str | os.PathLike[str], folder: SavedFolder) -> None:
    """Write a version with an empty log and publish it, as the only writer of that folder."""
    lock = lock_folder(path, create=True)
    try:
        write_new(lock, folder)
    except OSError as error:
        raise _not_writable(Path(path), error) from error
    finally:
        lock.release()


def write_new(lock: FolderLock, folder: SavedFolder) -> None:
    """Write a version with an empty log to a folder that is locked."""
    log = new_log_name()
    create_log(lock.directory.path / log, lock.directory)
    write_version(lock, folder, [log])


def write_version(lock: FolderLock, folder: SavedFolder, logs: Sequence[str]) -> None:
    """Write the arrays and publish them with logs that exist."""
    root = lock.directory
    name = f"data-{uuid4().hex[:12]}"
    try:
        with root.make(name) as data:
            entries = {array: write_array(data, array, a) for array, a in folder.arrays.items()}
            data.sync()
    except BaseException:
        with suppress(OSError):  # a full disk gets its room back; what stays, a later save removes
            root.remove(name)
        raise
    _publish(lock, Manifest(name, entries, list(logs), folder.meta))
    remove_leftovers(root)


def name_logs(lock: FolderLock, logs: Sequence[str]) -> None:
    """Publish the same arrays with other logs, which exist."""
    _publish(lock, read_manifest(lock.directory)._replace(logs=list(logs)))


def finish_logs(lock: FolderLock, ends: Iterable[tuple[str, LogEnd]]) -> None:
    """Publish where logs end that nothing will be appended to any more."""
    manifest = read_manifest(lock.directory)
    finished = {log: [end.n_bytes, end.n_records] for log, end in ends}
    _publish(lock, manifest._replace(finished=manifest.finished | finished))


def new_log_name() -> str:
    """Return a name that no log has."""
    return f"log-{uuid4().hex[:12]}"


def remove_leftovers(root: Directory) -> None:
    """Remove what the manifest does not name: older versions, and halves of newer ones.

    What cannot be removed stays until the next time; the current version does not need that.
    """
    manifest = read_manifest(root)
    kept = {manifest.data, *manifest.logs}
    doomed = [
        name
        for name in root.names()
        if name not in kept and any(p.fullmatch(name) for p in (_DATA, _LOG, _NEW_MANIFEST))
    ]
    if not doomed:
        return
    root.sync()  # the manifest that was read may not be on the disk yet, and an older one is
    for name in doomed:
        try:
            root.remove(name)
        except OSError as error:
            _notices.warning("%s could not be removed (%s)", root.path / name, error.strerror)


class _Checksummed:
    """A file that knows the checksum of all that was written to it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.crc32 = 0
        self.n_bytes = 0

    def write(self, content: bytes) -> int:
        self.crc32 = zlib.crc32(content, self.crc32)
        self.n_bytes += len(content)
        write_all(self._handle, content)
        return len(content)


def write_array(
    data: Directory | str | os.PathLike[str], name: str, array: np.ndarray
) -> dict[str, int]:
    """Write one array to a folder, to the disk; return what a manifest says of it."""
    with opened(data) as folder:
        handle = folder.open(f"{name}.npy", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            checksummed = _Checksummed(handle)
            np.save(checksummed, np.ascontiguousarray(array), allow_pickle=False)
            os.fsync(handle)
        finally:
            os.close(handle)
    return {"bytes": checksummed.n_bytes, "crc32": checksummed.crc32}


def _publish(lock: FolderLock, manifest: Manifest) -> None:
    """Make a manifest the current one. Whatever it names is written and synced."""
    root = lock.directory
    finished = {log: end for log, end in manifest.finished.items() if log in manifest.logs}
    content = manifest._replace(finished=finished)._asdict()
    body = {"format": FORMAT, "version": FORMAT_VERSION, **content}
    text = json.dumps(body, sort_keys=True)
    document = json.dumps({"crc32": zlib.crc32(text.encode()), "body": body}, sort_keys=True)
    temporary = f".{_MANIFEST}-{uuid4().hex[:12]}"
    root.write(temporary, document.encode())
    root.sync()  # first the names of what the manifest speaks of
    lock.check()
    root.replace(temporary, _MANIFEST)
    root.sync()


def sync_folder(path: Path) -> None:
    """Make names in a folder survive a crash of the machine."""
    with Directory(path) as folder:
        folder.sync()


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


def is_saved_engine(root: Directory | Path) -> bool:
    """Return whether `Engine.save` made a folder; FolderError if somebody else made it.

    That is the case if Spark did, or if the manifest is not one of ours. A manifest of ours may be
    damaged: what is no JSON at all counts as ours if nothing else in the folder is foreign.
    """
    path = root.path if isinstance(root, Directory) else root
    try:
        if not isinstance(root, Directory) and not root.is_dir():
            return False
    except OSError as error:  # its name is too long
        raise FolderError(f"{path} cannot be read: {error.strerror}") from error
    with opened(root) as folder:
        if folder.has_file(_MANIFEST):
            if not _is_own_manifest(folder):
                raise FolderError(
                    f"{path} holds a {_MANIFEST} that is not of matchmill; give another folder"
                )
            return True
        if folder.has_file(SHARDED_MANIFEST):
            raise FolderError(
                f"{path} is an engine that matchmill.spark.build made: open it with"
                " read_only=True, or with matchmill.spark.open"
            )
    return False


def _is_own_manifest(folder: Directory) -> bool:
    try:
        document = json.loads(folder.read(_MANIFEST))
    except FileNotFoundError:  # removed since it was seen
        return True
    except (ValueError, RecursionError):
        return all(_is_own(name) for name in folder.names())
    return isinstance(document, dict) and document.keys() == {"body", "crc32"}


def map_arrays(
    root: Directory | Path, manifest: Manifest, *, verify: bool
) -> dict[str, np.ndarray]:
    """Map the arrays of a version, after a check of all sizes and of small files' checksums."""
    with opened(root) as folder:
        try:
            data = Directory(manifest.data, inside=folder)
        except (FileNotFoundError, NotADirectoryError):
            raise _damaged(folder.path / manifest.data, "the folder is missing") from None
        with data:
            try:
                return _mapped_arrays(data, manifest.arrays, verify)
            except FileNotFoundError as error:
                raise _damaged(data.path / str(error.filename), "the file is missing") from error


def _mapped_arrays(
    data: Directory, entries: dict[str, dict[str, int]], verify: bool
) -> dict[str, np.ndarray]:
    for name, entry in entries.items():
        size = os.stat(f"{name}.npy", dir_fd=data.handle).st_size
        if size != entry["bytes"]:
            file = data.path / f"{name}.npy"
            raise _damaged(file, f"it has {size} bytes instead of {entry['bytes']}")
    checked = [n for n, e in entries.items() if verify or e["bytes"] <= _SMALL_FILE]
    with ThreadPoolExecutor(2) as pool:
        crcs = pool.map(lambda name: _checksum(data, name), checked)
        for name, crc in zip(checked, crcs, strict=True):
            if crc != entries[name]["crc32"]:
                raise _damaged(data.path / f"{name}.npy", "its checksum does not fit")
    return {name: _map_array(data, name) for name in entries}


def _checksum(data: Directory, name: str) -> int:
    crc = 0
    with open(data.open(f"{name}.npy"), "rb") as stream:
        while chunk := stream.read(_CHUNK):
            crc = zlib.crc32(chunk, crc)
    return crc


def _damaged(file: Path, what: str) -> FolderError:
    return FolderError(f"{file} is damaged: {what}; restore the folder, or save the engine again")


def read_manifest(root: Directory | Path) -> Manifest:
    """Read the manifest of a folder; raise FolderError that names what is wrong with it."""
    path = root.path if isinstance(root, Directory) else root
    file = path / _MANIFEST
    if not is_saved_engine(root):
        raise FolderError(f"{path} holds no saved engine: there is no {_MANIFEST}")
    try:
        with opened(root) as folder:
            document = json.loads(folder.read(_MANIFEST))
        body: dict[str, Any] = document["body"]
        crc = zlib.crc32(json.dumps(body, sort_keys=True).encode())
        is_intact = crc == document["crc32"]
        found_format, version = body.pop("format"), body.pop("version")
    except FileNotFoundError:
        raise FolderError(f"{path} holds no saved engine: there is no {_MANIFEST}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(file, "it is not a manifest") from error
    if not is_intact:
        raise _damaged(file, "its checksum does not fit")
    if found_format != FORMAT:
        raise FolderError(f"{path} is not a saved engine but {found_format!r}")
    if version != FORMAT_VERSION:
        raise FolderError(
            f"{path} has format version {version}, and this matchmill reads version"
            f" {FORMAT_VERSION} only; build it again from the subscriptions"
        )
    try:
        manifest = Manifest(**body)
        _check_manifest(manifest)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise _damaged(file, f"it is not a manifest ({error})") from error
    return manifest


def _check_manifest(manifest: Manifest) -> None:
    """Check that a manifest has the form of one; nothing outside the folder is ever touched."""
    for name in (manifest.data, *manifest.logs, *manifest.arrays):
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise ValueError(f"{name!r} is no name of a file in it")
    if not isinstance(manifest.logs, list) or not isinstance(manifest.meta, dict):
        raise ValueError("logs or meta are missing")
    for entry in manifest.arrays.values():
        if not all(type(entry[key]) is int for key in ("bytes", "crc32")):
            raise ValueError("an array has no size or checksum")
    for log, end in manifest.finished.items():
        if log not in manifest.logs or [type(n) for n in end] != [int, int]:
            raise ValueError(f"the end of {log!r} is none")


def _map_array(data: Directory, name: str) -> np.ndarray:
    """Map a file copy-on-write: kernels would be compiled again for read-only arrays.

    The header is read here: NumPy uses Python's own parser, which fails now and then when several
    threads use it at once (Python 3.11 and 3.12).
    """
    file = data.path / f"{name}.npy"
    with open(data.open(file.name), "rb") as stream:
        start = stream.read(len(_NPY_MAGIC) + 2)
        n_header = int.from_bytes(start[len(_NPY_MAGIC) :], "little")
        header = _NPY_HEADER.fullmatch(stream.read(n_header))
        if not start.startswith(_NPY_MAGIC) or header is None:
            raise _damaged(file, "it is not an array")
        try:
            dtype = np.dtype(header[1].decode())
        except TypeError:
            raise _damaged(file, "it is not an array") from None
        shape = tuple(int(n) for n in header[2].split(b",") if n.strip())
        offset = len(start) + n_header
        if offset + math.prod(shape) * dtype.itemsize != os.fstat(stream.fileno()).st_size:
            raise _damaged(file, "it is not as long as it says")
        if 0 in shape:  # cannot be mapped
            return np.empty(shape, dtype)
        mapped = np.memmap(stream, dtype, mode="c", offset=offset, shape=shape)
    return mapped.view(np.ndarray)
