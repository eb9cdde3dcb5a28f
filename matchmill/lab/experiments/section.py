"""One experiment's part of a report, before it is written in any format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from matchmill.lab.experiments.plots import Picture, Style, draw
from matchmill.lab.experiments.report_tables import Table, all_figures, problems, tables
from matchmill.lab.experiments.results import Results
from matchmill.lab.experiments.spec import points

__all__ = ["Section", "machine_text", "section_of"]


class Section(NamedTuple):
    """What a report says on one experiment."""

    name: str
    scale: str
    title: str
    paper: str
    shows: str
    claim: str
    note: str
    pictures: list[Picture]
    tables: list[Table]
    figures: Table
    problems: list[tuple[str, str]]
    verdict: str  # what is bad about it, in a few words
    machine: str
    spec_text: str

    @property
    def anchor(self) -> str:
        """Its name in addresses of the page and in names of files."""
        return f"{self.name.replace('/', '.')}.{self.scale}"


def section_of(results: Results, styles: Mapping[str, Style]) -> Section:
    """Make the part of a report on one experiment."""
    experiment = results.experiment
    drawn = (draw(results, plot, styles) for plot in experiment.plots)
    statuses = Counter(s.status for s in results.summaries())
    bad = [f"{statuses[s]} {s}" for s in ("wrong", "failed", "no workload") if statuses[s]]
    measured = len({s.columns["labels"] for s in results.summaries()})
    n_points = len(points(experiment, results.scale))
    if measured < n_points:
        bad.append(f"{measured} of {n_points} points")
    return Section(
        experiment.name,
        results.scale,
        experiment.title,
        experiment.paper,
        experiment.shows,
        experiment.claim,
        experiment.note(results.scale),
        [picture for picture in drawn if picture is not None],
        tables(results),
        all_figures(results),
        list(problems(results)),
        ", ".join(bad),
        machine_text(results),
        experiment.text.strip(),
    )


def machine_text(results: Results) -> str:
    """Say how and on what was measured."""
    m = results.machine
    if not m:  # counts, which do not depend on it
        return "Counts, which do not depend on the machine."
    budget = results.run["budget"]
    clock = " Times are CPU times, of all threads." if budget.get("clock") == "cpu" else ""
    return (
        f"{results.run['rounds']} rounds, interleaved, at most {budget['seconds']:g} s per "
        f"contender and point to build and again to match.{clock} {m['cpu']}, {m['cores']} cores, "
        f"{m['memory_gib']} GiB; {m['system']}; Python {m['python']}, NumPy {m['numpy']}, "
        f"Numba {m['numba']}, matchmill {m['matchmill']} (sources {m['sources'][:8]}); "
        f"load {m['load_average']} at the start."
    )
