"""Expressions and events as JSON, and several of them as batches that fit into a request."""

from __future__ import annotations

import datetime as dt
import json
import math
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

from matchmill.errors import EventError, InputError
from matchmill.language.expression import Expression

__all__ = [
    "AnyExpression",
    "batches",
    "compact",
    "event_body",
    "event_text",
    "expression_value",
    "new_event_id",
]

T = TypeVar("T")

AnyExpression: TypeAlias = str | Expression | Mapping[str, Any]

_MOST_ITEMS = 500
_MOST_BYTES = 1 << 20  # of the four that a service accepts by default


def compact(value: Any) -> str:
    """Write JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def expression_value(expression: object) -> str | Mapping[str, Any]:
    """Return what stands for an expression in a request: its text, or a JSON pattern."""
    if isinstance(expression, str | Mapping):
        return expression
    if isinstance(expression, Expression):
        return str(expression)
    raise InputError(
        f"an expression is text, made by mm.attr(…), or a JSON pattern, not {expression!r:.80}"
    )


def new_event_id() -> str:
    """Make an id that nobody else has; later ones are greater, as a store likes them."""
    return f"{time.time_ns() // 1000:014x}{secrets.token_hex(8)}"


def event_body(event: Mapping[str, Any], event_id: str | None) -> str:
    """Write an event and its id, which is made if there is none, as the service reads them."""
    return f'{{"event":{event_text(event)},"event_id":{compact(event_id or new_event_id())}}}'


def event_text(event: Mapping[str, Any]) -> str:
    """Write an event as JSON.

    A date or time becomes text in ISO form, since JSON has none, and NaN becomes null, as in the
    library. EventError for what JSON cannot hold.
    """
    if not isinstance(event, Mapping):
        raise EventError(f"an event is a mapping of attributes to values, not {event!r:.80}")
    try:
        text = _dumped(event)
        text.encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise EventError(f"a text of the event has half of a character: {half!r}") from None
    except RecursionError:
        raise EventError("the event is nested too deeply") from None
    return text


def _dumped(event: Mapping[str, Any]) -> str:
    try:
        return json.dumps(
            dict(event), ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain
        )
    except EventError:
        raise
    except ValueError:  # a NaN, or an infinite number
        return compact(_without_nan(event))


def _plain(value: Any) -> Any:
    """Convert what `json` does not know: other mappings, times, scalars of NumPy."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, dt.date):
        return value.isoformat() if value == value else None  # pandas has a time that is none
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind == "M":
        return _plain(value.astype("datetime64[us]").item())
    if kind is not None and hasattr(value, "item"):
        return value.item()
    if value is None:
        return None
    raise EventError(f"an event cannot contain {type(value).__name__}: {value!r:.80}")


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(inner) for inner in value]
    if not isinstance(value, bool | int | float | str | None):
        value = _plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return None
        raise EventError("the event has an infinite number")
    return value


def batches(
    items: Iterable[T], size: Callable[[T], int], most: int = _MOST_ITEMS
) -> Iterator[list[T]]:
    """Yield some items at a time, so that each batch fits into a request; `size` is in bytes."""
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
