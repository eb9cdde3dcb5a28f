"""Two checkouts of matchmill on the same workloads, in one interleaved run.

    for each workload and contender, several times:
        start two children, one per checkout            checkout_child.py
        both build, taking turns                        seconds of each build
        both match all events once                      the digests must be equal
        rounds: both match, taking turns                the ratio of the two times of each round

The workload is made once, by this checkout, and saved as arrays that both children map. The child
that goes first changes from round to round. New children are started several times, because a
process keeps the luck of its memory addresses for as long as it lives.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from benchmarks.support.checkout_child import ENGINE
from benchmarks.support.timing import Spread, number, print_table, ratio
from matchmill.errors import InputError
from matchmill.lab.experiments.spec import Contender, Point
from matchmill.lab.workloads.flat import Workload, event_dicts, subscription_texts

__all__ = [
    "Comparison",
    "compare_checkouts",
    "engine_contender",
    "in_words",
    "print_comparisons",
    "save_workload",
    "verdict",
]

LIMIT = 0.03  # a smaller difference is called noise
_CHILD = Path(__file__).with_name("checkout_child.py")


class Comparison(NamedTuple):
    """One contender on one workload; the first of each pair is the other checkout, `before`."""

    workload: str
    contender: str
    before: list[float]  # seconds to match all events, per round
    after: list[float]
    builds_before: list[float]  # seconds
    builds_after: list[float]
    n_bytes: tuple[int, int]
    n_events: int
    n_matches: int
    problem: str  # empty if the matches are the same


def verdict(before: Sequence[float], after: Sequence[float]) -> str:
    """Call a difference slower or faster only if it is clear.

    The median of the ratios and the ratio of the fastest rounds must be beyond the limit (load from
    outside adds to times, so it moves the fastest least), and at least three quarters of the rounds
    must point the same way.
    """
    ratios = sorted(a / b for b, a in zip(before, after, strict=True))
    both = statistics.median(ratios), min(after) / min(before)
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    if min(both) > 1 + LIMIT and low > 1:
        return "slower"
    if max(both) < 1 / (1 + LIMIT) and high < 1:
        return "faster"
    return "noise"


# -- the workload ---------------------------------------------------------------------------------


def save_workload(workload: Workload, folder: Path, *, with_texts: bool) -> None:
    """Save the arrays of a workload and, for the engine, its texts and dicts."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("clause_offsets", "attributes", "interval_offsets", "lows", "highs"):
        np.save(folder / f"{name}.npy", getattr(workload.subscriptions, name))
    for kind, events in (("events", workload.events), ("training", workload.training)):
        for name in ("offsets", "attributes", "codes"):
            np.save(folder / f"{kind}_{name}.npy", getattr(events, name))
    if with_texts:
        _write_lines(folder / "subscriptions.jsonl", subscription_texts(workload))
        _write_lines(folder / "events.jsonl", event_dicts(workload))


def _write_lines(path: Path, values: Any) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(value, default=str) + "\n" for value in values)


# -- the children ---------------------------------------------------------------------------------


