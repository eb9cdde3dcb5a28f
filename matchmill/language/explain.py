"""Why an event matches or does not: an expression with the truth of every subexpression.

    ✗ origin = 'JFK' and price <= 580
      ✓ origin = 'JFK': origin is 'JFK'
      ✗ price <= 580: price is 590, needs <= 580 (10 too much)

The truths are the oracle's: conditions are judged by `evaluate_predicate`, and the notes are
written afterwards, for the truth that was found. A note says what a condition needs *for the whole
to match*, so below a `not` it asks for the opposite. However large the expression and the event, a
line stays short: long texts, lists and values are cut.
"""

from __future__ import annotations

import datetime as dt
import heapq
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, takewhile
from typing import Any, TypeAlias, cast

from matchmill.language.dialects.pattern import DialectPattern
from matchmill.language.evaluate import Truth, evaluate_flat, evaluate_predicate, value_of
from matchmill.language.explanation import Distance, Explanation, Kind, cut_text
from matchmill.language.expression import (
    OPPOSITES,
    And,
    Between,
    Compare,
    Constant,
    Contains,
    Expression,
    In,
    InNetwork,
    IsNull,
    IsTrue,
    Like,
    Not,
    Or,
    Predicate,
    RLike,
    TruthTest,
    literal_text,
    name_text,
    within_the_stack,
)
from matchmill.language.flatten import Event, flatten_record
from matchmill.language.operator_calls import Call, Restriction
from matchmill.language.read import ExpressionSource, read_expression
from matchmill.language.truth_sets import (
    TRUE,
    UNKNOWN,
    asked_of_test,
    is_among,
    opposite,
)
from matchmill.language.values import (
    TIMES,
    EventValue,
    Region,
    Value,
    domain_value,
    read_time,
    region_of,
)

__all__ = ["Explanation", "Judge", "explain"]


MAX_TEXT = 80  # characters of one printed expression
MAX_VALUE = 40  # characters of one value or name
MAX_SHOWN = 3  # values of one list
MAX_EDITED = 64  # characters of a text whose edit distance is worth knowing
MAX_EDIT_STEPS = 250_000  # pairs of characters looked at for the texts nearest to one


Judge: TypeAlias = Callable[[Expression], tuple[Truth, str]]


@within_the_stack
def explain(expression: ExpressionSource, event: Event, judge: Judge | None = None) -> Explanation:
    """Explain why an event matches an expression, or what it lacks.

    Parameters
    ----------
    expression : str, mapping or Expression
        Text, a JSON pattern, or an Expression.
    event : mapping or other record
        One event; nested objects are allowed.
    judge : callable, optional
        Returns the truth of a call of an operator or of a constraint, and a note. Without it, an
        expression that has any is an error.

    Returns
    -------
    Explanation
        The truth of every subexpression.

    Raises
    ------
    ExpressionError
        If the expression cannot be read.
    EventError
        If this is no event, or if a value cannot be used.

    Examples
    --------
    >>> import matchmill as mm
    >>> print(mm.explain("price <= 580", {"price": 590}))
    ✗ price <= 580: price is 590, needs <= 580 (10 too much)
    """
    if not isinstance(expression, Expression):
        expression = read_expression(expression)
    return _explain(expression, flatten_record(event), TRUE, judge or _no_judge)


def _no_judge(node: Expression) -> tuple[Truth, str]:
    return evaluate_flat(node, {}), ""  # which says that an engine is needed


def _explain(
    node: Expression, event: Mapping[str, EventValue], asked: int, judge: Judge
) -> Explanation:
    """Explain a subexpression of which some truths are asked for."""
    text = cut_text(str(node), MAX_TEXT)
    if isinstance(node, Constant):
        always = "" if is_among(node.value, asked) else f"always {text}"
        return Explanation("constant", text, node.value, always)
    if isinstance(node, Predicate):
        return _explain_predicate(node, text, value_of(event, node.name), asked)
    if isinstance(node, Restriction) and not node.variables:
        return Explanation("condition", text, evaluate_flat(node, event), _found(node, event))
    if isinstance(node, (Call, Restriction)):
        return Explanation("condition", text, *judge(node))
    if isinstance(node, DialectPattern):
        return _explain_pattern(node, text, event)
    if isinstance(node, TruthTest):
        return _explain_test(node, text, event, asked, judge)
    below = opposite(asked) if isinstance(node, Not) else asked
    parts = tuple(_explain(part, event, below, judge) for part in node.parts)
    truths = [part.truth for part in parts]
    if isinstance(node, Not):
        truth = None if truths[0] is None else not truths[0]
        return Explanation("not", text, truth, parts=parts)
    if isinstance(node, And):
        truth = False if False in truths else None if None in truths else True
        return Explanation("and", text, truth, parts=parts)
    assert isinstance(node, Or)
    truth = True if True in truths else None if None in truths else False
    return Explanation("or", text, truth, parts=parts)


