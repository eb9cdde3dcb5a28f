"""Tables of clauses that come from conjunctions of disjunctions, multiplied out."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable, take_clauses
from tests.support.conformance_kit import table_of

__all__ = ["random_products"]

_SETS = [[(1, 1)], [(2, 9)], [(5, 30)], [(0, 3)], [(0, 0)], [(4, 4), (7, 40)], [(12, 40)]]


def random_products(rng: Random, n_clauses: int, n_dimensions: int = 8) -> ConjunctionTable:
    """Products of one to three disjunctions of one to four predicates, one after the other."""
    clauses: list[dict[int, list[tuple[int, int]]]] = []
    while len(clauses) < n_clauses:
        dimensions = rng.sample(range(n_dimensions), n_dimensions)
        factors = []
        for size in rng.choice(((1,), (1, 1), (1, 2), (2, 2), (1, 1, 3), (1, 2, 3), (2, 4), (3,))):
            own, dimensions = dimensions[:size], dimensions[size:]
            factors.append([(dimension, rng.choice(_SETS)) for dimension in own])
        clauses += [dict(sorted(choice)) for choice in product(*factors)]
    return take_clauses(table_of(clauses), np.arange(n_clauses))
