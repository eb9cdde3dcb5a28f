"""The dimensions of an engine: which there are, their cut points, what each attribute feeds.

    ids      (attribute, derivation, argument) → dimension id, 0, 1, 2, …
    tables   dimension id → {region: CutTable}
    plans    attribute → the dimensions to fill from its value
    roots    what is before the first dot of attributes that have one: `geo` of `geo.lat`
    with_patterns   the attributes that have flags
    version  incremented after every change: a reader of the version sees the change

Keys on a dimension, in the order of types (the regions of `language.values`):

    0 absent   1 false   2 true   3 a list   4 an object   [r << 60, (r + 1) << 60) labels of r

Dimensions only grow, and a table is replaced as a whole, so a reader can go on while a writer
adds: a new cut point inside a gap does not change the truth of any older predicate. Relabelling
would, so it is done in a copy (`copy`), and the old dimensions stay unchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.encoding.cut_points import CutTable
from matchmill.kernels.forks import ForkLock
from matchmill.language.normal_form import FLAG_DERIVATIONS, Dimension, multi_valued
from matchmill.language.values import Region

__all__ = [
    "FALSE_KEY",
    "LAST_KEYS",
    "LIST_KEY",
    "OBJECT_KEY",
    "START_KEYS",
    "TRUE_KEY",
    "AttributePlan",
    "Dimensions",
]

FALSE_KEY, TRUE_KEY, LIST_KEY, OBJECT_KEY = 1, 2, 3, 4
# The first key of each region, and the last key before it; objects come after the lists.
START_KEYS = (0, FALSE_KEY, LIST_KEY, *(r << 60 for r in range(Region.NUMBER, Region.END + 1)))
LAST_KEYS = (-1, 0, TRUE_KEY, OBJECT_KEY, *(k - 1 for k in START_KEYS[Region.DATE :]))


class AttributePlan:
    """What to do with the value of one attribute. Dicts are replaced, lists only grow.

    What to do with each of several values is a plan too, of the multi-valued dimensions.
    """

    __slots__ = ("compiled", "lock", "multi", "patterns", "transforms", "value")

    def __init__(self) -> None:
        self.value = -1  # the dimension of the value itself
        self.transforms: dict[str, int] = {}  # reversed, lower, … → dimension
        self.patterns: dict[str, list[tuple[str, int]]] = {}  # derivation → (argument, id), …
        self.compiled: dict[str, tuple[np.ndarray, Any]] = {}  # derivation → (ids, matcher)
        self.multi: dict[str, AttributePlan] = {}  # each, values → plan of a value
        self.lock = ForkLock()  # held while a matcher is compiled

    def add(self, dimension: Dimension, dimension_id: int) -> None:
        """Add a dimension that this attribute feeds."""
        kind, derivation = multi_valued(dimension.derivation)
        if kind:
            if kind not in self.multi:
                self.multi = {**self.multi, kind: AttributePlan()}
            self.multi[kind].add(dimension._replace(derivation=derivation), dimension_id)
        elif derivation == "value":
            self.value = dimension_id
        elif derivation in FLAG_DERIVATIONS:
            if derivation not in self.patterns:
                self.patterns = {**self.patterns, derivation: []}
            self.patterns[derivation].append((dimension.argument, dimension_id))
        else:
            self.transforms = {**self.transforms, derivation: dimension_id}

    def copy(self) -> AttributePlan:
        """Return the same plan, which grows independently."""
        other = AttributePlan()
        other.value = self.value
        other.transforms = self.transforms
        other.patterns = {name: list(patterns) for name, patterns in self.patterns.items()}
        other.compiled = self.compiled
        other.multi = {kind: plan.copy() for kind, plan in self.multi.items()}
        return other

    def made(self) -> list[int]:
        """Return all dimensions but that of the value by itself."""
        flags = [d for patterns in self.patterns.values() for _, d in patterns]
        parts = [d for plan in self.multi.values() for d in (plan.value, *plan.made()) if d >= 0]
        return [*self.transforms.values(), *flags, *parts]


class Dimensions:
    """All dimensions of one engine (or of the elements of one list attribute)."""

    def __init__(self) -> None:
        self.keys: list[Dimension] = []
        self.ids: dict[Dimension, int] = {}
        self.tables: list[dict[int, CutTable]] = []
        self.plans: dict[str, AttributePlan] = {}
        self.roots: set[str] = set()
        self.with_patterns: set[str] = set()
        self.version = 0
        self._n_places = 0  # dimensions and cut points
        self._n_needed = 0  # of them when they were last made from what is used

    def __len__(self) -> int:
        return len(self.keys)

    def id_of(self, dimension: Dimension) -> int:
        """Return the id of a dimension, a new one if it has none."""
        known = self.ids.get(dimension)
        if known is not None:
            return known
        new = len(self.keys)
        self._n_places += 1
        self.tables.append({})
        self.keys.append(dimension)
        self.ids[dimension] = new
        plan = self.plans.get(dimension.attribute)
        if plan is None:
            plan = AttributePlan()
            plan.add(dimension, new)
            self.plans[dimension.attribute] = plan
            root, dot, _ = dimension.attribute.partition(".")
            if dot:
                self.roots.add(root)
        else:
            plan.add(dimension, new)
        if multi_valued(dimension.derivation)[1] in FLAG_DERIVATIONS:
            self.with_patterns.add(dimension.attribute)
        self.version += 1
        return new

    def table(self, dimension_id: int, region: int) -> CutTable:
        """Return the cut points of one type on a dimension."""
        return self.tables[dimension_id].get(region) or CutTable(region)

    def set_table(self, dimension_id: int, table: CutTable) -> None:
        """Replace the cut points of one type on a dimension."""
        self._n_places += table.n_cuts - self.table(dimension_id, table.region).n_cuts
        self.tables[dimension_id] = {**self.tables[dimension_id], table.region: table}
        self.version += 1

    def copy(self) -> Dimensions:
        """Return the same dimensions, whose tables can be replaced independently."""
        other = Dimensions()
        other.keys = list(self.keys)
        other.ids = dict(self.ids)
        other.tables = list(self.tables)
        other.plans = {name: plan.copy() for name, plan in self.plans.items()}
        other.roots = set(self.roots)
        other.with_patterns = set(self.with_patterns)
        other._n_places, other._n_needed = self._n_places, self._n_needed
        return other

    def all_are_needed(self) -> None:
        """Note that all dimensions and cut points are used, as far as anybody knows."""
        self._n_needed = self._n_places

    @property
    def n_doubtful(self) -> int:
        """How many dimensions and cut points more there are than twice those that were needed."""
        return self._n_places - 2 * self._n_needed

    @property
    def n_cuts(self) -> int:
        """The number of cut points of all dimensions."""
        return sum(table.n_cuts for tables in self.tables for table in tables.values())

    @property
    def n_bytes(self) -> int:
        """The bytes of the cut points (the registry itself is small)."""
        return sum(table.n_bytes for tables in self.tables for table in tables.values())
