"""What explaining returns: the tree of an expression with the truth of every subexpression."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from matchmill.language.truth_sets import (
    FALSE,
    KNOWN,
    NOT_FALSE,
    NOT_TRUE,
    TRUE,
    UNKNOWN,
    asked_of_all,
    asked_of_test,
    is_among,
    opposite,
)
from matchmill.language.values import visible

__all__ = ["TRUTH_TESTS", "Distance", "Explanation", "Kind", "cut_text"]

TestKind: TypeAlias = Literal[
    "is true", "is not true", "is false", "is not false", "is unknown", "is not unknown"
]
Kind: TypeAlias = Literal["and", "or", "not", "condition", "constant"] | TestKind
Truth: TypeAlias = bool | None
Distance: TypeAlias = int | float

MAX_LINES = 200  # lines of a printed tree
FEW_PARTS = 8  # parts of one `and` or `or` that are printed in their own order
MAX_REPR = 120  # characters of a summary in `repr`

TRUTH_TESTS: dict[Kind, tuple[Truth, bool]] = {  # the truth, and whether the test is negated
    "is true": (True, False),
    "is not true": (True, True),
    "is false": (False, False),
    "is not false": (False, True),
    "is unknown": (None, False),
    "is not unknown": (None, True),
}
_MARKS: dict[Truth, str] = {True: "✓", False: "✗", None: "?"}


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Why an event matches an expression or not: the truth of every subexpression.

    `bool(explanation)` is `matched`; `str()` is the tree, one line per subexpression. What decides
    comes first there: of many alternatives the true ones, of a failed `and` those that fail.

    Attributes
    ----------
    id : str, int or None
        The subscription, if an engine or a service explains one.
    matched : bool
        Whether the event matches: `truth is True`.
    truth : bool or None
        None is unknown: an attribute is missing, or of another type.
    text : str
        The expression; a long one is cut.
    note : str
        What was found and what is needed, for a condition.
    distance : int, float or None
        How far the value of a failed comparison is from satisfying it: a difference of numbers,
        days between dates, seconds between timestamps, edits between short texts. A value that
        fails `<` because it equals the bound has distance 0.
    parts : tuple of Explanation
        The subexpressions directly below.
    kind : str
        "and", "or", "not", "condition", "constant", or a truth test such as "is not true".

    Examples
    --------
    >>> import matchmill as mm
    >>> explanation = mm.explain("origin = 'JFK' and price <= 580", {"origin": "JFK", "price": 590})
    >>> print(explanation)
    ✗ origin = 'JFK' and price <= 580
      ✓ origin = 'JFK': origin is 'JFK'
      ✗ price <= 580: price is 590, needs <= 580 (10 too much)
    >>> explanation.matched, explanation.n_missing
    (False, 1)
    >>> explanation.failures[0].distance
    10
    """

    kind: Kind
    text: str
    truth: Truth
    note: str = ""
    distance: Distance | None = None
    parts: tuple[Explanation, ...] = ()
    id: str | int | None = None

    @property
    def matched(self) -> bool:
        """Whether the event matches."""
        return self.truth is True

    def __bool__(self) -> bool:
        return self.truth is True

    @property
    def failures(self) -> tuple[Explanation, ...]:
        """The conditions that keep the whole from being true; none if it is true."""
        return tuple(self._blockers(TRUE))

    @property
    def n_missing(self) -> int:
        """The least number of conditions that have to change for the whole to be true."""
        return self._cost(TRUE)

    @property
    def summary(self) -> str:
        """The explanation in one sentence.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.explain("price <= 580", {"price": 590}).summary
        'no match: price is 590, needs <= 580 (10 too much)'
        """
        subject = "" if self.id is None else f"{self.id}: "
        if self.matched:
            return f"{subject}match"
        failures = self.failures
        shown = "; ".join(visible(failure.note or failure.text) for failure in failures[:2])
        more = f"; and {len(failures) - 2} more" if len(failures) > 2 else ""
        return f"{subject}no match: {shown or self.note}{more}"

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON has it.

        Returns
        -------
        dict
            `matched`, `n_missing`, `summary`, and, if there is one, `id`; and for each node of the
            tree `kind`, `text`, `truth`, `note`, `distance` and `parts`.

        Examples
        --------
        >>> import matchmill as mm
        >>> answer = mm.explain("price <= 580", {"price": 590}).to_dict()
        >>> answer["matched"], answer["n_missing"], answer["distance"]
        (False, 1, 10)
        """
        named = {} if self.id is None else {"id": self.id}
        return {
            **named,
            "matched": self.matched,
            "n_missing": self.n_missing,
            "summary": self.summary,
            **self._tree(),
        }

    def _tree(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "text": self.text,
            "truth": self.truth,
            "note": self.note,
            "distance": self.distance,
            "parts": [part._tree() for part in self.parts],
        }

    @classmethod
    def from_dict(cls, answer: Mapping[str, Any]) -> Explanation:
        """Return the explanation that `to_dict` returned, perhaps in another process.

        Parameters
        ----------
        answer
            What `to_dict` returned.

        Examples
        --------
        >>> import matchmill as mm
        >>> explanation = mm.explain("price <= 580", {"price": 590})
        >>> mm.Explanation.from_dict(explanation.to_dict()) == explanation
        True
        """
        parts = tuple(cls.from_dict(part) for part in answer["parts"])
        names = ("kind", "text", "truth", "note", "distance")
        return cls(**{n: answer[n] for n in names}, parts=parts, id=answer.get("id"))

    def __repr__(self) -> str:
        return f"<Explanation: {cut_text(self.summary, MAX_REPR)}>"

    def __str__(self) -> str:
        lines: list[str] = []
        n_lines = 0
        for depth, node in self._walk(0):
            n_lines += 1
            if n_lines <= MAX_LINES:
                note = f": {node.note}" if node.note else ""
                lines.append("  " * depth + visible(f"{_MARKS[node.truth]} {node.text}{note}"))
        if n_lines > MAX_LINES:
            lines.append(f"… ({n_lines - MAX_LINES} more lines)")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self), quote=False)}</pre>"

    def _walk(self, depth: int) -> Iterator[tuple[int, Explanation]]:
        yield depth, self
        parts = self.parts
        if len(parts) > FEW_PARTS:  # short ones stay as they are written
            parts = tuple(sorted(parts, key=lambda part: part.truth is not self.truth))
        for part in parts:
            yield from part._walk(depth + 1)

    def _blockers(self, asked: int) -> Iterator[Explanation]:
        """Yield what keeps this from having one of the truths that are asked for."""
        if is_among(self.truth, asked):
            return
        if not self.parts:
            yield self
        for part in self.parts:  # those that are as wanted have no blockers
            yield from part._blockers(self._asked_below(asked))

    def _cost(self, asked: int) -> int:
        """Count the conditions to change for one of the truths that are asked for."""
        if is_among(self.truth, asked):
            return 0
        if not self.parts:
            return 1
        if self.kind not in ("and", "or"):
            return self.parts[0]._cost(self._asked_below(asked))
        if asked == KNOWN:
            return min(self._cost(TRUE), self._cost(FALSE))
        if asked == UNKNOWN:  # none is FALSE (for an `and`), and some are UNKNOWN
            n_changed = self._cost(NOT_FALSE if self.kind == "and" else NOT_TRUE)
            return n_changed or min(part._cost(UNKNOWN) for part in self.parts)
        costs = [part._cost(asked) for part in self.parts]
        return sum(costs) if asked_of_all(self.kind == "and", asked) else min(costs)

    def _asked_below(self, asked: int) -> int:
        """Return what is asked of each part."""
        if self.kind == "not":
            return opposite(asked)
        if self.kind in TRUTH_TESTS:
            return asked_of_test(*TRUTH_TESTS[self.kind], asked)
        return asked


def cut_text(text: str, limit: int) -> str:
    """Return at most so many characters of a text."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
