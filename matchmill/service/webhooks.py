"""Delivers mailboxes to webhooks: in order, at least once, signed, and with retries.

One thread looks for webhooks that are due and gives them to a few threads that call. A call takes
up to 100 entries of one mailbox. If it fails, the next one waits about twice as long; after the
last attempt the entries of that call become dead letters, and delivery continues.

`matchmill.client.signatures` signs the calls, and checks signatures for receivers.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from matchmill.client.signatures import SIGNATURE_HEADER, sign
from matchmill.service.database.rows import SECOND, DueWebhook, Entry
from matchmill.service.database.store import Store
from matchmill.service.group_commit import Writer
from matchmill.service.json_body import compact
from matchmill.service.metrics import Metrics
from matchmill.service.outbound import post
from matchmill.service.responses import entry_dict
from matchmill.service.secrets import SecretKey
from matchmill.service.settings import ServiceSettings

__all__ = ["Webhooks"]

_ENTRIES_PER_CALL = 100
_LOOK_SECONDS = 1.0  # how often to look for calls that have waited long enough
_LONGEST_WAIT = 15 * 60

logger = logging.getLogger("matchmill.service")


class Webhooks:
    """Started by `start`, ended by `stop`."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        clock: Callable[[], int],
        settings: ServiceSettings,
        *,
        secret_key: SecretKey,
        metrics: Metrics,
    ) -> None:
        self._store = store
        self._writer = writer
        self._clock = clock
        self._settings = settings
        self._secret_key = secret_key
        self._metrics = metrics
        self._stopping = False
        self._changed = threading.Event()
        threads = settings.webhook_threads
        self._callers = ThreadPoolExecutor(threads, thread_name_prefix="matchmill-webhook")
        self._free = threading.Semaphore(threads)
        self._thread = threading.Thread(target=self._run, name="matchmill-webhooks", daemon=True)
        self._random = random.Random()

    def start(self) -> None:
        """Start to deliver."""
        self._thread.start()

    def wake(self) -> None:
        """Look for due webhooks now: a mailbox has something new."""
        self._changed.set()

    def stop(self) -> None:
        """Finish the calls that have begun, and end."""
        self._stopping = True
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join()
        self._callers.shutdown(wait=True)

    def _run(self) -> None:
        while not self._stopping:
            self._changed.clear()
            try:
                n_claimed = self._claim_due()
            except Exception:  # the thread goes on
                self._metrics.background_error("webhooks")
                logger.exception("looking for due webhooks failed; it will be tried again")
                n_claimed = 0
            if not n_claimed:
                self._changed.wait(_LOOK_SECONDS)

    def _claim_due(self) -> int:
        """Claim due webhooks, as many as threads are free, and call them; return how many."""
        now = self._clock()
        with self._store.reading() as reading:
            due = reading.due_webhooks(now, self._settings.webhook_threads)
        lease = now + 2 * self._settings.webhook_timeout_seconds * SECOND
        n_claimed = 0
        for one in due:
            self._free.acquire()
            if self._stopping:
                self._free.release()
                break
            is_ours = False
            try:
                is_ours = self._claimed(one.number, now, lease)
            finally:
                if not is_ours:
                    self._free.release()
            if is_ours:
                n_claimed += 1
                self._callers.submit(self._call, one)
        return n_claimed

    def _claimed(self, number: int, now: int, lease: int) -> bool:
        return self._writer.run(lambda w: w.claim_webhook(number, now, lease))

    def _call(self, due: DueWebhook) -> None:
        try:
            self._deliver(due)
        except Exception:  # its lease runs out, and it is called again
            self._metrics.background_error("webhooks")
            logger.exception("a webhook could not be called; it will be tried again")
        finally:
            self._free.release()
            self._changed.set()

    def _deliver(self, due: DueWebhook) -> None:
        number, now = due.number, self._clock()
        with self._store.reading() as reading:
            page = reading.page(number, 0, _ENTRIES_PER_CALL, now)
        if page is None:
            return
        if not page.entries:
            self._wait_for_digest(due, page.next_digest_at, now)
            return
        seqs = [entry.seq for entry in page.entries]
        try:
            self._post(due, page.entries, page.n_dropped, now)
        except OSError as error:
            self._metrics.webhook_failed()
            self._failed(due, seqs, str(error) or type(error).__name__)
            return
        self._metrics.delivered(len(seqs), "webhook")
        done = self._clock()
        self._writer.run(lambda w: w.webhook_delivered(number, seqs, done))

    def _wait_for_digest(self, due: DueWebhook, later: int | None, now: int) -> None:
        """Nothing can be sent now; come back when a digest is complete, if there is one."""
        number, n_attempts = due.number, due.n_attempts
        if later is None:
            self._writer.run(lambda w: w.webhook_delivered(number, [], now))
        else:
            self._writer.run(lambda w: w.webhook_later(number, n_attempts, later))

    def _post(self, due: DueWebhook, entries: list[Entry], n_dropped: int, now: int) -> None:
        message: dict[str, Any] = {
            "subscription_id": due.id,
            "matches": [entry_dict(entry, due.id) for entry in entries],
            "n_dropped": n_dropped,
        }
        body = compact(message).encode()
        secret = self._secret_key.webhook_secret(due.nonce)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "matchmill",
            SIGNATURE_HEADER: sign(secret, body, now=now // SECOND),
        }
        post(
            due.url,
            body,
            headers,
            timeout=self._settings.webhook_timeout_seconds,
            allow_private=self._settings.allow_private_webhooks,
        )

    def _failed(self, due: DueWebhook, seqs: list[int], reason: str) -> None:
        number, n_attempts = due.number, due.n_attempts + 1
        now, settings = self._clock(), self._settings
        if n_attempts >= settings.webhook_attempts:
            self._writer.run(lambda w: w.bury(number, seqs, n_attempts, reason, now))
            return
        wait = min(settings.webhook_backoff_seconds * 2 ** (n_attempts - 1), _LONGEST_WAIT)
        next_at = now + int(wait * self._random.uniform(0.75, 1.25) * SECOND)
        self._writer.run(lambda w: w.webhook_later(number, n_attempts, next_at))
