"""Match typed values: typed PS-Trees find spaces, and an index files clauses under them.

    matcher = TypedMatcher({"age": "byte", "name": "string", "price": "double"}, index="pst_hash")
    matcher.insert({7: [("age", ">=", 18), ("name", "between", "a", "m")]})
    matcher.match({"age": 20, "name": "bo", "price": 0.5})      [7]

PSTBloom and PSTHash know nothing of types and operators (section 4.5): they want to know which
spaces a predicate covers, and in which space a value is. `typed_tree.py` tells both. What stands
between is a number for each space, in the order of the line, with gaps:

    spaces of age      … 17      18 … 20     21 … 30     31 …
    numbers            1         2**40       3*2**39     2**41
    between 18, 20               2**40 … 3*2**39 - 1
    >= 18                        2**40 … (no end)

A cut leaves its number to the left space, and the new one, to the right, gets a number between its
neighbours'. A predicate ends before the first space that it does not cover, so that its interval of
numbers stays right, whatever is cut inside of it later. Where there is no number left between two,
all spaces of the attribute get new ones, and the index is built again.

The index cuts these numbers into spaces of its own, one for one: what it does with keys is left as
it is. Which ranges have one end (section 3.3) is known from the operators here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError
from matchmill.index.base import DynamicIndex, IndexStats
from matchmill.index.registry import check_index_options, index_class
from matchmill.kernels.csr import offsets_of
from matchmill.papers.ps_tree.cuts import MAX_KEY
from matchmill.papers.ps_tree.forest import FIRST, NEXT, PREVIOUS
from matchmill.papers.ps_tree.index_base import PSTIndex
from matchmill.papers.ps_tree.typed_tree import TypedPSTree

__all__ = ["Predicate", "TypedMatcher"]

Predicate: TypeAlias = Sequence[Any]  # attribute, operator, values …
Intervals: TypeAlias = list[tuple[int, int]]

_END = 1 << 62  # above all numbers
_STEP = 1 << 40
_ONE_SIDED = frozenset({"<", "<=", ">", ">="})


class TypedMatcher:
    """Subscriptions by id, each a conjunction of predicates over typed attributes.

    `types` names the type of each attribute: one of `typed_elements.KINDS`. `index` is any index
    that changes in place, by its name in the registry, and `options` are its options.
    """

    def __init__(self, types: Mapping[str, str], *, index: str = "pst_bloom", **options: Any):
        check_index_options(index, options)
        self._spaces = {attribute: _NumberedSpaces(kind) for attribute, kind in types.items()}
        self._dimensions = {attribute: d for d, attribute in enumerate(types)}
        self._subscriptions: dict[int, list[Predicate]] = {}
        self._options = options
        self._index_class = index_class(index)
        self._index = self._built()

    def __len__(self) -> int:
        """Return the number of subscriptions."""
        return len(self._subscriptions)

    def insert(self, subscriptions: Mapping[int, Iterable[Predicate]]) -> None:
        """Insert subscriptions by their ids; an InputError means that none was inserted."""
        new: dict[int, list[Predicate]] = {
            i: [tuple(p) for p in predicates] for i, predicates in subscriptions.items()
        }
        for i, predicates in new.items():
            if isinstance(i, bool) or not isinstance(i, int):
                raise InputError(f"{i!r} is no id of a subscription; give an int")
            if i in self._subscriptions:
                raise InputError(f"subscription {i} is there already; delete it first")
            for predicate in predicates:
                self._check(predicate)
        for predicates in new.values():
            for attribute, operator, *values in predicates:
                self._spaces[attribute].insert(operator, values)
        self._subscriptions |= new
        if any(spaces.is_renumbered for spaces in self._spaces.values()):
            self._index = self._built()
        else:
            table, one_sided = self._table(new)
            cast(Any, self._index).insert(table, **self._sides(one_sided))

    def delete(self, ids: Iterable[int]) -> None:
        """Delete subscriptions; an InputError means that none was deleted."""
        gone = sorted(set(ids))
        missing = [i for i in gone if i not in self._subscriptions]
        if missing:
            raise InputError(f"there is no subscription {missing[0]!r}; none was deleted")
        self._index.delete(np.array(gone, np.int64))
        for i in gone:
            for attribute, operator, *values in self._subscriptions.pop(i):
                self._spaces[attribute].tree.delete(operator, *values)

    def match(self, event: Mapping[str, Any]) -> list[int]:
        """Return the ids of the subscriptions that an event satisfies, ascending."""
        return self.match_many([event])[0]

    def match_many(self, events: Iterable[Mapping[str, Any]]) -> list[list[int]]:
        """Return the same for each event. Attributes without a type have no predicates."""
        counts: list[int] = []
        dimensions: list[int] = []
        keys: list[int] = []
        for event in events:
            known = [(a, v) for a, v in event.items() if a in self._spaces]
            counts.append(len(known))
            dimensions += (self._dimensions[attribute] for attribute, _ in known)
            keys += (self._spaces[attribute].number_of(value) for attribute, value in known)
        batch = EventBatch(
            offsets_of(np.array(counts, np.int64)),
            np.array(dimensions, np.int32),
            np.array(keys, np.int64),
        )
        offsets, ids = self._index.match_batch(batch)
        bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        return [sorted(ids[a:b].tolist()) for a, b in bounds]

    def stats(self) -> IndexStats:
        """Return the figures of the index; the bytes are also those of the typed trees."""
        stats = self._index.stats()
        return stats._replace(
            n_bytes=stats.n_bytes + sum(spaces.n_bytes for spaces in self._spaces.values())
        )

    def _check(self, predicate: Predicate) -> None:
        if len(predicate) < 2:
            raise InputError(f"{predicate!r} is no predicate; give attribute, operator and values")
        attribute, operator, *values = predicate
        if attribute not in self._spaces:
            known = ", ".join(map(str, self._spaces))
            raise InputError(f"attribute {attribute!r} has no type; there are: {known}")
        self._spaces[attribute].tree.check(operator, *values)

    def _built(self) -> DynamicIndex:
        """Return the index of all subscriptions, with the numbers of now."""
        table, one_sided = self._table(self._subscriptions)
        index = self._index_class.build(table, None, **self._options, **self._sides(one_sided))
        if not isinstance(index, DynamicIndex):
            raise InputError(f"index {index.name!r} does not change in place; take pst_bloom")
        for spaces in self._spaces.values():
            spaces.is_renumbered = False
        return index

    def _sides(self, one_sided: np.ndarray) -> dict[str, np.ndarray]:
        """Return the argument that indexes of this paper have."""
        return {"one_sided": one_sided} if issubclass(self._index_class, PSTIndex) else {}

    def _table(
        self, subscriptions: Mapping[int, list[Predicate]]
    ) -> tuple[ConjunctionTable, np.ndarray]:
        """Return the clauses in numbers of spaces, and which predicates have one end."""
        n_predicates, dimensions, n_intervals = [], [], []
        one_sided: list[bool] = []
        bounds: Intervals = []
        for predicates in subscriptions.values():
            clause: dict[int, tuple[Intervals, bool]] = {}
            for attribute, operator, *values in predicates:
                d = self._dimensions[attribute]
                own = self._spaces[attribute].intervals(operator, values)
                if d in clause:
                    clause[d] = _intersection(clause[d][0], own), False
                else:
                    clause[d] = own, operator in _ONE_SIDED
            n_predicates.append(len(clause))
            for d in sorted(clause):
                own, has_one_end = clause[d]
                dimensions.append(d)
                n_intervals.append(len(own))
                one_sided.append(has_one_end)
                bounds += own
        flat = np.array(bounds, np.int64).reshape(-1, 2)
        table = ConjunctionTable(
            np.array(list(subscriptions), np.int64),
            offsets_of(np.array(n_predicates, np.int64)),
            np.array(dimensions, np.int32),
            offsets_of(np.array(n_intervals, np.int64)),
            flat[:, 0].copy(),
            flat[:, 1].copy(),
        )
        return table, np.array(one_sided, np.uint8)


class _NumberedSpaces:
    """A typed PS-Tree, and a number for each of its spaces."""

    def __init__(self, kind: str) -> None:
        self.tree = TypedPSTree(kind)
        self.is_renumbered = False
        self._numbers = np.zeros(len(self.tree.forest.leaves.cells), np.int64)
        self._numbers[self.tree.forest.trees[0, FIRST]] = 1

    @property
    def n_bytes(self) -> int:
        forest = self.tree.forest
        pools = (forest.nodes, forest.children, forest.leaves)
        return int(self._numbers.nbytes + sum(a.nbytes for pool in pools for a in pool))

    def insert(self, operator: str, values: Sequence[Any]) -> None:
        for new in self.tree.insert_cuts(operator, *values):
            self._number(new)

    def intervals(self, operator: str, values: Sequence[Any]) -> Intervals:
        """Return the numbers of the spaces that a predicate covers; neighbours are one interval."""
        found: Intervals = []
        for first, end in self.tree.ranges(operator, *values):
            low = int(self._numbers[first])
            high = MAX_KEY if end < 0 else int(self._numbers[end]) - 1
            if found and found[-1][1] + 1 == low:
                found[-1] = (found[-1][0], high)
            else:
                found.append((low, high))
        return found

    def number_of(self, value: Any) -> int:
        return int(self._numbers[self.tree.match(value)])

    def _number(self, new: int) -> None:
        """Give a new space a number between those of its neighbours."""
        leaves = self.tree.forest.leaves.cells
        if len(self._numbers) < len(leaves):
            more = np.zeros(len(leaves) - len(self._numbers), np.int64)
            self._numbers = np.concatenate((self._numbers, more))
        before, after = int(leaves[new, PREVIOUS]), int(leaves[new, NEXT])
        low = int(self._numbers[before])
        high = _END if after < 0 else int(self._numbers[after])
        if high - low < 2:
            self._number_all()
        elif after < 0 and high - low > 2 * _STEP:  # values often ascend, or descend
            self._numbers[new] = low + _STEP
        elif leaves[before, PREVIOUS] < 0 and high - low > 2 * _STEP:
            self._numbers[new] = high - _STEP
        else:
            self._numbers[new] = (low + high) // 2

    def _number_all(self) -> None:
        chain = []
        leaf = int(self.tree.forest.trees[0, FIRST])
        while leaf >= 0:
            chain.append(leaf)
            leaf = int(self.tree.forest.leaves.cells[leaf, NEXT])
        self._numbers[chain] = 1 + np.arange(len(chain)) * (_END // len(chain))
        self.is_renumbered = True


def _intersection(a: Intervals, b: Intervals) -> Intervals:
    found = [(max(x[0], y[0]), min(x[1], y[1])) for x in a for y in b]
    return sorted((low, high) for low, high in found if low <= high)
