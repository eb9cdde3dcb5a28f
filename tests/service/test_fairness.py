"""Tenants take turns at every resource, within bounds: the mechanism, without a clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from matchmill.service.database.open import open_store
from matchmill.service.database.rows import NewSubscription
from matchmill.service.database.writes import Writes
from matchmill.service.fair_pool import FairPool
from matchmill.service.fair_queue import FairQueue
from matchmill.service.group_commit import Writer
from matchmill.service.hub import Hub, Watcher
from matchmill.service.problems import Problem
from matchmill.service.publisher import Incoming, Publisher
from matchmill.service.rate_limits import BytesInMemory, RateLimits
from matchmill.service.settings import ServiceSettings
from matchmill.service.tenant_engines import Matched
from tests.support.running_service import Local, local_service, wait_until

NOW = 1_000_000


# -- queues ---------------------------------------------------------------------------------------


def drained(queue: FairQueue[str], cost: float = 1.0) -> list[str]:
    order = []
    while (found := queue.take()) is not None:
        tenant, item = found
        order.append(item)
        queue.done(tenant, cost)
    return order


def test_whoever_has_used_the_least_is_next() -> None:
    queue: FairQueue[str] = FairQueue()
    for n in range(4):
        queue.put(1, f"a{n}")
    for n in range(2):
        queue.put(2, f"b{n}")
    assert (len(queue), queue.n_waiting(1)) == (6, 4)
    assert drained(queue) == ["a0", "b0", "a1", "b1", "a2", "a3"]


def test_one_that_costs_much_waits_for_many_that_cost_little() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.put(1, "dear")
    queue.put(1, "dear again")
    assert queue.take() == (1, "dear")
    queue.done(1, 10.0)
    for n in range(5):
        queue.put(2, f"cheap {n}")
    assert drained(queue)[-1] == "dear again"


def test_a_pause_earns_no_credit() -> None:
    queue: FairQueue[str] = FairQueue()
    for n in range(100):
        queue.put(1, f"a{n}")
        drained(queue)
    queue.put(2, "first")  # it has used nothing, while the other one has used 100
    queue.put(2, "second")
    queue.put(1, "a")
    assert drained(queue).index("a") < 2


def test_of_one_tenant_so_many_run() -> None:
    queue: FairQueue[str] = FairQueue(most_running=1)
    queue.put(1, "a")
    queue.put(1, "b")
    assert queue.take() == (1, "a")
    assert queue.take() is None
    queue.put(2, "c")
    assert queue.take() == (2, "c")
    queue.done(1, 5.0)
    assert queue.take() == (1, "b")
    assert queue.n_running(1) == 1


def test_what_does_not_fit_stays_first() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.put(1, "large")
    assert queue.take(lambda item: item != "large") is None
    assert queue.take() == (1, "large")


# -- threads --------------------------------------------------------------------------------------


def test_one_tenant_leaves_threads_for_others_and_may_wait_so_long() -> None:
    pool = FairPool("queries", 2, most_running=1, most_queued=2)
    leave = threading.Event()
    first = pool.submit(1, lambda: leave.wait(60))
    wait_until(lambda: pool.figures(1)["n_running"] == 1)
    waiting = [pool.submit(1, lambda n=n: n) for n in range(2)]  # type: ignore[misc]
    with pytest.raises(Problem) as caught:
        pool.submit(1, lambda: None)
    assert (caught.value.status, caught.value.code) == (429, "busy")
    assert "2 queries of this tenant" in caught.value.detail
    assert pool.submit(2, lambda: "at once").result(60) == "at once"
    assert not first.done()
    leave.set()
    assert [one.result(60) for one in waiting] == [0, 1]
    figures = pool.figures(1)
    assert (figures["n_queued"], figures["n_running"], figures["n_rejected"]) == (0, 0, 1)
    assert figures["seconds"] >= 0
    pool.stop()


def test_a_task_that_fails_does_not_end_its_thread() -> None:
    pool = FairPool("queries", 1, most_running=1)
    with pytest.raises(ZeroDivisionError):
        pool.submit(1, lambda: 1 // 0).result(60)
    assert pool.submit(1, lambda: 1).result(60) == 1
    pool.stop()


# -- transactions ---------------------------------------------------------------------------------


@contextmanager
def blocked_writer(folder: Path) -> Iterator[tuple[Writer, threading.Event]]:
    """A writer whose first transaction lasts until the event is set."""
    store = open_store(folder)
    writer = Writer(store)
    entered, leave = threading.Event(), threading.Event()

    def slow(_: Writes) -> None:
        entered.set()
        assert leave.wait(60)

    writer.submit(slow)
    assert entered.wait(60)
    try:
        yield writer, leave
    finally:
        leave.set()
        writer.stop()
        store.close()


def test_a_small_write_does_not_wait_for_the_large_ones_of_another_tenant(tmp_path: Path) -> None:
    order: list[str] = []
    with blocked_writer(tmp_path) as (writer, leave):
        large = [
            writer.submit(lambda _, n=n: order.append(f"large {n}"), 1, 2_000)  # type: ignore[misc]
            for n in range(5)
        ]
        small = writer.submit(lambda _: order.append("small"), 2)
        assert writer.figures(1)["n_queued"] == 5
        leave.set()
        for one in (*large, small):
            one.result(60)
    assert order.index("small") <= 1
    assert writer.n_transactions >= 6  # a large one shares its transaction with nobody


def test_a_list_of_subscriptions_is_stored_in_parts(local: Local) -> None:
    caller = local.caller()
    before = local.service.writer.n_works
    answer = caller.post("/v1/subscriptions", [{"expression": "x = 1"}] * 450).json()
    assert answer["n_accepted"] == 450
    assert local.service.writer.n_works - before == 9


def test_old_events_are_forgotten_in_small_transactions_of_their_tenant(tmp_path: Path) -> None:
    """Who has matches of them is looked for outside of transactions: others write meanwhile."""
    with local_service(tmp_path / "s", keep_events=20, cleanup_seconds=3_600) as local:
        caller = local.caller()
        body: list[dict[str, Any]] = [
            {"subscription_id": f"s{n:03}", "expression": "x = 1"} for n in range(250)
        ]
        results = caller.post("/v1/subscriptions", body).json()["results"]
        body = [{"event": {"x": 1, "n": n}} for n in range(50)]
        assert caller.post("/v1/events", body).json()["n_accepted"] == 50
        writer = local.service.writer
        rows: list[tuple[int, int]] = []
        submit = writer.submit

        def noted(work: Any, tenant: int = 0, n_rows: int = 1) -> Any:
            rows.append((tenant, n_rows))
            return submit(work, tenant, n_rows)

        writer.submit = noted  # type: ignore[method-assign]
        local.service.cleanup.clean()
        assert {tenant for tenant, n in rows if n > 1} == {1}
        assert sum(n for _, n in rows) >= 3 * 250 + 30
        assert max(n for _, n in rows) <= 500
        for k in (0, 249):
            query = f"/v1/subscriptions/s{k:03}/matches?limit=100"
            page = caller.get(query, results[k]["ticket"]).json()
            assert [match["event"]["n"] for match in page["matches"]] == list(range(30, 50))
            assert page["n_dropped"] == 30


# -- publishing -----------------------------------------------------------------------------------


class Engines:
    """Every event matches so many subscriptions; notes the order of tenants."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers
        self.slices: list[tuple[int, int]] = []
        self.tenant = 0

    def of(self, tenant: int) -> Engines:
        engines = Engines(self.numbers)
        engines.slices, engines.tenant = self.slices, tenant
        return engines

    def match(self, events: list[Any]) -> Matched:
        self.slices.append((self.tenant, len(events)))
        return Matched([self.numbers for _ in events], {})


