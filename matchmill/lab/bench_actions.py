"""What the actions of `matchmill bench` do."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from matchmill.cli.exit_codes import ALL_GOOD, NO
from matchmill.errors import InputError
from matchmill.lab.experiments.compare import Change, compare
from matchmill.lab.experiments.contenders import is_there
from matchmill.lab.experiments.measurement import Budget
from matchmill.lab.experiments.paper_page import check_paper_page, write_paper_page
from matchmill.lab.experiments.report import write_report
from matchmill.lab.experiments.results import Results, read_results, result_files
from matchmill.lab.experiments.run import label_text, only, run_experiment, with_changes
from matchmill.lab.experiments.spec import experiments, find_experiments, points
from matchmill.lab.workloads.registry import GENERATORS

__all__ = ["run_action"]

_BAD = ("wrong", "failed", "no workload")


def run_action(arguments: argparse.Namespace) -> int:
    """Run one action of `matchmill bench`."""
    actions = {
        "run": _run,
        "list": _list,
        "compare": _compare,
        "report": _report,
        "page": _page,
    }
    return actions[arguments.action](arguments)


# -- run ------------------------------------------------------------------------------------------


class _Messages:
    """Lines on standard error; on a terminal also one that moves."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._moves = not quiet and sys.stderr.isatty()

    def doing(self, text: str) -> None:
        if self._moves:
            print(f"\r\x1b[K{text[:100]}", end="", file=sys.stderr, flush=True)

    def point_done(self, text: str) -> None:
        if not self._quiet:
            print(f"{self._clear()}{text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        print(self._clear(), end="", file=sys.stderr, flush=True)

    def _clear(self) -> str:
        return "\r\x1b[K" if self._moves else ""


def _run(arguments: argparse.Namespace) -> int:
    chosen = find_experiments(arguments.specs)
    if arguments.indexes:
        names = [name.strip() for name in arguments.indexes.split(",")]
        chosen = only(chosen, names)
    if arguments.changes:
        chosen = with_changes(chosen, arguments.changes)
    budget = _budget(arguments)
    messages = _Messages(arguments.quiet)
    statuses: Counter[str] = Counter()
    try:
        for experiment in chosen:
            statuses += run_experiment(
                experiment,
                arguments.scale,
                Path(arguments.out),
                messages,
                rounds=arguments.rounds,
                budget=budget,
                resume=arguments.resume,
                overwrite=arguments.overwrite,
                sparse=arguments.sparse,
            )
    except KeyboardInterrupt:
        messages.point_done("stopped; the same command with --resume goes on")
        raise
    finally:
        messages.close()
    words = ", ".join(f"{n:,} {status}" for status, n in statuses.most_common())
    messages.point_done(f"{arguments.out}: {words}")
    return NO if any(statuses[status] for status in _BAD) else ALL_GOOD


def _budget(arguments: argparse.Namespace) -> Budget:
    seconds, gib = arguments.budget_seconds, arguments.budget_gib
    for name, value in (("--budget-seconds", seconds), ("--budget-gib", gib)):
        if value is not None and not (0 < value < math.inf):
            raise InputError(f"{name} must be more than 0, not {value}")
    return Budget(seconds, int((gib or 0) * 2**30), min(seconds, 10.0), arguments.clock)


# -- list -----------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace) -> int:
    rows = []
    for experiment in experiments():
        absent = [c.name for c in experiment.contenders if not is_there(c)]
        generator = str(experiment.workload["generator"])
        rows.append(
            {
                "name": experiment.name,
                "paper": experiment.paper,
                "shows": experiment.shows,
                "title": experiment.title,
                "n_points": len(points(experiment, "full")),
                "contenders": [c.name for c in experiment.contenders],
                "absent": absent + ([] if generator in GENERATORS else [f"workload {generator}"]),
            }
        )
    if arguments.format == "json":
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return ALL_GOOD
    for row in rows:
        print(f"{row['name']}\n    {row['paper']}, {row['shows']}: {row['title']}")
        if row["absent"]:
            print(f"    not there: {', '.join(map(str, row['absent']))}")  # type: ignore[call-overload]
    return ALL_GOOD


# -- compare --------------------------------------------------------------------------------------


def _compare(arguments: argparse.Namespace) -> int:
    found = list(_changes(arguments))
    changes = [change for _, change in found]
    if arguments.format == "json":
        print(json.dumps([_as_dict(r, c) for r, c in found], indent=2, ensure_ascii=False))
    else:
        _print_changes(found, arguments.all)
    return NO if arguments.fail_on_slower and any(c.is_worse for c in changes) else ALL_GOOD


def _changes(arguments: argparse.Namespace) -> Iterator[tuple[Results, Change]]:
    before, after = (
        {(r.experiment.name, r.scale): r for r in map(read_results, result_files(Path(place)))}
        for place in (arguments.before, arguments.after)
    )
    common = [key for key in before if key in after]
    if not common:
        raise InputError(
            f"{arguments.before} and {arguments.after} have no experiment in common: "
            f"{_named(before)}; {_named(after)}"
        )
    for key in {**before, **after}:
        if key in common:
            for change in compare(before[key], after[key]):
                yield before[key], change
        elif not arguments.quiet:
            place = arguments.before if key in before else arguments.after
            print(f"{key[0]} ({key[1]}): only in {place}", file=sys.stderr)


def _named(results: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} ({scale})" for name, scale in results)


def _as_dict(results: Results, change: Change) -> dict[str, object]:
    own = {**change._asdict(), "labels": json.loads(change.labels), "ratio": change.ratio}
    return {"experiment": results.experiment.name, "scale": results.scale, **own}


def _print_changes(found: list[tuple[Results, Change]], everything: bool) -> None:
    for results, change in found:
        if change.label in ("noise", "not measured") and not everything:
            continue
        labels = label_text(json.loads(change.labels))
        times = (
            f"{change.before:.4g} → {change.after:.4g} µs, x {change.ratio:.2f}  "
            if change.before is not None and change.after is not None and change.ratio
            else ""
        )
        print(
            f"{change.label:<12} {results.experiment.name}  {labels}  {change.contender}  "
            f"{times}{change.reason}".rstrip()
        )
    counts = Counter(change.label for _, change in found)
    print(", ".join(f"{n:,} {label}" for label, n in counts.most_common()))


# -- report ---------------------------------------------------------------------------------------


def _report(arguments: argparse.Namespace) -> int:
    results = [read_results(path) for path in result_files(Path(arguments.results))]
    page = write_report(results, Path(arguments.out))
    if not arguments.quiet:
        print(f"written: {page} and {page.with_name('report.md')}", file=sys.stderr)
    return ALL_GOOD


# -- page -----------------------------------------------------------------------------------------


def _page(arguments: argparse.Namespace) -> int:
    folder, name = Path(arguments.out), arguments.paper
    if arguments.check:
        if arguments.results:
            raise InputError("--check compares a page with the figures kept beside it: no RESULTS")
        problems = check_paper_page(folder, name)
        for problem in problems:
            print(problem, file=sys.stderr)
        return NO if problems else ALL_GOOD
    own: list[Results] = []
    if arguments.results:
        results = [read_results(path) for path in result_files(Path(arguments.results))]
        own = [r for r in results if r.experiment.name.startswith(f"{name}/")]
        if not own:
            raise InputError(f"{arguments.results} has no results of {name}/…")
    page = write_paper_page(folder, name, own)
    if not arguments.quiet:
        print(f"written: {page}", file=sys.stderr)
    return ALL_GOOD
