"""What an index answered, in 16 bytes per event, so that answers can be compared exactly enough.

    counts[e]     how many subscriptions event e satisfies
    digests[e]    the sum of a 64-bit hash of each of them, modulo 2**64

Clauses become their owners, each counted once, and a sum knows no order: two indexes that find the
same subscriptions have the same digests. A missing, an extra or an exchanged subscription changes
the digest of its event; that it does not has a chance of 2**-64.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from matchmill.index.base import ClauseMatches
from matchmill.kernels.hashing import mix64

__all__ = ["Answers", "Verdict", "judge", "summarize"]

_CHUNK = 4_000_000  # pairs that are sorted at once


class Answers(NamedTuple):
    """What an index answered to each event."""

    counts: np.ndarray  # int64
    digests: np.ndarray  # uint64
    problem: str  # of the form: a clause that does not exist, or that is given twice

    @property
    def n_events(self) -> int:
        """Number of events."""
        return len(self.counts)

    @property
    def total(self) -> str:
        """One digest of all events, as text."""
        places = np.arange(1, self.n_events + 1, dtype=np.uint64)
        return f"{int(np.sum(_mixed(self.digests ^ _mixed(places)), dtype=np.uint64)):016x}"


def summarize(matches: ClauseMatches, owners: np.ndarray, n_events: int) -> Answers:
    """Return the answers of an index to a batch of events.

    `owners[c]` is the subscription of clause c.
    """
    counts = np.zeros(n_events, np.int64)
    digests = np.zeros(n_events, np.uint64)
    offsets, ids = matches.offsets, matches.clause_ids
    if len(offsets) != n_events + 1 or offsets[0] != 0 or offsets[-1] != len(ids):
        return Answers(counts, digests, f"{len(offsets)} offsets do not fit {n_events} events")
    if len(ids) and not (0 <= int(ids.min()) and int(ids.max()) < len(owners)):
        return Answers(counts, digests, "a clause that does not exist is among the matches")
    problem, start = "", 0
    while start < n_events:
        stop = int(np.searchsorted(offsets, offsets[start] + _CHUNK, side="right")) - 1
        stop = min(max(stop, start + 1), n_events)
        span = slice(start, stop)
        counts[span], digests[span], twice = _chunk(
            offsets[start : stop + 1], ids[offsets[start] : offsets[stop]], owners
        )
        if twice >= 0 and not problem:
            problem = f"event {start + twice}: a clause is given twice"
        start = stop
    return Answers(counts, digests, problem)


def _chunk(
    offsets: np.ndarray, ids: np.ndarray, owners: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    n_events = len(offsets) - 1
    events = np.repeat(np.arange(n_events, dtype=np.int64), np.diff(offsets))
    pairs = events * len(owners) + ids
    pairs.sort()
    same = np.flatnonzero(pairs[1:] == pairs[:-1])
    twice = int(pairs[same[0]] // len(owners)) if len(same) else -1
    events, clauses = np.divmod(pairs, max(len(owners), 1))
    found = owners[clauses]  # owners ascend with clauses, so equal ones stand side by side
    first = np.ones(len(found), np.bool_)
    first[1:] = (found[1:] != found[:-1]) | (events[1:] != events[:-1])
    events, found = events[first], found[first]
    sums = np.concatenate(([np.uint64(0)], np.cumsum(_mixed(found.astype(np.uint64)))))
    ends = np.searchsorted(events, np.arange(n_events + 1))
    return np.diff(ends), sums[ends[1:]] - sums[ends[:-1]], twice


def _mixed(values: np.ndarray) -> np.ndarray:
    return mix64(values + np.uint64(0x9E3779B97F4A7C15))


class Verdict(NamedTuple):
    """Whether answers are right, and who says so."""

    problem: str  # empty if the answers are right
    reference: str  # who says so


def judge(answers: Mapping[str, Answers], scan: Answers) -> dict[str, Verdict]:
    """Compare all with a scan, and where the scan has stopped with what most contenders say.

    `scan` may cover fewer events than the others: a million subscriptions take it a while.
    """
    most = max((a.n_events for a in answers.values()), default=0)
    counts, digests = np.zeros(most, np.int64), np.zeros(most, np.uint64)
    known = min(scan.n_events, most)
    counts[:known], digests[:known] = scan.counts[:known], scan.digests[:known]
    for e in range(known, most):
        counts[e], digests[e] = _majority(answers, e)
    verdicts = {}
    for name, own in answers.items():
        n = own.n_events
        reference = "scan" if known >= n else f"scan for {known:,} of {n:,} events, then majority"
        problem = own.problem or _difference(own, counts[:n], digests[:n], known)
        verdicts[name] = Verdict(problem, reference)
    return verdicts


def _majority(answers: Mapping[str, Answers], e: int) -> tuple[int, int]:
    votes = Counter(
        (int(a.counts[e]), int(a.digests[e]))
        for a in answers.values()
        if e < a.n_events and not a.problem
    )
    return votes.most_common(1)[0][0] if votes else (0, 0)  # a draw: the first one


def _difference(own: Answers, counts: np.ndarray, digests: np.ndarray, known: int) -> str:
    differ = np.flatnonzero((own.counts != counts) | (own.digests != digests))
    if not len(differ):
        return ""
    e = int(differ[0])
    who = "the scan" if e < known else "the majority"
    return (
        f"{len(differ):,} of {own.n_events:,} events have other matches than {who} found; the "
        f"first is event {e}: {int(own.counts[e]):,} instead of {int(counts[e]):,}"
        + (", and not the same" if own.counts[e] == counts[e] else "")
    )
