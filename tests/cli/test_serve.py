"""`matchmill keys`, `backup`, and what `serve` says when it cannot."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from matchmill.cli import main
from tests.support.running_service import Caller, Local, local_service


def run(capsys: Any, *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_keys(tmp_path: Path, capsys: Any) -> None:
    code, key, told = run(capsys, "keys", "add", tmp_path, "--tenant", "acme", "--name", "first")
    assert (code, key.startswith("mk_")) == (0, True)
    key_id = key.split("_")[1]
    assert f"key {key_id} of acme may admin, publish, read, subscribe" in told
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


def test_a_backup_is_taken_while_it_runs(local: Local, tmp_path: Path, capsys: Any) -> None:
    caller = local.caller()
    ticket = caller.subscribe("a", "x = 1")
    caller.publish({"x": 1})
    copy = tmp_path / "copy"
    assert run(capsys, "backup", local.folder, copy)[0] == 0
    caller.publish({"x": 1})
    with local_service(copy) as restored:
        again = Caller(restored.client, caller.headers["Authorization"].removeprefix("Bearer "))
        assert len(again.matches("a", ticket)) == 1
        assert again.publish({"x": 1}) == 1
    code, _, told = run(capsys, "backup", local.folder, copy)
    assert (code, "exists already" in told) == (2, True)
    code, _, told = run(capsys, "backup", tmp_path / "nothing", tmp_path / "new")
    assert (code, "holds no store" in told) == (2, True)


def test_a_folder_is_served_once(local: Local, capsys: Any) -> None:
    code, _, told = run(capsys, "serve", local.folder, "--port", "0")
    assert (code, "is served already" in told) == (2, True)


def test_a_port_in_use_is_told(tmp_path: Path, capsys: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, told = run(capsys, "serve", tmp_path, "--port", port)
    assert (code, f"cannot listen on 127.0.0.1, port {port}" in told) == (2, True)
    assert run(capsys, "serve", tmp_path, "--port", "65536")[0] == 2
    assert run(capsys, "serve", tmp_path, "--port", "0", "--max-streams", "0")[0] == 2
    assert run(capsys, "serve", tmp_path, "--port", "0", "--store", "mysql://x")[0] == 2