def _found(node: Restriction, event: Mapping[str, EventValue]) -> str:
    """Return the values of the attributes that a condition calculates with."""
    names = sorted(node.event_attributes)
    shown = [
        f"{cut_text(name_text(name), MAX_VALUE)} is "
        + ("missing" if event.get(name) is None else _show(event[name]))
        for name in names[:MAX_SHOWN]
    ]
    return ", ".join(shown) + (", …" if len(names) > MAX_SHOWN else "")


def _explain_test(
    node: TruthTest, text: str, event: Mapping[str, EventValue], asked: int, judge: Judge
) -> Explanation:
    below = asked_of_test(node.truth, node.negated, asked)
    part = _explain(node.operand, event, below, judge)
    truth = (part.truth is node.truth) != node.negated
    word = "unknown" if part.truth is None else "true" if part.truth else "false"
    return Explanation(cast("Kind", node.test), text, truth, f"it is {word}", parts=(part,))


def _explain_pattern(
    node: DialectPattern, text: str, event: Mapping[str, EventValue]
) -> Explanation:
    """Explain a pattern by its fields; each of its alternatives is one `and` of them."""
    alternatives = []
    for notes in node.explain(event):
        fields = tuple(
            Explanation("condition", cut_text(note.text, MAX_TEXT), note.truth, note.note)
            for note in notes
        )
        truth = all(note.truth for note in notes)
        if len(fields) == 1:
            alternatives.append(fields[0])
        else:
            words = cut_text(" and ".join(field.text for field in fields), MAX_TEXT)
            alternatives.append(Explanation("and", words, truth, parts=fields))
    if len(alternatives) == 1:
        only = alternatives[0]
        return Explanation("and", text, only.truth, parts=only.parts or (only,))
    truth = any(one.truth for one in alternatives)
    return Explanation("or", text, truth, parts=tuple(alternatives))


# -- conditions -----------------------------------------------------------------------------------


def _explain_predicate(
    node: Predicate, text: str, value: EventValue | None, asked: int
) -> Explanation:
    truth = evaluate_predicate(node, value)
    name = cut_text(name_text(node.name), MAX_VALUE)
    need: str | None = None
    distance: Distance | None = None
    found = "missing" if value is None else _show(value)
    is_wanted = is_among(truth, asked)
    if truth is None:
        if value is not None and not is_wanted:
            found, need = _mismatch(node, value)
    elif asked == UNKNOWN:
        need = "needs to be missing, or of another type"
    elif not is_wanted:
        need, distance = _need(node, value, not truth)
    note = f"{name} is {found}" + (f", {need}" if need else "")
    if value is None and isinstance(node, IsTrue) and not is_wanted:
        note += f" (a name alone is a boolean attribute; compare it: {name} = 'x')"
    return Explanation("condition", text, truth, note, distance)


def _mismatch(node: Predicate, value: EventValue) -> tuple[str, str]:
    """Say what was found and what is needed, where a condition does not apply to a value."""
    needed = _needed_types(node)
    if isinstance(node, InNetwork) and region_of(value) == Region.STRING and needed == "text":
        return _show(value), "which is not an IP address"
    kind = region_of(value)
    article = {Region.STRING: "text ", Region.NUMBER: "the number ", Region.BOOLEAN: "the boolean "}
    found = "a list" if kind == Region.LIST else article.get(kind, "") + _show(value)
    if kind == Region.OBJECT:
        if problem := getattr(value, "problem", ""):
            return _show_uncomparable(value.value), f"which {problem}; needs {needed}"
        return found, f"which only operators look at; needs {needed}"
    return found, f"needs {needed}{_time_remedy(value, needed)}"


