"""Publishing where a put may leave half a file and nothing can be renamed: killed at every step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
from matchmill.engine.sharded_folder import FolderEntry, VersionManifest
from matchmill.errors import FolderError
from matchmill.settings import DEFAULT_SETTINGS
from matchmill.spark.building.driver import _Build, _remove_leftovers
from matchmill.spark.published.locations import _HadoopFolder
from matchmill.spark.published.sharded_engine import open as open_engine
from matchmill.spark.published.versions import HOLDS, MANIFEST, complete_versions, read_catalogue


class Killed(BaseException):
    """The process ends here."""


class Store(_HadoopFolder):
    """Objects in memory under the publishing code of Hadoop paths; it ends at a chosen step."""

    def __init__(self, *, puts_in_one_step: bool) -> None:
        self.root = "store://engines/a"
        self.files: dict[str, bytes] = {}
        self.n_steps, self.last_step = 0, -1
        self._in_one_step = puts_in_one_step

    def _step(self) -> None:
        if self.n_steps == self.last_step:
            raise Killed
        self.n_steps += 1

    def _path(self, name: str) -> Any:
        return name

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def put(self, name: str, content: bytes) -> None:
        self._step()
        if not self._in_one_step:
            self.files[name] = b""
            self._step()
            self.files[name] = content[: len(content) // 2]
            self._step()
        self.files[name] = content

    def names(self, name: str) -> list[str]:
        prefix = f"{name}/" if name else ""
        below = (f.removeprefix(prefix) for f in self.files if f.startswith(prefix))
        return sorted({file.partition("/")[0] for file in below})

    def remove(self, name: str) -> None:
        for file in [f for f in self.files if f == name or f.startswith(f"{name}/")]:
            self._step()
            del self.files[file]

    def work_folder(self, name: str) -> Path:
        return Path()

    def store(self, work: Path, name: str) -> None:
        self.put(f"{name}/shards/0/array.npy", b"array")


def build(store: Store, work: Path, keep: int = 2) -> str:
    """All that a build does to a location, with arrays of five bytes."""
    before = read_catalogue(store, repairs=True)
    _remove_leftovers(store, before)
    job = _Build(store, before, "string", (), DEFAULT_SETTINGS, 1)
    job._work = work
    job._manifest = VersionManifest(
        job.name,
        "mill",
        "str",
        0,
        0,
        [],
        {},
        [],
        [],
        [],
        1,
        FolderEntry("dimensions", 0, {}, {}),
        [],
    )
    job.publish(keep)
    return job.name


def is_complete(store: Store, version: str) -> bool:
    folder = f"versions/{version}"
    return store.files.get(f"{folder}/shards/0/array.npy") == b"array" and open_engine_in(
        store, version
    )


def open_engine_in(store: Store, version: str) -> bool:
    return f"versions/{version}/manifest.json" in store.files and version in complete_versions(
        store
    )


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "shards").mkdir()
    return tmp_path


def killed_at_every_step(work: Path, in_one_step: bool) -> Iterator[tuple[Store, list[str]]]:
    """A store with a held version and two more, after each way in which the next build may end."""
    step = 0
    while True:
        store = Store(puts_in_one_step=in_one_step)
        versions = [build(store, work)]
        store.put(f"{HOLDS}/somebody", versions[0].encode())
        versions += [build(store, work), build(store, work)]
        store.last_step = store.n_steps + step
        try:
            versions.append(build(store, work))
        except Killed:
            store.last_step = -1
            yield store, versions
        else:
            return
        step += 1


@pytest.mark.parametrize("in_one_step", [True, False])
def test_a_build_killed_at_any_step(work: Path, in_one_step: bool) -> None:
    n_ends = 0
    for store, versions in killed_at_every_step(work, in_one_step):
        n_ends += 1
        found = read_catalogue(store)
        assert found is not None
        assert found.current not in versions[:-1]  # the last that was published, or the next
        assert found.current == versions[-1] or found.versions[:-1][-1] == versions[-1]
        assert all(is_complete(store, name) for name in (found.current, versions[0]))
        # The build after it may be killed as well, at every step.
        files, step = dict(store.files), 0
        while True:
            store.files, store.last_step = dict(files), store.n_steps + step
            try:
                last = build(store, work)
            except Killed:
                store.last_step = -1
                again = read_catalogue(store)
                assert again is not None
                assert is_complete(store, again.current)
                assert is_complete(store, versions[0])
            else:
                break
            step += 1
        store.last_step = -1
        after = read_catalogue(store)
        assert after is not None
        assert after.current == last
        assert versions[0] in after.versions
        assert all(is_complete(store, name) for name in after.versions)
        assert store.names("versions") == sorted(after.versions)
        assert store.names("") == [MANIFEST, HOLDS, "versions"]
    assert n_ends > (8 if in_one_step else 16)


def test_nothing_is_removed_without_a_catalogue(work: Path) -> None:
    """As after a crash of a writer that deletes before it renames."""
    store = Store(puts_in_one_step=True)
    first = build(store, work)
    store.put(f"{HOLDS}/somebody", first.encode())
    versions = [first, build(store, work, 3), build(store, work, 3)]
    store.remove(MANIFEST)
    store.put("versions/000009-0123456789ab/shards/0/array.npy", b"array")  # not finished
    assert complete_versions(store) == versions
    last = build(store, work, keep=1)
    found = read_catalogue(store)
    assert found is not None
    assert (found.current, found.versions) == (last, [*versions, last])
    assert store.names("versions") == found.versions
    assert last[:6] == "000004"
    for content in (b"", b"{"):
        store.put(MANIFEST, content)
        before = dict(store.files)
        with pytest.raises(FolderError, match="damaged"):
            build(store, work)
        assert store.files == before


def test_a_hold_that_was_cut_short_holds_everything(work: Path) -> None:
    store = Store(puts_in_one_step=True)
    versions = [build(store, work)]
    store.put(f"{HOLDS}/somebody", b"")
    versions += [build(store, work, keep=1) for _ in range(3)]
    assert store.names("versions") == versions


def test_versions_without_a_catalogue_are_named(tmp_path: Path) -> None:
    """On a folder, too: the error says which versions there are."""
    (tmp_path / "versions" / "000001-0123456789ab").mkdir(parents=True)
    (tmp_path / "versions" / "000001-0123456789ab" / "manifest.json").touch()
    with pytest.raises(FolderError, match=r"current\.json is missing, but .* 000001-0123456789ab"):
        open_engine(tmp_path)
