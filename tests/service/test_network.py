"""The socket, the limit on open files, the modes of files, and paths with control characters."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from matchmill.service import server as server_module
from matchmill.service.database.open import DATABASE_NAME
from matchmill.service.private_folder import make_private
from matchmill.service.service import Service
from matchmill.service.tenant_engines import TenantEngines
from tests.support.postgres import Server
from tests.support.running_service import Caller, Local, local_service, new_key


@pytest.mark.slow
def test_small_responses_go_out_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio sets TCP_NODELAY for sockets that say that they are TCP's."""
    served: list[socket.socket] = []

    class Noting(server_module._Server):
        async def serve(self, sockets: list[socket.socket] | None = None) -> None:
            served.extend(sockets or [])

    monkeypatch.setattr(server_module, "_Server", Noting)
    service = Service(tmp_path / "s")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert listening.proto == 0
        server_module.serve(service, listening)
        (one,) = served
        assert one.proto == socket.IPPROTO_TCP
        assert one.getsockname() == listening.getsockname()
        one.close()
    service.store.close()
    service._lock.release()


def test_listening_beyond_the_loopback_address_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, logger="matchmill.service"):
        for address, is_warned_of in (("127.0.0.1", False), ("0.0.0.0", True)):
            caplog.clear()
            with socket.create_server((address, 0)) as listening:
                server_module._warn_of_network(listening)
            assert ("without TLS" in caplog.text) == is_warned_of


def test_an_existing_folder_is_made_private(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    (folder / DATABASE_NAME).touch()
    (folder / DATABASE_NAME).chmod(0o644)
    with local_service(folder) as local:
        local.caller().subscribe("a", "x = 1")
        modes = {one.name: one.stat().st_mode & 0o777 for one in folder.iterdir()}
        assert folder.stat().st_mode & 0o777 == 0o700
        found = {name: mode for name, mode in modes.items() if name.startswith(DATABASE_NAME)}
        assert len(found) == 3
        assert set(found.values()) == {0o600}


def test_a_new_folder_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private(tmp_path / "a" / "b")
        with local_service(tmp_path / "s"):
            assert (tmp_path / "s" / DATABASE_NAME).stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


# -- files ----------------------------------------------------------------------------------------


def test_the_limit_on_open_files_is_raised() -> None:
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 300))\n"
        "from matchmill.service.file_limit import *\n"
        "raise_file_limit(); print(file_limit())"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert output.stdout.split() == [b"300"]


def test_engines_that_are_not_used_are_closed(tmp_path: Path) -> None:
    with local_service(tmp_path / "s") as local:
        callers = [local.caller(f"t{n}") for n in range(6)]
        engines: TenantEngines = local.service.engines
        engines._most_open = 2
        for round_ in range(3):
            for n, caller in enumerate(callers):
                caller.subscribe(f"s{round_}", f"x = {n}")
                assert caller.publish({"x": n}) == round_ + 1
                assert sum(one.is_open for one in engines._made()) <= 2
        assert engines.n_subscriptions() == 18
        if Path("/proc/self/fd").exists():  # closed in earnest, with what they had mapped
            folder = tmp_path / "s" / "engines"
            names = [Path(os.path.realpath(one)) for one in Path("/proc/self/fd").iterdir()]
            inside = [name.relative_to(folder) for name in names if name.is_relative_to(folder)]
            assert len({name.parts[0] for name in inside}) <= 2
        busy = engines.of(1)
        with busy.using() as engine:
            for n, caller in enumerate(callers):
                assert caller.publish({"x": n}) == 3
            assert busy.is_open
            assert len(engine) == 3
    with local_service(tmp_path / "s") as local:
        assert local.service.engines.n_subscriptions() == 18


# -- paths ----------------------------------------------------------------------------------------


def check_control_characters(local: Local, caller: Caller) -> None:
    for character in ("%00", "%0a", "%7f"):
        for path in ("subscriptions/a{}b", "subscriptions/a{}b/matches", "keys/a{}b"):
            for ask in (caller.get, caller.delete):
                status = ask(f"/v1/{path.format(character)}", ticket=None).status_code
                assert status in (404, 405), (path, character)
        ticket = caller.get(f"/v1/subscriptions/a{character}b", "x" * 43)
        assert ticket.status_code == 404


def test_control_characters_in_a_path_are_not_found(local: Local, caller: Caller) -> None:
    check_control_characters(local, caller)


def test_control_characters_in_a_path_with_postgresql(
    tmp_path: Path, postgres_server: Server
) -> None:
    postgres_server.empty()
    url = postgres_server.url
    key = new_key(tmp_path / "s", url=url)
    with local_service(tmp_path / "s", url=url) as local:
        check_control_characters(local, Caller(local.client, key))
