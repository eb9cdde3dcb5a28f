"""Plain texts to predicates: one pass over the bytes of many texts, without side effects.

    "price < 10 and place in ('Rome', 'Oslo') and (late or day = 3)"

    predicate   name        what                          literals       group
    0           price       range: … to before 10         10             0
    1           place       points, of strings            Rome, Oslo     0
    2           late        fixed: TRUE                                  1
    3           day         range: before 3 to after 3    3              1

A text is plain if it is a conjunction of conditions on different attributes, where a condition may
also be alternatives in parentheses, or if it is alternatives alone. Conditions are comparisons,
`in`, `between`, `like 'ab%'`, `is null` and bare booleans; `not` may precede a condition or a
parenthesis. Conditions on one attribute become one where that is simple: ranges of numbers are
narrowed, lists are joined. All else is for the parser: what is not plain, what is wrong, what no
event can satisfy, and numbers that `decimals.py` has no answer for. So the parser alone decides all
errors.

What is written is described in `predicates.py`. Inside of quotes, two quotes stand for one. As
nothing else is written in two ways, equal bytes between quotes are equal texts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from matchmill.encoding.bulk.clauses import PlainRows
from matchmill.encoding.bulk.conditions import read_condition
from matchmill.encoding.bulk.decimals import Powers, powers
from matchmill.encoding.bulk.predicates import (
    DERIVATION,
    FIRST,
    FIXED,
    GROUP,
    IS_FOREIGN,
    MOST_CLAUSES,
    NAME,
    NAME_STOP,
    NOT_POINTS,
    POINTS,
    REGION,
    WHAT,
    WIDTH,
    N,
    Scanned,
)
from matchmill.encoding.bulk.united import negated, same_dimension, united
from matchmill.encoding.bulk.words import (
    AND_WORD,
    OR_WORD,
    RESERVED,
    after_not,
    after_quoted,
    after_space,
    after_word,
    byte_classes,
    word_at,
)
from matchmill.encoding.texts import Texts
from matchmill.kernels.jit import int64, kernel
from matchmill.language.expression import KEYWORDS
from matchmill.language.normal_form import TIME
from matchmill.language.values import Region
from matchmill.settings import Settings

__all__ = ["TEXT_DERIVATIONS", "TextReader"]

# What predicates are about; the place of each in this list is its number.
TEXT_DERIVATIONS = ("value", TIME)

_PLAIN_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_NUMBER, _DATE, _TIMESTAMP = int(Region.NUMBER), int(Region.DATE), int(Region.TIMESTAMP)
_STRING, _BOOLEAN = int(Region.STRING), int(Region.BOOLEAN)
_OF_TIME = 1 << DERIVATION

_MOST_PREDICATES = 32  # of one text
_DEEP_ENOUGH = 8  # a limit of depth that no plain text comes near


class _Limits(NamedTuple):
    """What a plain text may have at most."""

    n_bytes: int
    n_predicates: int
    n_values: int
    n_pattern_bytes: int
    n_clauses: int


class TextReader:
    """Reads texts; those that are not plain have no predicates."""

    def __init__(self, settings: Settings) -> None:
        self._limits = _Limits(
            settings.max_expression_length,
            min(_MOST_PREDICATES, settings.max_conditions),
            settings.max_values,
            settings.max_pattern_length,
            min(MOST_CLAUSES, settings.max_clauses),
        )
        self._known_names: dict[bytes, bool] = {}
        self.is_useful = settings.max_depth >= _DEEP_ENOUGH  # or limits are too narrow

    def read(self, texts: Texts) -> PlainRows:
        """Find out what texts say."""
        n = texts.n_texts
        n_bytes = int(texts.offsets[-1] - texts.offsets[0])
        predicates = np.empty((n_bytes // 2 + 2, WIDTH), np.int64)
        whole, part = np.empty(2 * n_bytes + 8, np.int64), np.empty(2 * n_bytes + 8, np.float64)
        row_predicates, row_clauses = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
        _scan(
            texts,
            byte_classes(),
            powers(),
            self._limits,
            predicates,
            whole,
            part,
            row_predicates,
            row_clauses,
        )
        predicates = predicates[: row_predicates[-1]]
        self._leave_out_strange_names(texts.data, predicates, row_predicates, row_clauses)
        scanned = Scanned(predicates, whole, part, row_predicates, row_clauses)
        return PlainRows(scanned, texts.data, texts.data)

    def _leave_out_strange_names(
        self,
        data: np.ndarray,
        predicates: np.ndarray,
        row_predicates: np.ndarray,
        row_clauses: np.ndarray,
    ) -> None:
        """Leave texts to the parser whose names beyond ASCII are no names to it."""
        foreign = np.flatnonzero(predicates[:, WHAT] & IS_FOREIGN)
        rows = np.searchsorted(row_predicates, foreign, side="right") - 1
        for p, row in zip(foreign.tolist(), rows.tolist(), strict=True):
            start, stop = predicates[p, NAME], predicates[p, NAME_STOP]
            if not self._is_name(data[start:stop].tobytes()):
                row_clauses[row] = 0

    def _is_name(self, name: bytes) -> bool:
        known = self._known_names.get(name)
        if known is None:
            text = name.decode()
            is_plain = _PLAIN_NAME.fullmatch(text) is not None
            known = self._known_names[name] = is_plain and text.lower() not in KEYWORDS
        return known


@kernel
def _scan_row(
    data: np.ndarray,
    at: int,
    stop: int,
    classes: np.ndarray,
    fives: np.ndarray,
    tens: np.ndarray,
    limits: _Limits,
    predicates: np.ndarray,
    whole: np.ndarray,
    part: np.ndarray,
    first: int,
    n: int,
) -> tuple[int, int, int]:
    """Read one text; return the ends of its predicates and literals, and how many clauses it has.

    A text that is not plain has no clauses.
    """
    p = first
    most = n + 2 * (stop - at)
    n_clauses, n_values = int64(1), int64(0)
    n_parentheses = group = n_groups = group_size = int64(0)
    is_open, is_all, is_any, is_outer_negated = False, False, False, False
    while True:
        at = after_space(data, classes, at, stop)
        start = at
        at = after_not(data, classes, start, stop)
        is_negated = at != start
        if at < stop and data[at] == 40 and not is_open and not is_any:
            n_parentheses += 1
            is_open, is_outer_negated = True, is_negated
            if not is_negated:
                n_groups += 1
                group, group_size = n_groups, int64(0)
            start = after_space(data, classes, at + 1, stop)
            at = after_not(data, classes, start, stop)
            is_negated = (at != start) != is_outer_negated
        elif is_open and is_outer_negated:
            is_negated = not is_negated
        if at >= stop or p - first == limits.n_predicates:
            return 0, 0, 0
        flags = int64(0)
        if data[at] == 34:
            predicates[p, NAME] = at + 1
            end = after_quoted(data, 34, at + 1, stop)
            if end <= at + 1:
                return 0, 0, 0
            predicates[p, NAME_STOP] = end
            at = end + 1
        else:
            end = after_word(data, classes, at, stop)
            word = word_at(data, at, end)
            if end == at or word in RESERVED:
                return 0, 0, 0
            if word < 0:
                flags = int64(IS_FOREIGN)
            predicates[p, NAME], predicates[p, NAME_STOP] = at, end
            at = end
        at = after_space(data, classes, at, stop)
        at, what, n_more = read_condition(
            data, classes, fives, tens, limits.n_pattern_bytes, at, stop, n, whole, part
        )
        if at < 0:
            return 0, 0, 0
        kind = what & 7
        n_values += n_more if kind in (POINTS, NOT_POINTS) else 2
        region = (what >> REGION) & 15
        if kind != FIXED and (region in (_DATE, _TIMESTAMP)):
            flags |= _OF_TIME
        predicates[p, WHAT] = (negated(what) if is_negated else what) | flags
        predicates[p, FIRST], predicates[p, N] = n, n_more
        predicates[p, GROUP] = group
        n += n_more
        q = first
        while q < p and not same_dimension(data, predicates, q, p):
            q += 1
        if q == p:
            p += 1
            group_size += 1
        else:
            if predicates[q, GROUP] != group:
                return 0, 0, 0
            n = united(predicates, whole, part, q, p, group != 0 or is_any, n, most)
            if n < 0:
                return 0, 0, 0
        at = after_space(data, classes, at, stop)
        if is_open and at < stop and data[at] == 41:
            if group != 0:
                n_clauses *= group_size
                if n_clauses > limits.n_clauses:
                    return 0, 0, 0
                group = int64(0)
            is_open = False
            at = after_space(data, classes, at + 1, stop)
        if at >= stop:
            break
        end = after_word(data, classes, at, stop)
        word = word_at(data, at, end)
        if word == OR_WORD and (is_open or (n_parentheses == 0 and not is_all)):
            is_any = is_any or not is_open
        elif word == AND_WORD and not is_open and not is_any:
            is_all = True
        else:
            return 0, 0, 0
        at = end
    if is_open or n_values > limits.n_values:
        return 0, 0, 0
    if is_any:
        n_clauses = p - first
        for q in range(first, p):
            predicates[q, GROUP] = 1
    return p, n, (n_clauses if n_clauses <= limits.n_clauses else 0)


@kernel
def _scan(
    texts: Texts,
    classes: np.ndarray,
    powers: Powers,
    limits: _Limits,
    out_predicates: np.ndarray,
    out_whole: np.ndarray,
    out_part: np.ndarray,
    out_row_predicates: np.ndarray,
    out_row_clauses: np.ndarray,
) -> int:
    data, offsets = texts.data, texts.offsets
    fives, tens = powers.fives, powers.tens
    p = n = int64(0)
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        if stop - start <= limits.n_bytes:
            end, n_end, n_clauses = _scan_row(
                data,
                start,
                stop,
                classes,
                fives,
                tens,
                limits,
                out_predicates,
                out_whole,
                out_part,
                p,
                n,
            )
            out_row_clauses[row] = n_clauses
            if n_clauses > 0:
                p, n = end, n_end
        out_row_predicates[row + 1] = p
    return int(n)
