"""Sub-Order as it is printed: chains along a path through the complete graph of all pairs.

After Expensive operators, section 4.2.5, which reduces the order of chains to a Traveling Salesman
Problem and solves it greedily, after Kruskal:

    vertex       a chain
    edge u → v   its weight is the expected cost of walking u before v, less that of the reverse
                 (`cost_difference`, sections 4.2.4 and 4.3)
    path         edges are taken from the least weight on, if none leaves or enters a vertex twice
                 and none closes a cycle; pieces that are left are put behind each other

The paper counts at most two edges per vertex, whatever their direction. Here one may enter and one
may leave, because a path that is walked has a direction: u before v. Of the two edges of a pair the
one with the lesser weight is taken first, so the other never is. Pairs that share no condition have
the weight zero: they say nothing, and are left out of the sort.

All pairs of chains that share a condition are compared: with popular conditions the work grows with
the square of the number of chains. `SubOrder` is for many; this is for comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from matchmill.operators.orders import Estimate
from matchmill.papers.expensive_operators.sub_order import SubOrder, cost_difference

__all__ = ["GreedyPath", "greedy_path"]


class GreedyPath(SubOrder):
    """Evaluate chains along the paper's greedy path.

    Chains that come later are walked last, until they are so many that a new path is made.
    """

    def _rank(self, new: Sequence[int]) -> None:
        """Give chains their place on the path."""
        n_known = len(self._places) - len(new)
        if n_known:
            last = min(self._score.values(), default=0.0)
            self._score.update({chain: last - n for n, chain in enumerate(new, 1)})
            return
        ordered = {c: [place.condition for place in self._places[c]] for c in new}
        path = greedy_path(ordered, self._used.__getitem__)
        self._score = {chain: -float(n) for n, chain in enumerate(path)}


def greedy_path(chains: dict[int, list[int]], estimate: Estimate) -> list[int]:
    """Return an order of chains; the conditions of each are in the order of one key for all."""
    edges = sorted(_edges(chains, estimate))
    following: dict[int, int] = {}
    entered: set[int] = set()
    piece: dict[int, int] = {chain: chain for chain in chains}  # towards a chain that names it

    def piece_of(chain: int) -> int:
        while piece[chain] != chain:
            piece[chain] = chain = piece[piece[chain]]
        return chain

    for _, first, second in edges:
        if first in following or second in entered or piece_of(first) == piece_of(second):
            continue
        following[first] = second
        entered.add(second)
        piece[piece_of(second)] = piece_of(first)
    path: list[int] = []
    for chain in chains:
        at: int | None = chain if chain not in entered else None
        while at is not None:
            path.append(at)
            at = following.get(at)
    return path


def _edges(chains: dict[int, list[int]], estimate: Estimate) -> Iterator[tuple[float, int, int]]:
    """Yield (weight, first, second) for all pairs between which there is a difference."""
    for first, second in _sharing(chains):
        weight = cost_difference(chains[first], chains[second], estimate)
        if weight < 0:
            yield weight, first, second
        elif weight > 0:
            yield -weight, second, first


def _sharing(chains: dict[int, list[int]]) -> Iterable[tuple[int, int]]:
    users: dict[int, list[int]] = {}
    for chain, conditions in chains.items():
        for condition in conditions:
            users.setdefault(condition, []).append(chain)
    pairs: dict[tuple[int, int], None] = {}
    for some in users.values():
        pairs.update(dict.fromkeys(combinations(some, 2)))
    return pairs
