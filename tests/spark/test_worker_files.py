"""Folders that workers fetch: once per machine, complete or not at all, and not for ever."""

from __future__ import annotations

import http.client
import json
import multiprocessing as mp
import os
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark_session import why_not

pytest.importorskip("pyspark")
import pyspark

from matchmill.errors import FolderError
from matchmill.spark.published import host_cache
from matchmill.spark.published.file_server import FileSource, fetch_folder, source_of
from matchmill.spark.published.host_cache import held_folder

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(host_cache.CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def folders(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.glob("*/*") if path.is_dir())


def write(part: Path) -> None:
    (part / "file").write_text("content")


# -- the cache of a machine -----------------------------------------------------------------------


def fetch_slowly(folder: str, barrier: Any) -> None:
    def fetch(part: Path) -> None:
        with Path(folder, "fetched").open("a") as stream:
            stream.write("x")
        time.sleep(0.05)
        write(part)

    barrier.wait()
    with held_folder("e", "versions/1", fetch) as path:
        assert (path / "file").read_text() == "content"


def test_one_process_fetches_and_the_others_wait(tmp_path: Path) -> None:
    context = mp.get_context("fork")
    barrier = context.Barrier(6)
    children = [
        context.Process(target=fetch_slowly, args=(str(tmp_path), barrier)) for _ in range(6)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 6
    assert (tmp_path / "fetched").read_text() == "x"


def die(part: Path) -> None:
    (part / "file").write_text("con")
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_process_left_is_fetched_again(cache: Path) -> None:
    child = mp.get_context("fork").Process(target=held_folder, args=("e", "versions/1", die))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert len(folders(cache)) == 1
    with held_folder("e", "versions/1", write) as path:
        assert (path / "file").read_text() == "content"
    assert folders(cache) == ["versions+1"]


def test_a_fetch_that_fails_leaves_nothing(cache: Path) -> None:
    def fail(part: Path) -> None:
        write(part)
        raise FolderError("gone")

    with pytest.raises(FolderError, match="gone"):
        held_folder("e", "versions/1", fail)
    assert folders(cache) == []


def test_earlier_versions_are_removed_but_not_those_in_use(cache: Path) -> None:
    first = held_folder("e", "versions/000001-a", write)
    for n in range(2, 8):
        held_folder("e", f"versions/00000{n}-a", write).release()
        held_folder("e", f"versions/00000{n}-a/dimensions-0", write).release()
        held_folder("e", f"delta-{n}", write).release()
    held_folder("other", "versions/000001-a", write).release()
    assert folders(cache) == [
        "delta-6", "delta-7", "versions+000001-a", "versions+000001-a", "versions+000006-a",
        "versions+000006-a+dimensions-0", "versions+000007-a", "versions+000007-a+dimensions-0",
    ]  # fmt: skip
    assert (first.path / "file").read_text() == "content"
    first.release()
    for lock in cache.glob("*/*.lock"):
        os.utime(lock, (0, 0))
    held_folder("e", "versions/000008-a", write).release()
    assert "versions+000008-a" in folders(cache)
    assert folders(cache).count("versions+000001-a") == 0  # of the other engine: used long ago


def test_a_cache_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(host_cache.CACHE_VARIABLE)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    (tmp_path / f"matchmill-engines-{os.getuid()}").mkdir(mode=0o777)
    (tmp_path / f"matchmill-engines-{os.getuid()}").chmod(0o777)
    with pytest.raises(FolderError, match="may be written by others"):
        held_folder("e", "versions/1", write)


# -- the server -----------------------------------------------------------------------------------


class Served:
    """A folder of this machine in the place of a Hadoop path."""

    def __init__(self, folder: Path) -> None:
        self.root, self.folder = f"store://{folder.name}", folder

    def list_files(self, name: str) -> list[tuple[str, int]] | None:
        base = self.folder / name
        if not base.is_dir():
            return None
        files = [path for path in base.rglob("*") if path.is_file()]
        return [(path.relative_to(base).as_posix(), path.stat().st_size) for path in files]

    def copy_file(self, name: str, target: Path) -> bool:
        if not (self.folder / name).is_file():
            return False
        target.write_bytes((self.folder / name).read_bytes())
        return True


class Session:
    """What the server asks a session for."""

    sparkContext = property(lambda self: self)

    def getConf(self) -> dict[str, str]:
        return {"spark.driver.host": "127.0.0.1"}


@pytest.fixture
def source(tmp_path: Path) -> FileSource:
    folder = tmp_path / "engine" / "versions" / "1"
    (folder / "shards" / "0").mkdir(parents=True)
    (folder / "shards" / "0" / "a.npy").write_bytes(b"abc" * 1_000_000)
    (folder / "empty.npy").touch()
    (tmp_path / "secret").write_text("mine")
    return source_of(Session(), Served(tmp_path / "engine"), "versions/1")


def test_a_folder_arrives_whole(source: FileSource, tmp_path: Path) -> None:
    fetch_folder(source, tmp_path)
    assert (tmp_path / "shards" / "0" / "a.npy").read_bytes() == b"abc" * 1_000_000
    assert (tmp_path / "empty.npy").read_bytes() == b""
    with pytest.raises(FolderError, match=r"versions/2 is not there: .* open the engine again"):
        fetch_folder(source._replace(name="versions/2"), tmp_path)
    assert source.token not in repr(source)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("{}/versions/1/empty.npy", 200),
        ("{}/../secret", 404),
        ("{}/versions/../../secret", 404),
        ("{}//etc/passwd", 404),
        ("{}/versions/%2e%2e/secret", 404),
        ("other/versions/1/empty.npy", 404),
        ("{}/versions/1/nothing", 404),
        ("", 404),
    ],
)
def test_only_names_below_a_root_are_served(source: FileSource, path: str, status: int) -> None:
    for token, wanted in ((source.token, status), ("", 403), (source.token[:-1], 403)):
        connection = http.client.HTTPConnection(source.host, source.port)
        headers = {"Authorization": f"Bearer {token}"}
        connection.request("GET", f"/{path.format(source.root_id)}", headers=headers)
        assert connection.getresponse().status == wanted
        connection.close()


