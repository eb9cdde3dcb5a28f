"""What keeps a service from being ready: its store, its disk, its kernels, or its engines.

The store and the disk are tried when somebody asks, in a thread of their own, once for all who ask
at the same time, and not for longer than `_SECONDS`. What is shown names no host and no path.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from matchmill.errors import StoreError
from matchmill.service.database.store import Store
from matchmill.service.group_commit import Writer
from matchmill.service.tenant_engines import TenantEngines

__all__ = ["Health"]

_SECONDS = 2.0
_PROBE_NAME = "probe"

logger = logging.getLogger("matchmill.service")


class Health:
    """Asked on the event loop.

    Parameters
    ----------
    store, writer, engines
        Those of the service.
    folder
        The folder of the service, which must be writable.
    min_free_bytes
        How many bytes must be free on its disk.
    """

    def __init__(
        self,
        store: Store,
        writer: Writer,
        engines: TenantEngines,
        *,
        folder: Path,
        min_free_bytes: int,
    ) -> None:
        self._store = store
        self._writer = writer
        self._engines = engines
        self._folder = folder
        self._min_free_bytes = min_free_bytes
        self._threads = {
            name: ThreadPoolExecutor(1, thread_name_prefix=f"matchmill-probe-{name}")
            for name in ("store", "disk")
        }
        self._probing: dict[str, Future[str | None]] = {}

    async def checks(self) -> dict[str, str | None]:
        """Return for each part why it is not ready, or None."""
        store, disk = await asyncio.gather(
            self._probed("store", self._store_error), self._probed("disk", self._disk_error)
        )
        return {"store": store, "disk": disk, **self._engines.loading()}

    async def _probed(self, name: str, probe: Callable[[], str | None]) -> str | None:
        probing = self._probing.get(name)
        if probing is None or probing.done():
            probing = self._probing[name] = self._threads[name].submit(probe)
        try:
            async with asyncio.timeout(_SECONDS):
                return await asyncio.shield(asyncio.wrap_future(probing))
        except TimeoutError:
            return f"no answer within {_SECONDS:.0f} s"

    def _store_error(self) -> str | None:
        try:
            self._store.probe()
        except StoreError as error:
            logger.debug("the store cannot be read: %s", error)
            return "it cannot be read"
        if self._store.error is None:
            return None
        try:  # the last transaction failed: does one succeed now?
            self._writer.run(lambda w: w.probe())
        except StoreError as error:
            logger.debug("the store cannot be written to: %s", error)
            return "it cannot be written to"
        return None

    def _disk_error(self) -> str | None:
        path = self._folder / _PROBE_NAME
        try:
            path.write_bytes(bytes(4096))
            path.unlink()
            about = os.statvfs(self._folder)
        except OSError as error:
            logger.debug("the folder cannot be written to: %s", error)
            return "the folder cannot be written to"
        if about.f_bavail * about.f_frsize < self._min_free_bytes:
            return "too little space is free"
        return None

    def stop(self) -> None:
        """End, without waiting for a probe."""
        for thread in self._threads.values():
            thread.shutdown(wait=False, cancel_futures=True)