def _time_remedy(value: EventValue, needed: str) -> str:
    """Say what to do about a text, where a time is needed."""
    if not isinstance(value, str) or needed not in ("a date", "a timestamp"):
        return ""
    time = read_time(value)
    if time is None:
        form = "2013-01-31" if needed == "a date" else "2013-01-31T10:00:00Z"
        return f" (text is read as one if it is written like {form})"
    if isinstance(time, dt.datetime):
        return " (this text is a timestamp: compare it with timestamp '…')"
    return " (this text is a date: compare it with date '…', or declare the type timestamp)"


def _needed_types(node: Predicate) -> str:
    if isinstance(node, Contains) or getattr(node, "any_element", False):
        return "a list"
    if isinstance(node, IsTrue):
        return "a boolean"
    if not isinstance(node, (Compare, In, Between)):
        return "text"
    words = dict.fromkeys(_TYPE_WORDS[region_of(value)] for value in _literals(node))
    return (" and " if isinstance(node, Between) else " or ").join(words)


_TYPE_WORDS = {
    Region.BOOLEAN: "a boolean",
    Region.NUMBER: "a number",
    Region.DATE: "a date",
    Region.TIMESTAMP: "a timestamp",
    Region.STRING: "text",
}


def _literals(node: Compare | In | Between) -> tuple[Value, ...]:
    if isinstance(node, In):
        return node.values
    return (node.low, node.high) if isinstance(node, Between) else (node.value,)


def _need(node: Predicate, value: EventValue | None, wanted: bool) -> tuple[str, Distance | None]:
    """Say what a condition with the wrong truth needs, and how far the value is from it."""
    if isinstance(node, IsNull):
        return ("needs to be missing" if node.negated != wanted else "needs a value"), None
    assert value is not None
    if isinstance(node, IsTrue):
        return f"needs {literal_text(wanted)}", None
    if isinstance(node, Contains):
        return _contains_need(node, cast("list[Any]", value), wanted), None
    if not getattr(node, "any_element", False):
        scalar = cast("Value", value)
        remark, distance = _remark(node, scalar, wanted)
        return f"needs {_phrase(node, wanted, scalar)}{remark}", distance
    if not wanted:
        return f"needs no element {_element_phrase(node)}", None
    return _element_need(node, cast("Sequence[Value]", value))


def _element_need(node: Predicate, elements: Sequence[Value]) -> tuple[str, Distance | None]:
    """Say what is needed of some element, for the nearest one."""
    fields: dict[str, Any] = {name: getattr(node, name) for name in type(node).__match_args__}
    on_element = type(node)(**{**fields, "any_element": False})
    literals = _literals(node) if isinstance(node, (Compare, In, Between)) else ()
    if len(elements) * len(literals) > MAX_EDITED:  # edit distances would take too long
        elements = [element for element in elements if not isinstance(element, str)]
    near: tuple[str, Distance, Value] | None = None
    for element in elements:
        if evaluate_predicate(on_element, element) is False:
            remark, distance = _remark(on_element, element, True)
            if distance is not None and (near is None or distance < near[1]):
                near = (remark, distance, element)
    if near is None:
        return f"needs an element {_element_phrase(node)}", None
    return f"needs an element {_element_phrase(node, near[2])}{near[0]}", near[1]


def _element_phrase(node: Predicate, near: Value | None = None) -> str:
    return ("that is " if isinstance(node, In) else "") + _phrase(node, True, near)


def _contains_need(node: Contains, elements: list[Any], wanted: bool) -> str:
    found: list[Value] = []
    lacking: list[Value] = []
    for value in node.values:
        one = Contains(node.name, "any", (value,))
        (found if evaluate_predicate(one, elements) else lacking).append(value)
    if node.mode == "all":
        if wanted:
            return f"lacks {_shown(lacking)}"
        return f"needs to lack one of {_shown(found)}" if len(found) > 1 else _without(found)
    if wanted == (node.mode == "any"):
        return f"needs {'one of ' if len(lacking) > 1 else ''}{_shown(lacking)}"
    return _without(found)


