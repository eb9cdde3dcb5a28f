"""Engines that live in a folder: every acknowledged change comes back, whatever happened."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import matchmill as mm
from matchmill.engine import durable_folder as durable
from matchmill.engine import maintenance, replay
from matchmill.engine.saved_state import Captured
from matchmill.engine.subscription_table import Subscriptions
from matchmill.index.segments import Merge, Segment, Segmented
from matchmill.storage import array_folder as saved
from matchmill.storage.array_folder import read_manifest
from matchmill.storage.change_log import HEADER
from tests.support.engine_folders import contents, create, log_of, settings

# -- changes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sync", ["always", "seconds", "never"])
@pytest.mark.parametrize("background", [True, False])
def test_every_change_comes_back(sync: str, background: bool, tmp_path: Path) -> None:
    folder = tmp_path / "alerts.mill"
    engine = create(folder, sync=sync, background=background)
    engine.subscribe("a", "x = 1")
    engine.subscribe("b", mm.attr("x") > 1)
    engine.subscribe("b", '{"x": [2]}', replace=True)
    engine.subscribe_many({"c": "x = 3", "d": "x =", "e": "x = 5"})
    engine.unsubscribe("c")
    engine.unsubscribe_many(["e", "a"])
    engine.subscribe("a", "x = 7")
    wanted = {"b": engine["b"].expression, "a": "x = 7"}
    assert contents(folder) == wanted  # while it is open
    engine.close()
    assert contents(folder) == wanted
    again = mm.Engine.open(folder)
    assert again.settings == engine.settings
    assert again.match({"x": 2}) == {"b"}
    again.unsubscribe("b")
    again.close()
    assert contents(folder) == {"a": "x = 7"}


def test_integer_ids_and_odd_texts(tmp_path: Path) -> None:
    engine = create(tmp_path / "e")
    engine.subscribe_many([(-(2**63), "größe = '😀\n'"), (2**63 - 1, "  x  =  1  ")])
    engine.unsubscribe(-(2**63))
    engine.subscribe(-(2**63), "x = 2")
    engine.close()
    assert contents(tmp_path / "e") == {-(2**63): "x = 2", 2**63 - 1: "x  =  1"}


def test_limits_do_not_apply_to_what_was_accepted(tmp_path: Path) -> None:
    engine = create(tmp_path / "e", max_conditions=50)
    text = " or ".join(f"x{n} = {n}" for n in range(50))
    engine.subscribe("long", text)
    engine.close()
    tighter = settings(max_conditions=2, max_clauses=3)
    again = mm.Engine.open(tmp_path / "e", settings=tighter)
    assert again.match({"x7": 7}) == {"long"}
    with pytest.raises(mm.LimitError):
        again.subscribe("more", text)
    again.close()


def test_a_failed_change_is_not_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = create(tmp_path / "e")
    engine.subscribe("a", "x = 1")
    before = log_of(tmp_path / "e").read_bytes()
    for call in (
        lambda: engine.subscribe("b", "x ="),
        lambda: engine.subscribe("a", "x = 2"),
        lambda: engine.unsubscribe("b"),
        lambda: engine.unsubscribe_many(["a", "b"]),
    ):
        with pytest.raises(mm.MatchmillError):
            call()
    engine.unsubscribe_many([])
    engine.subscribe_many({})

    def full(*_: object) -> None:
        raise MemoryError

    for owner, name, call in (
        (Segmented, "apply", lambda: engine.subscribe("b", "x = 2")),
        (Subscriptions, "added", lambda: engine.subscribe("b", "x = 2")),
        (Segmented, "apply", lambda: engine.unsubscribe("a")),
        (Subscriptions, "removed", lambda: engine.unsubscribe("a")),
    ):
        monkeypatch.setattr(owner, name, full)
        with pytest.raises(MemoryError):
            call()
        monkeypatch.undo()
        assert log_of(tmp_path / "e").read_bytes() == before
    assert engine.match({"x": 1}) == {"a"}
    engine.subscribe("b", "x = 1")
    assert engine.match({"x": 1}) == {"a", "b"}
    assert engine.match({"x": 2}) == set()
    engine.close()
    assert contents(tmp_path / "e") == {"a": "x = 1", "b": "x = 1"}


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = create(tmp_path / "e")
    engine.subscribe("a", "x = 1")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        engine.subscribe("b", "x = 1")
    with pytest.raises(OSError, match="No space"):
        engine.unsubscribe("a")
    monkeypatch.undo()
    assert engine.match({"x": 1}) == {"a"}
    engine.subscribe("c", "x = 1")
    engine.close()
    assert contents(tmp_path / "e") == {"a": "x = 1", "c": "x = 1"}


def test_replaying_tells_progress_and_goes_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "_ROWS_AT_ONCE", 700)
    monkeypatch.setattr(replay, "_PROGRESS_EVERY", 100)
    engine = create(tmp_path / "e", sync="never")
    for start in range(0, 3000, 50):
        engine.subscribe_many((n, f"x = {n}") for n in range(start, start + 50))
    engine.unsubscribe_many(range(0, 3000, 3))
    engine.close()
    calls: list[int] = []
    again = mm.Engine.open(tmp_path / "e", progress=lambda done, _: calls.append(done))
    assert calls == sorted(calls)
    assert len(calls) >= 30
    assert calls[-1] <= 4000
    assert len(again) == 2000
    assert list(again) == [n for n in range(3000) if n % 3]
    again.close()


# -- opening --------------------------------------------------------------------------------------


def test_create_makes_a_new_one_once(tmp_path: Path) -> None:
    with pytest.raises(mm.FolderError, match=r"no manifest\.json; create=True"):
        mm.Engine.open(tmp_path / "e")
    with mm.Engine.open(tmp_path / "e", create=True, index="scan") as engine:
        engine.subscribe("a", "x = 1")
    with mm.Engine.open(tmp_path / "e", create=True) as engine:
        assert list(engine) == ["a"]
        assert engine.index == "scan"
    with pytest.raises(mm.InputError, match="contradict"):
        mm.Engine.open(tmp_path / "e", create=True, read_only=True)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    with pytest.raises(mm.FolderError, match="other files"):
        mm.Engine.open(tmp_path / "notes", create=True)


def test_a_second_writer_is_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "e"
    engine = create(folder)
    with pytest.raises(mm.FolderInUseError, match=rf"by process {os.getpid()} on .* since"):
        mm.Engine.open(folder)
    with pytest.raises(mm.FolderInUseError, match="read_only=True"):
        mm.Engine().save(folder)
    engine.close()
    mm.Engine.open(folder).close()
    mm.Engine().save(folder)
    assert contents(folder) == {}


def test_a_writer_in_another_process_is_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "e"
    engine = create(folder)
    engine.subscribe("a", "x = 1")
    program = (
        "import matchmill as mm, sys\n"
        "assert mm.Engine.open(sys.argv[1], read_only=True).match({'x': 1}) == {'a'}\n"
        "try:\n    mm.Engine.open(sys.argv[1])\n"
        "except mm.FolderInUseError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True
    )
    assert f"is open for writing by process {os.getpid()}" in done.stdout
    engine.close()


def test_a_forgotten_engine_lets_go_of_its_folder(tmp_path: Path) -> None:
    engine = create(tmp_path / "e", sync="seconds")
    engine.subscribe("a", "x = 1")
    del engine
    deadline = time.monotonic() + 60
    while True:
        try:
            mm.Engine.open(tmp_path / "e").close()
            break
        except mm.FolderInUseError:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert contents(tmp_path / "e") == {"a": "x = 1"}


def test_read_only_engines_refuse_changes(tmp_path: Path) -> None:
    folder = tmp_path / "e"
    writer = create(folder)
    writer.subscribe("a", "x = 1")
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    reader = mm.Engine.open(folder, read_only=True)
    for call in (
        lambda: reader.subscribe("b", "x = 1"),
        lambda: reader.subscribe_many({"b": "x = 1"}),
        lambda: reader.unsubscribe("a"),
        lambda: reader.save(folder),
        reader.save,
    ):
        with pytest.raises(mm.MatchmillError):
            call()
    with pytest.raises(mm.ReadOnlyError, match="read_only=True"):
        reader.subscribe("b", "x = 1")
    assert reader.match({"x": 1}) == {"a"}
    reader.compact()
    reader.save(tmp_path / "copy")
    assert contents(tmp_path / "copy") == {"a": "x = 1"}
    reader.close()
    assert before == {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    writer.close()


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch: Any) -> None:
    create(tmp_path / "e").close()
    opened = os.open

    def refused(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(mm.FolderError, match=r"Permission denied.*read_only=True"):
        mm.Engine.open(tmp_path / "e")
    assert len(mm.Engine.open(tmp_path / "e", read_only=True)) == 0


def test_a_fork_may_match_but_not_write(tmp_path: Path, monkeypatch: Any) -> None:
    """The real thing would warn of the threads that pytest has; what differs is the process."""
    engine = create(tmp_path / "e")
    engine.subscribe("a", "x = 1")
    process = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: process + 1)
    assert engine.match({"x": 1}) == {"a"}
    with pytest.raises(mm.ReadOnlyError, match=rf"opened by process {process}, and this is a fork"):
        engine.subscribe("b", "x = 1")
    monkeypatch.undo()
    engine.close()
    assert contents(tmp_path / "e") == {"a": "x = 1"}


def test_another_index_or_other_settings(tmp_path: Path) -> None:
    engine = create(tmp_path / "e")
    for n in range(40):
        engine.subscribe(n, f"x = {n}")
    engine.save()
    engine.subscribe(100, "x = 3")
    engine.close()
    with mm.Engine.open(tmp_path / "e", index="scan", settings=settings(sync="never")) as other:
        assert {s.built.name for s in other._store.state.snapshot.segments} <= {"scan"}
        assert other.match({"x": 3}) == {3, 100}
        other.subscribe(101, "x = 3")
        other.save()
    with mm.Engine.open(tmp_path / "e") as again:
        assert again.index == "scan"
        assert again.settings.sync == "never"
        assert again.match({"x": 3}) == {3, 100, 101}


# -- torn and damaged logs ------------------------------------------------------------------------


def test_a_log_torn_at_any_byte_of_the_last_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "e"
    engine = create(folder, sync="never")
    engine.subscribe("a", "x = 1")
    log = log_of(folder)
    states = [(log.stat().st_size, {"a": "x = 1"})]
    for change in (
        lambda: engine.subscribe("b", "x = 2"),
        lambda: engine.subscribe_many({"c": "x = 3", "d": "x = 4"}),
        lambda: engine.unsubscribe_many(["a", "c"]),
    ):
        change()
        held = {key: engine[key].expression for key in engine}
        states.append((log.stat().st_size, held))
    engine.close()
    whole = log.read_bytes()
    for size in range(states[0][0], len(whole) + 1):
        log.write_bytes(whole[:size])
        end, wanted = [state for state in states if state[0] <= size][-1]
        assert contents(folder) == wanted
        assert log.stat().st_size == size  # readers cut nothing
        caplog.clear()
        with caplog.at_level(logging.WARNING, "matchmill"):
            mm.Engine.open(folder).close()
        assert log.stat().st_size == end
        assert [f"the last {size - end} bytes" in r.getMessage() for r in caplog.records] == (
            [True] if size > end else []
        )
        assert contents(folder) == wanted


def test_a_damaged_log_is_an_error_that_names_the_way_out(tmp_path: Path) -> None:
    folder = tmp_path / "e"
    engine = create(folder)
    for n in range(5):
        engine.subscribe(n, f"x = {n}")
    engine.close()
    log = log_of(folder)
    whole = bytearray(log.read_bytes())
    whole[len(whole) // 2] ^= 4
    log.write_bytes(whole)
    for read_only in (False, True):
        with pytest.raises(mm.FolderError, match=r"record 2, at byte .*truncate -s (\d+) "):
            mm.Engine.open(folder, read_only=read_only)
    log.unlink()
    with pytest.raises(mm.FolderError, match=r"log-\w+ is missing"):
        mm.Engine.open(folder)


def test_an_earlier_log_must_be_whole(tmp_path: Path, monkeypatch: Any) -> None:
    folder = tmp_path / "e"
    engine = create(folder)
    engine.subscribe("a", "x = 1")
    monkeypatch.setattr(durable, "write_version", failing(OSError(28, "No space left")))
    with pytest.raises(mm.FolderError, match="No space"):
        engine.save()
    monkeypatch.undo()
    engine.subscribe("b", "x = 2")
    engine.close()
    first, second = (folder / log for log in read_manifest(folder).logs)
    assert contents(folder) == {"a": "x = 1", "b": "x = 2"}
    whole = first.read_bytes()
    first.write_bytes(whole[:-1])
    with pytest.raises(mm.FolderError, match=f"{first.name} is damaged: its end is missing"):
        mm.Engine.open(folder)
    os.truncate(second, len(HEADER))  # nothing came after it, and yet it is finished
    for n_bytes in (len(whole) - 1, len(HEADER)):
        first.write_bytes(whole[:n_bytes])
        with pytest.raises(mm.FolderError, match=f"{first.name} is damaged: it has 0 whole rec"):
            mm.Engine.open(folder)
    first.write_bytes(whole)
    mm.Engine.open(folder).close()
    assert contents(folder) == {"a": "x = 1"}


def failing(error: Exception) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_an_expression_of_another_version_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    engine = create(tmp_path / "e")
    engine.subscribe("a", "x = 1")
    engine.close()
    monkeypatch.setattr(replay, "parse", failing(mm.ExpressionError("a new operator")))
    with pytest.raises(mm.FolderError, match=r"expression of 'a'.*a new operator"):
        mm.Engine.open(tmp_path / "e")
    monkeypatch.undo()
    assert contents(tmp_path / "e") == {"a": "x = 1"}


# -- checkpoints ----------------------------------------------------------------------------------


def test_save_writes_a_version_and_empties_the_log(tmp_path: Path) -> None:
    folder = tmp_path / "e"
    engine = create(folder)
    before = read_manifest(folder)
    engine.subscribe("a", "x = 1")
    assert engine.stats().log_bytes > 20
    engine.save()
    after = read_manifest(folder)
    assert (after.data != before.data, after.logs != before.logs) == (True, True)
    assert engine.stats().log_bytes < 20
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        [after.data, *after.logs, "lock", "manifest.json"]
    )
    engine.subscribe("b", "x = 2")
    engine.save(folder / ".." / "e")  # the same folder
    engine.subscribe("c", "x = 3")
    engine.save(tmp_path / "copy")  # another one: the log goes on
    assert engine.stats().log_bytes > 20
    engine.close()
    assert contents(folder) == contents(tmp_path / "copy") == {k: f"x = {n}" for n, k in
                                                               enumerate("abc", 1)}  # fmt: skip
    with pytest.raises(mm.InputError, match="not open on a folder"):
        mm.Engine().save()


@pytest.mark.parametrize("background", [True, False])
def test_a_long_log_is_saved_away(background: bool, tmp_path: Path) -> None:
    folder = tmp_path / "e"
    engine = create(folder, checkpoint_bytes=2000, background=background, sync="never")
    first = read_manifest(folder).data
    for n in range(300):
        engine.subscribe(n, f"x = {n}")
    engine.close()
    assert read_manifest(folder).data != first
    assert log_of(folder).stat().st_size < 300 * 40
    assert contents(folder) == {n: f"x = {n}" for n in range(300)}


def test_changes_go_on_during_a_checkpoint(tmp_path: Path, monkeypatch: Any) -> None:
    """While the state is written, others subscribe, match and open the folder to read."""
    folder = tmp_path / "e"
    engine = create(folder)
    engine.subscribe("a", "x = 1")
    is_writing, may_end = threading.Event(), threading.Event()
    to_saved = Captured.to_saved

    def slow(captured: Captured) -> saved.SavedFolder:
        is_writing.set()
        assert may_end.wait(60)
        return to_saved(captured)

    monkeypatch.setattr(Captured, "to_saved", slow)
    thread = threading.Thread(target=engine.save)
    thread.start()
    assert is_writing.wait(60)
    engine.subscribe("b", "x = 1")
    engine.unsubscribe("a")
    assert engine.match({"x": 1}) == {"b"}
    assert contents(folder) == {"b": "x = 1"}
    for n in range(100):  # beyond what any array has room for, and on new attributes
        engine.subscribe(f"s{n}", f"y{n} = 1")
    wanted = {"b": "x = 1"} | {f"s{n}": f"y{n} = 1" for n in range(100)}
    may_end.set()
    thread.join(60)
    for _ in range(2):
        assert contents(folder) == wanted
        reader = mm.Engine.open(folder, read_only=True)
        assert reader.match({"x": 1}) == {"b"}
        assert reader.stats().n_clauses == 101
        engine.close()


def test_a_failed_checkpoint_is_told_and_tried_again_later(
    tmp_path: Path, monkeypatch: Any
) -> None:
    folder = tmp_path / "e"
    engine = create(folder, checkpoint_bytes=1000, background=False, sync="never")
    monkeypatch.setattr(durable, "write_version", failing(OSError(28, "No space left")))
    failures = []
    n_accepted = 0
    for n in range(100):
        try:
            engine.subscribe(n, f"x = {n}")
            n_accepted += 1
        except mm.BackgroundError as error:
            failures.append(str(error))
    assert 1 <= len(failures) <= 6  # not at every write
    assert all("No space left" in failure for failure in failures)
    assert len(engine) == n_accepted
    monkeypatch.undo()
    for n in range(1000, 1050):
        engine.subscribe(n, "x = 1")
    assert len(read_manifest(folder).logs) == 1
    engine.close()
    assert len(contents(folder)) == n_accepted + 50


def test_a_file_that_goes_while_it_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there when asked for, and gone when its size is: a version that was replaced, so that
    readers take the next one."""
    engine = create(tmp_path / "e")
    engine.subscribe("a", "x = 1")
    engine.save()
    engine.close()
    data = tmp_path / "e" / read_manifest(tmp_path / "e").data
    for file in data.iterdir():
        file.unlink()
    monkeypatch.setattr(Path, "is_file", lambda self: self.suffix == ".npy")
    with pytest.raises(mm.FolderError, match="the file is missing"):
        contents(tmp_path / "e")


