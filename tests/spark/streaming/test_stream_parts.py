"""Streams without Spark running: changes upon a version, their files, their records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")
from matchmill.errors import FolderError, InputError
from matchmill.settings import DEFAULT_SETTINGS
from matchmill.spark.published.locations import location_of
from matchmill.spark.streaming.batch_records import BatchRecord, Records, progress
from matchmill.spark.streaming.changes import Change
from matchmill.spark.streaming.delta import Delta, Fresh

IDS = st.sampled_from("abcde")
CHANGES = st.one_of(
    st.builds(lambda i: Change("unsubscribe", i, None, None, 0), IDS),
    st.builds(
        lambda i, x, end: Change("subscribe", i, f"x = {x}", end, 0),
        IDS,
        st.integers(0, 9),
        st.none() | st.integers(0, 12),
    ),
)
STEPS = st.lists(
    st.tuples(st.lists(CHANGES, max_size=4), st.sampled_from(["", "mark", "rebase", "reload"])),
    max_size=10,
)
Live = dict[Any, tuple[str, int | None]]


def upon(version: dict[Any, str], delta: Delta) -> dict[Any, str]:
    """What a version and a delta have together."""
    fresh = {i: f.expression for i, f in delta.latest.items() if f is not None}
    return {i: text for i, text in version.items() if i not in delta.latest} | fresh


def reloaded(delta: Delta, ends: Any) -> Delta:
    other = Delta("string", DEFAULT_SETTINGS)
    other.load(delta.to_arrow(), ends)
    return other


@given(STEPS)
def test_a_delta_upon_a_version_is_what_was_subscribed(steps: Any) -> None:
    version = {"a": "x = 1", "b": "x = 2"}
    live: Live = {i: (text, None) for i, text in version.items()}
    delta, ends = Delta("string", DEFAULT_SETTINGS), None
    building: dict[Any, str] | None = None
    for time, (changes, action) in enumerate(steps):
        assert delta.apply(changes, time) == []
        for change in changes:
            live.pop(change.id, None)
            if change.change == "subscribe":
                live[change.id] = (change.expression, change.expires_at)
        live = {i: v for i, v in live.items() if v[1] is None or v[1] > time}
        if action == "mark":
            delta.mark()
            building = upon(version, delta)
        elif action == "rebase" and building is not None:
            delta.rebase()
            version, building, ends = building, None, delta.ends_to_arrow()
        elif action == "reload":
            delta, building = reloaded(delta, ends), None
        assert upon(version, delta) == {i: text for i, (text, _) in live.items()}
        assert delta.n_expiring == sum(end is not None for _, end in live.values())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (Change("subscribe", "a", "x >", None, 0), "at line 1, column 4"),
        (Change("subscribe", "a", None, None, 0), "the expression is missing"),
        (Change("subscribe", "", "x = 1", None, 0), "must not be empty"),
        (Change("unsubscribe", None, None, None, 0), "a string or an integer"),
        (Change("renew", "a", "x = 1", None, 0), "subscribe, update or unsubscribe, not 'renew'"),
    ],
)
def test_bad_changes_change_nothing(change: Change, reason: str) -> None:
    delta = Delta("string", DEFAULT_SETTINGS)
    delta.apply([Change("subscribe", "a", "x = 7", None, 0)], 0)
    before = delta.to_arrow()
    (rejected,) = delta.apply([change], 0)
    assert reason in rejected.reason
    assert delta.to_arrow() == before


def test_an_update_keeps_the_end_that_is_not_given() -> None:
    delta = Delta("string", DEFAULT_SETTINGS)
    delta.apply([Change("subscribe", "a", "x = 1", 10, 0)], 0)
    delta.apply([Change("update", "a", "x = 2", None, 0)], 1)
    assert delta.latest["a"] == Fresh("x = 2", 10)
    delta.apply([Change("update", "a", "x = 2", 20, 0)], 2)
    assert delta.latest["a"] == Fresh("x = 2", 20)
    delta.apply([Change("subscribe", "a", "x = 3", None, 0)], 3)
    assert delta.latest["a"] == Fresh("x = 3", None)


def test_renewals_do_not_pile_up() -> None:
    delta = Delta("string", DEFAULT_SETTINGS)
    for n in range(5000):
        delta.apply([Change("subscribe", "a", "x = 7", 10_000 + n, 0)], n)
    assert len(delta._due) <= 1001
    delta.apply([], 14_998)
    assert delta.n_fresh == 1
    delta.apply([], 14_999)
    assert delta.n_fresh == 0


def record(batch_id: int, **values: Any) -> BatchRecord:
    plain: dict[str, Any] = {
        "version": "v", "takes_changes": True, "time": 0, "delta": None, "expiries": None,
        "n_changed": 0, "n_fresh": 0, "n_expiring": 0, "n_changes": 0, "n_rejected": 0,
        "compaction": "idle", "output": "event_id int, subscription_id string",
    }  # fmt: skip
    return BatchRecord(batch_id=batch_id, **(plain | values))


def test_records(tmp_path: Path) -> None:
    records = Records(location_of(tmp_path / "matchmill"))
    assert progress(tmp_path) is None
    (tmp_path / "matchmill").mkdir()
    table = Delta("string", DEFAULT_SETTINGS).to_arrow()
    for n in range(30):
        name = records.write_table("delta", n, table)
        records.publish(record(n, delta=name))
        leftover = records.write_table("expiries", n, table)
        (tmp_path / "matchmill" / f".batch-{n:09d}.json-0123456789ab").touch()
        records.prune()
        assert not (tmp_path / "matchmill" / leftover).exists()
        assert progress(tmp_path) == record(n, delta=name)
    assert records.known() == list(range(20, 30))
    assert len(list((tmp_path / "matchmill").iterdir())) == 20
    assert records.read_table(name) == table
    records.check_output("event_id int, subscription_id string")
    with pytest.raises(InputError, match="keep the types"):
        records.check_output("event_id string, subscription_id string")
    file = tmp_path / "matchmill" / "batch-000000029.json"
    for damaged in (b"", b"[]", file.read_bytes().replace(b'"time": 0', b'"time": 1')):
        file.write_bytes(damaged)
        with pytest.raises(FolderError, match="is damaged"):
            records.read(29)
