"""Delivers mailboxes to webhooks: in order, at least once, signed, and with retries.

One thread looks for webhooks that are due, chooses some of each tenant, and gives them to threads
that call. A call takes up to 100 entries of one mailbox. If it fails, the next one waits about
twice as long; after the last attempt the entries of that call become dead letters, and delivery
continues.

    due ─► by turns of the tenants, at most 8 calls of one tenant, 4 of one at the same host ─► call

So a tenant whose receivers never respond keeps its own threads busy, and no others.

Before the first entries go to a URL, its receiver must answer a challenge, which only somebody can
who knows the secret of this webhook: a URL of somebody else gets a challenge now and then, and
nothing that publishers have written.

`matchmill.client.signatures` signs the calls, and checks signatures and challenges for receivers.
"""

from __future__ import annotations

import logging
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from matchmill.client.signatures import SIGNATURE_HEADER, answer_challenge, sign
from matchmill.service.database.rows import SECOND, DueWebhook, Entry
from matchmill.service.database.store import Store
from matchmill.service.database.writes import Writes
from matchmill.service.group_commit import Writer
from matchmill.service.json_body import compact
from matchmill.service.metrics import Metrics
from matchmill.service.outbound import NotDelivered, post
from matchmill.service.rate_limits import RateLimits
from matchmill.service.responses import entry_text, list_text
from matchmill.service.secrets import SecretKey
from matchmill.service.settings import ServiceSettings

__all__ = ["Webhooks"]

