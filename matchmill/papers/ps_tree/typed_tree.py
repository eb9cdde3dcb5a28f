"""A PS-Tree over values of one type, with the operators of the paper (sections 3.1 and 4).

    operator            spaces (a cut lies before a value or after it)
    =                   before v … after v
    !=                  … before v, after v …
    <  <=  >  >=        … before v, … after v, after v …, before v …
    between a, b        before a … after b; none if a > b
    in, not in          as = for each value, and the gaps between them

An operator is supported as its predicates are unions of spaces; nothing else knows of operators.
The indexes work on keys and use the forest directly, as `predicate_tree.py` does;
`typed_matcher.py` gives them the spaces of this tree as keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from matchmill.errors import InputError
from matchmill.papers.common.pools import give_row
from matchmill.papers.ps_tree.cuts import add_cut, leaf_after_cut, plant, remove_cut
from matchmill.papers.ps_tree.forest import (
    CHILDREN,
    FANOUT,
    FIRST,
    MASK,
    N_EVENTS,
    N_PREDICATES,
    NEXT,
    PARENT,
    E,
    forest_with_room,
    leaf_of,
    new_forest,
    with_trees,
)
from matchmill.papers.ps_tree.typed_elements import KINDS, elements_of, value_of

__all__ = ["Space", "TypedPSTree"]


class Cut(NamedTuple):
    value: Any
    is_after: bool


Range = tuple[Cut | None, Cut | None]  # None: the end of the line


class Space(NamedTuple):
    """One leaf: where it begins (None: at the start of the line), and its counters."""

    leaf: int
    start: Cut | None
    n_predicates: int
    n_events: int


class TypedPSTree:
    """Spaces of one type; answers with leaves, and leaves the rest to its user."""

    def __init__(self, kind: str) -> None:
        if kind not in KINDS:
            raise InputError(f"unknown type {kind!r}; there are: {', '.join(KINDS)}")
        self._kind = kind
        self._live: Counter[tuple[str, tuple[bytes, ...]]] = Counter()
        self.forest = forest_with_room(with_trees(new_forest(), 1), 1)
        plant(self.forest, 0)

    def insert(self, operator: str, *values: Any) -> list[int]:
        """InsertPredicate, Alg. 1: the leaves that the predicate covers."""
        for _ in self.insert_cuts(operator, *values):
            pass
        return [leaf for each in self._ranges(operator, values) for leaf in self._leaves(each)]

    def insert_cuts(self, operator: str, *values: Any) -> Iterator[int]:
        """Do the same; iterate over the leaves that cuts make, each while it is the newest."""
        ranges = self._ranges(operator, values)
        self._live[self._name(operator, values)] += 1
        for cut in _cuts(ranges):
            elements = self._elements(cut)
            self.forest = forest_with_room(self.forest, 1, len(elements))
            new = add_cut(self.forest, 0, elements, len(elements), cut.is_after)
            if new >= 0:
                yield new
        covered = [leaf for each in ranges for leaf in self._leaves(each)]
        self.forest.leaves.cells[covered, N_PREDICATES] += 1

    def check(self, operator: str, *values: Any) -> None:
        """Raise InputError unless this could be inserted."""
        self._ranges(operator, values)

    def ranges(self, operator: str, *values: Any) -> list[tuple[int, int]]:
        """Return what an inserted predicate covers, ascending: first leaf, leaf after the last.

        The latter is -1 at the end of the line.
        """
        return [self._ends(each) for each in self._ranges(operator, values)]

    def delete(self, operator: str, *values: Any) -> None:
        """DeletePredicate: a predicate that was inserted with the same operator and values."""
        ranges = self._ranges(operator, values)
        name = self._name(operator, values)
        if not self._live[name]:
            raise InputError(f"there is no predicate {operator!r} with {values!r} to delete")
        self._live[name] -= 1
        covered = [leaf for each in ranges for leaf in self._leaves(each)]
        self.forest.leaves.cells[covered, N_PREDICATES] -= 1
        for cut in _cuts(ranges):
            elements = self._elements(cut)
            gone = remove_cut(self.forest, 0, elements, len(elements), cut.is_after)
            if gone >= 0:
                give_row(self.forest.leaves, gone)

    def match(self, value: Any) -> int:
        """MatchPair, Alg. 3: the leaf of a value, whose event counter rises."""
        elements = elements_of(self._kind, value)
        leaf = leaf_of(self.forest, 0, elements, len(elements))
        self.forest.leaves.cells[leaf, N_EVENTS] += 1
        return leaf

    def spaces(self) -> Iterator[Space]:
        """All spaces in order."""
        leaves = self.forest.leaves.cells
        leaf = int(self.forest.trees[0, FIRST])
        while leaf >= 0:
            _, _, left, _, n_predicates, n_events = leaves[leaf, :6].tolist()
            yield Space(leaf, self._start(leaf, left), n_predicates, n_events)
            leaf = int(leaves[leaf, NEXT])

    def _start(self, leaf: int, node: int) -> Cut | None:
        if node < 0:
            return None
        nodes = self.forest.nodes.cells
        is_after = bool(nodes[node, E] != leaf)
        elements = []
        while (parent := int(nodes[node, PARENT])) >= 0:
            row = self.forest.children.cells[nodes[parent, CHILDREN]]
            elements += [
                i for i in range(FANOUT) if nodes[parent, MASK] >> i & 1 and row[i] == node
            ]
            node = parent
        value = value_of(self._kind, np.array(elements[::-1], np.uint8))
        return Cut(value, is_after)

    def _ranges(self, operator: str, values: tuple[Any, ...]) -> list[Range]:
        if operator not in _OPERATORS:
            raise InputError(f"unknown operator {operator!r}; there are: {', '.join(_OPERATORS)}")
        n_values, ranges_of = _OPERATORS[operator]
        if n_values is not None and len(values) != n_values:
            raise InputError(f"{operator!r} takes {n_values} value(s), not {len(values)}")
        by_elements = {elements_of(self._kind, v).tobytes(): v for v in values}
        if operator == "between":
            first, last = (elements_of(self._kind, v).tobytes() for v in values)
            return ranges_of(values) if first <= last else []
        return ranges_of([by_elements[key] for key in sorted(by_elements)])

    def _name(self, operator: str, values: tuple[Any, ...]) -> tuple[str, tuple[bytes, ...]]:
        return operator, tuple(elements_of(self._kind, v).tobytes() for v in values)

    def _elements(self, cut: Cut) -> np.ndarray:
        return elements_of(self._kind, cut.value)

    def _ends(self, within: Range) -> tuple[int, int]:
        start, end = within
        leaf = int(self.forest.trees[0, FIRST]) if start is None else self._after(start)
        return leaf, -1 if end is None else self._after(end)

    def _leaves(self, within: Range) -> Iterator[int]:
        leaf, last = self._ends(within)
        while leaf != last:
            yield leaf
            leaf = int(self.forest.leaves.cells[leaf, NEXT])

    def _after(self, cut: Cut) -> int:
        elements = self._elements(cut)
        return leaf_after_cut(self.forest, 0, elements, len(elements), cut.is_after)


def _cuts(ranges: list[Range]) -> Iterator[Cut]:
    return (cut for each in ranges for cut in each if cut is not None)


def _points(values: Sequence[Any]) -> list[Range]:
    return [(Cut(v, False), Cut(v, True)) for v in values]


def _gaps(values: Sequence[Any]) -> list[Range]:
    starts = [None, *(Cut(v, True) for v in values)]
    ends = [*(Cut(v, False) for v in values), None]
    return list(zip(starts, ends, strict=True))


_OPERATORS: dict[str, tuple[int | None, Callable[[Sequence[Any]], list[Range]]]] = {
    "=": (1, _points),
    "!=": (1, _gaps),
    "<": (1, lambda values: [(None, Cut(values[0], False))]),
    "<=": (1, lambda values: [(None, Cut(values[0], True))]),
    ">": (1, lambda values: [(Cut(values[0], True), None)]),
    ">=": (1, lambda values: [(Cut(values[0], False), None)]),
    "between": (2, lambda values: [(Cut(values[0], False), Cut(values[1], True))]),
    "in": (None, _points),
    "not in": (None, _gaps),
}
