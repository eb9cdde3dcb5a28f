"""A service without its HTTP: its store, its engines, and the threads that write and match.

    Service ─► store      the truth                    ─► engines    made from it
            ─► writer     one thread, group commit     ─► publisher  one thread, batches of events
            ─► hub        readers that wait            ─► webhooks, cleanup: in the background

A few threads read, each with a connection of its own, and others do longer work; the event loop
never waits for a disk.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from matchmill.errors import FolderInUseError, StoreError
from matchmill.service.clock import ClockSource, SteadyClock, SystemClock, system_clock
from matchmill.service.database.open import open_store
from matchmill.service.database.reads import Reads
from matchmill.service.database.rows import Published
from matchmill.service.database.writes import Writes
from matchmill.service.group_commit import Writer
from matchmill.service.health import Health
from matchmill.service.hub import Hub
from matchmill.service.json_body import iso
from matchmill.service.metrics import Metrics
from matchmill.service.private_folder import make_private
from matchmill.service.publisher import Incoming, Publisher
from matchmill.service.rate_limits import RateLimits
from matchmill.service.retention import Cleanup
from matchmill.service.secrets import SECRET_NAME, SecretKey
from matchmill.service.settings import ServiceSettings
from matchmill.service.tenant_engines import TenantEngines
from matchmill.service.webhooks import Webhooks
from matchmill.storage.folder_lock import FolderLock

__all__ = ["Service", "system_clock"]

logger = logging.getLogger("matchmill.service")

T = TypeVar("T")
_READERS = 4
_WORKERS = 2  # for longer work, so that reads do not wait for it
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
        self.hub = Hub(settings.max_streams, settings.max_live)
        self.engines = TenantEngines(self.store, folder / "engines", settings)
        self.readers = ThreadPoolExecutor(_READERS, thread_name_prefix="matchmill-read")
        self.workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="matchmill-work")
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
            mailbox_limit=self.settings.max_mailbox,
            most_queued=self.settings.max_queued_events,
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
        self.cleanup = Cleanup(self.engines, self.writer, self.clock, self.settings, self.metrics)
        self._show_gauges()
        self._stop_listening = self.store.listen(self._heard)
        self._loading = asyncio.create_task(self._load())

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
        self.readers.shutdown()
        self.workers.shutdown()
        self.engines.close()
        self.store.close()
        self._lock.release()

    # -- for requests -----------------------------------------------------------------------------

    async def read(self, question: Callable[[Reads], T]) -> T:
        """Read from the store, off the event loop.

        Parameters
        ----------
        question
            Called with a reader, in a thread that has a connection.

        Examples
        --------
        >>> await service.read(lambda reads: reads.tenants())  # doctest: +SKIP
        """
        return await self._loop.run_in_executor(self.readers, self.read_now, question)

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

    async def write(self, work: Callable[[Writes], T]) -> T:
        """Change the store; return when that is committed.

        Parameters
        ----------
        work
            Called in a transaction, together with the work of other requests.

        Examples
        --------
        >>> await service.write(lambda writes: writes.add_tenant("acme"))  # doctest: +SKIP
        """
        return await asyncio.wrap_future(self.writer.submit(work))

    async def work(self, task: Callable[[], T]) -> T:
        """Do something that takes a while, off the event loop.

        Parameters
        ----------
        task
            Called in one of a few threads.

        Examples
        --------
        >>> await service.work(lambda: service.engines.of(1))  # doctest: +SKIP
        """
        return await self._loop.run_in_executor(self.workers, task)

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

    def _tell(self, tenant: int, numbers: set[int], items: list[dict[str, Any]]) -> None:
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


def _live_items(pairs: list[tuple[Incoming, Published]], now: int) -> list[dict[str, Any]]:
    return [
        {
            "event_id": one.event_id,
            "event": incoming.event,
            "matched_at": iso(now),
            "n_matches": one.n_matches,
            "subscription_ids": sorted(receiver.id for receiver in one.receivers)[:_MOST_SHOWN],
        }
        for incoming, one in pairs
    ]