def _without(values: Sequence[Value]) -> str:
    return f"needs to be without {_shown(values)}"


def _phrase(node: Predicate, wanted: bool, near: Value | None = None) -> str:
    """Return a condition, or its opposite, without the name; of a long list the nearest values."""
    if isinstance(node, Compare):
        return f"{node.op if wanted else OPPOSITES[node.op]} {_show(node.value)}"
    plain = getattr(node, "negated", False) != wanted
    if isinstance(node, In):
        shown = _shown(_nearest(node.values, near), len(node.values))
        if len(node.values) == 1:
            return f"{'=' if plain else '!='} {shown}"
        return f"{'one of' if plain else 'none of'} {shown}"
    word = "" if plain else "not "
    if isinstance(node, Between):
        return f"{word}between {_show(node.low)} and {_show(node.high)}"
    if isinstance(node, Like):
        return f"{word}{'ilike' if node.ignore_case else 'like'} {_show(node.pattern)}"
    if isinstance(node, RLike):
        return f"{word}rlike {_show(node.pattern)}"
    assert isinstance(node, InNetwork)
    return f"{word}in cidr {_shown(node.networks)}"


# -- distances ------------------------------------------------------------------------------------


def _remark(node: Predicate, value: Value, wanted: bool) -> tuple[str, Distance | None]:
    """Say how far a value with the wrong truth is from the right one; also as a number."""
    if isinstance(value, str) and isinstance(node, (Compare, In, Between)):
        if any(region_of(literal) in TIMES for literal in _literals(node)):
            value = read_time(value) or value
    if isinstance(node, Compare):
        return _compare_remark(node.op if wanted else OPPOSITES[node.op], value, node.value)
    if isinstance(node, Between):
        return _between_remark(node, value, node.negated != wanted)
    if isinstance(node, In) and node.negated != wanted:
        return _in_remark(node, value)
    return "", None


def _difference(a: Value, b: Value) -> Distance | None:
    """Return a - b for numbers, in days for dates, in seconds for timestamps."""
    kind = region_of(a)
    if kind != region_of(b) or kind not in (Region.NUMBER, Region.DATE, Region.TIMESTAMP):
        return None
    x, y = cast("Distance", domain_value(a)), cast("Distance", domain_value(b))
    if kind == Region.TIMESTAMP:
        seconds = Fraction(x - y) / 1_000_000_000
        return int(seconds) if seconds.denominator == 1 else float(seconds)
    if isinstance(x, int) and isinstance(y, int):
        return x - y
    # One rounding at most, so that only equal numbers are 0 apart.
    difference = x - y if type(x) is type(y) else float(Fraction(x) - Fraction(y))
    return max(-sys.float_info.max, min(sys.float_info.max, difference))


def _amount(difference: Distance, kind: Region) -> str:
    """`10 too much`, `1 day too early`."""
    size = abs(difference)
    text = str(size) if isinstance(size, int) else f"{size:.12g}"
    if kind == Region.NUMBER:
        return f"{text} too {'much' if difference > 0 else 'little'}"
    unit = "day" if kind == Region.DATE else "second"
    plural = "" if size == 1 else "s"
    return f"{text} {unit}{plural} too {'late' if difference > 0 else 'early'}"


def _compare_remark(op: str, value: Value, bound: Value) -> tuple[str, Distance | None]:
    difference = _difference(value, bound)
    if difference is not None:
        if difference:
            return f" ({_amount(difference, region_of(value))})", abs(difference)
        return (" (it is at the bound)" if op in "<>" else ""), 0
    if op == "=" and isinstance(value, str) and isinstance(bound, str):
        edits = _edit_distance(value, bound)
        return ("" if edits is None else f" ({_edits(edits)})"), edits
    return "", None


def _between_remark(node: Between, value: Value, inside: bool) -> tuple[str, Distance | None]:
    above, below = _difference(value, node.low), _difference(value, node.high)
    if above is None or below is None:
        return "", None
    if inside:
        ends = _difference(node.high, node.low)
        if ends is None or ends < 0:
            return " (which nothing is)", None
        difference = above if above < 0 else below
        return f" ({_amount(difference, region_of(value))})", abs(difference)
    distance = min(abs(above), abs(below))
    return (f" ({_plain(distance)} from the nearer end)" if distance else ""), distance


