"""Reject an event whose texts would keep the patterns of one expression busy for too long.

This is for conditions that are tried one by one, as in an explanation. Engines try all patterns on
an attribute together, and have the same limit (`encoding/pattern_work.py`):

    rlike    bytes of text × instructions of its program
    like     characters of text × characters of its pieces with `_`, times five: it is plain Python
"""

from __future__ import annotations

from collections.abc import Mapping

from matchmill.errors import EventError
from matchmill.language.expression import Expression, Like, Predicate, RLike, name_text, walk
from matchmill.language.patterns import longest_search, program_size
from matchmill.language.values import EventValue

__all__ = ["check_pattern_work", "has_patterns", "pattern_steps"]

_PLAIN = 5  # times the work of a regular expression


def has_patterns(expression: Expression) -> bool:
    """Return whether some condition is a like or rlike pattern."""
    return any(isinstance(node, (Like, RLike)) for node, _ in walk(expression))


def pattern_steps(expression: Expression) -> int:
    """Return how many steps a byte of text may take in all patterns of an expression."""
    return sum(_steps(node) for node, _ in walk(expression) if isinstance(node, (Like, RLike)))


def check_pattern_work(expression: Expression, event: Mapping[str, EventValue], limit: int) -> None:
    """Raise EventError if the patterns on an event are more work than the limit.

    Parameters
    ----------
    expression
        Its conditions are counted, whatever the others are.
    event
        What `flatten_event` returned.
    limit
        The setting ``max_pattern_work``.
    """
    steps: dict[str, int] = {}  # per byte of text
    for node, _ in walk(expression):
        if isinstance(node, (Like, RLike)):
            steps[node.name] = steps.get(node.name, 0) + _steps(node)
    n_bytes = {name: _n_bytes(event.get(name)) for name in steps}
    work = sum(n_bytes[name] * n for name, n in steps.items())
    if work <= limit:
        return
    texts = [name for name, n in n_bytes.items() if n]
    if len(texts) == 1:
        what = f"attribute {name_text(texts[0])}: {sum(n_bytes.values()):,} bytes of text for like"
        what += f" and rlike patterns of {steps[texts[0]]:,} steps are"
    else:
        what = f"{sum(n_bytes.values()):,} bytes of text in {len(texts):,} attributes with like"
        what += f" and rlike patterns are together {work:,} bytes times steps,"
    raise EventError(
        f"{what} more work than the {limit:,} that one event may take;"
        " send shorter texts, or raise the setting max_pattern_work"
    )


def _steps(node: Predicate) -> int:
    if isinstance(node, RLike):
        return program_size(node.pattern)
    assert isinstance(node, Like)
    return 1 + _PLAIN * longest_search(node.pattern)


def _n_bytes(value: EventValue | None) -> int:
    texts = value if isinstance(value, (list, tuple)) else (value,)
    return sum(len(text.encode()) for text in texts if isinstance(text, str))
