"""A-Tree: expressions with shared parts as one graph, through which only TRUE travels.

Ji, Jacobsen, "A-Tree: A Dynamic Data Structure for Efficiently Indexing Arbitrary Boolean
Expressions", SIGMOD 2021. It works over expressions, so it is no index of clauses; it is there to
be measured against (`script/bench real --group nested`).

    node        a leaf (one condition), an AND or an OR; its level is 1 for leaves, else one more
                than the highest of its children
    NOT         is pushed down to the leaves and becomes part of their condition, so that no node
                ever has to know that another one is false
    sharing     a node is looked up by its operator and its children. What is not there takes
                children from existing nodes of the same operator whose children are some of its
                own, the largest first; and older nodes that have all of its children use it
    up          links from a child to those that it wakes: an OR is linked from all of its children,
                an AND from one of them only, its access child, drawn at random as in the paper

    event       true leaves, found by an index over one dimension. Then level by level: an OR that
                was woken is true; an AND asks its other children and stops at the first that is
                not true. Who is true wakes its parents, and its subscriptions match
    stamps      the number of the event for which a node was last true, or last woken: nothing is
                cleared between events

Example: `a and b and c` as 1, then `a and b` as 2, then `not (not a or not b) or c` as 3.

    leaves a, b, c      AND(a, b, c): 1      AND(a, b): 2, and 1 becomes AND(AND(a, b), c)
    3 is OR(AND(a, b), c): `not (not a or not b)` is the AND that is there already

Where ours deviates: the graph is built expression by expression as printed, and matched when it is
complete: deletion is left out. The index over one dimension is `counting` with one predicate per
clause. Expressions about lists, and calls of operators, are not taken.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

import numpy as np

from matchmill.encoding.clause_encoder import encode_clauses
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.columns import EventColumns
from matchmill.errors import InputError
from matchmill.index.base import ClauseMatches
from matchmill.index.match_buffer import collect_matches
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import kernel
from matchmill.language.expression import And, Constant, Expression, Not, Or, Predicate
from matchmill.language.normal_form import Clause, Dimension, predicate_clauses
from matchmill.papers.baselines.counting import Counting

__all__ = ["ATree"]

_LEAF, _AND, _OR = 0, 1, 2


class ATree:
    """A graph of expressions, which are numbered as they come.

    Parameters
    ----------
    expressions
        What to match.
    seed
        Of the choice of access children.
    """

    def __init__(self, expressions: Iterable[Expression], *, seed: int = 1) -> None:
        started = time.perf_counter()
        graph = _Graph()
        ends = [graph.add(expression, True) for expression in expressions]
        self.n_subscriptions = len(ends)
        leaves = [(node, c) for node, clauses in graph.leaves.items() for c in clauses]
        encoded = encode_clauses(Dimensions(), [c for _, c in leaves], np.arange(len(leaves)))
        self._dimensions = encoded.dimensions
        self._leaf_index = Counting.build(encoded.table)
        self._leaf_nodes = np.array([node for node, _ in leaves], np.int64)
        self._arrays = _flat(graph, ends, Random(seed))
        self.n_nodes = len(graph.kinds)
        self.build_seconds = time.perf_counter() - started

    @property
    def n_bytes(self) -> int:
        """The bytes of the graph and of the leaves' index, without the dictionary of values."""
        return sum(a.nbytes for a in self._arrays) + self._leaf_index.stats().n_bytes

    def match_columns(self, events: EventColumns) -> ClauseMatches:
        """Return the numbers of the expressions that are true of each event."""
        batch = encode_events(self._dimensions, events)
        leaves = self._leaf_index.match_batch(batch)
        nodes = self._leaf_nodes[leaves.clause_ids]
        graph = self._arrays
        scratch = np.full((2, self.n_nodes), -1, np.int64)
        queue = np.empty(self.n_nodes, np.int64)

        def match_from(start: int, offsets: np.ndarray, out: np.ndarray) -> int:
            scratch[:] = -1
            return _match_events(graph, leaves.offsets, nodes, start, scratch, queue, offsets, out)

        return collect_matches(batch.n_events, self.n_subscriptions, match_from)