class _Checkout:
    """The parent's side of a child."""

    def __init__(self, checkout: Path, folder: Path, clock: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", _CHILD, checkout, folder, clock],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=checkout,
        )

    def ask(self, do: str, **values: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **values}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self._process.wait()
            raise InputError(f"the child ended with exit code {code}; its error stands above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def compare_checkouts(
    before: Path,
    after: Path,
    point: Point,
    contender: Contender,
    folder: Path,
    *,
    rounds: int,
    starts: int,
    builds: int,
    clock: str = "cpu",
    progress: Callable[[str], None] = lambda text: None,
) -> Comparison:
    """Compare one contender of two checkouts on a workload that was saved in a folder."""
    asked = {
        "index": contender.index,
        "options": dict(point.options_of(contender)),
        "statistics": contender.statistics,
    }
    times: tuple[list[float], list[float]] = ([], [])
    build_times: tuple[list[float], list[float]] = ([], [])
    first, n_bytes, problem = {}, (0, 0), ""
    for start in range(starts):
        progress(f"{contender.name}: start {start + 1} of {starts}")
        with _Checkout(before, folder, clock) as old, _Checkout(after, folder, clock) as new:
            pair = (old, new)
            for turn in range(builds):
                for side in _order(start + turn):
                    built = pair[side].ask("build", contender=asked)
                    build_times[side].append(built["seconds"])
                    n_bytes = (
                        built["n_bytes"] if side == 0 else n_bytes[0],
                        built["n_bytes"] if side == 1 else n_bytes[1],
                    )
            warm = [child.ask("warm_up") for child in pair]
            first = first or warm[0]
            problem = problem or _difference(first, *warm)
            repeats = warm[0]["repeats"]
            for turn in range(rounds):
                for side in _order(start + turn):
                    answer = pair[side].ask("match", repeats=repeats)
                    times[side].append(answer["seconds"])
                    if not answer["is_same"]:
                        problem = problem or "the same events have other matches in another round"
    return Comparison(
        str(point.labels.get("case", "")),
        contender.name,
        *times,
        *build_times,
        n_bytes,
        point.workload.n_events,
        first["n_matches"],
        problem,
    )


def _order(turn: int) -> tuple[int, int]:
    return (0, 1) if turn % 2 == 0 else (1, 0)


def _difference(*answers: dict[str, Any]) -> str:
    digests = {(a["n_matches"], a["digest"]) for a in answers}
    if len(digests) == 1:
        return ""
    counts = " and ".join(f"{a['n_matches']:,}" for a in answers[1:])
    return f"the matches differ: {counts} before and after, or not the same ones"


# -- the table ------------------------------------------------------------------------------------

_HEADER = (
    "workload", "contender", "µs per event before", "after", "after/before", "verdict",
    "build s before", "after/before", "verdict", "bytes", "matches",
)  # fmt: skip


def print_comparisons(found: Sequence[Comparison], notes: Sequence[str]) -> int:
    """Print the table; the exit code is 1 if matches differ or anything is slower."""
    print_table("Two checkouts, interleaved", _HEADER, [_row(c) for c in found], notes)
    slower = [c for c in found if "slower" in (_verdict(c), _build_verdict(c))]
    wrong = [c for c in found if c.problem]
    for c in wrong:
        print(f"{c.workload} {c.contender}: {c.problem}")
    print(
        f"{len(found)} compared: {len(wrong)} with other matches, {len(slower)} slower by more "
        f"than {LIMIT:.0%}"
    )
    return int(bool(wrong or slower))


def _verdict(c: Comparison) -> str:
    return "DIFFERENT MATCHES" if c.problem else verdict(c.before, c.after)


def _build_verdict(c: Comparison) -> str:
    # A few builds cannot tell 3 % from noise, so all of them must point the same way.
    ratios = [a / b for b, a in zip(c.builds_before, c.builds_after, strict=True)]
    if min(ratios) <= 1 <= max(ratios):
        return "noise"
    return verdict(c.builds_before, c.builds_after)


def _row(c: Comparison) -> tuple[object, ...]:
    def per_event(seconds: list[float]) -> Spread:
        return Spread.of(s / max(c.n_events, 1) * 1e6 for s in seconds)

    before, after = c.n_bytes
    return (
        c.workload,
        c.contender,
        per_event(c.before),
        number(per_event(c.after).median),
        ratio(c.after, c.before),
        _verdict(c),
        number(statistics.median(c.builds_before)),
        ratio(c.builds_after, c.builds_before),
        _build_verdict(c),
        "same" if before == after else f"{before:,} → {after:,}",
        f"{c.n_matches:,}",
    )


def in_words(c: Comparison) -> str:
    """Return one line on a comparison, for those who wait."""
    times = ratio(c.after, c.before)
    return f"{c.workload} {c.contender}: {times} of before, {_verdict(c)}"


def engine_contender() -> Contender:
    """Return the contender that stands for the public engine."""
    return Contender(ENGINE, ENGINE, {})
