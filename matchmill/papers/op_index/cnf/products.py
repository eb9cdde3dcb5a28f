"""From clauses back to conjunctions of disjunctions: runs of clauses that are a product.

An engine gives its indexes conjunctions. It has multiplied out what was a conjunction of
disjunctions, so the product stands in the table row after row, the last factor varying fastest:

    x and (a or b) and (c or d or e)        x a c    x a d    x a e    x b c    x b d    x b e

A run is found from the inside. Row 1 differs from row 0 in one predicate (c, d), and as long as the
next row has another one in that place, the factor grows (c, d, e). Then blocks take the part of
rows: the second block of three is the first one with b in the place of a. When no further block
fits, the run is a *product*:

    factors       (a, b) and (c, d, e); each in the order of the rows
    the rest      x: factors of one predicate
    clause t      of the product has from each factor one predicate: the digits of t, the last
                  factor's first, in mixed radix (t = 4: b, d)

A product is kept only if OpIndex, which files it under each dimension of its shortest factor, has
no more entries for it than for its clauses. Any other row is a product of one clause. So which
products are found changes no answer, but only the number of entries. They need not be of one
subscription: `x and a`, `x and b`, one after the other, share what `x and (a or b)` shares.

Predicates of one factor are on dimensions of their own, as in any disjunction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.distinct_predicates import find_distinct
from matchmill.kernels.csr import take_ranges
from matchmill.kernels.jit import kernel
from matchmill.papers.op_index.cnf.cnf_table import CnfTable

__all__ = ["Products", "find_products", "multiplied_out"]

_MOST_CLAUSES = 64  # of a product: all of them are looked at when it holds


class Products(NamedTuple):
    """Products, and their clauses.

    Product i is subscription i of the table. Its disjunctions are its factors, and its clauses, in
    the order of the digits, are clause_ids[clause_offsets[i]] ….
    """

    table: CnfTable
    clause_offsets: np.ndarray  # int64
    clause_ids: np.ndarray  # int64


def find_products(table: ConjunctionTable, first_id: int = 0) -> Products:
    """Return all clauses as products, numbered from `first_id` on."""
    n = table.n_clauses
    clause_offsets, factor_offsets = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    # A product of several clauses has fewer predicates than these.
    predicate_offsets = np.empty(table.n_predicates + 1, np.int64)
    predicates = np.empty(table.n_predicates, np.int64)
    n_products, n_factors, n_predicates = _find_products(
        table.clause_offsets,
        table.dimensions,
        find_distinct(table).ids,
        clause_offsets,
        factor_offsets,
        predicate_offsets,
        predicates,
    )
    predicates = predicates[:n_predicates]
    interval_offsets, intervals = take_ranges(table.interval_offsets, predicates)
    products = CnfTable(
        np.arange(first_id, first_id + n_products),
        factor_offsets[: n_products + 1].copy(),
        predicate_offsets[: n_factors + 1].copy(),
        table.dimensions[predicates],
        interval_offsets,
        table.lows[intervals],
        table.highs[intervals],
    )
    return Products(products, clause_offsets[: n_products + 1].copy(), table.clause_ids)


def multiplied_out(products: Products, clauses: np.ndarray) -> ConjunctionTable:
    """Return some of the clauses again, by their positions in `clause_ids`."""
    table = products.table
    owners = np.searchsorted(products.clause_offsets, clauses, side="right") - 1
    lengths = np.diff(table.subscription_offsets)[owners]
    clause_offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    predicates = np.empty(clause_offsets[-1], np.int64)
    _pick_predicates(
        table.subscription_offsets,
        table.disjunction_offsets,
        owners,
        clauses - products.clause_offsets[owners],
        predicates,
    )
    rows = np.repeat(np.arange(len(clauses)), lengths)
    predicates = predicates[np.lexsort((table.dimensions[predicates], rows))]
    interval_offsets, intervals = take_ranges(table.interval_offsets, predicates)
    return ConjunctionTable(
        products.clause_ids[clauses],
        clause_offsets,
        table.dimensions[predicates],
        interval_offsets,
        table.lows[intervals],
        table.highs[intervals],
    )


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _difference(
    offsets: np.ndarray, dimensions: np.ndarray, ids: np.ndarray, i: int, j: int
) -> tuple[int, int]:
    """Return the one predicate that row i has and row j has not, and the other way round.

    (-1, -1) if there are none or several, or if they are on one dimension.
    """
    none = -1, -1
    a, a_stop = offsets[i], offsets[i + 1]
    b, b_stop = offsets[j], offsets[j + 1]
    if a_stop - a != b_stop - b:
        return none
    only_a, only_b = -1, -1
    while a < a_stop or b < b_stop:
        if a < a_stop and b < b_stop and dimensions[a] == dimensions[b]:
            if ids[a] != ids[b]:
                return none
            a += 1
            b += 1
        elif b == b_stop or (a < a_stop and dimensions[a] < dimensions[b]):
            if only_a >= 0:
                return none
            only_a = a
            a += 1
        else:
            if only_b >= 0:
                return none
            only_b = b
            b += 1
    return only_a, only_b


@kernel
def _is_next_block(
    offsets: np.ndarray,
    dimensions: np.ndarray,
    ids: np.ndarray,
    first: int,
    block: int,
    size: int,
    old: int,
    new: int,
) -> bool:
    """Whether the rows from `block` on are those from `first` on, with another predicate."""
    for t in range(1, size):
        p, q = _difference(offsets, dimensions, ids, first + t, block + t)
        if p < 0 or ids[p] != old or ids[q] != new:
            return False
    return True


@kernel
def _grow_factor(
    offsets: np.ndarray,
    dimensions: np.ndarray,
    ids: np.ndarray,
    first: int,
    size: int,
    is_factor: np.ndarray,
    found: np.ndarray,
) -> int:
    """Find the factor that repeats the block of `size` rows from `first` on.

    Its predicates are written to `found`, and their number is returned: 1 or less if there is none.
    is_factor[k] says that predicate k of the first row is in a factor already.
    """
    n_rows = len(offsets) - 1
    n = 1
    while size * (n + 1) <= _MOST_CLAUSES and first + size * (n + 1) <= n_rows:
        block = first + size * n
        p, q = _difference(offsets, dimensions, ids, first, block)
        if p < 0 or is_factor[p - offsets[first]]:
            return n
        if n == 1:
            found[0] = p
        elif p != found[0]:
            return n
        for k in range(n):
            if dimensions[found[k]] == dimensions[q]:
                return n
        if not _is_next_block(offsets, dimensions, ids, first, block, size, ids[p], ids[q]):
            return n
        found[n] = q
        n += 1
    return n


@kernel
def _find_products(
    offsets: np.ndarray,
    dimensions: np.ndarray,
    ids: np.ndarray,
    out_clauses: np.ndarray,
    out_factors: np.ndarray,
    out_predicate_offsets: np.ndarray,
    out_predicates: np.ndarray,
) -> tuple[int, int, int]:
    """Write all products; returns how many they are, their factors and their predicates."""
    n_rows = len(offsets) - 1
    longest = 0
    for i in range(n_rows):
        longest = max(longest, offsets[i + 1] - offsets[i])
    is_factor = np.zeros(longest, np.bool_)
    factors = np.empty((7, _MOST_CLAUSES), np.int64)  # 2 ** 6 is the most that a product has
    sizes = np.empty(7, np.int64)
    out_clauses[0] = out_factors[0] = out_predicate_offsets[0] = 0
    n_products = n_factors = n_predicates = i = 0
    while i < n_rows:
        first, length = offsets[i], offsets[i + 1] - offsets[i]
        size, n_found = 1, 0
        while n_found < length and length > 1:  # of rows with one predicate nothing is shared
            n = _grow_factor(offsets, dimensions, ids, i, size, is_factor, factors[n_found])
            if n < 2:
                break
            is_factor[factors[n_found, 0] - first] = True
            sizes[n_found] = n
            size *= n
            n_found += 1
        # The factors of one predicate, and then the others: the one found first varies fastest.
        for k in range(length):
            if not is_factor[k]:
                out_predicates[n_predicates] = first + k
                n_predicates += 1
                n_factors += 1
                out_predicate_offsets[n_factors] = n_predicates
            is_factor[k] = False
        for f in range(n_found - 1, -1, -1):
            for k in range(sizes[f]):
                out_predicates[n_predicates] = factors[f, k]
                n_predicates += 1
            n_factors += 1
            out_predicate_offsets[n_factors] = n_predicates
        n_products += 1
        i += size
        out_clauses[n_products] = i
        out_factors[n_products] = n_factors
    return n_products, n_factors, n_predicates


@kernel
def _pick_predicates(
    subscription_offsets: np.ndarray,
    disjunction_offsets: np.ndarray,
    owners: np.ndarray,
    numbers: np.ndarray,
    out_predicates: np.ndarray,
) -> None:
    """Write the predicates of clause numbers[k] of product owners[k], one clause after another."""
    n = 0
    for k in range(len(owners)):
        first, stop = subscription_offsets[owners[k]], subscription_offsets[owners[k] + 1]
        rest = numbers[k]
        for c in range(stop - 1, first - 1, -1):
            n_alternatives = disjunction_offsets[c + 1] - disjunction_offsets[c]
            out_predicates[n + c - first] = disjunction_offsets[c] + rest % n_alternatives
            rest //= n_alternatives
        n += stop - first