@contextmanager
def publishing(folder: Path, n_matches: int, **settings: Any) -> Iterator[tuple[Any, Any, Any]]:
    store = open_store(folder)
    numbers = []
    with store.writing() as writing:
        for name in ("loud", "quiet"):
            writing.add_tenant(name)
        for n in range(n_matches):
            new = NewSubscription(f"s{n}", "x = 1", f"s{n}".encode(), 2 * NOW)
            numbers.append(writing.subscribe(1, new, NOW, 10_000))
    engines, writer = Engines(numbers), Writer(store)
    publisher = Publisher(
        engines,  # type: ignore[arg-type]
        writer,
        lambda: NOW,
        ServiceSettings(**settings),
        committed=lambda *_: None,
    )
    try:
        yield publisher, engines, store
    finally:
        publisher.stop()
        writer.stop()
        store.close()


def events(n: int, body: str = "{}") -> list[Incoming]:
    return [Incoming(f"e{k}", {}, body, True) for k in range(n)]


def test_a_large_request_is_matched_in_slices_and_stored_in_parts(tmp_path: Path) -> None:
    with publishing(tmp_path, 300) as (publisher, engines, store):
        outcomes = publisher.publish(1, events(100)).result(60)
        assert [one.n_matches for one in outcomes] == [300] * 100
        assert all(not one.receivers for one in outcomes)  # they would fill the memory
        assert max(n for _, n in engines.slices) < 100
        assert publisher.n_queued == 0
        assert publisher.figures(1)["n_queued_bytes"] == 0
        with store.reading() as reading:
            assert [one.event_id for one in reading.recent_events(1, 999)] == [
                f"e{k}" for k in range(100)
            ]