# -- the graph ------------------------------------------------------------------------------------


class _Graph:
    """Nodes in the order of their making."""

    def __init__(self) -> None:
        self.kinds: list[int] = []
        self.wholes: list[frozenset[int]] = []  # what a node was made of
        self.children: list[set[int]] = []  # what it has now: parts of it may be one node
        self.leaves: dict[int, list[Clause]] = {}
        self._known: dict[object, int] = {}
        self._users: list[tuple[list[int], list[int]]] = []  # by AND, by OR: whose part it is

    def add(self, expression: Expression, wanted: bool) -> int:
        """Return the node that is true where an expression is TRUE; FALSE if it is not wanted."""
        while isinstance(expression, Not):
            expression, wanted = expression.operand, not wanted
        if isinstance(expression, And | Or):
            kind = _AND if isinstance(expression, And) == wanted else _OR
            parts = {part for one in expression.operands for part in self._parts(one, wanted, kind)}
            return self._node(kind, frozenset(parts))
        return self._leaf(expression, wanted)

    def _parts(self, operand: Expression, wanted: bool, kind: int) -> Iterable[int]:
        """Return the node of an operand; its parts if it has the same operator."""
        while isinstance(operand, Not):
            operand, wanted = operand.operand, not wanted
        if (
            isinstance(operand, And | Or)
            and (_AND if isinstance(operand, And) == wanted else _OR) == kind
        ):
            return {part for one in operand.operands for part in self._parts(one, wanted, kind)}
        return (self.add(operand, wanted),)

    def _leaf(self, expression: Expression, wanted: bool) -> int:
        key = (str(expression), wanted)  # 1 and true are equal in Python
        if key not in self._known:
            if isinstance(expression, Constant):
                clauses: list[Clause] = [{}] if expression.value == wanted else []
            elif isinstance(expression, Predicate):
                clauses = predicate_clauses(expression, wanted)
            else:
                raise InputError(f"A-Tree takes no {type(expression).__name__}: {expression}")
            if any(not isinstance(subject, Dimension) for c in clauses for subject in c):
                raise InputError(f"A-Tree takes no condition about lists: {expression}")
            self._known[key] = self._new(_LEAF, frozenset())
            self.leaves[self._known[key]] = clauses
        return self._known[key]

    def _new(self, kind: int, whole: frozenset[int]) -> int:
        node = len(self.kinds)
        self.kinds.append(kind)
        self.wholes.append(whole)
        self.children.append(set(whole))
        self._users.append(([], []))
        for part in whole:
            self._users[part][kind - 1].append(node)
        return node

    def _node(self, kind: int, whole: frozenset[int]) -> int:
        if len(whole) == 1:
            return next(iter(whole))
        key = (kind, whole)
        if key not in self._known:
            shared = Counter(user for part in whole for user in self._users[part][kind - 1])
            node = self._known[key] = self._new(kind, whole)
            self._take_from(node, [u for u, n in shared.items() if n == len(self.wholes[u])])
            for user, n in shared.items():
                if n == len(whole) and self.children[user] >= whole:
                    self.children[user] -= whole
                    self.children[user].add(node)
        return self._known[key]

    def _take_from(self, node: int, smaller: list[int]) -> None:
        """Have a node use older ones that are parts of it, the largest first."""
        left = set(self.wholes[node])
        for part in sorted(smaller, key=lambda n: -len(self.wholes[n])):
            if self.wholes[part] <= left:
                left -= self.wholes[part]
                self.children[node] -= self.wholes[part]
                self.children[node].add(part)


