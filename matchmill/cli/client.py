"""`matchmill client …`: what a service can be asked, one action each."""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from matchmill.cli.client_events import FileEvent, file_events
from matchmill.cli.exit_codes import ALL_GOOD, NO
from matchmill.cli.explain import read_event
from matchmill.cli.load_engine import refused_writer, say
from matchmill.cli.progress import Progress
from matchmill.cli.rejected import SetAside
from matchmill.client import Client, Digest, Dropped, Match, Rejected, Subscribed, Subscription
from matchmill.errors import InputError, ServiceError
from matchmill.io import reports
from matchmill.io.subscription_files import SubscriptionRow, read_subscriptions

__all__ = ["run"]

_DEFAULT_URL = "http://127.0.0.1:8080"
_ROWS_AT_ONCE = 10_000


def run(arguments: argparse.Namespace) -> int:
    url = arguments.url or os.environ.get("MATCHMILL_URL") or _DEFAULT_URL
    key = _secret(arguments.key_file, "MATCHMILL_KEY")
    with Client(url, key=key, timeout=arguments.timeout) as client:
        return _ACTIONS[arguments.action](client, arguments)


def _secret(path: str | None, variable: str) -> str | None:
    if path is None:
        return os.environ.get(variable) or None
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text") from None
    if not text:
        raise InputError(f"{path} is empty")
    return text


def _ticket(arguments: argparse.Namespace) -> str:
    ticket = _secret(arguments.ticket_file, "MATCHMILL_TICKET")
    if ticket is None:
        raise InputError(
            "this needs the subscription's ticket: set MATCHMILL_TICKET, or give --ticket-file FILE"
        )
    return ticket


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, default=_moment))


def _moment(value: Any) -> str:
    text: str = value.isoformat()
    return text


def _facts(row: Subscribed | Subscription) -> dict[str, Any]:
    return {name: value for name, value in row._asdict().items() if value is not None}


def _print_facts(row: Subscribed | Subscription, form: str) -> None:
    if form == "json":
        _print_json(_facts(row))
        return
    for name, value in _facts(row).items():
        print(f"{name}: {value if isinstance(value, int | str) else _moment(value)}")


# -- subscriptions --------------------------------------------------------------------------------


def _subscribe(client: Client, arguments: argparse.Namespace) -> int:
    if (arguments.expression is None) == (arguments.subscriptions is None):
        raise InputError("give either EXPRESSION or --subscriptions FILE")
    if arguments.subscriptions is not None:
        return _subscribe_file(client, arguments)
    made = client.subscribe(
        arguments.expression,
        id=arguments.id,
        valid_seconds=arguments.valid_seconds,
        webhook=arguments.webhook,
        max_per_minute=arguments.max_per_minute,
    )
    _print_facts(made, arguments.format)
    return ALL_GOOD


def _subscribe_file(client: Client, arguments: argparse.Namespace) -> int:
    if arguments.id is not None or arguments.webhook is not None:
        raise InputError("--id and --webhook are for one EXPRESSION")
    path = arguments.subscriptions
    rows = read_subscriptions(
        path, subscription_id=arguments.id_column, expression=arguments.expression_column
    )
    table = csv.writer(sys.stdout, lineterminator="\n")
    n_accepted = n_rows = 0
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(arguments.quiet))
        progress.stage("subscribing")
        aside = SetAside(refused_writer(arguments, stack), strict=False)
        if arguments.format == "text":
            table.writerow(("id", "ticket", "expires_at"))
        while some := list(islice(rows, _ROWS_AT_ONCE)):
            good = []
            for row in some:
                problem = row.problem
                if problem is None and not isinstance(row.expression, str | dict):
                    problem = "an expression is text, or a JSON pattern"
                if problem is None:
                    good.append(row)
                else:
                    aside.add(reports.Rejected("subscription", 0, row.line, path, row.id, problem))
            for made in _made(client, good, arguments, aside):
                n_accepted += 1
                if arguments.format == "json":
                    _print_json(_facts(made))
                else:
                    table.writerow((made.id, made.ticket, _moment(made.expires_at)))
            n_rows += len(some)
            progress.update(n_rows)

    def summary() -> Iterator[str]:
        yield f"subscriptions: {n_accepted:,} accepted, {aside.counts.total():,} refused"
        yield from aside.lines()

    say(arguments, summary())
    return aside.exit_code


def _made(
    client: Client, rows: list[SubscriptionRow], arguments: argparse.Namespace, aside: SetAside
) -> Iterator[Subscribed]:
    """Those that the service took; the others are set aside."""
    if not rows:
        return
    pairs: list[tuple[str, Any]] = [(str(row.id), row.expression) for row in rows]
    results = client.subscribe_many(
        pairs, valid_seconds=arguments.valid_seconds, max_per_minute=arguments.max_per_minute
    )
    for row, result in zip(rows, results, strict=True):
        if isinstance(result, Rejected):
            reason = str(result.error)
            path = arguments.subscriptions
            aside.add(reports.Rejected("subscription", 0, row.line, path, row.id, reason))
        else:
            yield result


def _list(client: Client, arguments: argparse.Namespace) -> int:
    for row in islice(client.list(), arguments.limit):
        if arguments.format == "json":
            _print_json(_facts(row))
        else:
            until = f"{row.expires_at:%Y-%m-%d %H:%M}"
            expression = " ".join(row.expression.split())
            print(f"{_printable(row.id)}  {until}  {row.pending:,}  {_printable(expression)}")
    return ALL_GOOD


