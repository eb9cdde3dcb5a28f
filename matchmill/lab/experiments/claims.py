"""Claims of a paper in a form that can be checked against measured figures.

A claim has parts. Each part compares one value with one number of the paper:

    [[fig05_workload_size.checks]]
    says = "80 % less time than the next best, uniform attributes"
    value = "be_tree / least(k_index, gryphon, sift, propagation_equality, scan)"
    is = "<="                                    # <=, >=, <, > or ~ (about)
    paper = 0.2                                  # the paper's number, or where the paper has a
                                                 # word for it (`ours = 1.5`), our reading
    at = { zipf = 0.0, n_subscriptions = 1_000_000 }     # optional; a list means each of these
    of = "us_per_event"                          # optional: a figure of MEASUREMENTS
    tolerance = 0.1                              # optional
    along = "n_dimensions"                       # optional: an axis

A part holds if it holds at every point that `at` leaves. With `along`, points that differ in this
label only make one line, and the part must hold for every line.

A value is made of numbers, `+ - * /`, names of contenders, and these functions:

    least(a, b, …), most(a, b, …)   of those that were measured at the point
    missing(a)                      1 if it was not measured there (slow, memory, failed), else 0
    build_seconds(a), …             another figure than `of`
    fact("table", "row", "column")  a number of a table of facts, see facts.py
    first(a), last(a)               the value at the first and at the last place of the line
    where(a, x)                     … at the place x
    lowest(a), highest(a)           the least and the largest value of the line
    step_least(a), step_most(a)     the least and the largest of the ratios of neighbours:
                                    it never falls if step_least is at least 1
    exponent(a)                     log(last / first) / log(last place / first place)

A name whose contender was not measured at a point is an error: a claim about nothing does not hold
by accident. Choose other points, or use `least`, `most` and `missing`.

**Tolerance.** A number of the paper counts as reached within a tenth, and an order (where the
number is 1 and the relation is not `~`) and a reading of ours have to hold as they are. `tolerance`
says otherwise, and the page shows it.

A part that results cannot decide has `says` and `undecided = "why"` and nothing else.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from matchmill.errors import InputError
from matchmill.lab.experiments.facts import Facts
from matchmill.lab.experiments.results import Results, Summary
from matchmill.lab.experiments.spec import MEASUREMENTS

__all__ = ["VERDICTS", "Judged", "Part", "judge", "read_parts", "verdict_of"]

VERDICTS = ("holds", "holds in part", "does not hold", "cannot be decided")
_OF_MEASURE = {
    "match": "us_per_event",
    "build": "build_seconds",
    "memory": "bytes_per_subscription",
    "predicate": "us_per_event",
}


class _Relation(NamedTuple):
    text: str
    holds: Callable[[float, float, float], bool]
    badness: Callable[[float, float], float]  # the point that is shown has the most


def _distance(value: float, paper: float) -> float:
    if value <= 0 or paper <= 0:
        return abs(value - paper)
    return abs(math.log(value / paper))


_RELATIONS = {
    "<=": _Relation("at most", lambda v, p, t: v <= p * (1 + t), lambda v, p: v),
    ">=": _Relation("at least", lambda v, p, t: v >= p / (1 + t), lambda v, p: -v),
    "<": _Relation("less than", lambda v, p, t: v < p * (1 + t), lambda v, p: v),
    ">": _Relation("more than", lambda v, p, t: v > p / (1 + t), lambda v, p: -v),
    "~": _Relation("about", lambda v, p, t: p / (1 + t) <= v <= p * (1 + t), _distance),
}
_KEYS = {"says", "value", "is", "paper", "ours", "at", "of", "tolerance", "along", "undecided"}


class Part(NamedTuple):
    """One part of a claim; `undecided` says why it cannot be judged."""

    says: str
    value: str
    relation: str
    paper: float
    is_ours: bool  # not a number of the paper, but our reading of a word
    tolerance: float
    at: Mapping[str, Any]
    of: str
    along: str
    undecided: str

    @property
    def paper_text(self) -> str:
        """The paper's number, with its relation and what is allowed."""
        number = f"{self.paper:,.0f}" if self.paper >= 1000 else f"{self.paper:.4g}"
        text = f"{_RELATIONS[self.relation].text} {number}"
        notes = ["our reading"] if self.is_ours else []
        if self.tolerance != _default_tolerance(self.relation, self.paper, self.is_ours):
            notes.append(f"± {self.tolerance * 100:g} %")
        return f"{text} ({', '.join(notes)})" if notes else text


class Judged(NamedTuple):
    """A part and what the figures say: at the worst point its value; `holds` None if undecided."""

    part: Part
    holds: bool | None
    value: float | None
    labels: Mapping[str, Any]
    n_points: int
    n_good: int


# -- reading --------------------------------------------------------------------------------------


