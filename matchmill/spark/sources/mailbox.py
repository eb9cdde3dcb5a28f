"""A subscription's mailbox at a live service, over HTTP: matches in order of `seq`, acknowledged.

GET  /v1/subscriptions/{id}/matches?after=&limit=&wait=   {"matches": [{"seq", …}], "next"}
POST /v1/subscriptions/{id}/ack                           {"up_to": seq}
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from matchmill.errors import InputError, MatchmillError

__all__ = ["MATCH_SCHEMA", "Mailbox", "Match", "mailbox_of"]

MATCH_SCHEMA = "seq bigint, event_id string, event string, matched_at string"
_SECONDS = 60  # for an answer, beyond what the service was asked to wait


class Match(NamedTuple):
    """One row of the table; `event` is JSON, `matched_at` as the service writes it."""

    seq: int
    event_id: str | None
    event: str
    matched_at: str | None


class Mailbox(NamedTuple):
    url: str
    subscription: str
    ticket: str
    limit: int  # matches an answer
    wait: int = 0  # seconds that a stream lets the service wait for a match; else it asks and asks

    def matches(self, after: int, wait: int = 0) -> list[Match]:
        """At most `limit` matches behind `after`; the service may wait so long for the first."""
        asked = {"after": after, "limit": self.limit, "wait": wait}
        answer = self._call("GET", f"matches?{urllib.parse.urlencode(asked)}", None, wait)
        try:
            found = [_match(item) for item in answer["matches"]]
        except (KeyError, TypeError, ValueError) as error:
            raise MatchmillError(f"{self.url} answers in another form: {error!r}") from error
        return sorted(match for match in found if match.seq > after)

    def matches_until(self, after: int, up_to: int | None) -> Iterator[Match]:
        """All matches behind `after` and not behind `up_to`, page by page."""
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
        self._call("POST", "ack", {"up_to": up_to}, 0)

    def _call(self, method: str, path: str, body: Any, wait: int) -> Any:
        identifier = urllib.parse.quote(self.subscription, safe="")
        url = f"{self.url.rstrip('/')}/v1/subscriptions/{identifier}/{path}"
        request = urllib.request.Request(
            url,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Matchmill-Ticket": self.ticket, "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=wait + _SECONDS) as answer:
                text = answer.read()
            return json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            raise MatchmillError(_refusal(error, url)) from error
        except urllib.error.URLError as error:
            raise MatchmillError(f"cannot reach {self.url}: {error.reason}") from error
        except ValueError as error:
            raise MatchmillError(f"{url} answers with what is not JSON: {error}") from error


def _refusal(error: urllib.error.HTTPError, url: str) -> str:
    advice = {
        401: "; give the ticket of the subscription as option 'ticket'",
        403: "; give the ticket of the subscription as option 'ticket'",
        404: "; is the subscription still there?",
        410: "; the subscription has ended",
    }.get(error.code, "")
    said = error.read(500).decode("utf-8", "replace").strip()
    return f"{url.partition('?')[0]} answers {error.code} {error.reason}: {said}{advice}"


def _match(item: Any) -> Match:
    event, time, identifier = item.get("event"), item.get("matched_at"), item.get("event_id")
    return Match(
        int(item["seq"]),
        None if identifier is None else str(identifier),
        json.dumps(event, ensure_ascii=False, separators=(",", ":")),
        None if time is None else str(time),
    )


def mailbox_of(options: Mapping[str, str]) -> Mailbox:
    """The mailbox that the options of a reader name."""
    for name in ("subscription", "ticket"):
        if not options.get(name):
            raise InputError(f"reading from a service needs option({name!r}, …)")
    limit, wait = options.get("limit", "1000"), options.get("wait", "1")
    for name, value, least in (("limit", limit, 1), ("wait", wait, 0)):
        if not value.isdigit() or int(value) < least:
            raise InputError(f"{name} must be a whole number of at least {least}, not {value!r}")
    url, subscription, ticket = (options[name] for name in ("url", "subscription", "ticket"))
    return Mailbox(url, subscription, ticket, int(limit), int(wait))