def _printable(text: str) -> str:
    """Nothing in it can move a terminal's cursor."""
    return "".join(c if c.isprintable() else "�" for c in text)


def _show(client: Client, arguments: argparse.Namespace) -> int:
    ticket = _secret(arguments.ticket_file, "MATCHMILL_TICKET")
    _print_facts(client.get(arguments.id, ticket), arguments.format)
    return ALL_GOOD


def _renew(client: Client, arguments: argparse.Namespace) -> int:
    until = client.renew(arguments.id, _ticket(arguments), arguments.valid_seconds)
    print(_moment(until))
    return ALL_GOOD


def _cancel(client: Client, arguments: argparse.Namespace) -> int:
    client.unsubscribe(arguments.id, _secret(arguments.ticket_file, "MATCHMILL_TICKET"))
    return ALL_GOOD


# -- events ---------------------------------------------------------------------------------------


def _publish(client: Client, arguments: argparse.Namespace) -> int:
    source = _Source(arguments)
    n_published = n_matches = 0
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(arguments.quiet))
        progress.stage("publishing events")
        aside = SetAside(refused_writer(arguments, stack), strict=False)
        try:
            for result in client.publish_stream(source.good(aside)):
                if isinstance(result, Rejected):
                    line = source.lines.pop(result.row)
                    message = result.error.message
                    path = arguments.events
                    aside.add(reports.Rejected("event", 0, line, path, result.id, message))
                else:
                    n_published += 1
                    n_matches += result.matched
                progress.update(n_published)
        except ServiceError:
            print(f"matchmill: {n_published:,} events had been published before", file=sys.stderr)
            raise

    def summary() -> Iterator[str]:
        yield f"events: {n_published:,} published, {aside.counts.total():,} set aside"
        yield f"matches: {n_matches:,}"
        yield from aside.lines()

    say(arguments, summary())
    return aside.exit_code


class _Source:
    """The events to send, and the line of each by its number among them."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._events = file_events(arguments)
        self.lines: dict[int, int] = {}

    def good(self, aside: SetAside) -> Iterator[Any]:
        attribute = self._arguments.event_id
        for n_sent, one in enumerate(self._readable(aside)):
            self.lines[n_sent] = one.line
            self.lines.pop(n_sent - 10_000, None)  # long answered
            if attribute is None:
                yield one.event
            else:
                assert one.event is not None
                yield str(one.event[attribute]), one.event

    def _readable(self, aside: SetAside) -> Iterator[FileEvent]:
        attribute = self._arguments.event_id
        for one in self._events:
            problem = one.problem
            if one.event is not None and attribute is not None:
                value = one.event.get(attribute)
                if not isinstance(value, int | str) or isinstance(value, bool) or value == "":
                    problem = f"there is no event id: {attribute!r} is neither text nor an integer"
            if problem is None:
                yield one
            else:
                path = self._arguments.events
                aside.add(reports.Rejected("event", 0, one.line, path, None, problem))


# -- questions ------------------------------------------------------------------------------------


def _test(client: Client, arguments: argparse.Namespace) -> int:
    for identifier in client.test(read_event(arguments.event)):
        print(_printable(identifier))
    return ALL_GOOD


def _explain(client: Client, arguments: argparse.Namespace) -> int:
    if (arguments.expression is None) == (arguments.id is None):
        raise InputError("give EXPRESSION and EVENT, or --id ID and EVENT")
    event = read_event(arguments.event)
    told = client.explain(event, id=arguments.id, expression=arguments.expression)
    if arguments.format == "json":
        _print_json(told.tree)
    elif not arguments.quiet:
        print(told.text)
    return ALL_GOOD if told.matches else NO


def _backtest(client: Client, arguments: argparse.Namespace) -> int:
    tried = client.backtest(arguments.expression, arguments.last)
    if arguments.format == "json":
        _print_json(tried._asdict())
    else:
        print(f"{tried.matched:,} of the latest {tried.events:,} events would have matched")
    return ALL_GOOD


# -- matches --------------------------------------------------------------------------------------


def _receive(client: Client, arguments: argparse.Namespace) -> int:
    received = client.matches(
        arguments.id,
        _ticket(arguments),
        after=arguments.after,
        wait=30 if arguments.follow else 0,
        acknowledge_every=0 if arguments.keep else 1,
    )
    for entry in received:
        _print_json(_entry(entry))
        sys.stdout.flush()  # before it is acknowledged, when the next one is asked for
    return ALL_GOOD


def _entry(entry: Match | Digest | Dropped) -> Mapping[str, Any]:
    if isinstance(entry, Match):
        return entry._asdict()
    if isinstance(entry, Digest):
        facts = {"count": entry.n_matches, "first_at": entry.first_at, "last_at": entry.last_at}
        return {"seq": entry.seq, "digest": facts}
    return {"dropped": entry.n_matches}


_ACTIONS = {
    "subscribe": _subscribe,
    "list": _list,
    "show": _show,
    "renew": _renew,
    "cancel": _cancel,
    "publish": _publish,
    "test": _test,
    "explain": _explain,
    "backtest": _backtest,
    "receive": _receive,
}
