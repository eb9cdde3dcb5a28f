"""A clock that jumps deletes nothing; what has expired comes back if it is renewed soon enough."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from matchmill.service.clock import DOUBT_SECONDS, SteadyClock
from matchmill.service.database.horizon import Horizon
from matchmill.service.database.rows import SECOND
from tests.support.running_service import START, Clock, Local, local_service

DAY = 24 * 60 * 60
MONTH = 40 * DAY


# -- the present ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [MONTH, -MONTH, 61, -61])
def test_a_jump_is_believed_when_it_has_lasted(seconds: int) -> None:
    clock = Clock()
    steady = SteadyClock(clock)
    clock.jump(seconds)
    assert steady() == START
    assert steady.doubted_seconds == seconds
    clock.move(DOUBT_SECONDS - 1)
    assert steady() == START + (DOUBT_SECONDS - 1) * SECOND
    clock.move(1)
    assert steady() == clock.now
    assert steady.doubted_seconds == 0


def test_a_jump_that_goes_back_changes_nothing() -> None:
    clock = Clock()
    steady = SteadyClock(clock)
    for _ in range(20):  # never long enough in one place
        clock.jump(MONTH)
        assert steady() == START + clock.passed
        clock.move(DOUBT_SECONDS / 2)
        assert steady() == START + clock.passed
        clock.jump(-MONTH)
        assert steady() == clock.now
        clock.move(DOUBT_SECONDS / 2)
    assert steady() == clock.now


def test_small_steps_are_followed_at_once() -> None:
    clock = Clock()
    steady = SteadyClock(clock)
    for seconds in (1, -30, 59):
        clock.jump(seconds)
        assert steady() == clock.now


# -- the horizon ----------------------------------------------------------------------------------


def test_nothing_is_certain_before_a_window_was_served() -> None:
    horizon = Horizon.read(None)
    for served in range(0, 1600, 50):
        horizon = horizon.after(served, 10_000 + served, 1600)
        assert horizon.moment(1600) is None
    horizon = horizon.after(1700, 11_700, 1600)
    moment = horizon.moment(1600)
    assert moment is not None
    assert 10_000 <= moment <= 10_100


def test_the_least_of_the_window_counts() -> None:
    """A clock that goes ahead for less than a window moves nothing."""
    horizon = Horizon.read(None)
    for served in range(0, 10_000, 100):
        ahead = 10**9 if 5_000 <= served < 6_000 else 0
        horizon = Horizon.read(horizon.after(served, served + ahead, 1600).text())
        moment = horizon.moment(1600)
        assert moment is None or moment <= served
        assert len(horizon.least) <= 18


def test_a_gap_is_no_evidence_for_what_was_in_it() -> None:
    horizon = Horizon.read(None).after(0, 5, 16).after(1_000, 500, 16)
    assert horizon.moment(16) == 5
    assert horizon.after(990, 7, 16).served == 1_000  # another process has counted more


# -- the service ----------------------------------------------------------------------------------


def serve_for(local: Local, seconds: int, step: int = 30) -> None:
    """Time passes, with the usual cleanups."""
    for _ in range(0, seconds, step):
        local.clock.move(step)
        local.service.cleanup.clean()


def is_stored(local: Local, identifier: str) -> bool:
    with local.service.store.reading() as reading:
        return reading.subscription(1, identifier, 0) is not None


@pytest.mark.parametrize("seconds", [MONTH, -MONTH])
def test_a_clock_that_jumps_while_it_serves(tmp_path: Path, seconds: int) -> None:
    with local_service(tmp_path / "s", keep_expired_seconds=600) as local:
        caller = local.caller()
        ticket = caller.subscribe("a", "x = 1")
        assert caller.publish({"x": 1}, event_id="before") == 1
        serve_for(local, 660)
        local.clock.jump(seconds)
        assert caller.publish({"x": 1}, event_id="in the middle") == 1
        serve_for(local, 60)
        other = caller.subscribe("b", "x = 1")
        local.clock.jump(-seconds)
        serve_for(local, 660)
        assert caller.publish({"x": 1}, event_id="after") == 2
        found = [match["event_id"] for match in caller.matches("a", ticket)]
        assert found == ["before", "in the middle", "after"]
        assert len(caller.matches("b", other)) == 1


@pytest.mark.parametrize("seconds", [MONTH, -MONTH])
def test_a_clock_that_is_wrong_at_the_start(tmp_path: Path, seconds: int) -> None:
    clock = Clock()
    with local_service(tmp_path / "s", clock, keep_expired_seconds=900) as local:
        caller = local.caller()
        ticket = caller.subscribe("a", "x = 1")
        assert caller.publish({"x": 1}, event_id="before") == 1
        serve_for(local, 960)
    clock.jump(seconds)
    with local_service(tmp_path / "s", clock, keep_expired_seconds=900) as local:
        caller = local.caller()
        assert caller.publish({"x": 1}, event_id="in the middle") == (seconds < 0)
        serve_for(local, 300)
        clock.jump(-seconds)
        serve_for(local, DOUBT_SECONDS + 30)
        assert caller.publish({"x": 1}, event_id="after") == 1
        found = [match["event_id"] for match in caller.matches("a", ticket)]
        assert [name for name in found if name != "in the middle"] == ["before", "after"]


def test_what_has_expired_is_kept_for_a_while(tmp_path: Path) -> None:
    with local_service(tmp_path / "s", keep_expired_seconds=600, cleanup_limit=1) as local:
        caller = local.caller()
        ticket = caller.subscribe("a", "x = 1", ttl_seconds=100)
        caller.subscribe("b", "x = 1", ttl_seconds=100)
        assert caller.publish({"x": 1}, event_id="e") == 2
        serve_for(local, 660)
        path = "/v1/subscriptions/a"
        assert caller.publish({"x": 1}) == 0
        assert caller.get(path, ticket).status_code == 404
        assert caller.patch(path, {"max_per_minute": 7}, ticket).status_code == 404
        assert caller.patch(path, {"ttl_seconds": 100}, ticket).status_code == 200
        assert caller.publish({"x": 1}, event_id="f") == 1
        assert [one["event_id"] for one in caller.matches("a", ticket)] == ["e", "f"]
        local.clock.move(100)
        serve_for(local, 900)
        assert [is_stored(local, name) for name in "ab"] == [False, False]
        assert caller.patch(path, {"ttl_seconds": 100}, ticket).status_code == 404


def test_one_run_deletes_so_much(tmp_path: Path) -> None:
    with local_service(tmp_path / "s", keep_expired_seconds=60, cleanup_limit=2) as local:
        caller = local.caller()
        for n in range(5):
            caller.subscribe(f"s{n}", "x = 1", ttl_seconds=10)
        local.clock.move(30)
        for _ in range(3):
            local.service.cleanup.clean()
            local.clock.move(30)
        stored = []
        for _ in range(4):
            stored.append(sum(is_stored(local, f"s{n}") for n in range(5)))
            local.service.cleanup.clean()
            local.clock.move(30)
        assert stored[-1] == 0
        assert all(before - after <= 2 for before, after in pairwise(stored))


def test_expired_ones_leave_room_for_new_ones(tmp_path: Path) -> None:
    with local_service(tmp_path / "s", max_subscriptions=3) as local:
        caller = local.caller()
        for n in range(3):
            caller.subscribe(f"a{n}", "x = 1", ttl_seconds=10)
        local.clock.move(10)
        tickets = [caller.subscribe(f"b{n}", "x = 1", ttl_seconds=100) for n in range(3)]
        body = {"expression": "x = 1"}
        answer = caller.post("/v1/subscriptions", body)
        assert (answer.status_code, answer.json()["code"]) == (409, "quota")
        # One that is brought back counts again.
        answer = caller.patch("/v1/subscriptions/a0", {"ttl_seconds": 100})
        assert (answer.status_code, answer.json()["code"]) == (409, "quota")
        assert caller.delete("/v1/subscriptions/b0", tickets[0]).status_code == 204
        answer = caller.patch("/v1/subscriptions/a0", {"ttl_seconds": 100})
        assert answer.status_code == 200
