"""Plain conjunctions in bulk: a condition that was read before is not read again.

    "price < 10 and place = 'Rome'"  →  "price < 10", "place = 'Rome'"  →  what each was last time

A text is cut at each ` and `. If each piece is a condition by itself, then the text is their
conjunction: a condition leaves no quote or parenthesis open, and nothing binds a condition and an
`and` together, but for `between`, which is cut at every other. So pieces are remembered by their
text. All else, pieces that are no condition, two conditions on one attribute, is left to the
parser, and so is everything if texts turn out to have little in common.
"""

from __future__ import annotations

from matchmill.encoding.clause_encoder import ClauseEncoder, Condition
from matchmill.errors import ExpressionError
from matchmill.language.expression import Predicate
from matchmill.language.normal_form import Clause, dimension_of, is_joint, predicate_clauses
from matchmill.language.parser import parse
from matchmill.settings import Settings

__all__ = ["Conjunctions", "Known", "conditions_of"]

_MOST_KNOWN = 1 << 18
_TRIED = 1 << 16  # new conditions after which it is seen whether old ones come again
_DEEP_ENOUGH = 8  # a limit of depth that no conjunction of conditions comes near


class Known:
    """A condition, by a number for its attribute: its clause, or what the encoder made of it."""

    __slots__ = ("clause", "condition", "number")

    def __init__(self, number: int, clause: Clause) -> None:
        self.number = number
        self.clause: Clause | None = clause
        self.condition: Condition | None = None


class Conjunctions:
    """The conditions that one load has read so far."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._longest = min(settings.max_expression_length, settings.max_values)
        self._known: dict[str, Known | None] = {}
        self._numbers: dict[str, int] = {}
        self._n_read = 0
        self.is_worth_it = settings.max_depth >= _DEEP_ENOUGH

    def read(self, text: str) -> list[Known] | None:
        """Return the conditions of a text; None if the parser has to read it."""
        if not self.is_worth_it or len(text) > self._longest or text.endswith("}'"):
            return None  # the last is how patterns of other dialects end
        pieces = text.split(" and ")
        if len(pieces) > self._settings.max_conditions:
            return None
        known, found = self._known, []
        i = 0
        while i < len(pieces):
            piece = pieces[i]
            i += 1
            if " between " in piece and i < len(pieces):
                piece = f"{piece} and {pieces[i]}"
                i += 1
            try:
                condition = known[piece]
            except KeyError:
                condition = self._learn(piece)
            if condition is None:
                return None
            found.append(condition)
        self._n_read += len(found)
        if len({condition.number for condition in found}) < len(found):
            return None
        return found

    def _learn(self, piece: str) -> Known | None:
        known = self._read(piece)
        n_known = len(self._known)
        if n_known < _MOST_KNOWN:
            self._known[piece] = known
            if (n_known + 1) % _TRIED == 0:
                self.is_worth_it = self._n_read > 2 * _TRIED
                self._n_read = 0
        return known

    def _read(self, piece: str) -> Known | None:
        try:
            parsed = parse(piece, self._settings)
        except ExpressionError:
            return None  # the parser says what is wrong, in view of the whole text
        if not isinstance(parsed, Predicate) or is_joint(parsed):
            return None
        clauses = predicate_clauses(parsed, True)
        if len(clauses) != 1 or len(clauses[0]) != 1:
            return None
        ((subject, values),) = clauses[0].items()
        if not values.edges:
            return None
        number = self._numbers.setdefault(dimension_of(subject).attribute, len(self._numbers))
        return Known(number, clauses[0])


def conditions_of(encoder: ClauseEncoder, found: list[Known]) -> list[Condition]:
    """Return conditions as the encoder of a load takes them."""
    conditions = []
    for known in found:
        condition = known.condition
        if condition is None:
            assert known.clause is not None
            ((dimension, values),) = known.clause.items()
            condition = known.condition = encoder.condition(dimension, values)
            known.clause = None
        conditions.append(condition)
    return conditions
