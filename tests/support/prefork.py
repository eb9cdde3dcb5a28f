"""Servers that start at once: forked from a process that has everything imported and compiled.

Each is a process of its own that opens its folder again and can be killed; only the second or two
that Python needs to import it all are spared, so that many rounds fit into a minute.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2

from tests.support.running_service import wait_until

__all__ = ["ForkedServer", "Nursery", "nursery"]

_PROGRAM = """
import json, os, signal, sys
from matchmill.cli import main
import matchmill.service.server
from matchmill.service.tenant_engines import warm_up

warm_up()
print("ready", flush=True)
for line in sys.stdin:
    order = json.loads(line)
    if "start" in order:
        child = os.fork()
        if child == 0:
            out = os.open(order["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(out, 1)
            os.dup2(out, 2)
            os._exit(main(order["start"]))
        print(child, flush=True)
    else:
        os.kill(order["end"], order["signal"])
        _, status = os.waitpid(order["end"], 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
"""


class Nursery:
    """The process that servers are forked from."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ,
        )
        assert self._answer() == "ready"

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ask(self, **order: Any) -> int:
        assert self._process.stdin is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        return int(self._answer())

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def start(self, folder: Path, *options: str, url: str | None = None) -> ForkedServer:
        return ForkedServer(self, folder, *options, url=url)


class ForkedServer:
    """As `ServerProcess`, from a nursery."""

    def __init__(self, home: Nursery, folder: Path, *options: str, url: str | None = None) -> None:
        self._home = home
        self._out = folder.parent / f"{folder.name}.out"
        self._out.write_text("")
        store = ("--store", url) if url is not None else ()
        arguments = ["serve", str(folder), "--port", "0", *store, *options]
        self.pid = home.ask(start=arguments, out=str(self._out))
        wait_until(lambda: "http://" in self._out.read_text() and "\n" in self._out.read_text())
        line = next(line for line in self._out.read_text().splitlines() if "http://" in line)
        self.address = line[line.index("http://") :]

    def wait_ready(self) -> None:
        def is_ready() -> bool:
            with suppress(httpx2.TransportError):
                return httpx2.get(f"{self.address}/readyz").status_code == 200
            return False

        wait_until(is_ready)

    def kill(self) -> None:
        self._home.ask(end=self.pid, signal=int(signal.SIGKILL))

    def stop(self) -> int:
        return self._home.ask(end=self.pid, signal=int(signal.SIGTERM))


@contextmanager
def nursery() -> Iterator[Nursery]:
    home = Nursery()
    try:
        yield home
    finally:
        home.close()
