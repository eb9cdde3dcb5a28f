"""Reject events whose texts would keep the patterns busy for too long.

    work of an event on an attribute  =  bytes of its text  ×  instructions of all like and rlike
                                         patterns on the attribute

RE2 takes time that is proportional to this product, at worst: about 20 ns per unit. Most patterns
are far quicker, but nothing tells in advance which are. A limit on the product is a limit on the
time; an event beyond it is rejected, so that it never looks as if it matched nothing. Substrings,
prefixes and suffixes cost nothing here: their time does not depend on how many there are.

The text of a list is that of all its elements.
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.dimensions import AttributePlan, Dimensions
from matchmill.encoding.event_encoder import matcher_of
from matchmill.encoding.events.columns import Column, EventColumns, drop_rows
from matchmill.encoding.texts import texts_of
from matchmill.language.normal_form import VALUES
from matchmill.language.values import Region

__all__ = ["list_instructions", "reject_costly", "text_instructions"]


def text_instructions(plan: AttributePlan) -> int:
    """Return the instructions of all patterns on the text of an attribute."""
    own: int = sum(matcher_of(plan, derivation)[0].instructions for derivation in plan.patterns)
    values = plan.multi.get(VALUES)
    return own if values is None else own + text_instructions(values)


def list_instructions(plan: AttributePlan) -> int:
    """Return the instructions of all patterns on the elements of a list."""
    return sum(map(text_instructions, plan.multi.values()))


def reject_costly(dimensions: Dimensions, events: EventColumns, limit: int) -> EventColumns:
    """Return the events without those whose patterns would cost more than the limit."""
    rejected: dict[int, str] = {}
    for column in events.columns:
        plan = dimensions.plans.get(column.attribute)
        if plan is None or not (plan.patterns or plan.multi):
            continue
        for n_bytes, instructions in _texts(plan, column, events.n_events):
            if int(n_bytes.max(initial=0)) * instructions <= limit:
                continue
            for event in np.flatnonzero(n_bytes > limit // instructions).tolist():
                rejected.setdefault(
                    event, _reason(column.attribute, int(n_bytes[event]), instructions, limit)
                )
    if not rejected:
        return events
    gone = np.zeros(events.n_events, bool)
    gone[list(rejected)] = True
    all_rejected = dict(sorted({**rejected, **events.rejected}.items()))
    return EventColumns(events.n_events, drop_rows(events.columns, gone), all_rejected)


def _texts(plan: AttributePlan, column: Column, n_events: int) -> list[tuple[np.ndarray, int]]:
    """Return the bytes of text per event, and the instructions for each byte."""
    if column.region == Region.STRING:
        if instructions := text_instructions(plan):
            return [(_bytes_of(column, n_events), instructions)]
    elif column.region == Region.LIST and (instructions := list_instructions(plan)):
        texts = [part for part in column.elements if part.region == Region.STRING]
        return [(_bytes_of(part, n_events), instructions) for part in texts]
    return []


def _bytes_of(column: Column, n_events: int) -> np.ndarray:
    lengths = np.diff(texts_of(column.text).offsets)
    return np.bincount(column.rows, lengths, n_events).astype(np.int64)


def _reason(attribute: str, n_bytes: int, instructions: int, limit: int) -> str:
    return (
        f"attribute {attribute!r}: {n_bytes:,} bytes of text for like and rlike patterns of"
        f" {instructions:,} instructions are more work than the {limit:,} that one event may take;"
        " send a shorter text, or raise the setting max_pattern_work"
    )