class _Arrays(NamedTuple):
    """The graph in flat arrays, nodes in the order of their levels."""

    is_and: np.ndarray  # bool
    levels: np.ndarray  # int64, from 0
    level_offsets: np.ndarray  # int64: how many nodes are on lower levels
    up_offsets: np.ndarray  # int64
    ups: np.ndarray  # int64: whom a node wakes
    child_offsets: np.ndarray  # int64
    children: np.ndarray  # int64: whom an AND asks
    end_offsets: np.ndarray  # int64
    ends: np.ndarray  # int64: the expressions that a node is


def _flat(graph: _Graph, ends: Sequence[int], random: Random) -> _Arrays:
    n = len(graph.kinds)
    levels = _levels(graph)
    ups: list[list[int]] = [[] for _ in range(n)]
    asked: list[list[int]] = [[] for _ in range(n)]
    for node, children in enumerate(graph.children):
        if graph.kinds[node] == _AND:
            asked[node] = sorted(children)
            ups[random.choice(asked[node])].append(node)
        for child in children if graph.kinds[node] == _OR else ():
            ups[child].append(node)
    subscriptions: list[list[int]] = [[] for _ in range(n)]
    for subscription, node in enumerate(ends):
        subscriptions[node].append(subscription)
    return _Arrays(
        np.array(graph.kinds) == _AND,
        levels,
        offsets_of(np.bincount(levels, minlength=1)),
        *_rows(ups),
        *_rows(asked),
        *_rows(subscriptions),
    )


def _levels(graph: _Graph) -> np.ndarray:
    """Return the level of each node. A node may use one that was made after it."""
    levels = np.full(len(graph.kinds), -1, np.int64)
    for first in range(len(levels)):
        pending = [first]
        while pending:
            node = pending[-1]
            unknown = [c for c in graph.children[node] if levels[c] < 0]
            if unknown:
                pending += unknown
                continue
            levels[node] = 1 + max((levels[c] for c in graph.children[node]), default=-1)
            pending.pop()
    return levels


def _rows(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = offsets_of(np.array([len(one) for one in lists], np.int64))
    return offsets, np.array([x for one in lists for x in one], np.int64)


# -- matching -------------------------------------------------------------------------------------


@kernel
def _asks(graph: _Arrays, node: int, event: int, true_of: np.ndarray) -> bool:
    """Whether all children of an AND are true."""
    for i in range(graph.child_offsets[node], graph.child_offsets[node + 1]):
        if true_of[graph.children[i]] != event:
            return False
    return True


@kernel
def _match_events(
    graph: _Arrays,
    leaf_offsets: np.ndarray,
    leaves: np.ndarray,
    start: int,
    stamps: np.ndarray,
    queue: np.ndarray,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    """Return the first event for which `out` had no room, or the number of events."""
    true_of, woken_by = stamps[0], stamps[1]
    n_levels = len(graph.level_offsets) - 1
    n_waiting = np.zeros(n_levels, np.int64)
    n_events = len(leaf_offsets) - 1
    for e in range(start, n_events):
        found = out_offsets[e]
        for i in range(leaf_offsets[e], leaf_offsets[e + 1]):
            leaf = leaves[i]
            if woken_by[leaf] != e:
                woken_by[leaf] = e
                queue[n_waiting[0]] = leaf
                n_waiting[0] += 1
        for level in range(n_levels):
            first = graph.level_offsets[level]
            for at in range(first, first + n_waiting[level]):
                node = queue[at]
                if graph.is_and[node] and not _asks(graph, node, e, true_of):
                    continue
                true_of[node] = e
                for i in range(graph.end_offsets[node], graph.end_offsets[node + 1]):
                    if found < len(out):
                        out[found] = graph.ends[i]
                    found += 1
                for i in range(graph.up_offsets[node], graph.up_offsets[node + 1]):
                    up = graph.ups[i]
                    if woken_by[up] != e:
                        woken_by[up] = e
                        above = graph.levels[up]
                        queue[graph.level_offsets[above] + n_waiting[above]] = up
                        n_waiting[above] += 1
            n_waiting[level] = 0
        if found > len(out):
            return e
        out_offsets[e + 1] = found
    return n_events
