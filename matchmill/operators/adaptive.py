"""Our own order: always the condition that is expected to decide most chains for its cost.

    gain of a condition  =  chance that it is false × undecided chains that ask for it / cost

Of the chains in question for this event, and no others: the plain predicates have been answered by
the index before, so which conditions are popular differs from event to event. This is the greedy
way to cover sets, which no order that runs in reasonable time beats by much (the problem has set
cover in it: Expensive operators, Theorem 1). Nothing is kept between events but the chains, so
insertion, removal and drift cost nothing; estimates are used as they are at the moment.

Gains only fall while an event is walked, since chains only get fewer. So a heap of old gains will
do: the top is taken if its gain is still the same, else put back with what it is now.
"""

from __future__ import annotations

from collections.abc import Collection
from heapq import heapify, heappop, heappush

from matchmill.operators.orders import Complete, Estimate, Known, KnowsChains, Walk

__all__ = ["Adaptive"]


class Adaptive(KnowsChains):
    """Evaluates next what is expected to decide most for its cost."""

    def walk(
        self, chains: Collection[int], known: Known, complete: Complete, estimate: Estimate
    ) -> Walk:
        """Decide some of the chains for one event."""
        conditions = self._conditions
        askers: dict[int, list[int]] = {}
        n_left: dict[int, int] = {}  # undecided chain → conditions that are not known to be true
        for chain in chains:
            own = conditions[chain]
            n_left[chain] = len(own)
            for condition in own:
                askers.setdefault(condition, []).append(chain)
        n_askers = {condition: len(asking) for condition, asking in askers.items()}

        def decide(chain: int) -> None:
            if n_left.pop(chain, None) is not None:
                for condition in conditions[chain]:
                    n_askers[condition] -= 1

        for chain in [chain for chain, n in n_left.items() if n == 0]:
            for other in (chain, *complete(chain)):
                decide(other)
        heap: list[tuple[float, int, int, float]] = []
        for condition, n in n_askers.items():
            chance, cost = estimate(condition)
            weight = (1 - chance) / cost
            heap.append((-weight * n, condition, n, weight))
        heapify(heap)
        while n_left:
            _, condition, n, weight = heappop(heap)
            n_now = n_askers[condition]
            if n_now != n:
                if n_now:
                    heappush(heap, (-weight * n_now, condition, n_now, weight))
                continue
            if condition not in known:
                yield condition
            is_true = known[condition]
            for chain in askers[condition]:
                if chain not in n_left:
                    continue
                n_left[chain] -= 1
                if not is_true:
                    decide(chain)
                elif n_left[chain] == 0:
                    for other in (chain, *complete(chain)):
                        decide(other)
