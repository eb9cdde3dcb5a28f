"""Sharded engines: versions, what is kept, what is rejected, what is damaged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from tests.support.spark_cases import case_of, oracle, pairs, subscriptions

pytest.importorskip("pyspark")
from matchmill import spark as ms

pytestmark = pytest.mark.slow  # a build is some jobs of Spark

SCHEMA = "subscription_id string, expression string"


def rules(spark: Any, *expressions: str) -> Any:
    rows = [(f"s{k}", expression) for k, expression in enumerate(expressions)]
    return spark.createDataFrame(rows, SCHEMA)


def events(spark: Any, *values: int) -> Any:
    return spark.createDataFrame([(x, x) for x in values], "event_id int, x int")


def version_folders(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "versions").iterdir())


def test_versions_are_kept_and_pruned(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "i"
    first = ms.build(rules(spark, "x = 1"), folder)
    second = ms.build(rules(spark, "x = 2"), folder)
    assert ms.open(folder).version == second.version
    assert version_folders(folder) == [first.version, second.version]
    name = second.version
    del second
    third = ms.build(rules(spark, "x = 3"), folder)
    # The first one is open here; else two would be kept.
    assert version_folders(folder) == [first.version, name, third.version]
    some = events(spark, 1, 2, 3)
    assert pairs(ms.match(first, some)) == {(1, "s0")}
    assert pairs(ms.match(ms.open(folder, version=name), some)) == {(2, "s0")}
    assert pairs(ms.match(folder, some)) == {(3, "s0")}
    gone = first.version
    del first
    last = ms.build(rules(spark, "x = 4"), folder, keep=1)
    assert version_folders(folder) == [third.version, last.version]
    with pytest.raises(mm.InputError, match=f"no version '{gone}'; there are: {third.version}"):
        ms.open(folder, version=gone)


def test_a_version_that_is_held_stays(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "i"
    first = ms.build(rules(spark, "x = 1"), folder)
    first.hold("my-stream")
    name = first.version
    del first
    second = ms.build(rules(spark, "x = 2"), folder, keep=1)
    assert version_folders(folder) == [name, second.version]
    ms.open(folder, version=name).release("my-stream")
    third = ms.build(rules(spark, "x = 3"), folder, keep=1)
    assert version_folders(folder) == [second.version, third.version]
    with pytest.raises(mm.InputError, match="letters, digits"):
        third.hold("../other")


def test_a_version_that_is_gone_cannot_be_held(spark: Any, tmp_path: Path) -> None:
    index = ms.build(rules(spark, "x = 1"), tmp_path / "i")
    ms.build(rules(spark, "x = 2"), tmp_path / "j")
    shutil.copy(tmp_path / "j" / "current.json", tmp_path / "i" / "current.json")
    with pytest.raises(mm.FolderError, match="has been removed meanwhile"):
        index.hold("me")
    assert list((tmp_path / "i" / "holds").iterdir()) == []


def test_a_version_that_is_removed_while_a_plan_names_it(spark: Any, tmp_path: Path) -> None:
    index = ms.build(rules(spark, "x = 1"), tmp_path / "i")
    plan = ms.match(index, events(spark, 1))
    shutil.rmtree(tmp_path / "i" / "versions" / index.version)
    words = f"{index.version} is not there"
    with pytest.raises(mm.FolderError, match=words), ms.plain_errors():
        plan.collect()


def test_rubbish_is_removed_and_other_files_are_not(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "i"
    (folder / "versions" / "000009-0123456789ab" / "shards").mkdir(parents=True)
    (folder / ".current.json-123").write_text("half")
    index = ms.build(rules(spark, "x = 1"), folder)
    assert version_folders(folder) == [index.version]
    assert sorted(p.name for p in folder.iterdir()) == ["current.json", "lock", "versions"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(mm.FolderError, match=r"holds other files, such as thesis\.txt"):
        ms.build(rules(spark, "x = 1"), tmp_path / "other")
    assert (tmp_path / "other" / "thesis.txt").read_text() == "mine"


def test_one_build_at_a_time(spark: Any, tmp_path: Path) -> None:
    from matchmill.storage.folder_lock import FolderLock

    index = ms.build(rules(spark, "x = 1"), tmp_path / "i")
    lock = FolderLock(tmp_path / "i")
    try:
        with pytest.raises(mm.FolderInUseError, match="open for writing"):
            ms.build(rules(spark, "x = 2"), tmp_path / "i")
    finally:
        lock.release()
    assert ms.open(tmp_path / "i").version == index.version


# -- bad subscriptions ----------------------------------------------------------------------------


def test_bad_subscriptions_are_rejected(spark: Any, tmp_path: Path) -> None:
    rows = [("good", "x = 1"), ("bad", "x = = 1"), (None, "x = 1"), ("none", None), ("", "x = 1")]
    index = ms.build(spark.createDataFrame(rows, SCHEMA), tmp_path / "i", shards=3)
    assert len(index) == 1
    assert index.stats().n_rejected == 4
    assert {(row.kind, row.row) for row in index.rejected} == {("subscription", -1)}
    assert str(index.rejected[0]).startswith("subscription: ")
    reasons = {row.id: row.reason for row in index.rejected}
    assert "column 5" in reasons["bad"]
    assert sorted(str(row.id) for row in index.rejected) == ["None", "None", "bad", "none"]
    with pytest.raises(mm.InputError, match="4 subscriptions cannot be read"):
        ms.build(spark.createDataFrame(rows, SCHEMA), tmp_path / "i", strict=True)
    assert ms.open(tmp_path / "i").version == index.version


@pytest.mark.parametrize("plan", ["driver", "events"])
def test_ids_that_occur_twice_are_an_error(plan: Any, spark: Any) -> None:
    rows = [("a", "x = 1"), ("b", "x = 2"), ("a", "x = 3"), ("c", "x = 4"), ("c", "x = 4")]
    twice = spark.createDataFrame(rows, SCHEMA)
    with pytest.raises(mm.DuplicateIdError, match="same id: 'a', 'c'; keep one"):
        ms.match(twice, events(spark, 1), plan=plan)


def test_a_build_that_fails_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    index = ms.build(rules(spark, "x = 1"), tmp_path / "i")
    twice = spark.createDataFrame([("a", "x = 1"), ("a", "x = 2")], SCHEMA)
    with pytest.raises(mm.DuplicateIdError):
        ms.build(twice, tmp_path / "i")
    assert version_folders(tmp_path / "i") == [index.version]
    assert ms.open(tmp_path / "i").version == index.version


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("id string, expression string", "no single column 'subscription_id'; it has: id"),
        ("subscription_id double, expression string", "strings or integers.*double; cast it"),
        ("subscription_id string, expression int", "expressions are strings.*int"),
    ],
)
def test_tables_that_are_none_of_subscriptions(
    schema: str, words: str, spark: Any, tmp_path: Path
) -> None:
    with pytest.raises(mm.InputError, match=words):
        ms.build(spark.createDataFrame([], schema), tmp_path / "i")


def test_no_subscription_at_all(spark: Any, tmp_path: Path) -> None:
    index = ms.build(spark.createDataFrame([], SCHEMA), tmp_path / "i")
    assert len(index) == 0
    assert pairs(ms.match(index, events(spark, 1))) == set()


# -- statistics and settings ----------------------------------------------------------------------


def test_events_to_learn_from_change_no_answer(spark: Any, tmp_path: Path) -> None:
    case = case_of("wide", 5, 150, 100)
    sample = spark.createDataFrame(case.table)
    index = ms.build(subscriptions(spark, case.expressions), tmp_path / "i", shards=2, learn=sample)
    entry = index.manifest.dimensions
    assert "statistics_n_events" in entry.arrays
    file = tmp_path / "i" / "versions" / index.version / entry.folder / "statistics_n_events.npy"
    assert np.load(file).tolist() == [100]
    assert pairs(ms.match(index, sample)) == oracle(case)


def test_a_table_of_statistics_to_learn_from(spark: Any, tmp_path: Path) -> None:
    case = case_of("wide", 5, 100, 60)
    sample, rows = spark.createDataFrame(case.table), subscriptions(spark, case.expressions)
    index = ms.build(rows, tmp_path / "i", learn=ms.statistics(sample))
    assert "statistics_n_events" in index.manifest.dimensions.arrays
    assert pairs(ms.match(index, sample)) == oracle(case)


def test_figures_and_options(spark: Any, tmp_path: Path) -> None:
    index = ms.build(rules(spark, "x = 1", "x = 2"), tmp_path / "i", shards=1)
    stats = index.stats()
    assert (stats.n_subscriptions, stats.n_shards, stats.index) == (2, 1, "auto")
    assert stats.n_bytes > sum(shard.n_bytes for shard in stats.shards) > 0
    assert json.loads(json.dumps(stats.to_dict()))["shards"][0]["n_subscriptions"] == 2
    assert "2 subscriptions in 1 shards, index auto" in repr(index)
    with pytest.raises(TypeError, match="nonsense"):
        ms.build(rules(spark, "x = 1"), tmp_path / "i", nonsense=1)
    with pytest.raises(mm.InputError, match="nonsense"):
        ms.build(rules(spark, "x = 1"), tmp_path / "i", index_options={"nonsense": 1})


def test_another_index(spark: Any, tmp_path: Path) -> None:
    case = case_of("wide", 5, 60, 30)
    rows = subscriptions(spark, case.expressions)
    index = ms.build(rows, tmp_path / "i", shards=2, index="counting")
    assert index.manifest.index_name == "counting"
    assert pairs(ms.match(index, spark.createDataFrame(case.table))) == oracle(case)


# -- damage ---------------------------------------------------------------------------------------


def largest_file(folder: Path, index: Any) -> Path:
    shard = index.manifest.shards[0]
    files = (folder / "versions" / index.version / shard.folder).iterdir()
    return max(files, key=lambda file: file.stat().st_size)


@pytest.fixture(scope="module")
def intact(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index whose largest file is more than is compared at every opening."""
    folder = tmp_path_factory.mktemp("intact") / "i"
    ms.build(frame_of(spark, 3000), folder, shards=1)
    return folder