def read_parts(rows: Any, measures: Sequence[str], where: str) -> list[Part]:
    """Read the checks of one experiment; `where` names them in errors."""
    if not isinstance(rows, list) or not rows:
        raise InputError(f"{where}: a claim has at least one part; add [[….checks]]")
    return [_read_part(row, measures, f"{where}, check {i + 1}") for i, row in enumerate(rows)]


def _read_part(row: Any, measures: Sequence[str], where: str) -> Part:
    if not isinstance(row, dict) or not isinstance(row.get("says"), str):
        raise InputError(f"{where}: `says` is missing: what the paper says, in a few words")
    unknown = sorted(set(row) - _KEYS)
    if unknown:
        raise InputError(f"{where}: {unknown[0]} is unknown; there are: {', '.join(sorted(_KEYS))}")
    of = row.get("of", _OF_MEASURE[measures[0]])
    if of not in MEASUREMENTS:
        raise InputError(f"{where}: `of` is one of {', '.join(MEASUREMENTS)}, not {of!r}")
    if "undecided" in row:
        if set(row) != {"says", "undecided"}:
            raise InputError(f"{where}: what is undecided has `says` and `undecided` alone")
        return Part(row["says"], "", "~", 1.0, False, 0.0, {}, of, "", str(row["undecided"]))
    relation, is_ours = row.get("is"), "ours" in row
    paper = row.get("ours", row.get("paper"))
    if is_ours and "paper" in row:
        raise InputError(f"{where}: there is `paper` and `ours`; it is one or the other")
    if relation not in _RELATIONS:
        raise InputError(f"{where}: `is` is one of {', '.join(_RELATIONS)}, not {relation!r}")
    if not isinstance(paper, int | float) or isinstance(paper, bool):
        raise InputError(f"{where}: `paper` is the paper's number, not {paper!r}")
    if not isinstance(row.get("value"), str):
        raise InputError(f"{where}: `value` is missing: what is compared with the paper's number")
    tolerance = float(row.get("tolerance", _default_tolerance(relation, paper, is_ours)))
    return Part(
        row["says"], row["value"], relation, float(paper), is_ours, tolerance, row.get("at", {}),
        of, row.get("along", ""), "",
    )  # fmt: skip


def _default_tolerance(relation: str, paper: float, is_ours: bool) -> float:
    return 0.0 if is_ours or (paper == 1 and relation != "~") else 0.1


# -- judging --------------------------------------------------------------------------------------


def judge(results: Results, parts: Sequence[Part], facts: Facts, where: str) -> list[Judged]:
    """Judge the parts of a claim by what was measured."""
    points = _points(results.summaries())
    return [_judge(part, points, facts, f"{where}: {part.value!r}") for part in parts]


def verdict_of(judged: Sequence[Judged]) -> str:
    """Return the verdict that follows: *holds* only if every part does."""
    outcomes = [j.holds for j in judged]
    if all(outcomes):
        return "holds"
    if all(holds is None for holds in outcomes):
        return "cannot be decided"
    return "holds in part" if any(outcomes) else "does not hold"


class _Point(NamedTuple):
    labels: Mapping[str, Any]
    contenders: Mapping[str, Summary]


def _points(summaries: Sequence[Summary]) -> list[_Point]:
    found: dict[str, _Point] = {}
    for s in summaries:
        point = found.setdefault(s.columns["labels"], _Point(s.labels, {}))
        point.contenders[s.contender] = s  # type: ignore[index]
    return list(found.values())


def _judge(part: Part, points: Sequence[_Point], facts: Facts, where: str) -> Judged:
    if part.undecided:
        return Judged(part, None, None, {}, 0, 0)
    chosen = [point for point in points if _fits(point.labels, part.at, where)]
    if not chosen:
        raise InputError(f"{where}: there is no point at {dict(part.at)}")
    lines: dict[str, list[_Point]] = {}
    for point in chosen:
        if part.along and part.along not in point.labels:
            raise InputError(f"{where}: {part.along!r} is no label of a point")
        rest = {k: v for k, v in point.labels.items() if k != part.along}
        lines.setdefault(repr(rest if part.along else point.labels), []).append(point)
    relation = _RELATIONS[part.relation]
    tree = _parse(part.value, where)
    values: list[tuple[float, Mapping[str, Any]]] = []
    for line in lines.values():
        value = _Evaluation(line, part.of, part.along, facts, where).number(tree)
        values.append((value, {k: v for k, v in line[0].labels.items() if k != part.along}))
    if not _names_a_contender(tree):
        values = [(values[0][0], {})]  # the same everywhere
    good = [relation.holds(value, part.paper, part.tolerance) for value, _ in values]
    worst = max(range(len(values)), key=lambda i: relation.badness(values[i][0], part.paper))
    return Judged(part, all(good), *values[worst], len(values), sum(good))


def _names_a_contender(tree: ast.expr) -> bool:
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return any(isinstance(n, ast.Name) and id(n) not in functions for n in ast.walk(tree))


