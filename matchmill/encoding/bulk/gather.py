"""The predicates and clauses of some rows, copied out of what was scanned.

    clause c       refs[clause_sizes added up …] are its predicates
    predicate p    what[p], its constants from a place on: numbers and strings apart

A row with alternatives has several clauses, which share predicates: their order is that of
`language/normal_form.py`, groups with fewer alternatives outside. A predicate that is joined to the
one before it belongs to the same clauses; references are to the first of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.bulk.predicates import (
    DERIVATION,
    FIRST,
    FIXED,
    GROUP,
    IS_JOINED,
    KEPT_BITS,
    NAME,
    NAME_STOP,
    REGION,
    WHAT,
    N,
    Scanned,
)
from matchmill.kernels.jit import int64, kernel
from matchmill.language.values import Region

__all__ = ["Gathered", "gather"]

_STRING = int(Region.STRING)


class Gathered(NamedTuple):
    """Predicates of some rows, and their constants, apart by kind; places are in `codes`."""

    names: np.ndarray  # where each begins
    name_stops: np.ndarray
    derivations: np.ndarray
    what: np.ndarray
    n_codes: np.ndarray
    number_owners: np.ndarray  # the predicate of each number
    number_places: np.ndarray
    whole: np.ndarray
    part: np.ndarray
    string_owners: np.ndarray
    string_places: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    clause_sizes: np.ndarray
    refs: np.ndarray


def gather(scanned: Scanned, rows: np.ndarray, n_before: int) -> Gathered:
    """Copy what some rows have; predicates are numbered from `n_before` on."""
    counts = np.zeros(5, np.int64)
    _count(scanned, rows, counts)
    n_predicates, n_numbers, n_strings, n_clauses, n_refs = counts.tolist()
    out = Gathered(
        names=np.empty(n_predicates, np.int64),
        name_stops=np.empty(n_predicates, np.int64),
        derivations=np.empty(n_predicates, np.int32),
        what=np.empty(n_predicates, np.int16),
        n_codes=np.empty(n_predicates, np.int32),
        number_owners=np.empty(n_numbers, np.int64),
        number_places=np.empty(n_numbers, np.int64),
        whole=np.empty(n_numbers, np.int64),
        part=np.empty(n_numbers, np.float64),
        string_owners=np.empty(n_strings, np.int64),
        string_places=np.empty(n_strings, np.int64),
        starts=np.empty(n_strings, np.int64),
        stops=np.empty(n_strings, np.int64),
        clause_sizes=np.empty(n_clauses, np.int32),
        refs=np.empty(n_refs, np.int32),
    )
    groups = np.empty((64, 2), np.int64)
    n_refs = _gather(scanned, rows, n_before, groups, out)
    return out._replace(refs=out.refs[:n_refs].copy())


@kernel
def _count(scanned: Scanned, rows: np.ndarray, out_counts: np.ndarray) -> None:
    """Count what some rows have: predicates, numbers, strings, clauses, references."""
    for row in rows:
        start, stop = scanned.row_predicates[row], scanned.row_predicates[row + 1]
        n_clauses = scanned.row_clauses[row]
        out_counts[0] += stop - start
        out_counts[3] += n_clauses
        out_counts[4] += n_clauses * (stop - start)  # enough: alternatives leave some out
        for p in range(start, stop):
            what = scanned.predicates[p, WHAT]
            if what & 7 != FIXED:
                is_string = (what >> REGION) & 15 == _STRING
                out_counts[2 if is_string else 1] += scanned.predicates[p, N]


@kernel
def _order_groups(predicates: np.ndarray, start: int, stop: int, out_order: np.ndarray) -> int:
    """List the groups of a row, those with fewer alternatives first; return how many there are."""
    n_groups = int64(0)
    for p in range(start, stop):
        n_groups = max(n_groups, predicates[p, GROUP])
    for g in range(1, n_groups + 1):
        size = int64(0)
        for p in range(start, stop):
            size += predicates[p, GROUP] == g and predicates[p, WHAT] & IS_JOINED == 0
        j = g - 1
        while j > 0 and out_order[j - 1, 1] > size:
            out_order[j, 0], out_order[j, 1] = out_order[j - 1, 0], out_order[j - 1, 1]
            j -= 1
        out_order[j, 0], out_order[j, 1] = g, size
    return int(n_groups)


@kernel
def _gather(
    scanned: Scanned, rows: np.ndarray, n_before: int, groups: np.ndarray, out: Gathered
) -> int:
    """Copy the predicates of some rows; return how many references their clauses have."""
    predicates, row_clauses = scanned.predicates, scanned.row_clauses
    whole, part, row_predicates = scanned.whole, scanned.part, scanned.row_predicates
    p_out = n_numbers = n_strings = n_codes = c = n_refs = int64(0)
    for row in rows:
        start, stop = row_predicates[row], row_predicates[row + 1]
        first_out = p_out
        for p in range(start, stop):
            what, n = predicates[p, WHAT], predicates[p, N]
            out.names[p_out], out.name_stops[p_out] = predicates[p, NAME], predicates[p, NAME_STOP]
            out.what[p_out] = what & KEPT_BITS
            out.derivations[p_out] = what >> DERIVATION
            out.n_codes[p_out] = n
            is_string = (what >> REGION) & 15 == _STRING and what & 7 != FIXED
            for k in range(predicates[p, FIRST], predicates[p, FIRST] + n):
                if is_string:
                    out.string_owners[n_strings], out.string_places[n_strings] = p_out, n_codes
                    out.starts[n_strings], out.stops[n_strings] = whole[k], int64(part[k])
                    n_strings += 1
                else:
                    out.number_owners[n_numbers], out.number_places[n_numbers] = p_out, n_codes
                    out.whole[n_numbers], out.part[n_numbers] = whole[k], part[k]
                    n_numbers += 1
                n_codes += 1
            p_out += 1
        n_clauses = row_clauses[row]
        n_groups = int64(0)
        if n_clauses > 1:
            n_groups = _order_groups(predicates, start, stop, groups)
        for clause in range(n_clauses):
            before = n_refs
            for p in range(start, stop):
                is_head = predicates[p, WHAT] & IS_JOINED == 0
                if is_head and (n_groups == 0 or predicates[p, GROUP] == 0):
                    out.refs[n_refs] = n_before + first_out + p - start
                    n_refs += 1
            left = clause
            for j in range(n_groups - 1, -1, -1):
                digit = left % groups[j, 1]
                left //= groups[j, 1]
                for p in range(start, stop):
                    is_head = predicates[p, WHAT] & IS_JOINED == 0
                    if is_head and predicates[p, GROUP] == groups[j, 0]:
                        if digit == 0:
                            out.refs[n_refs] = n_before + first_out + p - start
                            n_refs += 1
                        digit -= 1
            out.clause_sizes[c] = n_refs - before
            c += 1
    return int(n_refs)
