"""How workers get files of Hadoop paths: from a small HTTP server in the driver's process.

    GET /ROOT/NAME/     the files of a folder as JSON: [[name, bytes], …]
    GET /ROOT/NAME      one file, with its checksum in a header

Only the driver's JVM has the file systems, settings and credentials of Spark; a Python worker has
no JVM to ask. `SparkContext.addFile` would bring files to the executors, too, but it cannot be
undone: when a version has been removed, each new executor fails to fetch it, whatever job it runs.
A server is asked only by who needs a file, and changes nothing of the session.

Each answer needs the server's token, which workers get with their task. Files are served from below
the roots that were added, by names of plain letters.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import re
import secrets
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any, NamedTuple, Protocol

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException as SparkException

from matchmill.errors import FolderError
from matchmill.spark.published.fetched_version import compare_with_manifest

__all__ = ["PORT_SETTING", "FileSource", "ServedRoot", "fetch_folder", "source_of"]

PORT_SETTING = "spark.matchmill.files.port"
_NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/)*[A-Za-z0-9_][A-Za-z0-9_.-]*/?")
_CHUNK = 1 << 20
_TIMEOUT = 600  # seconds without a byte: the driver copies a file before it answers


class ServedRoot(Protocol):
    """What a location offers to the server."""

    root: str

    def list_files(self, name: str) -> list[tuple[str, int]] | None:
        """List the files of a folder, at any depth, with their sizes; None if it is not there."""
        ...

    def copy_file(self, name: str, target: Path) -> bool:
        """Copy a file to this machine; return False if it is not there."""
        ...


class FileSource(NamedTuple):
    """Where a worker asks for a folder; it travels with the task."""

    host: str
    port: int
    token: str
    root_id: str
    root: str
    name: str

    def __repr__(self) -> str:  # plans are printed; the token is not
        return f"FileSource({self.root}/{self.name})"

    def fetch(self, target: Path) -> None:
        """Fetch all files of the folder."""
        fetch_folder(self, target)


# -- in the driver --------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address, _Handler)
        self.token = secrets.token_urlsafe(32)
        self.roots: dict[str, ServedRoot] = {}
        # Few threads talk to the JVM: each keeps a connection to it.
        self.copies = ThreadPoolExecutor(4, "matchmill-files")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over workers that were killed while they read."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _TIMEOUT

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: workers raise errors."""

    def do_GET(self) -> None:
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.server.token}".encode()):
            self._answer(403, b"wrong token")
            return
        root_id, _, name = self.path.lstrip("/").partition("/")
        root = self.server.roots.get(root_id)
        if root is None or not _NAME.fullmatch(name):
            self._answer(404, b"no such root or name")
            return
        try:
            if name.endswith("/"):
                self._list(root, name.rstrip("/"))
            else:
                self._send(root, name)
        except OSError:
            raise  # the connection
        except (Py4JError, SparkException, AttributeError) as error:  # the JVM may be gone
            self._answer(503, f"{type(error).__name__}: {error}".encode()[:2000])

    def _list(self, root: ServedRoot, name: str) -> None:
        found = self.server.copies.submit(root.list_files, name).result()
        if found is None:
            self._answer(404, b"no such folder")
        else:
            self._answer(200, json.dumps(found).encode())

    def _send(self, root: ServedRoot, name: str) -> None:
        with tempfile.TemporaryDirectory(prefix="matchmill-served-") as folder:
            file = Path(folder) / "file"
            if not self.server.copies.submit(root.copy_file, name, file).result():
                self._answer(404, b"no such file")
                return
            crc = 0
            with file.open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    crc = zlib.crc32(chunk, crc)
                self.send_response(200)
                self.send_header("Content-Length", str(stream.tell()))
                self.send_header("X-Crc32", str(crc))
                self.end_headers()
                stream.seek(0)
                shutil.copyfileobj(stream, self.wfile, _CHUNK)

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


_servers: dict[tuple[str, int], _Server] = {}
_lock = Lock()


def source_of(spark: Any, root: ServedRoot, name: str) -> FileSource:
    """Serve a folder below a root to the workers of a session, and say how they ask for it."""
    conf = spark.sparkContext.getConf()
    host = conf.get("spark.driver.host", "127.0.0.1")
    bound = conf.get("spark.driver.bindAddress", host)
    port = int(conf.get(PORT_SETTING, "0"))
    with _lock:
        server = _servers.get((bound, port))
        if server is None:
            try:
                server = _Server((bound, port))
            except OSError as error:
                raise FolderError(
                    f"files cannot be served to workers at {bound}, port {port}"
                    f" ({error.strerror}): change {PORT_SETTING} or spark.driver.bindAddress"
                ) from error
            Thread(target=server.serve_forever, name="matchmill-files", daemon=True).start()
            _servers[bound, port] = server
        root_id = hashlib.sha256(root.root.encode()).hexdigest()[:16]
        server.roots[root_id] = root
    return FileSource(host, server.server_address[1], server.token, root_id, root.root, name)


# -- in a worker ----------------------------------------------------------------------------------


def fetch_folder(source: FileSource, target: Path) -> None:
    """Fetch all files of a folder, compare their checksums, and sync them."""
    try:
        entries = json.loads(b"".join(_asked(source, f"{source.name}/")))
        known: dict[str, tuple[int, int]] = {}
        for name, n_bytes in entries:
            if not _NAME.fullmatch(name):
                raise FolderError(f"{source.root}/{source.name} holds {name!r}: build again")
            file = target / name
            file.parent.mkdir(parents=True, exist_ok=True)
            crc, size = 0, 0
            with file.open("wb") as stream:
                for chunk in _asked(source, f"{source.name}/{name}"):
                    crc, size = zlib.crc32(chunk, crc), size + len(chunk)
                    stream.write(chunk)
                stream.flush()
                os.fsync(stream.fileno())
            if size != n_bytes:
                raise _changed(source, name)
            known[name] = (size, crc)
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise  # a file of this machine
        raise FolderError(
            f"{source.root}/{source.name} cannot be fetched from the driver at {source.host}, port"
            f" {source.port} ({error}): workers must be able to connect to it; {PORT_SETTING} fixes"
            " the port"
        ) from error
    if "manifest.json" in known:
        compare_with_manifest(f"{source.root}/{source.name}", target, known)


def _asked(source: FileSource, name: str) -> Iterator[bytes]:
    """Ask the driver for a file or a listing; compare its checksum at the end."""
    connection = http.client.HTTPConnection(source.host, source.port, timeout=_TIMEOUT)
    try:
        headers = {"Authorization": f"Bearer {source.token}"}
        connection.request("GET", f"/{source.root_id}/{name}", headers=headers)
        answer = connection.getresponse()
        if answer.status == 404:
            raise FolderError(
                f"{source.root}/{name.rstrip('/')} is not there: this version of the engine has"
                " been removed since; open the engine again"
            )
        if answer.status != 200:
            reason = answer.read(2000).decode(errors="replace")
            raise FolderError(
                f"{source.root}/{name.rstrip('/')} cannot be fetched: the driver says {reason}"
            )
        crc = 0
        n_left = int(answer.headers["Content-Length"])
        while chunk := answer.read(_CHUNK):
            crc, n_left = zlib.crc32(chunk, crc), n_left - len(chunk)
            yield chunk
        if n_left or int(answer.headers.get("X-Crc32", crc)) != crc:
            raise _changed(source, name)
    finally:
        connection.close()


def _changed(source: FileSource, name: str) -> FolderError:
    return FolderError(
        f"{source.root}/{source.name}: {name} did not arrive as it was sent, or changes; try again"
    )
