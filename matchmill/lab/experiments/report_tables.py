"""Tables of a report: what was measured, point by point and contender by contender."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from matchmill.lab.experiments.results import Results, Summary
from matchmill.lab.experiments.spec import MEASUREMENTS

__all__ = ["Table", "all_figures", "number_text", "problems", "tables"]

_OF_MEASURE = {
    "match": ("us_per_event", "candidates_per_event"),
    "build": ("build_seconds",),
    "memory": ("bytes_per_subscription", "peak_bytes"),
    "predicate": ("us_per_event",),
}
# The same for all, or too rough where memory of before is used again.
_NO_CONTEST = ("matches_per_event", "peak_bytes", "candidates_per_event")
_FIGURES = (
    "us_per_event", "us_per_event_min", "us_per_event_max", "ns_per_match", "build_seconds",
    "index_bytes", "peak_bytes", "candidates_per_event", "matches_per_event", "n_events",
)  # fmt: skip


class Table(NamedTuple):
    """`best` are the cells, by row and column, that are the best of their row."""

    title: str
    header: list[str]
    rows: list[list[str]]
    best: set[tuple[int, int]]
    n_label_columns: int
    notes: list[str]


def number_text(value: Any) -> str:
    """Three digits that matter, thousands apart."""
    if value is None:
        return ""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def value_text(value: Any, measurement: str) -> str:
    if value is None or not measurement.endswith("_bytes"):
        return number_text(value)
    for unit in ("B", "KiB", "MiB"):
        if abs(value) < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} GiB"


def tables(results: Results) -> list[Table]:
    """One table for each thing that the experiment measures or plots."""
    experiment = results.experiment
    wanted = [y for measure in experiment.measures for y in _OF_MEASURE[measure]]
    wanted += [plot.y for plot in experiment.plots]
    summaries = results.summaries()
    measured = [y for y in dict.fromkeys(wanted) if _is_measured(summaries, y)]
    return [_pivot(results, summaries, y) for y in measured]


def _is_measured(summaries: list[Summary], measurement: str) -> bool:
    """Tell whether there is anything to show, a value or a failure."""
    ok = [s for s in summaries if s.status == "ok"]
    return not ok or any(s.columns[measurement] is not None for s in ok)


def _pivot(results: Results, summaries: list[Summary], measurement: str) -> Table:
    names = list(results.experiment.label_names)
    contenders = list(dict.fromkeys(s.contender for s in summaries))
    points: dict[str, dict[str, Summary]] = {}
    for s in summaries:
        points.setdefault(s.columns["labels"], {})[s.contender] = s
    rows, best, notes = [], set(), list[str]()
    for i, (labels, found) in enumerate(points.items()):
        values = json.loads(labels)
        cells = [_cell(found.get(c), measurement, notes) for c in contenders]
        rows.append([number_text(values.get(name)) for name in names] + cells)
        good = {c: s.columns[measurement] for c, s in found.items() if s.status == "ok"}
        good = {c: value for c, value in good.items() if value is not None}
        if len(set(good.values())) > 1 and measurement not in _NO_CONTEST:
            least = min(good.values())
            best |= {(i, len(names) + contenders.index(c)) for c in good if good[c] == least}
    title = MEASUREMENTS[measurement]
    if measurement == "us_per_event":
        title += ", median of the rounds ± half of their middle half"
    return Table(title, names + contenders, rows, best, len(names), list(dict.fromkeys(notes)))


def _cell(s: Summary | None, measurement: str, notes: list[str]) -> str:
    if s is None:
        return ""
    if s.status != "ok":
        return s.status
    value = s.columns[measurement]
    text = value_text(value, measurement)
    if measurement == "us_per_event" and value is not None:
        text += f" ±{s.columns['us_per_event_spread'] * 50:.0f} %"
        n_events, measured = json.loads(s.columns["workload"])["n_events"], s.columns["n_events"]
        if measured is None or measured < n_events:  # unknown: only that it is less
            text += " *"
            notes.append("* measured on the first events only, as many as fit the time")
    return text


def all_figures(results: Results) -> Table:
    """Every contender at every point, with all its figures."""
    names = list(results.experiment.label_names)
    rows = [
        [number_text(s.labels.get(name)) for name in names]
        + [s.contender, s.status]
        + [value_text(s.columns[figure], figure) for figure in _FIGURES]
        for s in results.summaries()
    ]
    header = [*names, "contender", "status", *(f.replace("_", " ") for f in _FIGURES)]
    return Table("All figures", header, rows, set(), len(names) + 2, [])


def problems(results: Results) -> Iterator[tuple[str, str]]:
    """(contender and where, why) of all that is not as it should be, the worst first."""
    found: dict[tuple[str, str], list[Summary]] = {}
    summaries = results.summaries()
    for s in summaries:
        if s.status != "ok":
            found.setdefault((s.contender, s.status), []).append(s)
    n_points = len({s.columns["labels"] for s in summaries})
    order = ("wrong", "failed", "no workload", "memory", "slow", "absent")
    for (contender, status), where in sorted(found.items(), key=lambda f: order.index(f[0][1])):
        what = "not there" if status == "absent" else status
        if len(where) < n_points:
            places = [
                ", ".join(f"{k} {number_text(v)}" for k, v in s.labels.items()) for s in where
            ]
            more = f" and {len(places) - 4} more" if len(places) > 4 else ""
            what += f" at {'; '.join(places[:4])}{more}"
        reasons = list(dict.fromkeys(s.columns["reason"] for s in where))
        more = f" (and {len(reasons) - 1} similar)" if len(reasons) > 1 else ""
        yield f"{contender}: {what}", reasons[0] + more
