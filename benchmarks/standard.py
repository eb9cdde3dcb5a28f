"""The standard workloads: every contender's time per event, and how it compares with mill's.

The experiment `matchmill/standard` at full size, as `matchmill bench run` does it: each contender
is built in a child process of its own, the survivors take turns in shuffled order, and the
matches of all are compared event by event, with a scan's as far as that gets. A slow contender is
given fewer events. Any index of the registry can be a contender, by its name.

With `--against CHECKOUT` each contender is compared with itself in another checkout instead, in
one interleaved run: the matches must be the same, and a difference of more than 3 % is shown. The
contender `engine` is the public engine, which gets texts and dicts. A few minutes:

    script/bench standard --against ../before --scale 0.1 --contenders mill,mill_one,engine
    script/bench standard --against ../before --scale 0.1 --set real --contenders auto,mill
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.support.against import (
    compare_checkouts,
    engine_contender,
    in_words,
    print_comparisons,
    save_workload,
)
from benchmarks.support.checkout_child import CLOCKS, ENGINE
from benchmarks.support.timing import Spread, Target, number, print_table, ratio
from matchmill.errors import InputError
from matchmill.index.registry import INDEXES
from matchmill.lab.experiments.measurement import Budget
from matchmill.lab.experiments.results import Results, Summary, read_results, result_files
from matchmill.lab.experiments.run import run_experiment
from matchmill.lab.experiments.spec import (
    Case,
    Contender,
    Experiment,
    load_experiment,
    parse_experiment,
    points,
)
from matchmill.lab.workloads.registry import generate

OURS = "mill"
DEFAULT_CONTENDERS = "mill,mill_one,mill_many,mill_no_statistics,counting,scan"

# How many times as long as mill each of these is to take, at full size.
_TIMES: dict[str, dict[str, int]] = {
    "counting": {
        "be1": 6, "be01": 10, "dense": 25, "30k": 4, "zipf": 25, "ads": 25, "flights": 10,
    },
    "scan": {
        "be1": 100, "be01": 200, "dense": 200, "30k": 150, "zipf": 200, "ads": 200, "flights": 200,
    },
}  # fmt: skip
_ANY_OTHER = Target("≥", 5, "x")
_NO_STATISTICS = Target("≤", 1.5, "x")
_BUILD = {"be1": Target("≤", 0.7), "ads": Target("≤", 2)}  # seconds for a million
_BYTES = {  # of a subscription
    **dict.fromkeys(("be1", "be01", "zipf", "eq0"), Target("≤", 35)),
    "ads": Target("≤", 80),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument(
        "--scale", type=float, default=1.0, help="share of the subscriptions (default: 1)"
    )
    parser.add_argument(
        "--set",
        choices=("standard", "real"),
        default="standard",
        help="the workloads: those of papers, or with values that people have",
    )
    parser.add_argument("--only", help="some of the workloads: be1,be01,…")
    parser.add_argument(
        "--contenders",
        default=DEFAULT_CONTENDERS,
        help="names of the registry or of the experiment (default: %(default)s)",
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--events", type=int, help="fewer or more than 2,000")
    parser.add_argument(
        "--seconds", type=float, default=60, help="for one contender to build, again to match"
    )
    parser.add_argument("--out", type=Path, help="keep the results here; a stopped run goes on")
    parser.add_argument(
        "--against", type=Path, metavar="CHECKOUT", help="compare with this other checkout"
    )
    parser.add_argument(
        "--starts", type=int, default=3, help="with --against: how often both are started"
    )
    parser.add_argument(
        "--builds", type=int, default=2, help="with --against: how often each start builds"
    )
    parser.add_argument(
        "--clock",
        choices=sorted(CLOCKS),
        default="cpu",
        help="with --against: time of the process, or of the wall (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    contenders = arguments.contenders.split(",")
    experiment = chosen(
        load_experiment(f"matchmill/{arguments.set}"),
        [name for name in contenders if name != ENGINE or not arguments.against],
        arguments.only.split(",") if arguments.only else None,
        arguments.scale,
        arguments.events,
    )
    if arguments.against:
        kept = [c for c in experiment.contenders if c.name in contenders]
        kept += [engine_contender()] if ENGINE in contenders else []
        return _compare(arguments, experiment, kept)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.out or Path(temporary)
        run_experiment(
            experiment,
            "full",
            folder,
            _Messages(),
            rounds=arguments.rounds,
            budget=Budget(arguments.seconds, 0, min(arguments.seconds, 10)),
            resume=True,
        )
        (path,) = (
            p for p in result_files(folder) if p.name.startswith(f"matchmill.{arguments.set}.full")
        )
        results = read_results(path)
    return _report(results, arguments.scale)


def _compare(
    arguments: argparse.Namespace, experiment: Experiment, contenders: Sequence[Contender]
) -> int:
    before, after = arguments.against.resolve(), Path(__file__).parents[1]
    if not (before / "matchmill").is_dir():
        raise InputError(f"--against {arguments.against}: there is no matchmill/ in it")
    for name in ("rounds", "starts", "builds"):
        if getattr(arguments, name) < 1:
            raise InputError(f"--{name} must be at least 1, not {getattr(arguments, name)}")
    messages, found = _Messages(), []
    for point in points(experiment, "full"):
        case = point.labels["case"]
        with tempfile.TemporaryDirectory() as temporary:
            messages.doing(f"{case}: making the workload")
            with_texts = any(c.index == ENGINE for c in contenders)
            save_workload(generate(point.workload), Path(temporary), with_texts=with_texts)
            for contender in contenders:
                comparison = compare_checkouts(
                    before,
                    after,
                    point,
                    contender,
                    Path(temporary),
                    rounds=arguments.rounds,
                    starts=arguments.starts,
                    builds=arguments.builds,
                    clock=arguments.clock,
                    progress=lambda text, case=case: messages.doing(f"{case} {text}"),  # type: ignore[misc]
                )
                messages.point_done(in_words(comparison))
                found.append(comparison)
    note = (
        f"before: {before}, after: {after}. {arguments.starts} starts of {arguments.rounds} rounds "
        f"and {arguments.builds} builds; {arguments.scale:g} of the full size; "
        f"{arguments.clock} time."
    )
    return print_comparisons(found, [note])


class _Messages:
    def doing(self, text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text[:100]}", end="", file=sys.stderr, flush=True)

    def point_done(self, text: str) -> None:
        start = "\r\x1b[K" if sys.stderr.isatty() else ""
        print(f"{start}{text}", file=sys.stderr, flush=True)


# -- what is run ----------------------------------------------------------------------------------


def chosen(
    experiment: Experiment,
    contenders: Sequence[str],
    cases: Sequence[str] | None,
    scale: float,
    n_events: int | None,
) -> Experiment:
    """Return the experiment with some contenders, some cases and a share of their size."""
    if not scale > 0:
        raise InputError(f"--scale must be more than 0, not {scale}")
    known = {c.name for c in experiment.contenders if c.index in INDEXES} | set(INDEXES)
    for name in contenders:
        if name not in known:
            raise InputError(f"no contender {name!r}; there are: {', '.join(sorted(known))}")
    if OURS not in contenders:
        contenders = [OURS, *contenders]
    listed = {c.name for c in experiment.contenders}
    added = "".join(
        f'\n[contenders.{name}]\nindex = "{name}"\n' for name in contenders if name not in listed
    )
    # The text is what a file of results remembers, so that another run cannot go on with it.
    said = f"\n# scale {scale}, events {n_events}, cases {cases}\n"
    whole = parse_experiment(experiment.text + added + said, experiment.name)
    by_name = {c.name: c for c in whole.contenders}
    return replace(
        whole,
        contenders=tuple(by_name[name] for name in contenders),
        cases=tuple(_sized(whole, case, scale) for case in _some(whole.cases, cases)),
        changes={} if n_events is None else {"n_events": n_events},
    )


def _some(cases: Sequence[Case], names: Sequence[str] | None) -> list[Case]:
    by_name = {case.name: case for case in cases}
    for name in names or ():
        if name not in by_name:
            raise InputError(f"no workload {name!r}; there are: {', '.join(by_name)}")
    return [by_name[name] for name in names or by_name]


def _sized(experiment: Experiment, case: Case, scale: float) -> Case:
    values = {**experiment.workload, **case.changes}
    size = max(1, round(int(values["n_subscriptions"]) * scale))
    return case._replace(changes={**case.changes, "n_subscriptions": size})


# -- what it showed -------------------------------------------------------------------------------

_HEADER = (
    "workload", "contender", "µs per event", "times mill's", "target", "build s/1M", "target",
    "bytes/sub.", "target", "events", "matches",
)  # fmt: skip


def _report(results: Results, scale: float) -> int:
    by_case: dict[str, dict[str, Summary]] = {}
    for s in results.summaries():
        by_case.setdefault(str(s.labels["case"]), {})[s.contender] = s
    is_full = scale == 1
    rows = [
        _row(case, found, s, is_full) for case, found in by_case.items() for s in found.values()
    ]
    bad = [
        f"{s.labels['case']} {s.contender}: {s.status}, {s.columns['reason']}"
        for s in results.summaries()
        if s.status != "ok"
    ]
    m = results.machine
    notes = [
        *bad,
        f"{results.run['rounds']} rounds, one thread. {m['cpu']}, {m['cores']} cores; Python "
        f"{m['python']}, NumPy {m['numpy']}, Numba {m['numba']}; load {m['load_average']}.",
    ]
    if not is_full:
        notes.append(f"Targets are those of the full size; this was {scale:g} of it.")
    print_table("The standard workloads", _HEADER, rows, notes)
    statuses = {s.status for s in results.summaries()}
    return int(bool(statuses & {"wrong", "failed", "no workload"}))


def _row(case: str, found: Mapping[str, Summary], s: Summary, is_full: bool) -> tuple[object, ...]:
    if not s.rounds:
        return (case, s.contender, s.status, *[""] * (len(_HEADER) - 3))

    def against(target: Target | None, figure: float) -> str:
        if target is None:
            return ""
        return target.verdict(figure) if is_full else str(target)

    c, ours = s.columns, found[OURS]
    build = c["build_seconds"] / json.loads(c["workload"])["n_subscriptions"] * 1e6
    n_bytes = c["bytes_per_subscription"]
    times, times_target = "", ""
    if s is not ours and ours.status == "ok":
        spread = ratio(s.rounds, ours.rounds)
        times = f"{spread}x" + ("" if c["race"] == ours.columns["race"] else ", apart")
        times_target = against(_times_target(case, s), spread.median)
    return (
        case,
        s.contender if s.status == "ok" else f"{s.contender} {s.status.upper()}",
        Spread.of(s.rounds),
        times,
        times_target,
        number(build),
        against(_BUILD.get(case) if s is ours else None, build),
        number(n_bytes),
        against(_BYTES.get(case) if s is ours else None, n_bytes),
        f"{c['n_events']:,}",
        f"{c['matches_per_event']:,.0f}",
    )


def _times_target(case: str, s: Summary) -> Target | None:
    if s.columns["index"] == OURS:
        return _NO_STATISTICS if s.contender == "mill_no_statistics" else None
    if s.contender not in _TIMES:
        return _ANY_OTHER
    at_least = _TIMES[s.contender].get(case)
    return None if at_least is None else Target("≥", at_least, "x")