def _in_remark(node: In, value: Value) -> tuple[str, Distance | None]:
    differences = [d for v in node.values if (d := _difference(value, v)) is not None]
    if differences:
        nearest = min(differences, key=abs)
        return f" (the nearest: {_amount(nearest, region_of(value))})", abs(nearest)
    texts = [v for v in node.values if isinstance(v, str)]
    if not isinstance(value, str) or len(value) * sum(map(len, texts)) > MAX_EDIT_STEPS:
        return "", None
    edits = [_edit_distance(value, text) for text in texts]
    known = [e for e in edits if e is not None]
    if not known or len(known) < len(edits):
        return "", None
    return f" (the nearest: {_edits(min(known))})", min(known)


def _plain(number: Distance) -> str:
    return str(number) if isinstance(number, int) else f"{number:.12g}"


def _edits(n_edits: int) -> str:
    return f"{n_edits} edit{'' if n_edits == 1 else 's'} away"


def _edit_distance(a: str, b: str) -> int | None:
    """Count the characters to insert, delete or replace (Levenshtein); None for long texts."""
    if max(len(a), len(b)) > MAX_EDITED:
        return None
    row = list(range(len(b) + 1))
    for i, c in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, d in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (c != d))
    return row[-1]


def _nearest(values: Sequence[Value], near: Value | None) -> list[Value]:
    """Return the few values to show: those nearest to a given one, values of its type first."""
    if near is None:
        return list(values[:MAX_SHOWN])
    kind = region_of(near)
    similar = [v for v in values if region_of(v) == kind]
    if isinstance(near, str):
        texts = cast("list[str]", similar)
        shown = heapq.nsmallest(MAX_SHOWN, _likely(texts, near), key=lambda v: _far(near, v))
        similar = [near, *(v for v in shown if v != near)] if near in texts else list(shown)
    else:
        similar = heapq.nsmallest(MAX_SHOWN, similar, key=lambda v: abs(_difference(near, v) or 0))
    others = [v for v in values if region_of(v) != kind] if len(similar) < MAX_SHOWN else []
    return [*similar, *others][:MAX_SHOWN]


def _likely(texts: list[str], near: str) -> list[str]:
    """Return the texts, nearest in length first, for which there is time to count edits."""
    by_length = sorted(texts, key=lambda text: abs(len(text) - len(near)))
    n_steps = accumulate((len(text) + 1) * (len(near) + 1) for text in by_length)
    n_tried = sum(1 for _ in takewhile(lambda n: n <= MAX_EDIT_STEPS, n_steps))
    return by_length[: max(n_tried, MAX_SHOWN)]


def _far(a: str, b: str) -> int:
    edits = _edit_distance(a, b)
    return MAX_EDITED + 1 if edits is None else edits


# -- short texts ----------------------------------------------------------------------------------


def _show(value: EventValue | None) -> str:
    """Return a value as it is written in an expression, cut; of a list, the first elements."""
    if isinstance(value, (list, tuple)):
        shown = ", ".join(_show(v) for v in value[:MAX_SHOWN])
        return f"[{shown}]" if len(value) <= MAX_SHOWN else f"[{shown}, …] ({len(value)} elements)"
    if region_of(value) == Region.OBJECT:
        return f"an object of type {type(getattr(value, 'value', value)).__name__}"
    if isinstance(value, str) and len(value) > MAX_VALUE:
        return literal_text(value[: MAX_VALUE - 1]) + f"… ({len(value)} characters)"
    return literal_text(cast("Value", value))


def _show_uncomparable(value: object) -> str:
    """Return a value that cannot be compared, in characters that can be printed."""
    if isinstance(value, (str, int, float)):
        return _show(value).encode("utf-8", "backslashreplace").decode()
    return f"a value of type {type(value).__name__}"


def _shown(values: Sequence[Value], n_values: int | None = None) -> str:
    """`'AA', 'UA', 'DL', … (120 values)`."""
    n_values = len(values) if n_values is None else n_values
    shown = ", ".join(_show(v) for v in values[:MAX_SHOWN])
    return shown if n_values <= MAX_SHOWN else f"{shown}, … ({n_values} values)"