def test_a_tenant_gets_in_between_the_slices_of_another_one(tmp_path: Path) -> None:
    with publishing(tmp_path, 300) as (publisher, engines, _):
        loud = publisher.publish(1, events(200))
        publisher.publish(2, events(1)).result(60)
        loud.result(60)
        assert engines.slices[-1][0] == 1
        assert (2, 1) in engines.slices


def test_matches_per_second_pause_a_tenant_and_no_other(tmp_path: Path) -> None:
    limits = {"matches_per_second": 1, "matches_burst": 300}
    with publishing(tmp_path, 300, **limits) as (publisher, _, _):
        loud = publisher.publish(1, events(50))
        wait_until(lambda: publisher.figures(1)["n_pauses"] == 1)
        assert len(publisher.publish(2, events(1)).result(60)) == 1
        assert not loud.done()
        assert publisher.figures(2)["n_pauses"] == 0
    assert len(loud.result()) == 50  # a stop finishes what was accepted


def test_too_many_matches_of_one_event_are_rejected(tmp_path: Path) -> None:
    with publishing(tmp_path, 6, max_matches=5) as (publisher, _, store):
        (problem,) = publisher.publish(1, events(1)).result(60)
        assert (problem.status, problem.code) == (422, "too_many_matches")
        with store.reading() as reading:
            assert reading.recent_events(1, 9) == []


@pytest.mark.parametrize(
    ("limits", "what"),
    [({"max_tenant_events": 5}, "5 events"), ({"max_tenant_bytes": 50}, "50 bytes")],
)
def test_so_much_of_one_tenant_waits(limits: Any, what: str, tmp_path: Path) -> None:
    pause = {"matches_per_second": 1, "matches_burst": 1}
    with publishing(tmp_path, 300, **pause, **limits) as (publisher, _, _):
        publisher.publish(1, events(1)).result(60)  # from now on it pauses
        waiting = publisher.publish(1, events(5, '"12345678"'))
        with pytest.raises(Problem) as caught:
            publisher.publish(1, events(1))
        assert (caught.value.status, caught.value.code) == (429, "busy")
        assert what in caught.value.detail
        assert publisher.figures(1)["n_rejected"] == 1
        assert len(publisher.publish(2, events(1)).result(60)) == 1
    assert len(waiting.result()) == 5


def test_a_debt_is_paid_in_time() -> None:
    now = [0.0]
    limits = RateLimits(10, 100, lambda: now[0])
    assert limits.charge("a", 100) == 0
    assert limits.charge("a", 50) == 5.0
    now[0] = 3.0
    assert limits.charge("a", 0) == 2.0
    assert limits.charge("b", 0) == 0


# -- memory ---------------------------------------------------------------------------------------


def test_requests_of_one_tenant_hold_so_many_bytes() -> None:
    held = BytesInMemory(100)
    with held.holding(1, 80), held.holding(2, 80), held.holding(1, 0):
        with pytest.raises(Problem) as caught, held.holding(1, 30):
            pass
        assert caught.value.status == 429
        with held.holding(1, 20):
            assert held.of(1) == 100
    assert (held.of(1), held.of(2), held.n_rejected(1)) == (0, 0, 1)
    with held.holding(1, 1_000):  # one alone always passes
        pass


