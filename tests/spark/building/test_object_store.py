"""Engines in an object store, on a real S3 server: conditional puts, kills, builds side by side."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("obstore")
pytest.importorskip("moto")
from matchmill import spark as ms
from matchmill.engine.sharded_folder import FolderEntry, VersionManifest
from matchmill.errors import FolderError
from matchmill.settings import DEFAULT_SETTINGS
from matchmill.spark.building import driver
from matchmill.spark.building.driver import _Build, _remove_leftovers
from matchmill.spark.published import object_store
from matchmill.spark.published.object_store import ObjectFolder, StoreSource
from matchmill.spark.published.versions import MANIFEST, read_catalogue
from tests.support.s3_server import s3_environment, s3_server

pytestmark = pytest.mark.slow

SCHEMA = "subscription_id string, expression string"


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with s3_server("engines"):
        yield "s3://engines"


@pytest.fixture
def root(bucket: str) -> str:
    return f"{bucket}/{uuid4().hex}"


# -- the store ------------------------------------------------------------------------------------


def test_what_was_read_is_replaced_only_if_it_is_still_there(root: str) -> None:
    ours, theirs = ObjectFolder(root), ObjectFolder(root)
    assert ours.read("a") is theirs.read("a") is None
    ours.publish("a", b"1")
    with pytest.raises(FolderError, match="changed by somebody else meanwhile"):
        theirs.publish("a", b"2")
    assert theirs.read("a") == b"1"
    theirs.publish("a", b"3")
    with pytest.raises(FolderError, match="changed by somebody else meanwhile"):
        ours.publish("a", b"4")
    ours.put("a", b"5")  # whatever was there
    assert theirs.read("a") == b"5"


def test_folders_are_uploaded_listed_fetched_and_removed(root: str, tmp_path: Path) -> None:
    store = ObjectFolder(root)
    (tmp_path / "up" / "shards" / "0-ab").mkdir(parents=True)
    (tmp_path / "up" / "shards" / "0-ab" / "x.npy").write_bytes(bytes(9_000_000))
    (tmp_path / "up" / "empty.json").write_bytes(b"")
    store.store(tmp_path / "up", "versions/1")
    store.put("versions/12/manifest.json", b"{}")
    assert store.names("") == ["versions"]
    assert store.names("versions") == ["1", "12"]
    assert store.names("versions/1/shards") == ["0-ab"]
    assert store.names("nothing") == []
    (tmp_path / "down").mkdir()
    StoreSource(root, "versions/1").fetch(tmp_path / "down")
    assert (tmp_path / "down" / "shards" / "0-ab" / "x.npy").stat().st_size == 9_000_000
    store.remove("versions/1")
    assert store.names("versions") == ["12"]
    with pytest.raises(FolderError, match="is not there"):
        StoreSource(root, "versions/1").fetch(tmp_path / "down")


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    s3_environment()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{unused.getsockname()[1]}")
        monkeypatch.setattr(object_store, "_RETRY_SECONDS", 0.2)
        with pytest.raises(FolderError, match=r"cannot be reached .* credentials"):
            ObjectFolder(f"s3://gone/{uuid4().hex}").read("current.json")


# -- kills ----------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here, and cleans nothing up."""


class Mortal(ObjectFolder):
    """A store whose writer ends before a chosen request."""

    n_steps = 0
    last_step = -1

    def _step(self) -> None:
        if self.n_steps == self.last_step:
            raise Killed
        self.n_steps += 1

    def publish(self, name: str, content: bytes) -> None:
        self._step()
        super().publish(name, content)

    def remove(self, name: str) -> None:
        self._step()
        super().remove(name)

    def store(self, work: Path, name: str) -> None:
        for k in range(3):
            self._step()
            self.put(f"{name}/shards/0/{k}.npy", b"array")