def _fits(labels: Mapping[str, Any], at: Mapping[str, Any], where: str) -> bool:
    for key, wanted in at.items():
        if key not in labels:
            raise InputError(f"{where}: {key!r} is no label; there are: {', '.join(labels)}")
        if labels[key] not in (wanted if isinstance(wanted, list) else [wanted]):
            return False
    return True


def _parse(text: str, where: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise InputError(f"{where}: {error.msg}") from None


_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}


class _Evaluation:
    """A value at one point, or along one line of points."""

    def __init__(
        self, line: Sequence[_Point], of: str, along: str, facts: Facts, where: str
    ) -> None:
        self._line = line
        self._of = of
        self._along = along
        self._facts = facts
        self._where = where

    def number(self, node: ast.expr) -> float:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return float(node.value)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            left, right = self.number(node.left), self.number(node.right)
            try:
                return _OPERATIONS[type(node.op)](left, right)
            except ZeroDivisionError:
                raise self._error("divides by zero") from None
        if isinstance(node, ast.Name):
            return self._figure(node.id)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self._call(node.func.id, node.args)
        raise self._error(f"{ast.unparse(node)!r} is not of the language of claims")

    def _error(self, problem: str) -> InputError:
        return InputError(f"{self._where}: {problem}")

    def _figure(self, name: str) -> float:
        if len(self._line) != 1:
            raise self._error(f"{name} has {len(self._line)} values along {self._along}: choose")
        value = self._found(name)
        if value is None:
            labels = dict(self._line[0].labels)
            raise self._error(f"{name} has no {self._of} at {labels}")
        return value

    def _found(self, name: str) -> float | None:
        (point,) = self._line
        summary = point.contenders.get(name)
        if summary is None:
            raise self._error(f"there is no contender {name!r}; there are: {_and(point)}")
        if summary.status != "ok" or summary.columns[self._of] is None:
            return None
        return float(summary.columns[self._of])

    def _call(self, name: str, arguments: Sequence[ast.expr]) -> float:
        if name in MEASUREMENTS:
            other = _Evaluation(self._line, name, self._along, self._facts, self._where)
            return other.number(self._only(name, arguments))
        if name == "fact":
            texts = [a.value for a in arguments if isinstance(a, ast.Constant)]
            if len(texts) != 3 or len(arguments) != 3:
                raise self._error("fact takes a table, a row and a column, each a text")
            return self._facts.number(*map(str, texts))
        if name in ("least", "most"):
            found = [v for v in map(self._if_measured, arguments) if v is not None]
            if not found:
                raise self._error(f"none of those in {name}(…) was measured")
            return min(found) if name == "least" else max(found)
        if name == "missing":
            return float(self._if_measured(self._only(name, arguments)) is None)
        if name in _ALONG:
            return self._of_line(name, arguments)
        raise self._error(f"there is no function {name!r}")

    def _only(self, name: str, arguments: Sequence[ast.expr]) -> ast.expr:
        if len(arguments) != 1:
            raise self._error(f"{name} takes one argument")
        return arguments[0]

    def _if_measured(self, node: ast.expr) -> float | None:
        if not isinstance(node, ast.Name):
            return self.number(node)
        if len(self._line) != 1:
            raise self._error(f"choose a place of the line for {node.id}")
        return self._found(node.id)

    def _of_line(self, name: str, arguments: Sequence[ast.expr]) -> float:
        if not self._along:
            raise self._error(f"{name} needs `along`: the label that a line goes along")
        if len(arguments) != 1 + (name == "where"):
            raise self._error(f"{name} takes {1 + (name == 'where')} arguments")
        places = [point.labels[self._along] for point in self._line]
        if name == "where":
            if not isinstance(arguments[1], ast.Constant) or arguments[1].value not in places:
                raise self._error(f"where(…) takes a place of {self._along}: {places}")
            return self._at(places.index(arguments[1].value)).number(arguments[0])
        if name in ("first", "last"):
            return self._at(0 if name == "first" else -1).number(arguments[0])
        values = [self._at(i).number(arguments[0]) for i in range(len(places))]
        return _ALONG[name](values, places)

    def _at(self, i: int) -> _Evaluation:
        return _Evaluation([self._line[i]], self._of, "", self._facts, self._where)


def _and(point: _Point) -> str:
    return ", ".join(point.contenders)


def _ratios(values: Sequence[float], _: Sequence[Any]) -> list[float]:
    return [b / a for a, b in pairwise(values)]


_ALONG: dict[str, Callable[[Sequence[float], Sequence[Any]], float]] = {
    "first": lambda values, places: values[0],
    "last": lambda values, places: values[-1],
    "where": lambda values, places: values[0],
    "lowest": lambda values, places: min(values),
    "highest": lambda values, places: max(values),
    "step_least": lambda values, places: min(_ratios(values, places)),
    "step_most": lambda values, places: max(_ratios(values, places)),
    "exponent": lambda values, places: (
        math.log(values[-1] / values[0]) / math.log(places[-1] / places[0])
    ),
}
