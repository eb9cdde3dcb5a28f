"""A subscription's mailbox at a live service: matches in order of `seq`, acknowledged.

GET  /v1/subscriptions/{id}/matches?after=&limit=&wait=   {"matches": [{"seq", …}], …}
POST /v1/subscriptions/{id}/acknowledge                   {"up_to": seq}

The client's transport sends the requests; here are the columns and the options.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from matchmill.client.transport import Transport
from matchmill.errors import InputError, MatchmillError

__all__ = ["MATCH_SCHEMA", "Mailbox", "Match", "mailbox_of"]

MATCH_SCHEMA = "seq bigint, event_id string, event string, matched_at string"
_SECONDS = 60  # for a response, beyond what the service was asked to wait
_RETRIES = 2


class Match(NamedTuple):
    """One row of the table; `event` is JSON, `matched_at` as the service writes it."""

    seq: int
    event_id: str | None
    event: str
    matched_at: str | None


class Mailbox(NamedTuple):
    """Where the matches of one subscription are read from."""

    url: str
    subscription_id: str
    ticket: str
    limit: int  # matches per response
    wait: int = 0  # seconds that a stream lets the service wait for a match

    def matches(self, after: int, wait: int = 0) -> list[Match]:
        """Read at most `limit` matches behind `after`; the service may wait for the first."""
        asked = {"after": after, "limit": self.limit, "wait": wait}
        response = self._request("GET", f"matches?{urlencode(asked)}", wait=wait)
        try:
            found = [_match(item) for item in response["matches"]]
        except (KeyError, TypeError, ValueError) as error:
            raise MatchmillError(
                f"{self.url} responds in another form, without {error}: is it a matchmill service?"
            ) from error
        return sorted(match for match in found if match.seq > after)

    def matches_until(self, after: int, up_to: int | None) -> Iterator[Match]:
        """Read all matches behind `after` and not behind `up_to`, page by page."""
        while found := self.matches(after):
            for match in found:
                if up_to is not None and match.seq > up_to:
                    return
                yield match
            after = found[-1].seq
            if after == up_to:
                return

    def acknowledge(self, up_to: int) -> None:
        """Tell the service that everything up to this one has arrived."""
        self._request("POST", "acknowledge", {"up_to": up_to})

    def _request(self, method: str, path: str, body: Any = None, *, wait: int = 0) -> Any:
        """Send a request about the mailbox; return the value of the response."""
        transport = Transport(self.url, timeout=_SECONDS, retries=_RETRIES)
        try:
            response = transport.request(
                method,
                f"/v1/subscriptions/{quote(self.subscription_id, safe='')}/{path}",
                body=None if body is None else json.dumps(body),
                ticket=self.ticket,
                timeout=wait + _SECONDS,
            )
            return response.json()
        finally:
            transport.close()


def _match(item: Any) -> Match:
    event, time, event_id = item.get("event"), item.get("matched_at"), item.get("event_id")
    return Match(
        int(item["seq"]),
        None if event_id is None else str(event_id),
        json.dumps(event, ensure_ascii=False, separators=(",", ":")),
        None if time is None else str(time),
    )


def mailbox_of(options: Mapping[str, str]) -> Mailbox:
    """Return the mailbox that the options of a reader name."""
    for name in ("subscription_id", "ticket"):
        if not options.get(name):
            raise InputError(f"reading from a service needs option({name!r}, …)")
    limit, wait = options.get("limit", "1000"), options.get("wait", "1")
    for name, value, least in (("limit", limit, 1), ("wait", wait, 0)):
        if not value.isdigit() or int(value) < least:
            raise InputError(f"{name} must be a whole number of at least {least}, not {value!r}")
    url, subscription_id, ticket = (options[n] for n in ("url", "subscription_id", "ticket"))
    return Mailbox(url, subscription_id, ticket, int(limit), int(wait))
