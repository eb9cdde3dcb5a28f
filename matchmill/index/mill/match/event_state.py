"""What one thread needs to match events one at a time, with an accessor for each array."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.index.mill.arrays import N_WORDS, MillArrays
from matchmill.index.mill.match.lookups import MOST_LEVELS
from matchmill.kernels.addresses import Int32Array, Int64Array, UInt8Array, accessor

__all__ = ["STRETCH", "EventState", "new_event_state"]

STRETCH = 256  # entries of a block that are looked at in one go
_FIRST_VISITS = 1024


class EventState(NamedTuple):
    """The event at hand, all events of the batch, and the ids that were found."""

    truth: UInt8Array  # one per shared predicate: whether it holds
    values: Int32Array  # one per column
    codes: Int32Array  # one per dimension; -1: the event does not have it
    levels: Int64Array  # scratch: the levels in use of a dimension
    visits: Int64Array  # slot places of the slots to visit
    candidates: Int64Array  # scratch: entries whose first test holds
    event_offsets: Int64Array
    event_dimensions: Int32Array
    event_keys: Int64Array
    out_offsets: Int64Array
    out: Int32Array


truth_of = accessor(EventState, "truth")
truth_words_of = accessor(EventState, "truth", view_as=np.uint64)
values_of = accessor(EventState, "values")
codes_of = accessor(EventState, "codes")
levels_of = accessor(EventState, "levels")
visits_of = accessor(EventState, "visits")
candidates_of = accessor(EventState, "candidates")
event_offsets_of = accessor(EventState, "event_offsets")
event_dimensions_of = accessor(EventState, "event_dimensions")
event_keys_of = accessor(EventState, "event_keys")
out_offsets_of = accessor(EventState, "out_offsets")
out_of = accessor(EventState, "out")


def new_event_state(
    mill: MillArrays, events: EventBatch, out_offsets: np.ndarray, out: np.ndarray
) -> EventState:
    """Return the state of the empty event, for a batch of events."""
    most_words = int(mill.dimensions[:, N_WORDS].max(initial=0))
    return EventState(
        truth=np.unpackbits(mill.default_truth.view(np.uint8), bitorder="little"),
        values=mill.default_values.copy(),
        codes=np.full(len(mill.dimensions), -1, np.int32),
        levels=np.empty(MOST_LEVELS, np.int64),
        visits=np.empty(_FIRST_VISITS + MOST_LEVELS + 64 * most_words, np.int64),
        candidates=np.empty(STRETCH, np.int64),
        # Kernels know these by address alone.
        event_offsets=np.ascontiguousarray(events.offsets, np.int64),
        event_dimensions=np.ascontiguousarray(events.dimensions, np.int32),
        event_keys=np.ascontiguousarray(events.keys, np.int64),
        out_offsets=out_offsets,
        out=out,
    )
