"""Which folder an engine writes to, whatever happens to names, and what it leaves alone."""

from __future__ import annotations

import errno
import fcntl
import json
import multiprocessing
import os
from pathlib import Path

import pytest

import matchmill as mm
from matchmill.storage import array_folder
from matchmill.storage.folder_lock import FolderLock
from tests.support.engine_folders import contents, create

# -- two that create ------------------------------------------------------------------------------


def test_a_folder_that_another_process_has_just_made_is_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one creates, writes and closes just before this one gets the lock."""
    folder = tmp_path / "e"
    lock = FolderLock.__init__

    def later(self: FolderLock, place: Path) -> None:
        monkeypatch.undo()
        with mm.Engine.open(folder, create=True) as other:
            other.subscribe("a", "x = 1")
        lock(self, place)

    monkeypatch.setattr(FolderLock, "__init__", later)
    with mm.Engine.open(folder, create=True) as engine:
        assert list(engine) == ["a"]
    assert contents(folder) == {"a": "x = 1"}


def _create_and_subscribe(folder: str, name: str, results: object) -> None:
    try:
        with mm.Engine.open(folder, create=True) as engine:
            engine.subscribe(name, "x = 1")
        results.put(name)  # type: ignore[attr-defined]
    except mm.FolderInUseError:
        results.put(None)  # type: ignore[attr-defined]


@pytest.mark.long
def test_processes_that_create_the_same_folder_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    for n in range(12):
        results = context.Queue()
        folder = tmp_path / f"e{n}"
        processes = [
            context.Process(target=_create_and_subscribe, args=(str(folder), f"s{k}", results))
            for k in range(3)
        ]
        for process in processes:
            process.start()
        done = {results.get(timeout=120) for _ in processes} - {None}
        for process in processes:
            process.join()
        assert set(contents(folder)) == done


# -- names that change ----------------------------------------------------------------------------


def test_a_relative_path_stays_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    other = create(tmp_path / "two" / "e")
    other.subscribe("other", "x = 2")
    monkeypatch.chdir(tmp_path / "one")
    engine = create(Path("e"))
    engine.subscribe("a", "x = 1")
    monkeypatch.chdir(tmp_path / "two")  # as a daemon does
    engine.save()
    engine.subscribe("b", "x = 1")
    engine.save(engine.path)
    assert engine.path == tmp_path / "one" / "e"
    engine.close()
    other.save()
    other.close()
    assert contents(tmp_path / "one" / "e") == {"a": "x = 1", "b": "x = 1"}
    assert contents(tmp_path / "two" / "e") == {"other": "x = 2"}


def test_a_folder_that_is_renamed_while_it_is_open(tmp_path: Path) -> None:
    engine = create(tmp_path / "old")
    engine.subscribe("a", "x = 1")
    (tmp_path / "old").rename(tmp_path / "new")
    other = create(tmp_path / "old")
    other.subscribe("other", "x = 2")
    other.close()
    engine.subscribe("b", "x = 1")
    engine.save()
    engine.subscribe("c", "x = 1")
    engine.close()
    assert contents(tmp_path / "new") == dict.fromkeys("abc", "x = 1")
    assert contents(tmp_path / "old") == {"other": "x = 2"}
    assert sorted(p.name[:4] for p in (tmp_path / "old").iterdir()) == [
        "data", "lock", "log-", "mani"]  # fmt: skip


@pytest.mark.parametrize("what", ["the folder", "the lock"])
def test_a_folder_that_is_removed_while_it_is_open(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "e"
    engine = create(folder)
    engine.subscribe("a", "x = 1")
    if what == "the lock":
        (folder / "lock").unlink()
        other = create(folder)  # nothing keeps it from that
        with pytest.raises(mm.FolderError, match="'lock' was, while it was open"):
            engine.save()
        other.subscribe("b", "x = 1")
        other.close()
        assert contents(folder) == {"a": "x = 1", "b": "x = 1"}
    else:
        for file in sorted(folder.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        folder.rmdir()
        with pytest.raises(mm.FolderError, match="was removed"):
            engine.save()
        assert not folder.exists()
    engine.save(tmp_path / "copy")
    engine.close()
    assert contents(tmp_path / "copy") == {"a": "x = 1"}


# -- folders of others ----------------------------------------------------------------------------


def tree(folder: Path) -> dict[str, bytes]:
    files = (p for p in folder.rglob("*") if p.is_file())
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


@pytest.mark.parametrize("is_alone", [True, False])
@pytest.mark.parametrize(
    "manifest",
    ['{"name": "A web page", "start_url": "/"}', "[1]", '{"format": "matchmill engine"}'],
)
def test_a_manifest_of_somebody_else_is_left_alone(
    tmp_path: Path, manifest: str, is_alone: bool
) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    if not is_alone:
        for name in ("data-backup", "log-2026-11-18", "index.html", "data-0123456789ab"):
            (tmp_path / name).write_text("mine")
    before = tree(tmp_path)
    for attempt in (
        lambda: mm.Engine({"a": "x = 1"}).save(tmp_path),
        lambda: mm.Engine.open(tmp_path, create=True),
        lambda: mm.Engine.open(tmp_path),
        lambda: mm.Engine.open(tmp_path, read_only=True),
    ):
        with pytest.raises(mm.FolderError, match=r"a manifest\.json that is not of matchmill"):
            attempt()
    assert tree(tmp_path) == before


def test_files_that_are_no_json_count_as_a_damaged_manifest_only_among_our_own(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "e"
    mm.Engine({"a": "x = 1"}).save(folder)
    whole = (folder / "manifest.json").read_bytes()
    (folder / "manifest.json").write_bytes(whole[:-20])
    with pytest.raises(mm.FolderError, match="is damaged: it is not a manifest"):
        mm.Engine.open(folder)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(mm.FolderError, match="not of matchmill"):
        mm.Engine({"b": "x = 1"}).save(folder)
    (folder / "notes.txt").unlink()
    mm.Engine({"b": "x = 1"}).save(folder)
    assert contents(folder) == {"b": "x = 1"}


def test_only_names_of_our_own_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "e"
    engine = create(folder)
    for name in ("data-backup", "log-old", "data-", ".manifest.json-mine", "data-0123456789abc"):
        (folder / name).write_text("mine")
    (folder / "data-0123456789ab").mkdir()  # half of a version
    (folder / "data-0123456789ab" / "id_data.npy").write_bytes(b"half")
    (folder / "log-0123456789ab").write_bytes(b"half")
    engine.subscribe("a", "x = 1")
    engine.save()
    engine.close()
    mm.Engine.open(folder).close()
    names = {p.name for p in folder.iterdir()}
    assert {"data-backup", "log-old", "data-", ".manifest.json-mine", "data-0123456789abc"} < names
    assert not {"data-0123456789ab", "log-0123456789ab"} & names


def test_a_leftover_that_cannot_be_removed_does_not_stop_a_save(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "e"
    engine = create(folder)
    engine.subscribe("a", "x = 1")
    inside = folder / "data-0123456789ab" / "a folder"
    inside.mkdir(parents=True)
    engine.save()
    assert "data-0123456789ab could not be removed" in caplog.text
    engine.close()
    assert contents(folder) == {"a": "x = 1"}


# -- the place, and the file system ---------------------------------------------------------------


def test_places_that_take_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "e", Path("/proc/e"), Path("/proc/e/e")):
        for attempt in (
            lambda path: mm.Engine({"a": "x = 1"}).save(path),
            lambda path: mm.Engine.open(path, create=True),
        ):
            with pytest.raises(
                mm.FolderError, match=r"give the name of a folder|cannot be written"
            ):
                attempt(path)
    for path in (tmp_path / "file", tmp_path / "file" / "e", tmp_path / "absent"):
        for read_only in (True, False):
            with pytest.raises(mm.FolderError, match="holds no saved engine"):
                mm.Engine.open(path, read_only=read_only)

    def read_only_place(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "mkdir", read_only_place)
    with pytest.raises(mm.FolderError, match="Read-only file system"):
        mm.Engine({"a": "x = 1"}).save(tmp_path / "e")


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    mm.Engine({"a": "x = 1"}).save(tmp_path / "e")

    def refused(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refused)
    for attempt in (
        lambda: mm.Engine.open(tmp_path / "e"),
        lambda: mm.Engine.open(tmp_path / "new", create=True),
        lambda: mm.Engine().save(tmp_path / "new"),
    ):
        with pytest.raises(mm.FolderError, match=r"cannot be locked .*read_only=True"):
            attempt()
    assert contents(tmp_path / "e") == {"a": "x = 1"}


# -- formats --------------------------------------------------------------------------------------


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("version", [7, 8, 10])
def test_a_folder_of_another_version_is_rejected(tmp_path: Path, version: int) -> None:
    """Nothing else of it is read, and nothing in it is changed."""
    with mm.Engine({"a": "x = 1"}) as engine:
        engine.save(tmp_path / "e")
    file = tmp_path / "e" / "manifest.json"
    body = json.loads(file.read_text())["body"]
    body["version"] = version
    text = json.dumps(body, sort_keys=True)
    crc = array_folder.zlib.crc32(text.encode())
    file.write_text(json.dumps({"crc32": crc, "body": body}))
    before = files_of(tmp_path / "e")
    for more in ({}, {"create": True}, {"read_only": True}, {"verify": True}):
        with pytest.raises(mm.FolderError, match=f"version {version}, .* version 9 only; build it"):
            mm.Engine.open(tmp_path / "e", **more)
        assert files_of(tmp_path / "e") == before


# -- ids ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [(1, "a"), ("a", 1)])
@pytest.mark.parametrize("is_saved", [False, True])
def test_the_type_of_ids_outlives_the_ids(
    tmp_path: Path, ids: tuple[str | int, str | int], is_saved: bool
) -> None:
    first, other = ids
    engine = create(tmp_path / "e")
    engine.subscribe(first, "x = 1")
    if is_saved:
        engine.save()
    engine.unsubscribe(first)
    for _ in range(2):
        with pytest.raises(mm.InputError, match="the ids of this engine are"):
            engine.subscribe(other, "x = 1")
        engine.close()
        assert contents(tmp_path / "e") == {}
        engine = mm.Engine.open(tmp_path / "e")
    engine.subscribe(first, "x = 2")
    engine.close()
    assert contents(tmp_path / "e") == {first: "x = 2"}
