"""The result of matching many events: a set of subscription ids for each event.

event i    numbers[offsets[i] … offsets[i + 1]], turned into ids when they are needed
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from matchmill.io.reports import Rejected, html_table
from matchmill.kernels.csr import offsets_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["ArrowIds", "Ids", "Matches", "joined"]

_MOST_SHOWN = 10


class Ids(Protocol):
    """The ids of subscriptions, by number."""

    def ids_of_numbers(self, numbers: np.ndarray) -> pa.Array:
        """Return ids as an Arrow array."""
        ...

    def id_set(self, numbers: np.ndarray) -> set[str | int]:
        """Return ids as a set of Python objects."""
        ...


class ArrowIds:
    """The ids of an Arrow array, by position."""

    def __init__(self, ids: pa.Array) -> None:
        self._ids = ids

    def ids_of_numbers(self, numbers: np.ndarray) -> pa.Array:
        """Return ids as an Arrow array."""
        return self._ids.take(pa.array(numbers))

    def id_set(self, numbers: np.ndarray) -> set[str | int]:
        """Return ids as a set of Python objects."""
        return set(self.ids_of_numbers(numbers).to_pylist())


def joined(parts: Sequence[Matches]) -> Matches:
    """Return the matches of successive events as one."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    counts = np.concatenate([part.counts for part in parts])
    return Matches(
        offsets_of(counts),
        np.concatenate([part.numbers for part in parts]),
        parts[-1]._ids,
        rejected=[one for part in parts for one in part.rejected],
        event_ids=None if first._event_ids is None else _joined_ids([p.event_ids() for p in parts]),
        first=first._first,
    )


def _joined_ids(parts: Sequence[pa.Array]) -> pa.Array:
    kind = next((part.type for part in parts if part.null_count < len(part)), parts[0].type)
    return pa.concat_arrays([part.cast(kind) for part in parts])


