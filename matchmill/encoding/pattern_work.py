"""Reject events whose texts would keep the patterns busy for too long.

    work of an event  =  sum over its attributes:  bytes of text  ×  instructions of all like and
                                                                     rlike patterns on the attribute

    t = 'abc', u = ['de', 'f']      patterns on t: 10 + 5 instructions, on u: 20
    3 × 15  +  3 × 20  =  105

RE2 takes time that is proportional to this sum, at worst: about 20 ns per unit. Most patterns
are far quicker, but nothing tells in advance which are. A limit on the sum is a limit on the
time; an event beyond it is rejected, so that it never looks as if it matched nothing. Substrings,
prefixes and suffixes cost nothing here: their time does not depend on how many there are.

The text of a list is that of all its elements.

Single events are not added up (`single/encoder.py`): if each attribute stays below its share of the
limit, so does the sum. All others are encoded as a batch, and counted here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from matchmill.encoding.dimensions import AttributePlan, Dimensions
from matchmill.encoding.event_encoder import matcher_of
from matchmill.encoding.events.asked import Asked
from matchmill.encoding.events.columns import (
    Column,
    EventColumns,
    Events,
    drop_rows,
    with_all_texts,
)
from matchmill.encoding.texts import texts_of
from matchmill.language.expression import ANY_ATTRIBUTE
from matchmill.language.normal_form import VALUES
from matchmill.language.values import Region

__all__ = ["list_instructions", "read_columns", "reject_costly", "text_instructions", "work_share"]


class _Texts(NamedTuple):
    """The texts of one attribute, and what each of their bytes may cost."""

    attribute: str
    n_bytes: np.ndarray  # of each event
    instructions: int


def text_instructions(plan: AttributePlan) -> int:
    """Return the instructions of all patterns on the text of an attribute."""
    own: int = sum(matcher_of(plan, derivation)[0].instructions for derivation in plan.patterns)
    values = plan.multi.get(VALUES)
    return own if values is None else own + text_instructions(values)


def list_instructions(plan: AttributePlan) -> int:
    """Return the instructions of all patterns on the elements of a list."""
    return sum(map(text_instructions, plan.multi.values()))


def work_share(dimensions: Dimensions, limit: int) -> int:
    """Return how much work each attribute may be, so that all together are surely allowed.

    It is halved each time the number of attributes with patterns has doubled, so that readers of
    other attributes seldom depend on a new one.
    """
    return limit >> max(0, len(dimensions.with_patterns) - 1).bit_length()


def read_columns(dimensions: Dimensions, events: Events, limit: int) -> EventColumns:
    """Return the columns that some expression uses, without events that would take too long."""
    wanted = None if ANY_ATTRIBUTE in dimensions.plans else Asked(dimensions)
    return reject_costly(dimensions, events.columns(wanted), limit)


def reject_costly(dimensions: Dimensions, events: EventColumns, limit: int) -> EventColumns:
    """Return the events without those whose patterns would cost more than the limit.

    Parameters
    ----------
    dimensions
        The dimensions of expressions.
    events
        Columns that have all attributes with patterns.
    limit
        The setting ``max_pattern_work``.
    """
    texts = list(_texts_of(dimensions, events))
    if sum(int(part.n_bytes.max(initial=0)) * part.instructions for part in texts) <= limit:
        return events
    work = np.zeros(events.n_events)  # doubles: exact below 2^53, and never too large
    for part in texts:
        work += part.n_bytes * float(part.instructions)
    costly = np.flatnonzero(work > limit).tolist()
    if not costly:
        return events
    rejected = {event: _reason(texts, event, limit) for event in costly}
    gone = np.zeros(events.n_events, bool)
    gone[costly] = True
    all_rejected = dict(sorted({**rejected, **events.rejected}.items()))
    return EventColumns(events.n_events, drop_rows(events.columns, gone), all_rejected)


def _texts_of(dimensions: Dimensions, events: EventColumns) -> Iterator[_Texts]:
    """Return the texts of the events that patterns of some dimensions read."""
    if not dimensions.with_patterns:
        return
    reads_all = ANY_ATTRIBUTE in dimensions.with_patterns
    for column in with_all_texts(events) if reads_all else events.columns:
        if column.attribute not in dimensions.with_patterns:
            continue
        plan = dimensions.plans[column.attribute]
        if column.region == Region.STRING:
            texts, instructions = [column], text_instructions(plan)
        elif column.region == Region.LIST:
            texts = [part for part in column.elements if part.region == Region.STRING]
            instructions = list_instructions(plan)
        else:
            continue
        for part in texts if instructions else ():
            yield _Texts(column.attribute, _bytes_of(part, events.n_events), instructions)


def _bytes_of(column: Column, n_events: int) -> np.ndarray:
    lengths = np.diff(texts_of(column.text).offsets)
    return np.bincount(column.rows, lengths, n_events).astype(np.int64)


def _reason(texts: list[_Texts], event: int, limit: int) -> str:
    found = [part for part in texts if part.n_bytes[event]]
    n_bytes = {part.attribute: int(part.n_bytes[event]) for part in found}
    if len(n_bytes) == 1:
        instructions = sum(part.instructions for part in found)
        what = (
            f"attribute {found[0].attribute!r}: {n_bytes[found[0].attribute]:,} bytes of text for"
            f" like and rlike patterns of {instructions:,} instructions are"
        )
    else:
        work = sum(int(part.n_bytes[event]) * part.instructions for part in found)
        what = (
            f"{sum(n_bytes.values()):,} bytes of text in {len(n_bytes):,} attributes with like and"
            f" rlike patterns are together {work:,} bytes times instructions,"
        )
    return (
        f"{what} more work than the {limit:,} that one event may take;"
        " send shorter texts, or raise the setting max_pattern_work"
    )
