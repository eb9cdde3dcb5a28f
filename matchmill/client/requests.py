"""Expressions and events as the service reads them."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

from matchmill.errors import EventError, InputError
from matchmill.language.expression import Expression

__all__ = ["AnyExpression", "batches", "compact", "event_text", "expression_text"]

T = TypeVar("T")

AnyExpression: TypeAlias = str | Expression | Mapping[str, Any]

_MOST_ITEMS = 1_000
_MOST_BYTES = 1 << 20  # of four that a service takes, if it was started without options


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def expression_text(expression: AnyExpression) -> str:
    """An expression, or a JSON pattern, as text."""
    if isinstance(expression, str):
        return expression
    if isinstance(expression, Expression):
        return str(expression)
    if isinstance(expression, Mapping):
        return compact(expression)
    raise InputError(
        f"an expression is text, made by mm.attr(…), or a JSON pattern, not {expression!r:.80}"
    )


def event_text(event: Mapping[str, Any]) -> str:
    """An event as JSON; EventError for what JSON cannot say. NaN is null, as in the library."""
    if not isinstance(event, Mapping):
        raise EventError(f"an event is a dict, not {event!r:.80}")
    try:
        return json.dumps(
            dict(event), ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain
        )
    except EventError:
        raise
    except ValueError:
        return compact(_without_nan(event))
    except RecursionError:
        raise EventError("the event is nested too deeply") from None


def _plain(value: Any) -> Any:
    """What `json` does not know: other mappings, NumPy's scalars; the rest is an error."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, dt.date):
        raise EventError(
            f"JSON has no dates, and {value} is one: send it as text, and compare it with text"
        )
    if hasattr(value, "dtype") and hasattr(value, "item"):
        return value.item()
    raise EventError(f"an event cannot hold {type(value).__name__}: {value!r:.80}")


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(inner) for inner in value]
    if hasattr(value, "dtype") and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return None
        raise EventError("the event has an infinite number")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return _plain(value)


def batches(
    items: Iterable[T], size: Callable[[T], int], most: int = _MOST_ITEMS
) -> Iterator[list[T]]:
    """Some items at a time, so that each batch fits into a request; `size` is in bytes."""
    batch: list[T] = []
    n_bytes = 0
    for item in items:
        n_more = size(item)
        if batch and n_bytes + n_more > _MOST_BYTES:
            yield batch
            batch, n_bytes = [], 0
        batch.append(item)
        n_bytes += n_more
        if len(batch) >= most:
            yield batch
            batch, n_bytes = [], 0
    if batch:
        yield batch
