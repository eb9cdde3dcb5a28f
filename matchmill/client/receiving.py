"""The order in which a mailbox is read and acknowledged, once for both clients."""

from __future__ import annotations

from collections.abc import Iterator

from matchmill.client import responses
from matchmill.client.messages import ServerEvent
from matchmill.client.responses import Digest, Dropped, MailboxPage, Match, Received

__all__ = ["MailboxReader", "live_items"]


class MailboxReader:
    """Knows what was read, what was processed, and what is to be acknowledged.

    A match counts as processed when the next one is asked for. With `every=100` a hundred are
    acknowledged at a time, with 0 none.
    """

    def __init__(self, after: int, every: int) -> None:
        self.after = after
        self._every = every
        self._n_unacknowledged = 0
        self._n_dropped = 0

    def items(self, page: MailboxPage) -> Iterator[Received]:
        """Yield what a page holds; what was yielded is processed when the next one is asked for."""
        if page.n_dropped > self._n_dropped:
            n_new = page.n_dropped - self._n_dropped
            self._n_dropped = page.n_dropped
            yield Dropped(n_new)
        yield from page.entries

    def processed(self, item: Received) -> bool:
        """Note that an item is processed; return whether it is time to acknowledge."""
        if isinstance(item, Match | Digest):
            self.after = item.seq
            self._n_unacknowledged += 1
        return bool(self._every) and self._n_unacknowledged >= self._every

    @property
    def is_due(self) -> bool:
        """Whether something is processed that was not acknowledged."""
        return bool(self._every) and self._n_unacknowledged > 0

    def acknowledged(self) -> None:
        """Note that everything processed was acknowledged."""
        self._n_unacknowledged = 0


def live_items(event: ServerEvent) -> Iterator[Match | Dropped]:
    """Read one event of the live stream."""
    if event.name == "match":
        yield from responses.live_matches(event.value)
    elif event.name == "dropped":
        yield Dropped(event.value["n_dropped"])