@pytest.fixture
def damaged(intact: Path, tmp_path: Path) -> Any:
    """A copy of it, to be damaged."""
    shutil.copytree(intact, tmp_path / "i")
    return ms.open(tmp_path / "i")


def test_a_truncated_shard(spark: Any, damaged: Any, tmp_path: Path) -> None:
    file = largest_file(tmp_path / "i", damaged)
    os.truncate(file, file.stat().st_size - 8)
    words = rf"{file.name} is damaged: it has \d+ bytes instead"
    with pytest.raises(mm.FolderError, match=words), ms.plain_errors():
        ms.match(damaged, events(spark, 1)).collect()


def test_a_wrong_checksum(spark: Any, damaged: Any, tmp_path: Path) -> None:
    file = largest_file(tmp_path / "i", damaged)
    content = bytearray(file.read_bytes())
    content[-9] ^= 1
    file.write_bytes(content)
    index = ms.open(tmp_path / "i", verify=True)
    with pytest.raises(mm.FolderError) as caught, ms.plain_errors():
        ms.match(index, events(spark, 1)).collect()
    words = str(caught.value)
    assert str(file) in words
    assert "its checksum does not fit; restore it from a copy" in words
    assert "Traceback" not in words
    assert "java" not in words


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 3 megabytes, in memory."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip(f"a small tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mount") is None, reason="there is no `mount`")
def test_a_disk_that_is_full(spark: Any, small_disk: Path) -> None:
    """A version that does not fit: the error says where, and the version before goes on."""
    before = ms.build(frame_of(spark, 100), small_disk / "i", shards=1)
    first = {tuple(row) for row in ms.match(before, events(spark, 1)).collect()}
    with pytest.raises(mm.FolderError, match="No space left on device") as caught:
        ms.build(frame_of(spark, 60_000), small_disk / "i", shards=2)
    assert str(small_disk) in str(caught.value)
    assert ms.open(small_disk / "i").version == before.version
    assert {tuple(row) for row in ms.match(before, events(spark, 1)).collect()} == first
    after = ms.build(frame_of(spark, 200), small_disk / "i", shards=1)
    assert len(after) == 200  # what the failed one wrote is gone


