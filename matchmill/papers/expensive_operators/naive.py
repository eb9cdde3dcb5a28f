"""Naive: subscriptions one by one, each on its own (Expensive operators, section 5.2).

A chain's conditions are evaluated as they were written, until one is false; results of before are
used again. What the paper compares with: it does not skip a chain for a later condition that is
known to be false.
"""

from __future__ import annotations

from collections.abc import Collection

from matchmill.operators.orders import Complete, Estimate, Known, KnowsChains, Walk

__all__ = ["Naive"]


class Naive(KnowsChains):
    """Evaluate conditions in the order in which they were written."""

    def walk(
        self, chains: Collection[int], known: Known, complete: Complete, estimate: Estimate
    ) -> Walk:
        """Decide some of the chains for one event."""
        done: set[int] = set()
        for chain in chains:
            if chain in done:
                continue
            for condition in self._conditions[chain]:
                if condition not in known:
                    yield condition
                if not known[condition]:
                    break
            else:
                done.update(complete(chain))
