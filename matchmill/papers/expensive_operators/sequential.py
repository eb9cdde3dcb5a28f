"""Sequential: at most d times the evaluations of the best order (Expensive operators, Algorithm 1).

d is the number of conditions in the longest chain; where costs differ, times the ratio of the
largest to the smallest cost (section 4.3). Chains are taken as they come. Of a chain that is
undecided, all conditions are evaluated for which another undecided chain asks, too, also after one
of them has turned out false: that is what the proof of the bound rests on.
"""

from __future__ import annotations

from collections.abc import Collection

from matchmill.operators.orders import Complete, Estimate, Known, KnowsChains, Walk

__all__ = ["Sequential"]


class Sequential(KnowsChains):
    """Evaluate chains one after the other, each by expected cost."""

    def walk(
        self, chains: Collection[int], known: Known, complete: Complete, estimate: Estimate
    ) -> Walk:
        """Decide some of the chains for one event."""
        conditions = self._conditions
        askers: dict[int, list[int]] = {}  # condition → chains
        for chain in chains:
            for condition in conditions[chain]:
                askers.setdefault(condition, []).append(chain)
        done: set[int] = set()

        def is_undecided(chain: int) -> bool:
            if chain in done:
                return False
            truths = [known.get(condition) for condition in conditions[chain]]
            return False not in truths and None in truths

        for chain in chains:
            if is_undecided(chain):
                for condition in conditions[chain]:
                    if condition not in known and any(map(is_undecided, askers[condition])):
                        yield condition
            if chain not in done and all(known.get(c, False) for c in conditions[chain]):
                done.update(complete(chain))
