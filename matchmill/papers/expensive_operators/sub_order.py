"""Sub-Order: chains in an order in which shared conditions decide early.

After Expensive operators, section 4.2; where it differs is said below.

    chain        its conditions, likely to be false and cheap ones first: by cost / (1 - chance).
                 One key for all chains, so links between chains never cross, as in the paper,
                 where costs are equal and the key is the chance
    reach        of a place in a chain: the chance that all conditions above it are true
    above        of a place: the expected cost of evaluating those above it
    shared       of a condition: sums of reach and above over all places that it has, and how many
    score        of a chain: what is saved by walking it before the others rather than after

`cost_difference` is the paper's pairwise model, for any number of links and for costs that differ
(section 4.3). A chain u saves, against a chain v and at the places of a condition they share,

    (1 - chance) × (reach of u × above of v  -  above of u × reach of v)

Where the paper compares all pairs and then looks for a path through the complete graph (that is
`greedy_path`), a chain's
score here is the sum of this over all v at once, from `shared`: the work is one visit of each
condition of each chain, and one sort, instead of a comparison for each pair. What is lost is that
`above` does not leave out conditions that the pair shares higher up.

Insertion and removal change the sums and give the one chain its place; the others keep theirs until
a refresh, which comes when chains or estimates have changed enough. Between two refreshes there are
at least as many evaluations or changes as a refresh has steps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from matchmill.operators.orders import Complete, Estimate, Known, Walk

__all__ = ["SubOrder", "chain_cost", "cost_difference"]

_DRIFT = 0.02  # mean change of a chance, or of a cost relative to it, that calls for a new order
_GROWTH = 0.25  # share of new places that does


class _Place(NamedTuple):
    condition: int
    reach: float
    above: float


class _Shared:
    __slots__ = ("above", "n", "reach")

    def __init__(self) -> None:
        self.n = 0
        self.reach = self.above = 0.0


class SubOrder:
    """Evaluate chains in an order that shares conditions."""

    def __init__(self) -> None:
        self._conditions: dict[int, tuple[int, ...]] = {}
        self._places: dict[int, tuple[_Place, ...]] = {}  # of chains that have been put in order
        self._score: dict[int, float] = {}
        self._shared: dict[int, _Shared] = {}
        self._used: dict[int, tuple[float, float]] = {}  # estimates that the order was made with
        self._n_places = 0
        self._n_since = self._n_new = 0  # evaluations, and new places, since the last refresh
        self._lock = threading.Lock()

    def add(self, chain: int, conditions: Sequence[int]) -> None:
        """Add a chain; its conditions differ."""
        self._conditions[chain] = tuple(conditions)

    def remove(self, chain: int) -> None:
        """Remove a chain."""
        with self._lock:
            del self._conditions[chain]
            places = self._places.pop(chain, ())
            self._score.pop(chain, None)
            self._count(places, -1)
            for place in places:
                if not self._shared[place.condition].n:
                    del self._shared[place.condition], self._used[place.condition]

    def walk(
        self, chains: Collection[int], known: Known, complete: Complete, estimate: Estimate
    ) -> Walk:
        """Decide some of the chains for one event."""
        with self._lock:
            self._prepare(chains, estimate)
            ordered = sorted(chains, key=self._score.__getitem__, reverse=True)
            places = [self._places[chain] for chain in ordered]
        done: set[int] = set()
        for chain, own in zip(ordered, places, strict=True):
            if chain in done or any(known.get(place.condition) is False for place in own):
                continue
            for place in own:
                if place.condition not in known:
                    self._n_since += 1
                    yield place.condition
                if not known[place.condition]:
                    break
            else:
                done.update(complete(chain))

    # -- the order

    def prepare(self, chains: Collection[int], estimate: Estimate) -> None:
        """Give chains their places before the first event; a walk would do it, too."""
        with self._lock:
            self._prepare(chains, estimate)

    def _prepare(self, chains: Collection[int], estimate: Estimate) -> None:
        """See that the chains have a place in the order, and that it is not too old."""
        new = [chain for chain in chains if chain not in self._places]
        n_before = self._n_places
        for chain in new:
            self._insert(chain, estimate)
        self._rank(new)
        self._n_new += self._n_places - n_before
        if self._n_since + self._n_new > self._n_places and n_before:
            if self._n_new > _GROWTH * n_before or self._drift(estimate) > _DRIFT:
                self._refresh(estimate)
            self._n_since = self._n_new = 0

    def _rank(self, new: Sequence[int]) -> None:
        """Give chains that have been inserted their place among all; the highest score is first."""
        for chain in new:
            self._score[chain] = self._score_of(chain)

    def _insert(self, chain: int, estimate: Estimate) -> None:
        for condition in self._conditions[chain]:
            if condition not in self._used:
                self._used[condition] = estimate(condition)
        places = tuple(_placed(self._conditions[chain], self._used.__getitem__))
        self._places[chain] = places
        self._count(places, 1)

    def _count(self, places: Sequence[_Place], sign: int) -> None:
        self._n_places += sign * len(places)
        for condition, reach, above in places:
            shared = self._shared.setdefault(condition, _Shared())
            shared.n += sign
            shared.reach += sign * reach
            shared.above += sign * above

    def _score_of(self, chain: int) -> float:
        score = 0.0
        for condition, reach, above in self._places[chain]:
            shared = self._shared[condition]
            others_above, others_reach = shared.above - above, shared.reach - reach
            saved = reach * others_above - above * others_reach
            score += (1 - self._used[condition][0]) * saved
        return score

    def _drift(self, estimate: Estimate) -> float:
        total = 0.0
        for condition, (chance, cost) in self._used.items():
            chance_now, cost_now = estimate(condition)
            total += abs(chance_now - chance) + min(1.0, abs(cost_now - cost) / cost)
        return total / max(1, len(self._used))

    def _refresh(self, estimate: Estimate) -> None:
        """Put all chains in order again: one visit of each place."""
        fresh = type(self)()
        fresh._conditions = self._conditions
        ordered = list(self._places)
        for chain in ordered:
            fresh._insert(chain, estimate)
        fresh._rank(ordered)
        self._used, self._shared = fresh._used, fresh._shared
        self._places, self._score = fresh._places, fresh._score
        self._n_places = fresh._n_places


def _placed(
    conditions: Sequence[int], estimate: Callable[[int], tuple[float, float]]
) -> Iterator[_Place]:
    """Conditions in the order in which one chain is cheapest alone."""

    def key(condition: int) -> tuple[float, int]:
        chance, cost = estimate(condition)
        return cost / (1 - chance) if chance < 1 else float("inf"), condition

    reach, above = 1.0, 0.0
    for condition in sorted(conditions, key=key):
        yield _Place(condition, reach, above)
        chance, cost = estimate(condition)
        above += reach * cost
        reach *= chance


# -- the paper's model ----------------------------------------------------------------------------


def chain_cost(conditions: Sequence[int], estimate: Estimate) -> float:
    """Return the expected cost of walking one chain alone, in the given order (section 4.2.3)."""
    cost, reach = 0.0, 1.0
    for condition in conditions:
        chance, own = estimate(condition)
        cost += reach * own
        reach *= chance
    return cost


def cost_difference(first: Sequence[int], second: Sequence[int], estimate: Estimate) -> float:
    """Return the expected cost of walking `first` before `second`, less that of the reverse.

    Sections 4.2.4 and 4.3, for any number of links: a difference arises where a shared condition
    is false and those shared above it are true. Whoever comes first then pays for its own
    conditions above that place, and saves the other one's if it gets there.
    """
    both = set(first) & set(second)
    difference = 0.0
    shared_reach = 1.0
    own = [_own_above(chain, both, estimate) for chain in (first, second)]
    for condition in (c for c in first if c in both):
        chance, _ = estimate(condition)
        (reach_1, above_1), (reach_2, above_2) = own[0][condition], own[1][condition]
        weight = shared_reach * (1 - chance)
        difference += weight * (reach_2 * above_1 - reach_1 * above_2)
        shared_reach *= chance
    return difference


def _own_above(
    chain: Sequence[int], both: set[int], estimate: Estimate
) -> dict[int, tuple[float, float]]:
    """Return, per shared condition, the chance and the cost of the chain's own conditions above it.

    The chance is that all of them are true; the cost is the expected one.
    """
    reach, above = 1.0, 0.0
    found = {}
    for condition in chain:
        if condition in both:
            found[condition] = (reach, above)
        else:
            chance, cost = estimate(condition)
            above += reach * cost
            reach *= chance
    return found
