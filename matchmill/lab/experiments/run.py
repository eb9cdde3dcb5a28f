"""Run one experiment: every point of its grid that its file of results does not have yet."""

from __future__ import annotations

import time
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from matchmill.errors import InputError
from matchmill.lab.experiments.measure import measure
from matchmill.lab.experiments.measurement import Budget, Measurement
from matchmill.lab.experiments.results import RunFile
from matchmill.lab.experiments.spec import Experiment, Scale, points
from matchmill.lab.workloads.spec import Parameter

__all__ = ["Listener", "only", "run_experiment", "with_changes"]


class Listener(Protocol):
    """What hears how far a run is."""

    def doing(self, text: str) -> None:
        """Hear what is being done."""

    def point_done(self, text: str) -> None:
        """Hear that a point is done."""


def only(experiments: Sequence[Experiment], names: Sequence[str]) -> list[Experiment]:
    """Experiments with some of their contenders; those that have none of them are left out."""
    known = dict.fromkeys(c.name for e in experiments for c in e.contenders)
    for name in names:
        if name not in known:
            raise InputError(f"there is no contender {name!r}; there are: {', '.join(known)}")
    found = []
    for experiment in experiments:
        chosen = tuple(c for c in experiment.contenders if c.name in names)
        if chosen:
            found.append(replace(experiment, contenders=chosen))
    return found


def with_changes(experiments: Sequence[Experiment], texts: Sequence[str]) -> list[Experiment]:
    """Experiments in which `name=value` holds at every point."""
    changes: dict[str, Parameter] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise InputError(f"{text!r} is not of the form name=value")
        changes[name] = _parameter(value)
    for experiment in experiments:
        for name in changes:
            if name in experiment.grid:
                raise InputError(
                    f"{name} is what changes from point to point in {experiment.name};"
                    " copy the specification to change the points"
                )
    # The text is what a file of results remembers, so that another run cannot go on with it.
    said = "".join(f"# set: {name} = {value!r}\n" for name, value in sorted(changes.items()))
    return [replace(e, changes=changes, text=f"{e.text}\n{said}") for e in experiments]


def _parameter(text: str) -> Parameter:
    """Read a number, true or false as TOML writes them; anything else is a text."""
    try:
        value: Any = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return value if isinstance(value, (bool, int, float, str)) else text


def run_experiment(
    experiment: Experiment,
    scale: Scale,
    folder: Path,
    listener: Listener,
    *,
    rounds: int = 5,
    budget: Budget | None = None,
    resume: bool = False,
    overwrite: bool = False,
    sparse: bool = False,
) -> Counter[str]:
    """Measure what is missing; how often each status was met, those of before included.

    Figures often share points. What another experiment in the folder has measured, with the same
    rounds and for all contenders, is taken from there.
    """
    if rounds < 1:
        raise InputError(f"rounds must be at least 1, not {rounds}")
    budget = budget or Budget()
    file = RunFile.open(
        folder,
        experiment,
        scale,
        rounds=rounds,
        budget=budget,
        resume=resume,
        overwrite=overwrite,
    )
    everything = points(experiment, scale)
    todo = points(experiment, scale, sparse=True) if sparse else everything
    for done, point in enumerate(todo, 1):
        number = everything.index(point)
        head = f"{experiment.name} [{done}/{len(todo)}] {label_text(point.labels)}".rstrip()
        if file.finished(point):
            listener.point_done(f"{head}: measured before")
            continue
        other = file.take_from_others(number, point, experiment, scale)
        if other:
            listener.point_done(f"{head}: measured in {other}")
            continue
        start = time.perf_counter()
        found = measure(
            point,
            experiment.contenders,
            rounds=rounds,
            budget=budget,
            statistics=experiment.statistics,
            progress=lambda text, head=head: listener.doing(f"{head}: {text}"),  # type: ignore[misc]
        )
        file.add(number, point, found, experiment.name, scale)
        seconds = time.perf_counter() - start
        listener.point_done(f"{head}: {', '.join(map(in_words, found))}  ({seconds:.1f} s)")
    return file.statuses()


def in_words(m: Measurement) -> str:
    name = m.contender.name
    if m.status != "ok":
        return f"{name} {m.status.upper() if m.status == 'wrong' else m.status}"
    return f"{name} {sorted(m.rounds)[len(m.rounds) // 2]:.4g} µs"


def label_text(labels: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in labels.items())