def test_damage_is_noticed(source: FileSource, tmp_path: Path) -> None:
    folder = tmp_path / "engine" / "versions" / "1"
    array = b"abc" * 1_000_000
    entry = {"bytes": len(array), "crc32": zlib.crc32(array)}
    body = {
        "dimensions": {"folder": "dimensions", "arrays": {}},
        "shards": [{"folder": "shards/0", "arrays": {"a": entry}}],
    }
    (folder / "manifest.json").write_text(json.dumps({"body": body}))
    fetch_folder(source, tmp_path / "good")
    (folder / "shards" / "0" / "a.npy").write_bytes(b"abd" * 1_000_000)
    with pytest.raises(FolderError, match=r"shards/0/a\.npy is damaged"):
        fetch_folder(source, tmp_path / "bad")


def test_a_driver_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    source = FileSource("127.0.0.1", 1, "token", "root", "store://e", "versions/1")
    with pytest.raises(FolderError, match=r"from the driver at 127\.0\.0\.1, port 1"):
        fetch_folder(source, tmp_path)


# -- a cluster ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.long
@pytest.mark.parametrize("n_rounds", [1, 5])
def test_an_executor_that_is_lost_after_versions_were_pruned(n_rounds: int, tmp_path: Path) -> None:
    """Every job goes on, also those without an engine; nothing of the session has changed."""
    home = tmp_path / "spark"  # a local cluster writes to its home
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.lost_executor", str(tmp_path), str(n_rounds)],
        env=os.environ | {
            "PYTHONPATH": os.pathsep.join(paths),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_TESTING": "1",  # any free port
        },
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.endswith("all is well\n"), done.stdout + done.stderr
