"""What has changed since a version of the engine was built: small, and matched beside its shards.

    latest[id]     the latest state of an id: its expression and end, or None if it is gone
    ends[id]       when a subscription ends that is in the version itself

    matches = (those of the shards whose id is not in latest) and (those of latest)

Whether a version has an id is not known here and need not be. When the time of a batch has reached
the end of a subscription, the driver unsubscribes it.
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
from matchmill.spark.streaming.changes import Change, RejectedChange

__all__ = ["Delta", "Fresh"]


class Fresh(NamedTuple):
    """A subscription that is not in the version."""

    expression: str
    expires_at: int | None


class Delta:
    """The changes since a version."""

    def __init__(self, id_type: str, settings: Settings) -> None:
        self._id_type = pa.int64() if id_type == "bigint" else pa.string()
        self._settings = settings
        self.latest: dict[Id, Fresh | None] = {}
        self.ends: dict[Id, int] = {}
        self.is_saved = True  # whether the latest record has this state
        self._due: list[tuple[int, Id]] = []  # a heap; some entries are out of date
        self._n_due = 0  # how many there were when all were up to date
        self._since_mark: set[Id] | None = None

    def __len__(self) -> int:
        """Count the ids that differ from the version."""
        return len(self.latest)

    @property
    def n_fresh(self) -> int:
        """How many subscriptions are new or replaced."""
        return sum(fresh is not None for fresh in self.latest.values())

    @property
    def n_expiring(self) -> int:
        """How many subscriptions have an end."""
        fresh = sum(f is not None and f.expires_at is not None for f in self.latest.values())
        return fresh + len(self.ends)

    # -- changes ----------------------------------------------------------------------------------

    def apply(self, changes: Iterable[Change], time: int) -> list[RejectedChange]:
        """Make changes in their order, then end what ends by this time."""
        rejected = []
        for change in changes:
            try:
                self._set(*self._checked(change))
            except MatchmillError as error:
                reason = error.summary
                rejected.append(RejectedChange(change, reason))
        while self._due and self._due[0][0] <= time:
            end, subscription_id = heapq.heappop(self._due)
            if self._end_of(subscription_id) == end:
                self._set(subscription_id, None)
        if len(self._due) > 2 * self._n_due + 1000:  # subscriptions were renewed again and again
            self._gather_due()
        return rejected

    def _checked(self, change: Change) -> tuple[Id, Fresh | None]:
        subscription_id = check_id(change.id)
        if change.change == "unsubscribe":
            return subscription_id, None
        if change.change not in ("subscribe", "update"):
            raise InputError(f"a change is subscribe, update or unsubscribe, not {change.change!r}")
        if change.expression is None:
            raise InputError("the expression is missing: it is null")
        parsed = read_expression(change.expression, self._settings)
        normal_form(change.expression, parsed, self._settings)
        end = change.expires_at
        if end is None and change.change == "update":  # only what is given changes
            end = self._end_of(subscription_id)
        return subscription_id, Fresh(change.expression, end)

    def _set(self, subscription_id: Id, fresh: Fresh | None) -> None:
        self.latest[subscription_id] = fresh
        self.ends.pop(subscription_id, None)
        self.is_saved = False
        if self._since_mark is not None:
            self._since_mark.add(subscription_id)
        if fresh is not None and fresh.expires_at is not None:
            heapq.heappush(self._due, (fresh.expires_at, subscription_id))

    def _end_of(self, subscription_id: Id) -> int | None:
        if subscription_id in self.latest:
            fresh = self.latest[subscription_id]
            return None if fresh is None else fresh.expires_at
        return self.ends.get(subscription_id)

    # -- compaction -------------------------------------------------------------------------------

    def mark(self) -> pa.Table:
        """Return all of it, to be built into a version; note what changes later."""
        self._since_mark = set()
        return self.to_arrow()

    def forget_mark(self) -> None:
        """Stop noting changes: the build has failed."""
        self._since_mark = None

    def rebase(self) -> None:
        """Continue on top of a version that has what there was at the mark."""
        assert self._since_mark is not None
        later = self._since_mark
        for subscription_id, fresh in self.latest.items():
            if subscription_id not in later and fresh is not None and fresh.expires_at is not None:
                self.ends[subscription_id] = fresh.expires_at
        # Of an id that changed since, the version has an older expression: `latest` hides it.
        self.latest = {i: fresh for i, fresh in self.latest.items() if i in later}
        self.is_saved = False
        self._since_mark = None

    # -- files ------------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """Return one row per id; one that is gone has no expression."""
        fresh = self.latest.values()
        return pa.table(
            {
                "id": pa.array(self.latest, self._id_type),
                "expression": pa.array([f and f.expression for f in fresh], pa.string()),
                "expires_at": pa.array([f and f.expires_at for f in fresh], pa.int64()),
            }
        )

    def ends_to_arrow(self) -> pa.Table:
        """Return the ends of subscriptions in the version."""
        ids, ends = pa.array(self.ends, self._id_type), pa.array(self.ends.values(), pa.int64())
        return pa.table({"id": ids, "expires_at": ends})

    def load(self, rows: pa.Table | None, ends: pa.Table | None) -> None:
        """Take the state that these tables have."""
        self.latest, self.ends = {}, {}
        if rows is not None:
            for subscription_id, expression, end in zip(*_lists(rows), strict=True):
                self.latest[subscription_id] = (
                    None if expression is None else Fresh(expression, end)
                )
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