class Matches:
    """The matches of many events. Length, iteration and `matches[i]` go by event.

    `Engine.match_many` makes it. It has `__arrow_c_stream__`, so that `pyarrow.table(matches)`,
    `polars.DataFrame(matches)` and DuckDB's ``select * from matches`` work.

    Attributes
    ----------
    rejected : list of Rejected
        Events that could not be read, each with its reason. They have no matches.

    Examples
    --------
    >>> import matchmill as mm
    >>> engine = mm.Engine({"u1": "price < 20", "u2": "price < 40"})
    >>> matches = engine.match_many([{"price": 12}, {"price": 30}])
    >>> matches
    <Matches: 2 events, 3 matches>
    >>> matches[1]
    {'u2'}
    >>> [len(ids) for ids in matches]
    [2, 1]
    """

    __slots__ = ("_event_ids", "_first", "_ids", "numbers", "offsets", "rejected")

    def __init__(
        self,
        offsets: np.ndarray,
        numbers: np.ndarray,
        ids: Ids,
        *,
        rejected: Sequence[Rejected] = (),
        event_ids: pa.Array | None = None,
        first: int = 0,
    ) -> None:
        self.offsets = offsets
        self.numbers = numbers
        self.rejected = list(rejected)
        self._ids = ids
        self._event_ids = event_ids  # one per event; without them, positions
        self._first = first  # the position of the first event

    @property
    def n_events(self) -> int:
        """How many events were matched, rejected ones included."""
        return len(self.offsets) - 1

    @property
    def n_matches(self) -> int:
        """How many (event, subscription) pairs there are."""
        return len(self.numbers)

    @property
    def counts(self) -> np.ndarray:
        """How many subscriptions each event satisfies."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return self.n_events

    def __getitem__(self, event: int) -> set[str | int]:
        if not -self.n_events <= event < self.n_events:
            raise IndexError(f"there are {self.n_events} events, {event} is not one of them")
        event %= self.n_events
        numbers = self.numbers[self.offsets[event] : self.offsets[event + 1]]
        return self._ids.id_set(numbers)

    def __iter__(self) -> Iterator[set[str | int]]:
        return (self[event] for event in range(self.n_events))

    def subscription_ids(self) -> pa.Array:
        """Return the subscription of each match, event after event, as an Arrow array.

        Examples
        --------
        >>> import matchmill as mm
        >>> matches = mm.Engine({"u1": "price < 20"}).match_many([{"price": 12}])
        >>> matches.subscription_ids().to_pylist()
        ['u1']
        """
        return self._ids.ids_of_numbers(self.numbers)

    def _ids_of(self, some: slice) -> pa.Array:
        """Return the subscription of some of all matches."""
        return self._ids.ids_of_numbers(self.numbers[some])

    def event_ids(self) -> pa.Array:
        """Return the id of each event, or its position, as an Arrow array.

        Examples
        --------
        >>> import matchmill as mm
        >>> engine = mm.Engine({"u1": "price < 20"})
        >>> engine.match_many([{"no": "e1", "price": 12}], event_id="no").event_ids().to_pylist()
        ['e1']
        """
        if self._event_ids is not None:
            return self._event_ids
        return pa.array(np.arange(self._first, self._first + self.n_events))

    def to_arrow(self, *, per_event: bool = False) -> pa.Table:
        """Return the matches as an Arrow table.

        Parameters
        ----------
        per_event
            False gives one row per match: `event_id`, `subscription_id`. True gives one row per
            event, also for events without matches: `event_id`, `subscription_ids` (a list).

        Returns
        -------
        pyarrow.Table

        Examples
        --------
        >>> import matchmill as mm
        >>> matches = mm.Engine({"u1": "price < 20"}).match_many([{"price": 12}])
        >>> matches.to_arrow().to_pydict()
        {'event_id': [0], 'subscription_id': ['u1']}
        """
        ids = self.subscription_ids()
        if per_event:
            lists = pa.LargeListArray.from_arrays(pa.array(self.offsets), ids)
            return pa.table({"event_id": self.event_ids(), "subscription_ids": lists})
        if self._event_ids is None:
            events = pa.array(np.repeat(np.arange(self.n_events) + self._first, self.counts))
        else:
            events = self._event_ids.take(
                pa.array(np.repeat(np.arange(self.n_events), self.counts))
            )
        return pa.table({"event_id": events, "subscription_id": ids})

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self, *, per_event: bool = False) -> pd.DataFrame:
        """Return the matches as a pandas DataFrame, with the columns of `to_arrow`.

        Parameters
        ----------
        per_event
            As for `to_arrow`.

        Examples
        --------
        >>> import matchmill as mm
        >>> matches = mm.Engine({"u1": "price < 20"}).match_many([{"price": 12}])
        >>> len(matches.to_pandas())
        1
        """
        return self.to_arrow(per_event=per_event).to_pandas()

    def to_polars(self, *, per_event: bool = False) -> pl.DataFrame:
        """Return the matches as a polars DataFrame, with the columns of `to_arrow`.

        Parameters
        ----------
        per_event
            As for `to_arrow`.

        Examples
        --------
        >>> import matchmill as mm
        >>> matches = mm.Engine({"u1": "price < 20"}).match_many([{"price": 12}])
        >>> matches.to_polars().columns
        ['event_id', 'subscription_id']
        """
        try:
            import polars
        except ImportError:
            from matchmill.errors import MissingDependencyError

            raise MissingDependencyError("to_polars needs polars: pip install polars") from None
        frame = polars.from_arrow(self.to_arrow(per_event=per_event))
        assert isinstance(frame, polars.DataFrame)
        return frame

    def write(self, path: str | os.PathLike[str], *, per_event: bool = False) -> None:
        """Write the matches to a file, which appears whole or not at all.

        Parameters
        ----------
        path
            A path that ends in ``.parquet``, ``.csv`` or ``.jsonl``.
        per_event
            As for `to_arrow`. In CSV, the ids of an event are a JSON array.

        Raises
        ------
        FileFormatError
            If the file cannot be written.

        Examples
        --------
        >>> import matchmill as mm
        >>> matches = mm.Engine({"u1": "price < 20"}).match_many([{"price": 12}])
        >>> matches.write("matches.parquet")
        """
        from matchmill.io.writers import MatchWriter

        with MatchWriter(path, per_event=per_event) as writer:
            writer.write(self.to_arrow(per_event=per_event))

    def __repr__(self) -> str:
        return f"<Matches: {self._counts()}>"

    def __str__(self) -> str:
        lines = [self._counts()]
        for event_id, ids in self._first_events():
            lines.append(f"{event_id}: {ids}")
        if self.n_events > _MOST_SHOWN:
            lines.append(f"and {self.n_events - _MOST_SHOWN:,} more events")
        lines += [f"rejected: {one}" for one in self.rejected[:_MOST_SHOWN]]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        caption = self._counts()
        if self.n_events > _MOST_SHOWN:
            caption += f"; the first {_MOST_SHOWN} events:"
        return html_table(caption, ("event_id", "subscription_ids"), self._first_events())

    def _counts(self) -> str:
        rejected = f", {len(self.rejected):,} rejected" if self.rejected else ""
        return f"{self.n_events:,} events{rejected}, {self.n_matches:,} matches"

    def _first_events(self) -> list[tuple[object, str]]:
        n = min(self.n_events, _MOST_SHOWN)
        event_ids = self.event_ids()[:n].to_pylist()
        return [(event_ids[i], self._shown(i)) for i in range(n)]

    def _shown(self, event: int) -> str:
        start, stop = int(self.offsets[event]), int(self.offsets[event + 1])
        ids = self._ids_of(slice(start, min(stop, start + _MOST_SHOWN))).to_pylist()
        more = f", … ({stop - start:,})" if stop - start > _MOST_SHOWN else ""
        return ", ".join(map(str, ids)) + more
