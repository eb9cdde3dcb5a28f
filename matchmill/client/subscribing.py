"""Many subscriptions: read from any source, sent in batches, reported by row.

The order of requests stands here once, as a generator: it yields calls, gets their results, and
returns the report. The clients only make the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from matchmill.client import calls, responses
from matchmill.client.calls import Call, subscription_body
from matchmill.client.problems import error_of
from matchmill.client.requests import batches
from matchmill.client.responses import SubscribeReport, Subscription
from matchmill.errors import InputError, MatchmillError, shown
from matchmill.io.progress import Progress, reporting
from matchmill.io.reports import Rejected

__all__ = ["Flow", "Many", "mentions", "subscribing"]

Flow: TypeAlias = Generator[Call[Any], Any, SubscribeReport]


class Many(NamedTuple):
    """What `subscribe_many` was asked: a source, its columns, and the options of each."""

    source: Any
    subscription_id: str
    expression: str
    replace: bool
    strict: bool
    options: Mapping[str, Any]


class _Row(NamedTuple):
    place: tuple[int, int | None, str | None]  # row, line, source
    id: Any
    expression: Any
    body: str


class _Subscribing:
    """The state of one `subscribe_many`."""

    def __init__(self, asked: Many) -> None:
        self._asked = asked
        self.ignored_columns: list[str] = []
        self.made: list[Subscription] = []
        self.n_replaced = 0
        self.rejected: list[Rejected] = []
        self.failure: MatchmillError | None = None

    def rows(self) -> Iterator[_Row]:
        """Yield the rows that can be sent; note those that cannot."""
        # Readers of files and frames need pyarrow, which a single call does not.
        from matchmill.io.subscription_sources import subscription_sources

        asked = self._asked
        for source in subscription_sources(
            asked.source, subscription_id=asked.subscription_id, expression=asked.expression
        ):
            for number, row in enumerate(source.rows):
                place = (number, row.line, source.name)
                try:
                    if row.problem is not None:
                        raise InputError(row.problem)
                    body = subscription_body(_text_id(row.id), row.expression, asked.options)
                    yield _Row(place, row.id, row.expression, body)
                except MatchmillError as error:
                    self.reject(_Row(place, row.id, row.expression, ""), error)
            self.ignored_columns += source.ignored_columns

    def reject(self, row: _Row, error: MatchmillError) -> None:
        """Note that a row was not accepted; with `strict`, stop."""
        if self._asked.strict:
            raise error
        self.rejected.append(Rejected("subscription", *row.place, row.id, error.summary))

    def report(self) -> SubscribeReport:
        return SubscribeReport(
            len(self.made),
            self.n_replaced,
            sorted(self.rejected, key=lambda one: (one.source or "", one.row)),
            ignored_columns=self.ignored_columns,
            subscriptions=self.made,
        )


def subscribing(asked: Many, progress: Progress = False) -> Flow:
    """Subscribe many. If the service fails after it accepted some, the rest is rejected."""
    if asked.strict and asked.replace:
        raise InputError(
            "strict=True cannot be combined with replace=True: what was replaced could not be"
            " restored"
        )
    state = _Subscribing(asked)
    n_done = 0
    try:
        with reporting(progress, "subscribing") as report:
            for batch in batches(state.rows(), lambda row: len(row.body.encode())):
                yield from _send(state, asked, batch)
                n_done += len(batch)
                if report is not None:
                    report(n_done, None)
    except MatchmillError:
        if asked.strict:
            yield from _undo(state)
        raise
    return state.report()


def _send(state: _Subscribing, asked: Many, batch: list[_Row]) -> Generator[Call[Any], Any, None]:
    if state.failure is not None:
        for row in batch:
            state.reject(row, state.failure)
        return
    n_done = 0
    try:
        results = yield calls.subscribe_batch([row.body for row in batch])
        for row, result in zip(batch, results, strict=True):
            if "code" not in result:
                state.made.append(responses.subscription(result))
            elif asked.replace and result["code"] == "duplicate_id":
                id = _text_id(row.id)
                state.made.append((yield calls.subscribe(id, row.expression, True, asked.options)))
                state.n_replaced += 1
            else:
                text = row.expression if isinstance(row.expression, str) else None
                state.reject(row, error_of(result, None, text))
            n_done += 1
    except MatchmillError as error:
        if asked.strict or not state.made:
            raise
        state.failure = error  # the tickets of those before are not lost
        for row in batch[n_done:]:
            state.reject(row, error)


def _undo(state: _Subscribing) -> Generator[Call[Any], Any, None]:
    for one in state.made:
        yield calls.unsubscribe(one.id, one.ticket)


def _text_id(id: object) -> str | None:
    if id is None or isinstance(id, str):
        return id
    if isinstance(id, int) and not isinstance(id, bool):
        return str(id)  # a service has texts for ids
    raise InputError(f"the id of a subscription is a text or a whole number, not {shown(id, 60)}")


def mentions(attribute: str | None) -> Callable[[Subscription], bool]:
    """Return a test whether the expression of a subscription mentions an attribute."""
    if attribute is None:
        return lambda subscription: True
    from matchmill.engine.expression_input import read_expression

    return lambda subscription: attribute in read_expression(subscription.expression).attributes
