"""Delivers mailboxes to webhooks: in order, at least once, signed, with patience.

One thread looks for webhooks that are due and hands them to a few that call. A call takes up to 100
entries of one mailbox. If it fails, the next one waits twice as long, more or less; after the last
one the entries of that call become dead letters, and the mailbox goes on.

    Matchmill-Signature: t=1700000000,v1=HMAC-SHA256(secret, t + "." + body) in hexadecimal
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from matchmill.service.database.interface import SECOND, DueWebhook
from matchmill.service.json_body import compact
from matchmill.service.outbound import post
from matchmill.service.responses import entry_dict

if TYPE_CHECKING:
    from matchmill.service.service import Service

__all__ = ["Webhooks", "signature"]

_ENTRIES_A_CALL = 100
_LOOK_SECONDS = 1.0  # for what became due by waiting
_LONGEST_WAIT = 15 * 60

logger = logging.getLogger("matchmill.service")


def signature(secret: str, body: bytes, second: int) -> str:
    """The value of the header that says who sent a message, and when."""
    signed = hmac.new(secret.encode(), b"%d.%b" % (second, body), hashlib.sha256)
    return f"t={second},v1={signed.hexdigest()}"


class Webhooks:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._stopping = False
        self._changed = threading.Event()
        threads = service.settings.webhook_threads
        self._callers = ThreadPoolExecutor(threads, thread_name_prefix="matchmill-webhook")
        self._free = threading.Semaphore(threads)
        self._thread = threading.Thread(target=self._run, name="matchmill-webhooks", daemon=True)
        self._random = random.Random()

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """There is something new in a mailbox with a webhook."""
        self._changed.set()

    def stop(self) -> None:
        self._stopping = True
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join()
        self._callers.shutdown(wait=True)

    def _run(self) -> None:
        while not self._stopping:
            self._changed.clear()
            try:
                n_claimed = self._hand_out()
            except Exception:
                self._service.metrics.count("matchmill_background_errors_total", kind="webhooks")
                logger.exception("looking for due webhooks failed; it will be tried again")
                n_claimed = 0
            if not n_claimed:
                self._changed.wait(_LOOK_SECONDS)

    def _hand_out(self) -> int:
        """Claim what is due, as many as there are threads free; returns how many."""
        service = self._service
        now = service.clock()
        most = service.settings.webhook_threads
        due = service.read_now(lambda reading: reading.due_webhooks(now, most))
        lease = now + 2 * service.settings.webhook_timeout_seconds * SECOND
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
        claim = self._service.writer.submit(lambda w: w.claim_webhook(number, now, lease))
        return claim.result()

    def _call(self, due: DueWebhook) -> None:
        try:
            self._deliver(due)
        except Exception:
            self._service.metrics.count("matchmill_background_errors_total", kind="webhooks")
            logger.exception("a webhook could not be served; its lease ends by itself")
        finally:
            self._free.release()
            self._changed.set()

    def _deliver(self, due: DueWebhook) -> None:
        service, number = self._service, due.number
        now = service.clock()
        page = service.read_now(lambda reading: reading.page(number, 0, _ENTRIES_A_CALL, now))
        if page is None:
            return
        if not page.entries:
            later = page.next_digest_at
            if later is None:
                service.writer.submit(lambda w: w.webhook_delivered(number, [], now)).result()
            else:
                n = due.n_attempts
                service.writer.submit(lambda w: w.webhook_later(number, n, later)).result()
            return
        seqs = [entry.seq for entry in page.entries]
        message = {
            "subscription_id": due.id,
            "matches": [entry_dict(entry, due.id) for entry in page.entries],
            "n_dropped": page.n_dropped,
        }
        try:
            self._post(due, message, now)
        except OSError as error:
            service.metrics.count("matchmill_webhook_failures_total")
            self._failed(due, seqs, str(error) or type(error).__name__)
            return
        service.metrics.count("matchmill_deliveries_total", len(seqs), way="webhook")
        done = service.clock()
        service.writer.submit(lambda w: w.webhook_delivered(number, seqs, done)).result()

    def _post(self, due: DueWebhook, message: dict[str, Any], now: int) -> None:
        body = compact(message).encode()
        settings = self._service.settings
        secret = self._service.secret_key.webhook_secret(due.nonce)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "matchmill",
            "Matchmill-Signature": signature(secret, body, now // SECOND),
        }
        post(
            due.url,
            body,
            headers,
            timeout=settings.webhook_timeout_seconds,
            allow_private=settings.allow_private_webhooks,
        )

    def _failed(self, due: DueWebhook, seqs: list[int], reason: str) -> None:
        service, number, n_attempts = self._service, due.number, due.n_attempts + 1
        now = service.clock()
        if n_attempts >= service.settings.webhook_attempts:
            service.writer.submit(lambda w: w.bury(number, seqs, n_attempts, reason, now)).result()
            return
        wait = min(service.settings.webhook_backoff_seconds * 2 ** (n_attempts - 1), _LONGEST_WAIT)
        next_at = now + int(wait * self._random.uniform(0.75, 1.25) * SECOND)
        service.writer.submit(lambda w: w.webhook_later(number, n_attempts, next_at)).result()
