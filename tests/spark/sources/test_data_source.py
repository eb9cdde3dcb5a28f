"""The format "matchmill": saved engines, with changes and without, and a mailbox."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import matchmill as mm
from matchmill import spark as ms
from matchmill.client import Client
from matchmill.errors import FolderError, InputError, MatchmillError, ServiceError
from matchmill.spark import register_source
from matchmill.spark.sources.data_source import MatchmillSource
from matchmill.spark.sources.mailbox import Mailbox
from matchmill.spark.sources.saved_subscriptions import read_part, saved_parts
from tests.support.running_service import new_key, running

# -- saved engines --------------------------------------------------------------------------------


def rows_of_folder(path: Path, n_parts: int = 3) -> dict[Any, str]:
    batches = [b for part in saved_parts(str(path), n_parts).parts for b in read_part(part)]
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert len({row["subscription_id"] for row in rows}) == len(rows)
    return {row["subscription_id"]: row["expression"] for row in rows}


def contents(engine: mm.Engine) -> dict[Any, str]:
    return {i: engine[i].expression for i in engine}


def test_a_folder_with_a_log_is_read_as_it_is_now(tmp_path: Path) -> None:
    folder = tmp_path / "alerts.mill"
    with mm.Engine.open(folder, create=True) as engine:
        assert rows_of_folder(folder) == {}
        engine.subscribe_many({f"u{n}": f"x = {n}" for n in range(100)})
        engine.unsubscribe("u5")
        assert rows_of_folder(folder) == contents(engine)  # all of it is in the log
        engine.save()
        assert rows_of_folder(folder) == contents(engine)
        engine.subscribe("u7", "y = 'changed'", replace=True)
        engine.subscribe("new", "z is null")
        engine.unsubscribe("u8")
        engine.subscribe("u5", "back")
        assert rows_of_folder(folder) == contents(engine)
        assert rows_of_folder(folder)["u7"] == "y = 'changed'"


def test_a_folder_that_is_saved_again_meanwhile_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "alerts.mill"
    engine = mm.Engine()
    engine.subscribe_many({n: f"x = {n}" for n in range(10)})
    engine.save(folder)
    planned = saved_parts(str(folder), 2)
    assert planned.has_integer_ids
    engine.subscribe(10, "x = 10")
    engine.save(folder)
    with pytest.raises(FolderError, match="replaced while it was read"):
        list(read_part(planned.parts[0]))
    with pytest.raises(FolderError, match=r"neither manifest\.json .* nor current\.json"):
        saved_parts(str(tmp_path), 2)


@pytest.mark.slow
def test_a_published_index_is_read_shard_by_shard(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(10).selectExpr("id as subscription_id", "'x = ' || id as expression")
    index = ms.build(rows, tmp_path / "i", shards=2)
    folder = tmp_path / "i"
    planned = saved_parts(str(folder), 9)
    assert planned.has_integer_ids
    assert len(planned.parts) == 2
    assert rows_of_folder(folder) == {n: f"x = {n}" for n in range(10)}
    version = folder / "versions" / index.version
    shutil.rmtree(version / index.manifest.shards[1].folder)
    with pytest.raises(FolderError, match="replaced while it was read"):
        list(read_part(planned.parts[1]))
    (version / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(FolderError, match="not a manifest"):
        saved_parts(str(folder), 9)


@pytest.mark.slow
def test_spark_reads_a_folder(spark: Any, tmp_path: Path) -> None:
    register_source(spark)
    for ids in ([f"u{n}" for n in range(1000)], list(range(1000))):
        folder = tmp_path / f"{ids[0]}.mill"
        engine = mm.Engine()
        engine.subscribe_many([(i, f"x = {n} and y > 1") for n, i in enumerate(ids)])
        engine.save(folder)
        df = spark.read.format("matchmill").option("partitions", 3).load(str(folder))
        assert dict(df.dtypes)["subscription_id"] == ("bigint" if ids[0] == 0 else "string")
        assert {tuple(row) for row in df.collect()} == {*contents(engine).items()}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "option\\('url', …\\)"),
        ({"url": "http://x"}, "needs option\\('subscription_id'"),
        ({"url": "http://x", "subscription_id": "u", "ticket": "t", "limit": "0"}, "limit must be"),
        (
            {"url": "http://x", "subscription_id": "u", "ticket": "t", "after": "-1"},
            "after must be",
        ),
        ({"path": "x", "partitions": "none"}, "partitions must be"),
    ],
)
def test_bad_options_are_named(options: dict[str, str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        MatchmillSource(options).reader(None)


def test_a_folder_is_no_stream() -> None:
    with pytest.raises(InputError, match="only a service"):
        MatchmillSource({"path": "x"}).simpleStreamReader(None)


# -- a service ------------------------------------------------------------------------------------


class Service(ThreadingHTTPServer):
    """A mailbox of one subscription, as the service has it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.waits: set[int] = set()
        self.matches: list[dict[str, Any]] = []
        self.acknowledged: list[int] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def publish(self, n: int) -> None:
        with self.lock:
            for _ in range(n):
                seq = len(self.matches) + 1
                event = {"seq": seq, "event_id": f"e{seq}", "event": {"x": seq}}
                self.matches.append({**event, "matched_at": "2026-01-01T00:00:00Z"})


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if not self._may(address.path, "/v1/subscriptions/u%2F1/matches"):
            return
        asked = {name: int(values[0]) for name, values in parse_qs(address.query).items()}
        self.server.waits.add(asked["wait"])
        with self.server.lock:
            found = [m for m in self.server.matches if m["seq"] > asked["after"]]
        found = found[: asked["limit"]]
        after = found[-1]["seq"] if found else asked["after"]
        self._answer(200, {"matches": found, "next": after})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._may(self.path, "/v1/subscriptions/u%2F1/ack"):
            self.server.acknowledged.append(body["up_to"])
            self._answer(200, {})

    def _may(self, path: str, wanted: str) -> bool:
        if path != wanted:
            self._answer(404, {"error": "no such subscription"})
        elif self.headers["Matchmill-Ticket"] != "secret":
            self._answer(401, {"error": "wrong ticket"})
        else:
            return True
        return False

    def _answer(self, code: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Requests of a test are not worth a line."""


@pytest.fixture
def service() -> Iterator[Service]:
    server = Service()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_mailbox_is_read_page_by_page(service: Service) -> None:
    service.publish(7)
    mailbox = Mailbox(service.url, "u/1", "secret", 3)
    assert [m.seq for m in mailbox.matches_until(2, None)] == [3, 4, 5, 6, 7]
    assert [m.seq for m in mailbox.matches_until(1, 4)] == [2, 3, 4]
    assert mailbox.matches(6)[0].event == '{"x":7}'


def test_errors_of_the_service_are_those_of_the_client(service: Service) -> None:
    with pytest.raises(ServiceError) as caught:
        Mailbox(service.url, "u/1", "guess", 3).matches(0)
    assert caught.value.status == 401
    with pytest.raises(MatchmillError):
        Mailbox(service.url, "u2", "secret", 3).acknowledge(1)
    with pytest.raises(ServiceError, match=r"http://127\.0\.0\.1:9 does not respond"):
        Mailbox("http://127.0.0.1:9", "u2", "secret", 3).matches(0)


@pytest.mark.slow
def test_batches_and_streams(spark: Any, service: Service, tmp_path: Path) -> None:
    """A stream that is stopped goes on from its checkpoint; what is committed is acknowledged."""
    register_source(spark)
    service.publish(5)
    options = {"url": service.url, "subscription_id": "u/1", "ticket": "secret", "limit": "4"}
    batch = spark.read.format("matchmill").options(**options).load()
    assert [row["seq"] for row in batch.collect()] == [1, 2, 3, 4, 5]
    assert service.acknowledged == []

    def run_until(n_rows: int) -> None:
        stream = spark.readStream.format("matchmill").options(**options).load()
        query = (
            stream.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start(str(tmp_path / "out"))
        )
        try:
            while seqs().count() < n_rows:
                assert query.exception() is None
                query.awaitTermination(0.2)
        finally:
            query.stop()

    def seqs() -> Any:
        return spark.read.schema("seq bigint").parquet(str(tmp_path / "out"))

    (tmp_path / "out").mkdir()
    run_until(5)
    service.publish(6)
    run_until(11)
    assert sorted(row["seq"] for row in seqs().collect()) == list(range(1, 12))
    assert service.acknowledged == sorted(service.acknowledged)
    assert max(service.acknowledged) >= 4
    assert service.waits == {0, 1}  # a batch does not wait, a stream does


@pytest.mark.slow
def test_a_real_service(spark: Any, tmp_path: Path) -> None:
    """`matchmill serve` in a process of its own: what it matched is a table, and a stream that goes
    on where it was stopped; what the stream has written down leaves the mailbox."""
    register_source(spark)
    with (
        running(tmp_path / "served") as server,
        Client(server.address, key=new_key(tmp_path / "served")) as client,
    ):
        made = client.subscribe("price < 10 and place = 'Rome'", id="a b?#")
        other = client.subscribe("price < 0")
        prices = [3, 30, 4, 50, 5]
        for price in prices:
            client.publish({"price": price, "place": "Rome"})
        options = {"url": server.address, "subscription_id": made.id, "ticket": made.ticket}
        reader = spark.read.format("matchmill").options(**options)
        rows = reader.load().collect()
        assert [json.loads(row["event"])["price"] for row in rows] == [3, 4, 5]
        seqs = [row["seq"] for row in rows]
        assert seqs == sorted(set(seqs))
        empty = {**options, "subscription_id": other.id, "ticket": other.ticket}
        assert spark.read.format("matchmill").options(**empty).load().count() == 0
        wrong = {**options, "ticket": other.ticket}
        with pytest.raises(MatchmillError, match="ticket"), ms.plain_errors():
            spark.read.format("matchmill").options(**wrong).load().collect()

        for n_rows, later in ((3, 6), (4, 7), (5, None)):
            _stream_until(spark, options, tmp_path, n_rows)
            if later is not None:
                client.publish({"price": later, "place": "Rome"})
        written = spark.read.parquet(str(tmp_path / "stream")).collect()
        assert sorted(json.loads(row["event"])["price"] for row in written) == [3, 4, 5, 6, 7]
        assert reader.load().count() < 5


def _stream_until(spark: Any, options: dict[str, str], folder: Path, n_rows: int) -> None:
    (folder / "stream").mkdir(exist_ok=True)
    stream = spark.readStream.format("matchmill").options(**options).load()
    writer = stream.writeStream.option("checkpointLocation", str(folder / "marks"))
    query = writer.format("parquet").start(str(folder / "stream"))
    try:
        while spark.read.schema("seq bigint").parquet(str(folder / "stream")).count() < n_rows:
            assert query.exception() is None
            query.awaitTermination(0.2)
    finally:
        query.stop()