def frame_of(spark: Any, n: int) -> Any:
    return spark.range(n).selectExpr(
        "concat('s', id) as subscription_id", "concat('x = ', id) as expression"
    )


def test_a_missing_file(spark: Any, damaged: Any, tmp_path: Path) -> None:
    largest_file(tmp_path / "i", damaged).unlink()
    with pytest.raises(mm.FolderError, match="the file is missing"), ms.plain_errors():
        ms.match(damaged, events(spark, 1)).collect()


@pytest.mark.parametrize("name", ["current.json", "versions/{}/manifest.json"])
def test_damaged_manifests(name: str, spark: Any, damaged: Any, tmp_path: Path) -> None:
    file = tmp_path / "i" / name.format(damaged.version)
    good = file.read_bytes()
    changed = json.loads(good)
    changed["body"]["n_rejected" if "versions" in name else "current"] = 1
    for content, words in ((b"{", "not a manifest"), (json.dumps(changed).encode(), "checksum")):
        file.write_bytes(content)
        with pytest.raises(mm.FolderError, match=words):
            ms.open(tmp_path / "i")
    file.unlink()
    with pytest.raises(mm.FolderError, match=r"neither current\.json|is missing"):
        ms.open(tmp_path / "i")


def test_patterns_of_another_dialect(spark: Any, tmp_path: Path) -> None:
    """In a table a null is a missing value; arrays of objects keep their elements."""
    patterns = {
        "missing": '{"x": [{"exists": false}]}',
        "null": '{"x": [null]}',
        "same": '{"e": {"a": [1], "b": [2]}}',
        "other": '{"x": [{"anything-but": 5}]}',
    }
    df = spark.createDataFrame(list(patterns.items()), SCHEMA)
    engine = ms.build(df, tmp_path / "i", dialect="eventbridge")
    schema = "event_id int, x int, e array<struct<a: int, b: int>>"
    rows = [(0, None, [(1, 2)]), (1, 5, [(1, None), (None, 2)]), (2, 6, [])]
    some = spark.createDataFrame(rows, schema)
    expected = {(0, "missing"), (0, "same"), (2, "other")}
    assert pairs(ms.match(engine, some)) == expected
    texts = [(0, '{"x": null}'), (1, "{}")]
    lines = spark.createDataFrame(texts, "event_id int, event string")
    found = pairs(ms.match(engine, lines, layout="json"))
    assert found == {(0, "null"), (0, "other"), (1, "missing")}