def test_a_page_has_so_many_bytes_of_events(tmp_path: Path) -> None:
    with local_service(tmp_path / "s", max_page_size=1_000) as local:
        caller = local.caller()
        ticket = caller.subscribe("a", "x = 1")
        for size in (300, 300, 300, 3_000, 10):
            caller.publish({"x": 1, "text": "t" * size})
        pages = []
        after = 0
        while page := caller.matches("a", ticket, after=after):
            pages.append([len(match["event"]["text"]) for match in page])
            after = page[-1]["seq"]
        assert pages == [[300, 300, 300], [3_000], [10]]
        found = caller.post("/v1/backtest", {"expression": "x = 1"}).json()
        assert (found["n_events"], found["n_matches"]) == (5, 5)
        for n in range(3):
            caller.subscribe(f"long{n}", "x = '" + "y" * 600 + "'")
        listed = caller.get("/v1/subscriptions").json()
        assert len(listed["subscriptions"]) == 2
        rest = caller.get("/v1/subscriptions", cursor=listed["next_cursor"]).json()
        assert rest["subscriptions"]


def test_matches_that_nobody_takes_have_so_many_bytes() -> None:
    watcher = Watcher(100, "key", 10)
    for text in ("x" * 20, "y", "z"):  # the first always fits
        watcher.put(text)
    assert watcher.take() == (["x" * 20], 2)
    watcher.put("y")
    assert watcher.take() == (["y"], 0)


def test_a_body_that_drips_is_given_up(tmp_path: Path) -> None:
    with local_service(tmp_path / "s", request_seconds=1) as local:
        caller = local.caller()
        status = asyncio.run(dripped(local.client.app, caller.headers))
        assert status == 408
        assert local.service.bytes.of(1) == 0


async def dripped(app: Any, headers: dict[str, str]) -> int:
    """Send a request whose body never comes; return the status of the response."""
    given = headers | {"content-type": "application/json", "content-length": "100"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/match",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
    }
    statuses: list[int] = []

    async def receive() -> Any:
        await asyncio.sleep(60)

    async def send(message: Any) -> None:
        statuses.append(message.get("status", 0))

    await app(scope, receive, send)
    return statuses[0]


# -- streams --------------------------------------------------------------------------------------


def test_streams_have_a_limit_per_tenant_and_per_subscription() -> None:
    hub = Hub(100, 10, most_of_tenant=3, most_of_subscription=2)
    with hub.waiting(1, 7), hub.waiting(1, 7):
        with pytest.raises(Problem, match="of this subscription") as caught, hub.waiting(1, 7):
            pass
        assert (caught.value.status, caught.value.code) == (429, "too_many_streams")
        with hub.waiting(1, 8):
            with pytest.raises(Problem, match="of this tenant"), hub.watching(1, "key"):
                pass
            with hub.waiting(2, 9), hub.watching(2, "key"):
                assert (hub.n_streams, hub.n_of_tenant(1), hub.n_of_tenant(2)) == (5, 3, 2)
    assert (hub.n_streams, hub.n_of_tenant(1), hub.n_rejected(1)) == (0, 0, 2)


# -- figures --------------------------------------------------------------------------------------


def test_a_tenant_sees_its_own_load_and_nobody_elses(local: Local) -> None:
    caller, other = local.caller("ours"), local.caller("theirs")
    caller.subscribe("a", "x = 1")
    caller.publish({"x": 1})
    with local.service.hub.waiting(2, 99):
        stats = caller.get("/v1/stats").json()
        assert (stats["n_streams"], stats["load"]["streams"]["n_open"]) == (0, 0)
        assert other.get("/v1/stats").json()["n_streams"] == 1
    assert set(stats["load"]) == {
        *("publish", "write", "read", "requests", "queries", "webhooks", "streams", "memory")
    }
    assert stats["load"]["write"]["n_rows"] >= 2
    assert other.get("/v1/stats").json()["load"]["write"]["n_rows"] == 0
