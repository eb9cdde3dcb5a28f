"""Parts of the service on their own: the writer, engines, rate limits, metrics."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from matchmill.errors import DuplicateIdError, InputError, MissingDependencyError, StoreError
from matchmill.service.database.open import open_store
from matchmill.service.database.rows import NewSubscription
from matchmill.service.database.store import Store
from matchmill.service.database.writes import Writes
from matchmill.service.group_commit import Writer
from matchmill.service.metrics import Metrics
from matchmill.service.publisher import Incoming, Publisher
from matchmill.service.rate_limits import RateLimits
from matchmill.service.settings import ServiceSettings
from matchmill.service.tenant_engines import TenantEngine, TenantEngines
from matchmill.settings import Settings, list_settings
from tests.support.running_service import local_service

NOW = 1_000_000


@pytest.fixture
def store(tmp_path: Path) -> Any:
    store = open_store(tmp_path)
    with store.writing() as writing:
        assert writing.add_tenant("acme") == 1
    yield store
    store.close()


def add(store: Store, identifier: str, expression: str) -> int:
    new = NewSubscription(identifier, expression, identifier.encode(), 2 * NOW)
    with store.writing() as writing:
        return writing.subscribe(1, new, NOW, 1_000)


# -- the writer -----------------------------------------------------------------------------------


def test_what_gathers_shares_a_transaction(store: Store) -> None:
    writer = Writer(store)
    entered, leave = threading.Event(), threading.Event()

    def slow(_: Writes) -> str:
        entered.set()
        assert leave.wait(60)
        return "slow"

    first = writer.submit(slow)
    assert entered.wait(60)
    others = [writer.submit(lambda w, n=n: w.add_tenant(f"t{n}")) for n in range(20)]  # type: ignore[misc]
    leave.set()
    assert first.result() == "slow"
    assert [one.result() for one in others] == list(range(2, 22))
    writer.stop()
    assert (writer.n_transactions, writer.n_works) == (2, 21)


def test_one_that_fails_does_not_hurt_its_neighbours(store: Store) -> None:
    writer = Writer(store)
    entered, leave = threading.Event(), threading.Event()

    def slow(_: Writes) -> None:
        entered.set()
        assert leave.wait(60)

    def broken(transaction: Writes) -> None:
        transaction.add_tenant("half done")
        raise ZeroDivisionError

    def rejected(_: Writes) -> None:
        raise DuplicateIdError("taken")

    writer.submit(slow)
    assert entered.wait(60)
    before: Future[int] = writer.submit(lambda w: w.add_tenant("before"))
    bad, no = writer.submit(broken), writer.submit(rejected)
    after: Future[int] = writer.submit(lambda w: w.add_tenant("after"))
    leave.set()
    assert (before.result(), after.result()) == (2, 3)
    with pytest.raises(ZeroDivisionError):
        bad.result()
    with pytest.raises(DuplicateIdError):
        no.result()
    writer.stop()
    with store.reading() as reading:
        assert [name for _, name in reading.tenants()] == ["acme", "before", "after"]
    with pytest.raises(StoreError, match="stopping"):
        writer.submit(slow)


def test_what_was_cancelled_in_time_is_not_done(store: Store) -> None:
    """As when a server that stops gives up on a request."""
    writer = Writer(store)
    entered, leave = threading.Event(), threading.Event()

    def slow(_: Writes) -> str:
        entered.set()
        assert leave.wait(60)
        return "slow"

    first = writer.submit(slow)
    assert entered.wait(60)
    assert not first.cancel()  # too late
    gone = writer.submit(lambda w: w.add_tenant("gone"))
    there = writer.submit(lambda w: w.add_tenant("there"))
    assert gone.cancel()
    leave.set()
    assert (first.result(), there.result()) == ("slow", 2)
    writer.stop()
    with store.reading() as reading:
        assert [name for _, name in reading.tenants()] == ["acme", "there"]


def test_a_publisher_goes_on_when_a_request_is_given_up(store: Store, tmp_path: Path) -> None:
    entered, leave = threading.Event(), threading.Event()

    class Slow(TenantEngines):
        def of(self, tenant: int) -> TenantEngine:
            entered.set()
            assert leave.wait(60)
            return super().of(tenant)

    writer, engines = Writer(store), Slow(store, tmp_path / "engines", ServiceSettings())
    publisher = Publisher(
        engines, writer, lambda: NOW, ServiceSettings(), committed=lambda *_: None
    )
    first = publisher.publish(1, [Incoming("e1", {}, "{}", True)])
    assert entered.wait(60)
    given_up = publisher.publish(1, [Incoming("e2", {}, "{}", True)])
    last = publisher.publish(1, [Incoming("e3", {}, "{}", True)])
    assert given_up.cancel()
    leave.set()
    assert [len(one.result()) for one in (first, last)] == [1, 1]
    publisher.stop()
    writer.stop()
    engines.close()
    assert publisher.n_queued == 0
    with store.reading() as reading:
        assert [event.event_id for event in reading.recent_events(1, 9)] == ["e1", "e3"]


# -- engines --------------------------------------------------------------------------------------


def matched(engines: TenantEngines, **event: Any) -> list[int]:
    return sorted(engines.of(1).match([event]).numbers[0])


def test_an_engine_follows_the_log(store: Store, tmp_path: Path) -> None:
    engines = TenantEngines(store, tmp_path / "engines", ServiceSettings())
    a = add(store, "a", "x = 1")
    assert matched(engines, x=1) == [a]
    b = add(store, "b", "x = 1")
    with store.writing() as writing:
        writing.unsubscribe(a)
    assert matched(engines, x=1) == [b]
    for expression in ("x = 5", "x = 6"):
        with store.writing() as writing:
            writing.replace(b, NewSubscription("b", expression, None, 2 * NOW), NOW)
    assert (matched(engines, x=1), matched(engines, x=5), matched(engines, x=6)) == ([], [], [b])
    with store.writing() as writing:
        writing.replace(b, NewSubscription("b", "x = 1", None, 2 * NOW), NOW)
    both = engines.of(1).match([{"x": 1}, {"x": [0] * 1_000_001}, {"x": 2}])
    assert (both.numbers, list(both.rejected)) == ([[b], [], []], [1])
    engines.close()


def test_a_saved_engine_is_opened_and_catches_up(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = TenantEngines(store, tmp_path / "engines", ServiceSettings())
    numbers = [add(store, f"s{n}", f"x = {n}") for n in range(5)]
    engines.load()
    engines.close()
    with store.writing() as writing:
        writing.unsubscribe(numbers[0])
        writing.replace(numbers[3], NewSubscription("s3", "x = 33", None, 2 * NOW), NOW)
    last = add(store, "last", "x = 0")

    def not_built(*_: Any) -> None:
        raise AssertionError("it should be opened")

    monkeypatch.setattr(TenantEngine, "_built", not_built)
    again = TenantEngines(store, tmp_path / "engines", ServiceSettings())
    assert matched(again, x=0) == [last]
    assert matched(again, x=4) == [numbers[4]]
    assert (matched(again, x=3), matched(again, x=33)) == ([], [numbers[3]])
    assert again.n_subscriptions() == 5
    again.close()


@pytest.mark.parametrize("damage", ["position", "manifest", "other store", "behind"])
def test_an_engine_that_cannot_be_used_is_built_again(
    store: Store, tmp_path: Path, damage: str
) -> None:
    folder = tmp_path / "engines"
    number = add(store, "a", "x = 1")
    engines = TenantEngines(store, folder, ServiceSettings())
    engines.load()
    engines.close()
    if damage == "position":
        (folder / "1.position").write_text("{")
    elif damage == "manifest":
        (folder / "1" / "manifest.json").write_text("{}")
    elif damage == "other store":
        (folder / "1.position").write_text('{"store": "another", "position": 10}')
    else:
        add(store, "b", "x = 2")
        with store.writing() as writing:
            writing.delete_changes(1, 100)
        (folder / "1.position").write_text(f'{{"store": "{store.identity}", "position": 0}}')
    again = TenantEngines(store, folder, ServiceSettings())
    assert matched(again, x=1) == [number]
    again.close()


# -- limits, metrics, settings --------------------------------------------------------------------


def test_a_bucket_fills_again() -> None:
    now = [0.0]
    limits = RateLimits(2, 3, lambda: now[0])
    assert [limits.wait("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert limits.wait("b") == 0
    now[0] = 0.5
    assert [limits.wait("a") for _ in range(2)] == [0, 0.5]
    now[0] = 100
    assert [limits.wait("a") for _ in range(4)] == [0, 0, 0, 0.5]


def test_full_buckets_are_forgotten() -> None:
    now = [0.0]
    limits = RateLimits(1, 1, lambda: now[0])
    for n in range(10_000):
        limits.wait(n)
    now[0] = 10.0
    limits.wait("one more")
    assert len(limits._buckets) == 1


def test_labels_are_escaped() -> None:
    metrics = Metrics()
    metrics.request('a"b\\c\nd', 200)
    assert b'route="a\\"b\\\\c\\nd"' in metrics.text()


def test_settings_are_checked() -> None:
    for bad in ({"max_streams": 0}, {"max_streams": "1"}, {"allow_private_webhooks": 1}):
        with pytest.raises(InputError, match="setting"):
            ServiceSettings(**bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="did you mean 'max_streams'"):
        ServiceSettings(max_stream=1)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="at most"):
        ServiceSettings(max_ttl_seconds=10)


def test_settings_are_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guides" / "SERVICE.md").read_text()
    engine = {one.name: one for one in list_settings(Settings)}
    for one in list_settings(ServiceSettings):
        if engine.get(one.name) != one:
            assert f"| `{one.name}` | " in page
            assert f" | {one.help} |" in page


def test_settings_of_the_engine_are_settings_of_the_service(tmp_path: Path) -> None:
    """But what was stored under other limits stays."""
    with local_service(tmp_path / "s", max_expression_length=100) as local:
        caller = local.caller()
        caller.subscribe("long", "x = 1 and y != '" + "a" * 50 + "'")
    shutil.rmtree(tmp_path / "s" / "engines")
    with local_service(tmp_path / "s", max_expression_length=10, max_event_values=2) as local:
        caller = local.caller()
        answer = caller.post("/v1/subscriptions", {"expression": "x = 1 and y = 2"})
        assert (answer.status_code, answer.json()["field"]) == (400, "expression")
        assert caller.publish({"x": 1, "y": ""}) == 1
        answer = caller.post("/v1/events", {"event": {"x": [1, 2]}})
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_event")
        settings = local.service.engines.of(1).engine.settings
        assert (settings.sync, settings.max_event_values) == ("never", 2)


# -- the package ----------------------------------------------------------------------------------


def test_the_package_exports_what_it_documents() -> None:
    import matchmill.service as package

    for name in package.__all__:
        assert "Examples\n" in (getattr(package, name).__doc__ or ""), name
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="nothing"):
        _ = package.nothing


def test_a_missing_package_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    import matchmill.service as package

    def missing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")

    monkeypatch.setattr(package, "import_module", missing)
    with pytest.raises(
        MissingDependencyError, match=r"uvicorn: pip install 'matchmill\[service\]'"
    ):
        _ = package.serve
