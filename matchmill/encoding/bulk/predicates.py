"""What is known of a predicate before its constants have places in an order.

    predicate   name        what                          literals       group
    0           price       range: … to before 10         10             0
    1           place       points, of strings            Rome, Oslo     0
    2           late        fixed: TRUE                                  1
    3           day         range: before 3 to after 3    3              1

    predicates[p]    NAME, NAME_STOP   its bytes, without quotes, but with doubled ones inside
                     WHAT              kind | region << 3 | low side << 7 | high side << 9 | flags
                     FIRST, N          its literals
                     GROUP             0, or the number of the alternatives that it belongs to
    whole, part      a literal: the pair of a number, or where a string begins and where it ends;
                     the end is negative if the last character stands for the next one
    row_predicates   where the predicates of a row end
    row_clauses      how many clauses a row has; 0 is for the parser

Texts of expressions (`scan.py`) and JSON patterns (`patterns.py`) are read into this form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = [
    "ABSENT",
    "ABSENT_OR_LIST",
    "AFTER",
    "BEFORE",
    "DERIVATION",
    "FALSE",
    "FIRST",
    "FIXED",
    "GROUP",
    "HIGH_SIDE",
    "IS_FOREIGN",
    "IS_JOINED",
    "IS_WIDE",
    "KEPT_BITS",
    "LOW_SIDE",
    "MOST_CLAUSES",
    "NAME",
    "NAME_STOP",
    "NOT_POINTS",
    "NOT_RANGE",
    "POINT",
    "POINTS",
    "PRESENT",
    "RANGE",
    "REGION",
    "TRUE",
    "WHAT",
    "WIDTH",
    "N",
    "Scanned",
]

NAME, NAME_STOP, WHAT, FIRST, N, GROUP = range(6)
WIDTH = 6

# WHAT: the kind, in its lowest three bits
RANGE, POINTS, NOT_POINTS, NOT_RANGE, FIXED = range(5)
REGION, LOW_SIDE, HIGH_SIDE = 3, 7, 9  # shifts
BEFORE, AFTER = 1, 2  # the side of a value where a range ends; 0 if it has no end
POINT = BEFORE << LOW_SIDE | AFTER << HIGH_SIDE
IS_FOREIGN = 1 << 11  # the name has letters beyond ASCII and is not quoted
IS_JOINED = 1 << 12  # one set with the predicate before it
IS_WIDE = 1 << 13  # NOT_POINTS: among all values of any type, and absence
DERIVATION = 16  # shift of what is derived from the attribute; 0 is its value
KEPT_BITS = (1 << 14) - 1 & ~IS_FOREIGN  # what clauses need of it
# in place of the region, if the kind is FIXED
ABSENT, PRESENT, FALSE, TRUE, ABSENT_OR_LIST = range(5)

MOST_CLAUSES = 16  # no product of fewer is ever kept whole (`language/normal_form.py`)


class Scanned(NamedTuple):
    """The predicates of some rows."""

    predicates: np.ndarray  # int64, a row per predicate
    whole: np.ndarray  # int64
    part: np.ndarray  # float64
    row_predicates: np.ndarray  # int64
    row_clauses: np.ndarray  # int64
