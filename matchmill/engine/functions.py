"""The public functions that need no engine: parse, evaluate, explain, match, check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from matchmill.engine.engine import Engine
from matchmill.engine.expression_input import checked_expression, read_expression
from matchmill.engine.matches import Matches
from matchmill.index.registry import DEFAULT_INDEX
from matchmill.io.event_sources import read_events
from matchmill.io.reports import CheckReport
from matchmill.language.dialects.registry import MATCHMILL
from matchmill.language.evaluate import Truth
from matchmill.language.evaluate import evaluate as evaluate_expression
from matchmill.language.explain import Explanation
from matchmill.language.expression import Expression
from matchmill.language.operator_calls import has_calls
from matchmill.operators.explain import explain_with_operators
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["check", "evaluate", "explain", "match", "parse"]


def parse(
    expression: object, *, dialect: str = MATCHMILL, settings: Settings | None = None
) -> Expression:
    """Read an expression.

    Parameters
    ----------
    expression
        Text, or a JSON pattern (a mapping, or text that begins with a brace).
    dialect
        The language it is written in: "matchmill", or "eventbridge" for JSON patterns that mean
        what Amazon EventBridge says.
    settings
        Limits for expressions.

    Returns
    -------
    Expression

    Raises
    ------
    ExpressionError
        If it cannot be read; the error has the place.

    Examples
    --------
    >>> import matchmill as mm
    >>> print(mm.parse("price<20 AND genre='crime'"))
    price < 20 and genre = 'crime'
    >>> print(mm.parse({"price": [{"numeric": ["<", 20]}]}))
    price < 20 or any(price) < 20
    >>> print(mm.parse({"price": [{"numeric": ["<", 20]}]}, dialect="eventbridge"))
    eventbridge '{"price":[{"numeric":["<",20]}]}'
    """
    return read_expression(expression, settings or DEFAULT_SETTINGS, dialect)


def evaluate(expression: object, event: Any) -> Truth:
    """Evaluate an expression for one event.

    This is the definition of what an expression means, plain and slow. An `Engine` does the same
    for many expressions at once.

    Parameters
    ----------
    expression
        Text, a JSON pattern or an `Expression`. It may call operators.
    event
        A mapping of attributes to values.

    Returns
    -------
    bool or None
        None means unknown, as in SQL: an attribute is absent, or has another type.

    Raises
    ------
    ExpressionError
        If the expression cannot be read.
    EventError
        If the event has a value that cannot be used.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.evaluate("price < 20", {"price": 12})
    True
    >>> mm.evaluate("price < 20", {}) is None
    True
    """
    parsed = checked_expression(expression)
    if has_calls(parsed):
        return explain_with_operators(parsed, event).truth
    return evaluate_expression(parsed, event)


def explain(expression: object, event: Any) -> Explanation:
    """Explain why an expression is true for an event, or what is missing.

    Parameters
    ----------
    expression
        Text, a JSON pattern or an `Expression`. It may call operators.
    event
        A mapping of attributes to values.

    Returns
    -------
    Explanation
        The tree of the expression with the truth of every condition.

    Raises
    ------
    ExpressionError
        If the expression cannot be read.
    EventError
        If the event has a value that cannot be used.

    Examples
    --------
    >>> import matchmill as mm
    >>> print(mm.explain("price < 20 and genre = 'crime'", {"price": 21, "genre": "crime"}))
    ✗ price < 20 and genre = 'crime'
      ✗ price < 20: price is 21, needs < 20 (1 too much)
      ✓ genre = 'crime': genre is 'crime'
    """
    return explain_with_operators(checked_expression(expression), event)


def match(
    subscriptions: Any,
    events: Any,
    *,
    subscription_id: str = "subscription_id",
    expression: str = "expression",
    dialect: str = MATCHMILL,
    event_id: str | None = None,
    threads: int | None = None,
    strict: bool = False,
    types: Mapping[str, str] | None = None,
    index: str = DEFAULT_INDEX,
    settings: Settings | None = None,
) -> Matches:
    """Match events with subscriptions, both from any source, once.

    Parameters
    ----------
    subscriptions
        Any source of `Engine.subscribe_many`, or an `Engine`.
    events
        Any source of `Engine.match_many`.
    subscription_id, expression
        The columns of the subscriptions that hold them.
    dialect
        The language of text and patterns, as for `Engine.subscribe_many`.
    event_id
        The attribute that names an event in the result.
    threads
        How many threads to use; None means as many as pay.
    strict
        Whether the first bad subscription or event raises.
    types, index, settings
        As for `Engine`.

    Returns
    -------
    Matches
        Its `rejected` has the subscriptions and events that could not be read.

    Examples
    --------
    >>> import matchmill as mm
    >>> matches = mm.match({"u1": "price < 20"}, [{"price": 12}, {"price": 30}])
    >>> [sorted(ids) for ids in matches]
    [['u1'], []]
    """
    options: dict[str, Any] = {"event_id": event_id, "threads": threads, "strict": strict}
    if isinstance(subscriptions, Engine):
        if types is not None:
            events = read_events(events, types=types, settings=subscriptions.settings)
        return subscriptions.match_many(events, **options)
    with Engine(index=index, types=types, settings=settings) as engine:
        report = engine.subscribe_many(
            subscriptions,
            subscription_id=subscription_id,
            expression=expression,
            dialect=dialect,
            strict=strict,
        )
        matches = engine.match_many(events, **options)
    matches.rejected = [*report.rejected, *matches.rejected]
    return matches


def check(
    subscriptions: Any,
    events: Any = None,
    *,
    subscription_id: str = "subscription_id",
    expression: str = "expression",
    dialect: str = MATCHMILL,
    settings: Settings | None = None,
) -> CheckReport:
    """Look for mistakes in subscriptions: what cannot be read, typos, wrong types, repetitions.

    Parameters
    ----------
    subscriptions
        Any source of `Engine.subscribe_many`, or an `Engine`.
    events
        A sample of events to compare them with, as for `Engine.match_many`.
    subscription_id, expression
        The columns of the subscriptions that hold them.
    dialect
        The language of text and patterns, as for `Engine.subscribe_many`.
    settings
        As for `Engine`.

    Returns
    -------
    CheckReport
        What was rejected and why, and what needs a second look.

    Examples
    --------
    >>> import matchmill as mm
    >>> report = mm.check({"u1": "price <", "u2": "price < 1 and price > 2"})
    >>> report.ok, [one.id for one in report.rejected], [one.kind for one in report.warnings]
    (False, ['u1'], ['never'])
    """
    if isinstance(subscriptions, Engine):
        return subscriptions.check(events)
    with Engine(settings=settings) as engine:
        read = engine.subscribe_many(
            subscriptions,
            subscription_id=subscription_id,
            expression=expression,
            dialect=dialect,
        )
        report = engine.check(events)
    return replace(report, rejected=[*read.rejected, *report.rejected])
