"""Sets of truths: what is asked of an expression, and what that asks of its operands.

    TRUE | UNKNOWN   is NOT_FALSE: the expression may have either of these two truths

An event matches if its expression is TRUE. `not` asks its operand for the opposite, a truth test
for any set: `x = 1 is not true` is TRUE if `x = 1` is FALSE or UNKNOWN. What is asked of `and` and
`or` falls into what is asked of all of their operands and what is asked of some:

    asked       of `a and b`, that is of     of `a or b`, that is of
    TRUE        all operands                 some operand
    NOT_FALSE   all operands                 some operand
    FALSE       some operand                 all operands
    NOT_TRUE    some operand                 all operands

UNKNOWN is both NOT_TRUE and NOT_FALSE, and KNOWN is TRUE or FALSE.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ANY",
    "FALSE",
    "KNOWN",
    "NEVER",
    "NOT_FALSE",
    "NOT_TRUE",
    "TRUE",
    "UNKNOWN",
    "asked_of_all",
    "asked_of_test",
    "is_among",
    "opposite",
]

NEVER: Final = 0
TRUE: Final = 1
FALSE: Final = 2
UNKNOWN: Final = 4
KNOWN: Final = TRUE | FALSE
NOT_TRUE: Final = FALSE | UNKNOWN
NOT_FALSE: Final = TRUE | UNKNOWN
ANY: Final = TRUE | FALSE | UNKNOWN

_BITS: dict[bool | None, int] = {True: TRUE, False: FALSE, None: UNKNOWN}


def is_among(truth: bool | None, asked: int) -> bool:
    """Whether a truth is in a set of truths."""
    return bool(_BITS[truth] & asked)


def opposite(asked: int) -> int:
    """Return what `not` asks of its operand."""
    return (asked & TRUE) << 1 | (asked & FALSE) >> 1 | (asked & UNKNOWN)


def asked_of_test(truth: bool | None, negated: bool, asked: int) -> int:
    """Return what a truth test, which is TRUE or FALSE, asks of its operand."""
    holds = ANY & ~_BITS[truth] if negated else _BITS[truth]
    return (holds if asked & TRUE else NEVER) | (ANY & ~holds if asked & FALSE else NEVER)


def asked_of_all(is_and: bool, asked: int) -> bool:
    """Whether a set with TRUE or FALSE, not both, is asked of all operands, not only of some."""
    return bool(asked & TRUE) == is_and