def test_readers_open_while_versions_come_and_go(tmp_path: Path) -> None:
    """A reader that finds its version gone takes the next one."""
    folder = tmp_path / "e"
    engine = create(folder, sync="never")
    engine.subscribe("always", "x = 1")
    is_over = threading.Event()
    problems: list[BaseException] = []

    def read() -> None:
        while not is_over.is_set():
            try:
                assert "always" in contents(folder)
            except BaseException as problem:
                problems.append(problem)
                return

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for n in range(6):
        engine.subscribe(f"s{n}", "x = 2")
        engine.save()
    is_over.set()
    for thread in threads:
        thread.join(60)
    assert not problems
    engine.close()


# -- when it is safe ------------------------------------------------------------------------------


@pytest.fixture
def synced_sizes(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """How much of each file, by inode, has been made safe: what a crash of the machine leaves."""
    sizes: dict[int, int] = {}
    fsync = os.fsync

    def recorded(file: int) -> None:
        size = os.fstat(file).st_size
        fsync(file)
        sizes[os.fstat(file).st_ino] = size

    monkeypatch.setattr(os, "fsync", recorded)
    return sizes


def test_sync_always(tmp_path: Path, synced_sizes: dict[int, int]) -> None:
    engine = create(tmp_path / "e", sync="always")
    for n in range(10):
        engine.subscribe(n, "x = 1")
        state = log_of(tmp_path / "e").stat()
        assert synced_sizes[state.st_ino] == state.st_size
    engine.close()


def test_sync_seconds(tmp_path: Path, synced_sizes: dict[int, int], monkeypatch: Any) -> None:
    monkeypatch.setattr(maintenance.Maintenance, "sync_seconds", 0.05)
    engine = create(tmp_path / "e", sync="seconds")
    for n in range(3):
        engine.subscribe(n, "x = 1")
        wait_until_synced(log_of(tmp_path / "e"), synced_sizes)
    engine.close()


def wait_until_synced(log: Path, synced_sizes: dict[int, int]) -> None:
    state = log.stat()
    deadline = time.monotonic() + 60
    while synced_sizes[state.st_ino] < state.st_size:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_sync_seconds_is_not_at_every_change(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(maintenance.Maintenance, "sync_seconds", 1000.0)
    for background in (True, False):
        engine = create(tmp_path / f"e{background}", sync="seconds", background=background)
        calls: list[int] = []
        monkeypatch.setattr(os, "fsync", calls.append)
        for n in range(50):
            engine.subscribe(n, "x = 1")
        assert calls == []
        engine.close()
        assert calls
        monkeypatch.undo()
        monkeypatch.setattr(maintenance.Maintenance, "sync_seconds", 1000.0)


def test_sync_seconds_does_not_wait_for_a_merge(
    tmp_path: Path, synced_sizes: dict[int, int], monkeypatch: Any
) -> None:
    monkeypatch.setattr(maintenance.Maintenance, "sync_seconds", 0.01)
    is_building, may_end = threading.Event(), threading.Event()
    build = Segmented.build

    def slow(segmented: Segmented, merge: Merge) -> Segment:
        is_building.set()
        assert may_end.wait(60)
        return build(segmented, merge)

    monkeypatch.setattr(Segmented, "build", slow)
    engine = create(tmp_path / "e", sync="seconds")
    for n in range(1000):
        engine.subscribe(n, f"x = {n}")
        if is_building.is_set():
            break
    engine.subscribe(5000, "x = 1")
    wait_until_synced(log_of(tmp_path / "e"), synced_sizes)
    may_end.set()
    engine.close()


def test_concurrent_writers(tmp_path: Path) -> None:
    engine = create(tmp_path / "e", sync="always", checkpoint_bytes=3000)

    def write(first: int) -> None:
        for n in range(first, first + 40):
            engine.subscribe(n, f"x = {n}")
            if n % 4 == 0:
                engine.unsubscribe(n)

    threads = [threading.Thread(target=write, args=(1000 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    engine.close()
    assert contents(tmp_path / "e") == {
        n: f"x = {n}" for k in range(4) for n in range(1000 * k, 1000 * k + 40) if n % 4
    }


def test_a_disk_that_makes_nothing_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is not there, and nothing can be changed until the folder is opened again."""
    folder = tmp_path / "e"

    def broken(_: int) -> None:
        raise OSError(5, "the disk is broken")

    engine = mm.Engine.open(folder, create=True)
    engine.subscribe("u1", "x = 1")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", broken)
        with pytest.raises(mm.FolderError, match="could not be made safe"):
            engine.subscribe("u2", "x = 1")
    with pytest.raises(mm.FolderError, match="could not be made safe"):
        engine.subscribe("u3", "x = 1")
    assert engine.match({"x": 1}) == {"u1"}
    with pytest.raises(mm.FolderError, match="could not be made safe"):
        engine.close()
    with mm.Engine.open(folder) as again:  # the lock is free
        assert list(again) == ["u1"]
