"""Engines in object stores: `s3://`, `gs://`, `az://`, `abfs://`, without Hadoop and its jars.

    driver      current.json, manifest.json, dimensions     put, get, list, delete
    executors   shards/N-…/…                                 put what they have built
    executors   versions/NAME/…                              get into a cache of their machine

The object that names the current version, `current.json`, is written last, by a conditional put: it
is replaced only if it is still the one that this writer has read. So of two builds at a time one
publishes, and the other ends with an error. Nothing is renamed, and no object is ever half written.
What builds that were cut short left is removed after a build has published, and not before one
begins: whoever loses his objects to that cannot publish any more.

Every process makes its connection itself, with the credentials of its environment (AWS_…, GOOGLE_…,
AZURE_…, or the role of the machine). No credential travels in a plan.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from matchmill.errors import FolderError, InputError, MissingDependencyError
from matchmill.spark.published.fetched_version import compare_with_manifest
from matchmill.spark.published.worker_files import WorkerFiles

__all__ = ["ObjectFolder", "StoreSource", "is_store_path", "upload_folder"]

_SCHEMES = ("s3", "gs", "az", "abfs", "abfss")
_AT_ONCE = 8  # transfers of one process
_CHUNK = 8 << 20
_RETRY_SECONDS = 60.0  # of a request, until it is an error


def is_store_path(path: str) -> bool:
    """Return whether a path names an object store that is reached without Hadoop."""
    return urlsplit(path).scheme in _SCHEMES


@lru_cache(maxsize=32)
def _opened(url: str) -> Any:
    """Return the store of a URL; its paths are relative to that."""
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError:
        raise MissingDependencyError(
            "engines in object stores need obstore: pip install 'matchmill[stores]'"
        ) from None
    patience = dt.timedelta(seconds=_RETRY_SECONDS)
    options: dict[str, Any] = {"retry_config": {"max_retries": 10, "retry_timeout": patience}}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
    if endpoint.startswith("http://"):  # such as a server for tests
        options["client_options"] = {"allow_http": True}
    try:
        return from_url(url, **options)
    except (BaseError, ValueError) as error:
        raise InputError(f"{url} cannot be opened: {error}") from error


@contextmanager
def _plain_errors(where: str) -> Iterator[None]:
    """Raise errors of a store as FolderError."""
    from obstore.exceptions import BaseError

    try:
        yield
    except BaseError as error:
        raise FolderError(
            f"{where} cannot be reached ({_first_line(error)}): check its name, the network and the"
            " credentials in the environment of this machine"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


class StoreSource(NamedTuple):
    """A folder of a store, as a worker fetches it."""

    root: str
    name: str

    def fetch(self, target: Path) -> None:
        """Fetch all objects of the folder, and compare their checksums with the manifest."""
        import obstore

        store, where = _opened(self.root), f"{self.root}/{self.name}"
        with _plain_errors(where):
            found = [meta for some in obstore.list(store, self.name) for meta in some]
        if not found:
            raise FolderError(f"{where} is not there: this version has been removed; open it again")
        prefix = f"{self.name}/"
        known: dict[str, tuple[int, int]] = {}

        def fetch_one(meta: Any) -> None:
            name = meta["path"].removeprefix(prefix)
            file = target / name
            file.parent.mkdir(parents=True, exist_ok=True)
            crc = 0
            with _plain_errors(where), file.open("wb") as stream:
                for chunk in obstore.get(store, meta["path"]).stream(_CHUNK):
                    crc = zlib.crc32(chunk, crc)
                    stream.write(chunk)
                stream.flush()
                os.fsync(stream.fileno())
            known[name] = (meta["size"], crc)

        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(fetch_one, found))
        compare_with_manifest(where, target, known)


def upload_folder(folder: Path, root: str, name: str) -> None:
    """Put all files of a local folder into a folder of a store."""
    import obstore

    store = _opened(root)
    files = sorted(path for path in folder.rglob("*") if path.is_file())

    def put(file: Path) -> None:
        with _plain_errors(f"{root}/{name}"):
            obstore.put(store, f"{name}/{file.relative_to(folder).as_posix()}", file)

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        list(threads.map(put, files))


class ObjectFolder:
    """A folder of an object store, as a `Location`."""

    workers_write = False
    excludes_others = False

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")
        self._store = _opened(self.root)
        self._seen: dict[str, Any] = {}  # what was read last: how to know it again; None if nothing

    def locked(self) -> Any:
        """Nothing is locked: the last put finds out that somebody else has published."""
        return nullcontext()

    def read(self, name: str) -> bytes | None:
        """Read an object; None if there is none."""
        import obstore

        with _plain_errors(self.root):
            try:
                found = obstore.get(self._store, name)
            except FileNotFoundError:
                self._seen[name] = None
                return None
            content = bytes(found.bytes())
        self._seen[name] = {"e_tag": found.meta["e_tag"], "version": found.meta["version"]}
        return content

    def publish(self, name: str, content: bytes) -> None:
        """Put an object; if it was read before, only if it is still the same."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, NotSupportedError, PreconditionError

        mode: Any = "overwrite"
        if name in self._seen:
            seen = self._seen[name]
            mode = "create" if seen is None else {k: v for k, v in seen.items() if v is not None}
        with _plain_errors(self.root):
            try:
                put = obstore.put(self._store, name, content, mode=mode, use_multipart=False)
            except (AlreadyExistsError, PreconditionError) as error:
                raise FolderError(
                    f"{self.root}/{name} was changed by somebody else meanwhile, and is left as it"
                    " is: only one build may run at a time; build again"
                ) from error
            except NotSupportedError as error:
                raise FolderError(
                    f"{self.root} has no conditional puts ({_first_line(error)}), which publishing"
                    " needs: give a folder, or a Hadoop path"
                ) from error
        self._seen[name] = {"e_tag": put["e_tag"], "version": put["version"]}

    def put(self, name: str, content: bytes) -> None:
        """Put an object, whatever was there."""
        import obstore

        with _plain_errors(self.root):
            obstore.put(self._store, name, content)
        self._seen.pop(name, None)

    def names(self, name: str) -> list[str]:
        """List what is in a folder."""
        import obstore

        with _plain_errors(self.root):
            found = obstore.list_with_delimiter(self._store, name or None)
        paths = [*found["common_prefixes"], *(meta["path"] for meta in found["objects"])]
        return sorted({path.rstrip("/").rpartition("/")[2] for path in paths})

    def remove(self, name: str) -> None:
        """Remove an object, or all that begin with a folder's name.

        What says that a version is complete goes first.
        """
        import obstore

        with _plain_errors(self.root):
            paths = [meta["path"] for some in obstore.list(self._store, name) for meta in some]
            paths.sort(key=lambda path: not path.endswith("/manifest.json"))
            first, rest = paths[:1], paths[1:]
            for some in (first, rest):
                if some:
                    obstore.delete(self._store, some)
            if not paths:
                _delete_if_there(self._store, name)
        self._seen.pop(name, None)

    def work_folder(self, name: str) -> Path:
        """Make a local folder to write into."""
        return Path(tempfile.mkdtemp(prefix="matchmill-build-"))

    def store(self, work: Path, name: str) -> None:
        """Put what is in a local folder here."""
        upload_folder(work, self.root, name)

    def worker_files(self, name: str) -> WorkerFiles:
        """Say how workers find a folder."""
        return WorkerFiles(f"{self.root}/{name}", StoreSource(self.root, name))

    def shard_target(self, name: str) -> StoreTarget:
        """Say where workers put the shards of a build."""
        return StoreTarget(self.root, f"{name}/shards")


def _delete_if_there(store: Any, name: str) -> None:
    import obstore

    try:
        obstore.head(store, name)
    except FileNotFoundError:
        return
    obstore.delete(store, name)


class StoreTarget(NamedTuple):
    """Where a worker puts a shard that it has built."""

    root: str
    name: str

    def take(self, folder: Path) -> None:
        """Put a folder here, and remove it from this machine."""
        upload_folder(folder, self.root, f"{self.name}/{folder.name}")
        shutil.rmtree(folder)
