"""A service without its HTTP: its store, its engines, and the threads that write and match.

    Service ─► store      the truth                    ─► engines    made from it
            ─► writer     one thread, group commit     ─► publisher  two threads, slices of events
            ─► hub        readers that wait            ─► webhooks, cleanup: in the background

Other threads read, each with a connection of its own, check what was sent, or answer queries; the
event loop never waits for a disk. Tenants take turns at all of these (`fair_pool.py`). Tenant 0 is
the service itself, and whoever is not known yet.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from matchmill.errors import FolderInUseError, MatchmillError, StoreError
from matchmill.service.clock import ClockSource, SteadyClock, SystemClock, system_clock
from matchmill.service.database.open import open_store
from matchmill.service.database.reads import Reads
from matchmill.service.database.rows import Published
from matchmill.service.database.writes import Writes
from matchmill.service.fair_pool import FairPool
from matchmill.service.group_commit import Writer
from matchmill.service.health import Health
from matchmill.service.hub import Hub
from matchmill.service.json_body import iso
from matchmill.service.metrics import Metrics
from matchmill.service.private_folder import make_private
from matchmill.service.problems import Problem
from matchmill.service.publisher import Incoming, Publisher
from matchmill.service.rate_limits import BytesInMemory, RateLimits
from matchmill.service.responses import with_event
from matchmill.service.retention import Cleanup
from matchmill.service.secrets import SECRET_NAME, SecretKey
from matchmill.service.settings import ServiceSettings
from matchmill.service.tenant_engines import TenantEngines
from matchmill.service.webhooks import Webhooks
from matchmill.storage.folder_lock import FolderLock

__all__ = ["Service", "system_clock"]

logger = logging.getLogger("matchmill.service")

T = TypeVar("T")
_READERS = 4  # threads; of one tenant half of them
_WORKERS = 4  # threads that read requests and write responses; of one tenant one
_QUERIERS = 2  # threads for queries that take long; of one tenant one
_MOST_WAITING = 1_000  # reads, or bodies, of one tenant
_KEY_SECONDS = 1.0  # how often to look whether keys of open streams are revoked
_RETRY_SECONDS = 0.5  # between attempts to load
_MOST_SHOWN = 100  # subscriptions of one live match


class Service:
    """A service on a folder, without its HTTP.

    Parameters
    ----------
    folder
        Where the store, the secret key and the engines are; made if it does not exist.
    settings
        Limits and times; by default those of `ServiceSettings()`.
    store_url
        ``postgresql://…`` for a store that several processes share; by default a file in the
        folder.
    secret_file
        The key that tickets and API keys are hashed with; by default ``secret`` in the folder,
        made if it does not exist.
    clock
        The clocks of the machine; others are for tests.

    Raises
    ------
    FolderInUseError
        If another process serves from the folder.
    StoreError
        If the store cannot be used, or was made with another secret key.

    Examples
    --------
    >>> from matchmill.service import Service, make_app
    >>> app = make_app(Service("alerts"))  # doctest: +SKIP
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        settings: ServiceSettings | None = None,
        *,
        store_url: str | None = None,
        secret_file: str | PathLike[str] | None = None,
        clock: ClockSource | None = None,
    ) -> None:
        folder = Path(folder)
        settings = ServiceSettings() if settings is None else settings
        make_private(folder)
        self.settings = settings
        self._folder = folder
        self.clock = SteadyClock(SystemClock() if clock is None else clock)
        try:
            self._lock = FolderLock(folder)
        except FolderInUseError as error:
            raise FolderInUseError(
                f"{folder} is being served already; processes that share a store in PostgreSQL"
                " need a folder each"
            ) from error
        with ExitStack() as undo:
            undo.callback(self._lock.release)
            self.secret_key = SecretKey.read(Path(secret_file or folder / SECRET_NAME))
            self.store = open_store(folder, store_url, wait_seconds=settings.store_timeout_seconds)
            undo.callback(self.store.close)
            self.store.check_secret(self.secret_key.fingerprint)
            undo.pop_all()
        self.metrics = Metrics()
        self.limits = RateLimits(settings.requests_per_second, settings.request_burst)
        self.ticket_limits = RateLimits(settings.ticket_requests_per_second, settings.ticket_burst)
        self.bytes = BytesInMemory(settings.max_tenant_bytes)
        self.hub = Hub(
            settings.max_streams,
            settings.max_live,
            most_of_tenant=settings.max_tenant_streams,
            most_of_subscription=settings.max_subscription_streams,
        )
        self.engines = TenantEngines(self.store, folder / "engines", settings)
        most = _MOST_WAITING
        self.readers = FairPool("reads", _READERS, most_running=_READERS // 2, most_queued=most)
        self.workers = FairPool("requests", _WORKERS, most_running=1, most_queued=most)
        self.queriers = FairPool(
            "queries", _QUERIERS, most_running=1, most_queued=settings.max_tenant_queries
        )
        self.is_ready = False
        self.failure: BaseException | None = None

    async def start(self) -> None:
        """Start all threads, in the event loop that serves.

        `is_ready` is true when all engines are loaded.

        Examples
        --------
        >>> await service.start()  # doctest: +SKIP
        """
        self._loop = asyncio.get_running_loop()
        self.writer = Writer(self.store)
        self.publisher = Publisher(
            self.engines,
            self.writer,
            self.clock,
            self.settings,
            committed=self._committed,
        )
        self.webhooks = Webhooks(
            self.store,
            self.writer,
            self.clock,
            self.settings,
            secret_key=self.secret_key,
            metrics=self.metrics,
        )
        self.health = Health(
            self.store,
            self.writer,
            self.engines,
            folder=self._folder,
            min_free_bytes=self.settings.min_free_bytes,
        )
        self.cleanup = Cleanup(
            self.store, self.engines, self.writer, self.clock, self.settings, self.metrics
        )
        self._show_gauges()
        self._stop_listening = self.store.listen(self._heard)
        self._loading = asyncio.create_task(self._load())
        self._watching_keys = asyncio.create_task(self._watch_keys())

    def _show_gauges(self) -> None:
        gauge = self.metrics.gauge
        gauge("ready", "1 if all subscriptions are loaded.", lambda: float(self.is_ready))
        gauge("subscriptions", "Subscriptions in engines.", self.engines.n_subscriptions)
        gauge("queued_events", "Events to match or store.", lambda: self.publisher.n_queued)
        gauge("streams", "Open streams and long polls.", lambda: self.hub.n_streams)
        gauge("transactions", "Transactions committed.", lambda: self.writer.n_transactions)
        gauge("transaction_works", "Changes in them.", lambda: self.writer.n_works)

    async def _load(self) -> None:
        while not self.hub.is_stopping:
            try:
                await self.work(self.engines.load)
                break
            except StoreError as error:
                logger.warning("loading is tried again: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)
            except Exception as error:  # reported by /readyz, and raised when the service stops
                logger.exception("the engines cannot be made")
                self.failure = error
                return
        else:
            return
        self.engines.follow()
        self.webhooks.start()
        self.cleanup.start()
        self.is_ready = True

    def end_soon(self) -> None:
        """Let nothing wait for the store beyond `shutdown_seconds`, from now on.

        Examples
        --------
        >>> service.end_soon()  # doctest: +SKIP
        """
        self.store.end_by(time.monotonic() + self.settings.shutdown_seconds)

    async def stop(self) -> None:
        """Finish what was accepted, and end.

        Raises
        ------
        Exception
            What kept the engines from being loaded, if they were not.

        Examples
        --------
        >>> await service.stop()  # doctest: +SKIP
        """
        self.hub.stop()
        self._watching_keys.cancel()
        self.end_soon()
        self.engines.stop()
        await self._loading
        await asyncio.to_thread(self._stop_threads)
        if self.failure is not None:
            raise self.failure

    def _stop_threads(self) -> None:
        self.health.stop()
        self._stop_listening()
        self.cleanup.stop()
        self.webhooks.stop()
        self.publisher.stop()
        self.writer.stop()
        self.readers.stop()
        self.workers.stop()
        self.queriers.stop()
        self.engines.close()
        self.store.close()
        self._lock.release()

    # -- for requests -----------------------------------------------------------------------------

    async def read(self, question: Callable[[Reads], T], tenant: int = 0) -> T:
        """Read from the store, off the event loop.

        Parameters
        ----------
        question
            Called with a reader, in a thread that has a connection.
        tenant
            Whose turn it takes.

        Examples
        --------
        >>> await service.read(lambda reads: reads.tenants())  # doctest: +SKIP
        """
        future = self.readers.submit(tenant, lambda: self.read_now(question))
        return await asyncio.wrap_future(future)

    def read_now(self, question: Callable[[Reads], T]) -> T:
        """Read from the store, in a thread that may wait.

        Parameters
        ----------
        question
            Called with a reader, in this thread.

        Examples
        --------
        >>> service.read_now(lambda reads: reads.tenants())  # doctest: +SKIP
        """
        with self.store.reading() as reading:
            return question(reading)

    async def write(self, work: Callable[[Writes], T], tenant: int = 0, n_rows: int = 1) -> T:
        """Change the store; return when that is committed.

        Parameters
        ----------
        work
            Called in a transaction, together with the work of other requests.
        tenant
            Whose turn it takes.
        n_rows
            About how many rows it writes.

        Examples
        --------
        >>> await service.write(lambda writes: writes.add_tenant("acme"))  # doctest: +SKIP
        """
        return await asyncio.wrap_future(self.writer.submit(work, tenant, n_rows))

    async def work(self, task: Callable[[], T], tenant: int = 0) -> T:
        """Read a request, or write a response, off the event loop.

        Parameters
        ----------
        task
            Called in one of a few threads.
        tenant
            Whose turn it takes.

        Examples
        --------
        >>> await service.work(lambda: service.engines.of(1))  # doctest: +SKIP
        """
        return await asyncio.wrap_future(self.workers.submit(tenant, task))

    async def query(self, task: Callable[[], T], tenant: int) -> T:
        """Do something that may take seconds, off the event loop.

        Parameters
        ----------
        task
            Called in one of a few threads, none of which others need to subscribe or publish.
        tenant
            Whose turn it takes.

        Examples
        --------
        >>> await service.query(lambda: service.engines.of(1), 1)  # doctest: +SKIP
        """
        return await asyncio.wrap_future(self.queriers.submit(tenant, task))

    def load_of(self, tenant: int) -> dict[str, Any]:
        """Return what a tenant has waiting, has used, and was denied.

        Parameters
        ----------
        tenant
            The number of the tenant.

        Examples
        --------
        >>> service.load_of(1)["streams"]["n_open"]  # doctest: +SKIP
        """
        hub, held = self.hub, self.bytes
        return {
            "publish": self.publisher.figures(tenant),
            "write": self.writer.figures(tenant),
            "read": self.readers.figures(tenant),
            "requests": self.workers.figures(tenant),
            "queries": self.queriers.figures(tenant),
            "webhooks": self.webhooks.figures(tenant),
            "streams": {"n_open": hub.n_of_tenant(tenant), "n_rejected": hub.n_rejected(tenant)},
            "memory": {"n_bytes": held.of(tenant), "n_rejected": held.n_rejected(tenant)},
        }

    # -- revoked keys -----------------------------------------------------------------------------

    async def _watch_keys(self) -> None:
        """End streams whose key was revoked, by whichever process."""
        while True:
            await asyncio.sleep(_KEY_SECONDS)
            for tenant in self.hub.watched_tenants():
                try:
                    await self.end_revoked(tenant)
                except (MatchmillError, Problem):  # it is tried again in a second
                    self.metrics.background_error("keys")

    async def end_revoked(self, tenant: int) -> None:
        """End the streams of a tenant whose key was revoked.

        Parameters
        ----------
        tenant
            The number of the tenant.

        Examples
        --------
        >>> await service.end_revoked(1)  # doctest: +SKIP
        """
        keys = await self.read(lambda r: r.keys(tenant))
        self.hub.keep_keys(tenant, {key.key_id for key in keys})

    # -- who is woken -----------------------------------------------------------------------------

    def _heard(self, numbers: list[int]) -> None:
        """Wake who waits for subscriptions that another process changed; an empty list is all."""
        wake = self.hub.wake_all if not numbers else lambda: self.hub.wake(numbers)
        self._loop.call_soon_threadsafe(wake)
        self.webhooks.wake()

    def _committed(self, tenant: int, pairs: list[tuple[Incoming, Published]], now: int) -> None:
        """Wake who waits for matches that were stored; called in the writer's thread."""
        numbers = {receiver.number for _, one in pairs for receiver in one.receivers}
        if not numbers:
            return
        items = _live_items(pairs, now) if self.hub.is_watched(tenant) else []
        self._loop.call_soon_threadsafe(self._tell, tenant, numbers, items)
        if any(receiver.has_webhook for _, one in pairs for receiver in one.receivers):
            self.webhooks.wake()

    def _tell(self, tenant: int, numbers: set[int], items: list[str]) -> None:
        self.hub.wake(numbers)
        self.hub.show(tenant, items)

    def subscription_changed(self, number: int) -> None:
        """Wake those who wait for a subscription; called on the event loop.

        Parameters
        ----------
        number
            The number of the subscription.

        Examples
        --------
        >>> service.subscription_changed(7)  # doctest: +SKIP
        """
        self.hub.wake([number])


def _live_items(pairs: list[tuple[Incoming, Published]], now: int) -> list[str]:
    return [
        with_event(
            {"event_id": one.event_id},
            incoming.body,
            {
                "matched_at": iso(now),
                "n_matches": one.n_matches,
                "subscription_ids": sorted(receiver.id for receiver in one.receivers)[:_MOST_SHOWN],
            },
        )
        for incoming, one in pairs
    ]
