"""A mailbox as an iterator: by long polls that acknowledge, or by a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from matchmill.client.responses import Digest, Dropped, LiveMatch, Match, read_entry, read_live
from matchmill.client.streams import ServerEvent

__all__ = ["Received", "live", "polled", "streamed"]

Received: TypeAlias = Match | Digest | Dropped


def polled(
    poll: Callable[[int], dict[str, Any]],
    acknowledge: Callable[[int], None],
    after: int,
    every: int,
    is_endless: bool,
) -> Iterator[Received]:
    """Entries after a seq. An entry counts as processed when the next one is asked for."""
    n_dropped = n_open = 0
    processed = after
    try:
        while True:
            page = poll(after)
            if page["dropped"] > n_dropped:
                yield Dropped(page["dropped"] - n_dropped)
                n_dropped = page["dropped"]
            for told in page["matches"]:
                entry = read_entry(told)
                yield entry
                processed = after = entry.seq
                n_open += 1
                if every and n_open >= every:
                    acknowledge(processed)
                    n_open = 0
            if n_open and every:  # before the next wait, which may be long
                acknowledge(processed)
                n_open = 0
            if not page["matches"] and not is_endless:
                return
    except GeneratorExit:
        if n_open and every:
            acknowledge(processed)
        raise


def streamed(events: Iterator[ServerEvent]) -> Iterator[Received]:
    n_dropped = 0
    for event in events:
        if event.name in ("match", "digest"):
            yield read_entry(event.value)
        elif event.name == "dropped" and event.value["count"] > n_dropped:
            yield Dropped(event.value["count"] - n_dropped)
            n_dropped = event.value["count"]


def live(events: Iterator[ServerEvent]) -> Iterator[LiveMatch | Dropped]:
    for event in events:
        if event.name == "match":
            yield read_live(event.value)
        elif event.name == "dropped":
            yield Dropped(event.value["count"])
