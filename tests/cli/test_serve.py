"""`matchmill keys`, `backup`, `restore`, and what `serve` says when it cannot."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from matchmill.cli import main
from matchmill.cli.serve import service_settings
from matchmill.errors import InputError
from tests.support.running_service import Caller, Local, local_service


def run(capsys: Any, *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_keys(tmp_path: Path, capsys: Any) -> None:
    code, key, printed = run(capsys, "keys", "add", tmp_path, "--tenant", "acme", "--name", "first")
    assert (code, key.startswith("mk_")) == (0, True)
    key_id = key.split("_")[1]
    assert f"key {key_id} of acme may admin, publish, read, subscribe" in printed
    run(capsys, "keys", "add", tmp_path, "--tenant", "other", "--scope", "read", "--quiet")
    code, listed, _ = run(capsys, "keys", "list", tmp_path, "--tenant", "acme", "--format", "json")
    (row,) = json.loads(listed)
    assert (row["key_id"], row["tenant"], row["name"]) == (key_id, "acme", "first")
    _, listed, _ = run(capsys, "keys", "list", tmp_path)
    assert len(listed.splitlines()) == 2
    assert key.strip() not in listed
    assert run(capsys, "keys", "revoke", tmp_path, key_id, "--tenant", "other")[0] == 2
    assert run(capsys, "keys", "revoke", tmp_path, key_id, "--tenant", "acme")[0] == 0
    assert run(capsys, "keys", "list", tmp_path, "--tenant", "acme")[1] == ""
    assert run(capsys, "keys", "list", tmp_path, "--tenant", "nobody")[0] == 2
    assert run(capsys, "keys", "add", tmp_path, "--tenant", " ")[0] == 2


def test_a_backup_is_taken_while_it_runs_and_restored(
    local: Local, tmp_path: Path, capsys: Any
) -> None:
    caller = local.caller()
    ticket = caller.subscribe("a", "x = 1")
    caller.publish({"x": 1})
    copy, again = tmp_path / "copy", tmp_path / "again"
    assert run(capsys, "backup", local.folder, copy)[0] == 0
    caller.publish({"x": 1})
    assert run(capsys, "restore", copy, again)[0] == 0
    key = caller.headers["Authorization"].removeprefix("Bearer ")
    with local_service(again) as restored:
        served = Caller(restored.client, key)
        assert len(served.matches("a", ticket)) == 1
        assert served.publish({"x": 1}) == 1
    code, _, printed = run(capsys, "backup", local.folder, copy)
    assert (code, "exists already" in printed) == (2, True)
    code, _, printed = run(capsys, "restore", copy, again)
    assert (code, "exists already" in printed) == (2, True)
    code, _, printed = run(capsys, "backup", tmp_path / "nothing", tmp_path / "new")
    assert (code, "holds no store" in printed) == (2, True)


def test_a_damaged_backup_is_not_restored(local: Local, tmp_path: Path, capsys: Any) -> None:
    copy = tmp_path / "copy"
    assert run(capsys, "backup", local.folder, copy)[0] == 0
    (database,) = (path for path in copy.iterdir() if path.name != "secret")
    content = bytearray(database.read_bytes())
    content[4096:12288] = b"\xff" * 8192
    database.write_bytes(content)
    code, _, printed = run(capsys, "restore", copy, tmp_path / "again")
    assert (code, "is damaged" in printed) == (2, True)
    assert not (tmp_path / "again").exists()


def test_a_folder_is_served_once(local: Local, capsys: Any) -> None:
    code, _, printed = run(capsys, "serve", local.folder, "--port", "0")
    assert (code, "is being served already" in printed) == (2, True)


def test_a_port_in_use_is_told(tmp_path: Path, capsys: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, printed = run(capsys, "serve", tmp_path, "--port", port)
    assert (code, f"cannot listen on 127.0.0.1, port {port}" in printed) == (2, True)
    assert run(capsys, "serve", tmp_path, "--port", "65536")[0] == 2
    assert run(capsys, "serve", tmp_path, "--port", "0", "--setting", "max_streams=0")[0] == 2
    assert run(capsys, "serve", tmp_path, "--port", "0", "--store", "mysql://x")[0] == 2


def test_settings_of_options_and_variables() -> None:
    """An option goes before a variable; both are checked; settings of the engine are among them."""
    variables = {"MATCHMILL_MAX_STREAMS": "7", "MATCHMILL_MAX_LIVE": "8", "MATCHMILL_KEY": "k"}
    found = service_settings(["max_live=9", "max_clauses=16"], variables)
    assert (found.max_streams, found.max_live, found.max_clauses) == (7, 9, 16)
    with pytest.raises(InputError, match="did you mean 'max_streams'"):
        service_settings(["max_stream=9"], {})
    with pytest.raises(InputError, match=r"MATCHMILL_MAX_STREAMS: .* not 'x'"):
        service_settings([], {"MATCHMILL_MAX_STREAMS": "x"})
