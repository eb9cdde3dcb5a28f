"""The ids of events, taken from one attribute: all texts, or all integers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from matchmill.encoding.events.asked import Asked
from matchmill.encoding.events.columns import Column
from matchmill.encoding.events.read import Events
from matchmill.errors import shown
from matchmill.language.values import Region

__all__ = ["EventIds"]

_WORDS = {Region.STRING: "texts", Region.NUMBER: "integers"}


class EventIds:
    """Reads ids chunk by chunk; the first one decides whether all are texts or integers."""

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute
        self._region: Region | None = None

    @property
    def has_seen_one(self) -> bool:
        """Whether some event had an id."""
        return self._region is not None

    def read(self, events: Events) -> tuple[pa.Array, dict[int, str]]:
        """Return the id of each event, null where there is none, and the reasons for those."""
        columns = events.columns(Asked(names=[self.attribute])).columns
        usable = [
            column
            for column in map(_integers_only, columns)
            if column.region in _WORDS and len(column.rows)
        ]
        if self._region is None and usable:
            self._region = min(usable, key=lambda column: int(column.rows[0])).region
        places = np.full(events.n_events, -1, np.int64)
        values = pa.array([], pa.int64() if self._region == Region.NUMBER else pa.large_string())
        for column in usable:
            if column.region == self._region:
                places[column.rows] = np.arange(len(column.rows))
                values = pa.array(column.whole) if column.text is None else column.text
        missing = np.flatnonzero(places < 0)
        ids = values.take(pa.array(places, mask=places < 0))
        return ids, {int(i): self._problem(int(i), columns) for i in missing}

    def _problem(self, i: int, columns: list[Column]) -> str:
        name = self.attribute
        found = [column for column in columns if i in column.rows]
        if not found:
            return f"there is no event id: {shown(name)} is missing"
        kind = found[0].region
        if kind == self._region == Region.NUMBER:
            return f"the event id {shown(name)} is not a whole number of 64 bits"
        if kind in _WORDS and self._region is not None:
            return (
                f"the event id {shown(name)} differs from those before it, which are "
                + (_WORDS[self._region])
            )
        return f"an event id is a text or an integer, but {shown(name)} is a {kind.name.lower()}"


def _integers_only(column: Column) -> Column:
    """Return a column of numbers without those that are not whole."""
    if column.region != Region.NUMBER or not column.part.any():
        return column
    whole = column.part == 0
    return column._replace(
        rows=column.rows[whole], whole=column.whole[whole], part=column.part[whole]
    )