def build(store: ObjectFolder, work: Path) -> str:
    """All that a build does to a location."""
    before = read_catalogue(store, repairs=True)
    if before is None or store.excludes_others:
        _remove_leftovers(store, before)
    job = _Build(store, before, "string", (), DEFAULT_SETTINGS, 1)
    job._work = work
    job._manifest = VersionManifest(
        job.name, "mill", "str", 0, 0, [], {}, [], [], [], 1,
        FolderEntry("dimensions", 0, {}, {}), [FolderEntry("shards/0", 0, {}, {})],
    )  # fmt: skip
    job.publish(2)
    return job.name


def test_a_kill_between_any_two_requests(root: str, tmp_path: Path) -> None:
    """Whatever was killed, the current version is whole, and the next build repairs the rest."""
    (tmp_path / "shards").mkdir()
    step = 0
    while True:
        where = f"{root}/{step}"
        build(ObjectFolder(where), tmp_path)  # without shards: they are not looked at
        older = build(Mortal(where), tmp_path)
        mortal = Mortal(where)
        mortal.last_step = step
        is_killed = False
        try:
            build(mortal, tmp_path)
        except Killed:
            is_killed = True
        catalogue = read_catalogue(ObjectFolder(where))
        assert catalogue is not None
        assert older in (catalogue.current, catalogue.versions[-2])
        assert ObjectFolder(where).names(f"versions/{catalogue.current}/shards/0") == [
            "0.npy", "1.npy", "2.npy",
        ]  # fmt: skip
        last = build(Mortal(where), tmp_path)
        found = read_catalogue(ObjectFolder(where))
        assert found is not None
        assert found.current == last
        assert ObjectFolder(where).names("versions") == sorted(found.versions)
        step += 1
        if not is_killed:
            break
    assert step > 5


# -- with Spark -----------------------------------------------------------------------------------


def rules(spark: Any, *texts: str) -> Any:
    return spark.createDataFrame([(f"s{i}", text) for i, text in enumerate(texts)], SCHEMA)


def test_build_match_and_versions(root: str, spark: Any) -> None:
    events = spark.createDataFrame([(i, i % 10) for i in range(50)], "event_id int, x int")
    first = ms.build(rules(spark, "x = 1", "x > 7", "x is null"), root, shards=3)
    assert ms.match(first, events).count() == 5 + 10
    second = ms.build(rules(spark, "x = 2"), root, shards=2)
    assert ms.match(root, events).count() == 5
    assert ms.match(first, events).count() == 15  # the older version is still there
    first.hold("report")
    third = ms.build(rules(spark, "x = 3"), root)
    names = ObjectFolder(root).names("versions")
    assert {first.version, second.version, third.version} <= set(names)
    assert ms.open(root, verify=True).version == third.version
    assert {tuple(row) for row in ms.match(root, events).collect()} == {
        (i, "s0") for i in range(50) if i % 10 == 3
    }


def test_of_two_builds_at_a_time_one_publishes(
    root: str, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other ends with an error, and the published one is whole."""
    ms.build(rules(spark, "x = 0"), root)
    meet = threading.Barrier(2, timeout=120)
    plain_publish = _Build.publish

    def publish(job: Any, keep: int) -> None:
        meet.wait()
        plain_publish(job, keep)

    monkeypatch.setattr(driver._Build, "publish", publish)
    made: list[Any] = []
    failed: list[FolderError] = []

    def one(text: str) -> None:
        try:
            made.append(ms.build(rules(spark, text), root))
        except FolderError as error:
            failed.append(error)

    threads = [threading.Thread(target=one, args=(f"x = {k}",)) for k in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == len(failed) == 1
    assert "only one build may run at a time" in str(failed[0])
    assert ms.open(root).version == made[0].version
    events = spark.createDataFrame([(i, i % 3) for i in range(30)], "event_id int, x int")
    assert ms.match(root, events).count() == 10
    assert ObjectFolder(root).read(MANIFEST) is not None
