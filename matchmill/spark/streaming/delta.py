"""What has changed since a version of the index was built: small, and matched beside its shards.

    latest[id]     the last word on an id: its expression and end, or None if it is gone
    ends[id]       when a subscription ends that is in the version itself

    matches = (those of the shards whose id is not in latest) and (those of latest)

Whether a version has an id is not known here and need not be. An end is a cancellation that the
driver makes by itself, when the time of a batch has come to it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from matchmill.engine.expression_input import normal_form, read_expression
from matchmill.engine.subscription_table import Id, check_id
from matchmill.errors import InputError, MatchmillError
from matchmill.settings import Settings
from matchmill.spark.streaming.changes import Change, RefusedChange, refusal

__all__ = ["Delta", "Fresh"]


class Fresh(NamedTuple):
    """A subscription that is not in the version."""

    expression: str
    expires_at: int | None


class Delta:
    def __init__(self, id_type: str, settings: Settings) -> None:
        self._id_type = pa.int64() if id_type == "bigint" else pa.string()
        self._settings = settings
        self.latest: dict[Id, Fresh | None] = {}
        self.ends: dict[Id, int] = {}
        self.is_saved = True  # whether the latest record has it as it is
        self._due: list[tuple[int, Id]] = []  # a heap, in which some are out of date
        self._n_due = 0  # how many there were when none was
        self._since_mark: set[Id] | None = None

    def __len__(self) -> int:
        return len(self.latest)

    @property
    def n_fresh(self) -> int:
        return sum(fresh is not None for fresh in self.latest.values())

    @property
    def n_expiring(self) -> int:
        fresh = sum(f is not None and f.expires_at is not None for f in self.latest.values())
        return fresh + len(self.ends)

    # -- changes ----------------------------------------------------------------------------------

    def apply(self, changes: Iterable[Change], time: int) -> list[RefusedChange]:
        """Take changes in their order, then end what ends by this time."""
        refused = []
        for change in changes:
            try:
                self._set(*self._checked(change))
            except MatchmillError as error:
                reason = error.summary
                refused.append(refusal(change, reason))
        while self._due and self._due[0][0] <= time:
            end, identifier = heapq.heappop(self._due)
            if self._end_of(identifier) == end:
                self._set(identifier, None)
        if len(self._due) > 2 * self._n_due + 1000:  # subscriptions were renewed again and again
            self._gather_due()
        return refused

    def _checked(self, change: Change) -> tuple[Id, Fresh | None]:
        identifier = check_id(change.id)
        if change.kind == "cancel":
            return identifier, None
        if change.kind != "subscribe":
            raise InputError(f"a change is of the kind subscribe or cancel, not {change.kind!r}")
        if change.expression is None:
            raise InputError("there is no expression: it is null")
        parsed = read_expression(change.expression, self._settings)
        normal_form(change.expression, parsed, self._settings)
        return identifier, Fresh(change.expression, change.expires_at)

    def _set(self, identifier: Id, fresh: Fresh | None) -> None:
        self.latest[identifier] = fresh
        self.ends.pop(identifier, None)
        self.is_saved = False
        if self._since_mark is not None:
            self._since_mark.add(identifier)
        if fresh is not None and fresh.expires_at is not None:
            heapq.heappush(self._due, (fresh.expires_at, identifier))

    def _end_of(self, identifier: Id) -> int | None:
        if identifier in self.latest:
            fresh = self.latest[identifier]
            return None if fresh is None else fresh.expires_at
        return self.ends.get(identifier)

    # -- compaction -------------------------------------------------------------------------------

    def mark(self) -> pa.Table:
        """All of it as it is, to be built into a version; what comes later is noted."""
        self._since_mark = set()
        return self.to_arrow()

    def forget_mark(self) -> None:
        self._since_mark = None

    def rebase(self) -> None:
        """Go on upon a version that has what there was at the mark."""
        assert self._since_mark is not None
        later = self._since_mark
        for identifier, fresh in self.latest.items():
            if identifier not in later and fresh is not None and fresh.expires_at is not None:
                self.ends[identifier] = fresh.expires_at
        # Of an id that changed since, the version has an older expression: `latest` hides it.
        self.latest = {i: fresh for i, fresh in self.latest.items() if i in later}
        self.is_saved = False
        self._since_mark = None

    # -- files ------------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """A row an id; one that is gone has no expression."""
        fresh = self.latest.values()
        return pa.table(
            {
                "id": pa.array(self.latest, self._id_type),
                "expression": pa.array([f and f.expression for f in fresh], pa.string()),
                "expires_at": pa.array([f and f.expires_at for f in fresh], pa.int64()),
            }
        )

    def ends_to_arrow(self) -> pa.Table:
        ids, ends = pa.array(self.ends, self._id_type), pa.array(self.ends.values(), pa.int64())
        return pa.table({"id": ids, "expires_at": ends})

    def load(self, rows: pa.Table | None, ends: pa.Table | None) -> None:
        """Be what these tables say."""
        self.latest, self.ends = {}, {}
        if rows is not None:
            for identifier, expression, end in zip(*_lists(rows), strict=True):
                self.latest[identifier] = None if expression is None else Fresh(expression, end)
        if ends is not None:
            known = zip(*_lists(ends), strict=True)
            self.ends = {i: end for i, end in known if i not in self.latest}
        self.is_saved = True
        self._since_mark = None
        self._gather_due()

    def _gather_due(self) -> None:
        fresh = [(i, f.expires_at) for i, f in self.latest.items() if f is not None]
        self._due = [(end, i) for i, end in [*fresh, *self.ends.items()] if end is not None]
        heapq.heapify(self._due)
        self._n_due = len(self._due)


def _lists(table: pa.Table) -> list[list[object]]:
    return [column.to_pylist() for column in table.columns]
