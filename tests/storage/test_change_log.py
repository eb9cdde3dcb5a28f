"""The log of changes: what is written comes back, torn ends are cut, other damage is an error."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.errors import FolderError
from matchmill.storage import change_log
from matchmill.storage.change_log import HEADER, Change, LogEnd, find_end, read_changes, records_of
from matchmill.storage.log_writer import LogWriter, create_log

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


def named(keys: st.SearchStrategy[str | int]) -> st.SearchStrategy[Change]:
    stored = st.lists(st.tuples(keys, texts), min_size=1, max_size=5).map(
        lambda rows: Change([key for key, _ in rows], [text for _, text in rows])
    )
    removed = st.lists(keys, min_size=1, max_size=5).map(lambda ids: Change(ids, None))
    return st.one_of(stored, removed)


changes_of_one_type = st.one_of(
    st.lists(named(texts), max_size=6),
    st.lists(named(st.integers(-(2**63), 2**63 - 1)), max_size=6),
)


def as_lists(changes: object) -> list[tuple[list[str | int], list[str] | None]]:
    return [
        (list(c.ids), None if c.texts is None else list(c.texts))
        for c in changes  # type: ignore[attr-defined]
    ]


def written(path: Path, changes: list[Change]) -> list[int]:
    """Write a log; returns where each change ends."""
    path.unlink(missing_ok=True)
    writer = LogWriter(path, create_log(path))
    ends = [writer.n_bytes]
    for change in changes:
        writer.append(change)
        ends.append(writer.n_bytes)
    writer.close()
    return ends


@given(changes_of_one_type)
def test_changes_come_back(tmp_path_factory: pytest.TempPathFactory, some: list[Change]) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    ends = written(path, some)
    end = find_end(path)
    assert end == LogEnd(ends[-1], len(some), 0)
    assert as_lists(read_changes(path, end)) == as_lists(some)


SOME = [
    Change(["a", "b"], ["x = 1", "größe = '😀'"]),
    Change(["a"], None),
    Change(["c"], ["y"]),
    Change(["d", "e", "f"], ["x = 4", "x = 5", "x = 6"]),
]


def test_an_end_torn_at_any_byte_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    ends = written(path, SOME)
    whole = path.read_bytes()
    for size in range(len(HEADER), len(whole)):
        for tail in (b"", b"\0" * 30):  # lengths may reach the disk before the bytes do
            path.write_bytes(whole[:size] + tail)
            n_kept = sum(e <= size for e in ends[1:])
            found = find_end(path)
            assert found == LogEnd(ends[n_kept], n_kept, size + len(tail) - ends[n_kept])
            assert as_lists(read_changes(path, found)) == as_lists(SOME[:n_kept])
            writer = LogWriter(path, found)
            writer.append(SOME[0])
            writer.close()
            assert as_lists(read_changes(path, find_end(path))) == as_lists(
                [*SOME[:n_kept], SOME[0]]
            )


def test_any_damage_before_the_last_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log"
    ends = written(path, SOME)
    whole = path.read_bytes()
    rng = Random(3)
    for at in range(len(HEADER), ends[-2]):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        record = sum(e <= at for e in ends[1:])
        with pytest.raises(FolderError) as caught:
            find_end(path)
        message = str(caught.value)
        assert f"record {record}, at byte {ends[record]}, is broken" in message
        assert f"{len(SOME) - record - 1} whole ones follow" in message
        assert f"truncate -s {ends[record]} {path}" in message
        os.truncate(path, ends[record])  # the way out that it names
        assert as_lists(read_changes(path, find_end(path))) == as_lists(SOME[:record])


def test_records_that_are_missing_or_twice_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "log"
    ends = written(path, SOME)
    whole = path.read_bytes()
    for content in (
        whole[: ends[1]] + whole[ends[2] :],
        whole[: ends[2]] + whole[ends[1] :],
        whole[: ends[0]] + whole[ends[1] : ends[2]] + whole[ends[0] : ends[1]],
    ):
        path.write_bytes(content)
        with pytest.raises(FolderError, match="is whole, but is not record"):
            find_end(path)


@pytest.mark.parametrize("content", [b"", HEADER[:-1], b"x" + HEADER[1:]])
def test_files_that_are_no_log(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(FolderError, match="damaged"):
        find_end(path)
    path.unlink()
    with pytest.raises(FolderError, match="missing"):
        find_end(path)


def test_a_large_change_is_all_there_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_log, "_BYTES_PER_RECORD", 100)
    path = tmp_path / "log"
    large = Change(list(range(50)), [f"x = {n}" for n in range(50)])
    assert len(list(records_of(large, 0))) > 10
    ends = written(path, [SOME[1], large])
    whole = path.read_bytes()
    assert sum(c.n_rows for c in read_changes(path, find_end(path))) == 51
    for size in range(ends[1], ends[2], 7):
        path.write_bytes(whole[:size])
        assert find_end(path)[:2] == (ends[1], 1)


def test_a_change_that_cannot_be_written_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    writer = LogWriter(path, create_log(path))
    writer.append(SOME[0])
    before = path.read_bytes()
    write = os.write

    def half(file: int, content: bytes) -> int:
        if len(content) < 20:
            raise OSError(28, "No space left on device")
        return write(file, content[: len(content) // 2])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="No space left"):
        writer.append(SOME[3])
    monkeypatch.undo()
    assert path.read_bytes() == before
    writer.append(SOME[1])
    writer.take_back()
    assert path.read_bytes() == before
    writer.append(SOME[2])
    writer.close()
    assert as_lists(read_changes(path, find_end(path))) == as_lists([SOME[0], SOME[2]])


def test_after_a_failed_sync_nothing_more_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    writer = LogWriter(path, create_log(path))
    writer.append(SOME[0])

    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(FolderError, match="could not be made safe"):
        writer.sync(writer.position)
    monkeypatch.undo()
    with pytest.raises(FolderError, match="open the folder again"):
        writer.append(SOME[1])
    writer.close()


def test_writers_that_wait_share_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    writer = LogWriter(path, create_log(path))
    calls: list[int] = []
    monkeypatch.setattr(os, "fsync", calls.append)
    positions = []
    for change in SOME:
        writer.append(change)
        positions.append(writer.position)
    for position in (positions[1], *positions):
        writer.sync(position)
    assert len(calls) == 1
    assert writer.is_synced
    monkeypatch.undo()
    writer.close()