_ENTRIES_PER_CALL = 100
_LOOK_SECONDS = 1.0  # how often to look for calls that have waited long enough
_LEAST_PAUSE = 0.01  # between two looks
_MOST_OF_TENANT = 100  # due webhooks that one look finds of one tenant
_MOST_DUE = 2_000
_CHALLENGES_PER_SECOND = 1.0  # of one tenant to one host
_CHALLENGES_AT_ONCE = 20
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
        self._lock = threading.Lock()  # of the counters
        self._of_tenant: Counter[int] = Counter()  # calls that run
        self._of_host: Counter[tuple[int, str]] = Counter()
        self._n_failed: Counter[int] = Counter()
        self._challenges = RateLimits(_CHALLENGES_PER_SECOND, _CHALLENGES_AT_ONCE)
        self._thread = threading.Thread(target=self._run, name="matchmill-webhooks", daemon=True)
        self._random = random.Random()

    def figures(self, tenant: int) -> dict[str, int]:
        """Return how many calls of a tenant run, and how many have failed."""
        with self._lock:
            return {"n_running": self._of_tenant[tenant], "n_failed": self._n_failed[tenant]}

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
            started = time.monotonic()
            try:
                n_called = self._call_due()
            except Exception:  # the thread goes on
                self._metrics.background_error("webhooks")
                logger.exception("looking for due webhooks failed; it will be tried again")
                n_called = 0
            # A look that has to go through many that are due takes a small part of the time.
            time.sleep(max(_LEAST_PAUSE, 5 * (time.monotonic() - started)) if n_called else 0.0)
            if not n_called:
                self._changed.wait(_LOOK_SECONDS)

    def _call_due(self) -> int:
        """Claim due webhooks, as many as may be called, and call them; return how many."""
        now = self._clock()
        with self._store.reading() as reading:
            due = reading.due_webhooks(now, _MOST_OF_TENANT, _MOST_DUE)
        chosen = self._chosen(due)
        if not chosen:
            return 0
        lease = now + 2 * self._settings.webhook_timeout_seconds * SECOND
        claimed: list[DueWebhook] = []
        try:
            claimed = self._writer.run(
                lambda w: [one for one in chosen if w.claim_webhook(one.number, now, lease)]
            )
        finally:
            for one in chosen:
                if one not in claimed:
                    self._count(one, -1)
        for one in claimed:
            self._callers.submit(self._call, one)
        return len(claimed)

    def _chosen(self, due: Sequence[DueWebhook]) -> list[DueWebhook]:
        """Choose as many as there are free threads; count them as running."""
        settings = self._settings
        chosen = []
        for one in due:  # the first of each tenant, the second of each, …
            with self._lock:
                is_room = (
                    self._of_tenant.total() < settings.webhook_threads
                    and self._of_tenant[one.tenant] < settings.webhook_tenant_threads
                    and self._of_host[one.tenant, _host(one)] < settings.webhook_host_threads
                )
            if is_room:
                self._count(one, 1)
                chosen.append(one)
        return chosen

    def _count(self, one: DueWebhook, change: int) -> None:
        with self._lock:
            for counter, name in ((self._of_tenant, one.tenant), (self._of_host, _place(one))):
                counter[name] += change  # type: ignore[index]
                if not counter[name]:  # type: ignore[index]
                    del counter[name]

    def _call(self, due: DueWebhook) -> None:
        try:
            self._deliver(due)
        except Exception:  # its lease runs out, and it is called again
            self._metrics.background_error("webhooks")
            logger.exception("a webhook could not be called; it will be tried again")
        finally:
            self._count(due, -1)
            self._changed.set()

    def _deliver(self, due: DueWebhook) -> None:
        number, now = due.number, self._clock()
        with self._store.reading() as reading:
            most = self._settings.max_page_size
            page = reading.page(number, 0, _ENTRIES_PER_CALL, now, most)
        if page is None:
            return
        if not page.entries:
            self._wait_for_digest(due, page.next_digest_at, now)
            return
        seqs = [entry.seq for entry in page.entries]
        try:
            if not due.is_confirmed and self._settings.webhook_challenge:
                wait = self._challenge(due, now)
                if wait:
                    later = now + int(wait * SECOND)
                    self._write(due, lambda w: w.webhook_later(number, due.n_attempts, later))
                    return
            self._post(due, self._message(due, page.entries, page.n_dropped), now)
        except NotDelivered as error:
            self._metrics.webhook_failed()
            with self._lock:
                self._n_failed[due.tenant] += 1
            self._failed(due, seqs, str(error))
            return
        self._metrics.delivered(len(seqs), "webhook")
        done = self._clock()
        self._write(due, lambda w: w.webhook_delivered(number, seqs, done))

    def _write(self, due: DueWebhook, work: Callable[[Writes], object]) -> None:
        self._writer.run(work, due.tenant)

    def _challenge(self, due: DueWebhook, now: int) -> float:
        """Have the receiver prove that it knows the secret; NotDelivered if it does not.

        Returns the seconds until it may be asked, if there were too many challenges for its host.
        """
        with self._lock:
            wait = self._challenges.wait(_place(due))
        if wait:
            return wait
        body = compact({"subscription_id": due.id, "challenge": secrets.token_urlsafe(32)}).encode()
        response = self._post(due, body, now)
        answer = answer_challenge(self._secret_key.webhook_secret(due.nonce), body)
        if answer is None or answer.encode() not in response:
            raise NotDelivered("the receiver has not answered the challenge")
        self._write(due, lambda w: w.confirm_webhook(due.number, due.nonce))
        return 0.0

    def _wait_for_digest(self, due: DueWebhook, later: int | None, now: int) -> None:
        """Nothing can be sent now; come back when a digest is complete, if there is one."""
        number, n_attempts = due.number, due.n_attempts
        if later is None:
            self._write(due, lambda w: w.webhook_delivered(number, [], now))
        else:
            self._write(due, lambda w: w.webhook_later(number, n_attempts, later))

    def _message(self, due: DueWebhook, entries: list[Entry], n_dropped: int) -> bytes:
        texts = (entry_text(entry, due.id) for entry in entries)
        more = {"subscription_id": due.id, "n_dropped": n_dropped}
        return list_text("matches", texts, more).encode()

    def _post(self, due: DueWebhook, body: bytes, now: int) -> bytes:
        secret = self._secret_key.webhook_secret(due.nonce)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "matchmill",
            SIGNATURE_HEADER: sign(secret, body, now=now // SECOND),
        }
        return post(
            due.url,
            body,
            headers,
            timeout=self._settings.webhook_timeout_seconds,
            allow_private=self._settings.allow_private_webhooks,
        ).body

    def _failed(self, due: DueWebhook, seqs: list[int], reason: str) -> None:
        number, n_attempts = due.number, due.n_attempts + 1
        now, settings = self._clock(), self._settings
        if n_attempts >= settings.webhook_attempts:
            self._write(due, lambda w: w.bury(number, seqs, n_attempts, reason, now))
            return
        wait = min(settings.webhook_backoff_seconds * 2 ** (n_attempts - 1), _LONGEST_WAIT)
        next_at = now + int(wait * self._random.uniform(0.75, 1.25) * SECOND)
        self._write(due, lambda w: w.webhook_later(number, n_attempts, next_at))


def _host(due: DueWebhook) -> str:
    return urlsplit(due.url).hostname or ""


def _place(due: DueWebhook) -> tuple[int, str]:
    return due.tenant, _host(due)
