"""Experiments as TOML: points, and what a mistake is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchmill.errors import InputError
from matchmill.lab.experiments import spec
from matchmill.lab.experiments.spec import (
    SCALES,
    experiments,
    find_experiments,
    load_experiment,
    parse_experiment,
    points,
)

GOOD = """\
title = "Matching time against the number of subscriptions"
paper = "BE-Tree"
shows = "Figure 5"
claim = "it grows"
measures = ["match", "build"]
indexes = ["be_tree", "scan"]
[workload]
generator = "toy"
n_subscriptions = 1000
n_events = 100
cardinality = 20
[grid]
width = [1, 2]
n_subscriptions = [1000, 3000]
"be_wide.max_capacity" = [5, 10]
[[cases]]
name = "plain"
[[cases]]
name = "skewed"
zipf = 1.5
small = { zipf = 0.5 }
[contenders.be_wide]
index = "be_tree"
statistics = false
max_capacity = 20
kind = "wide"
[small]
n_events = 8
[small.grid]
n_subscriptions = [10]
[full]
note = "as in the paper"
[plot]
x = "n_subscriptions"
y = "us_per_event"
panels = "width"
log_x = true
"""


def test_points_are_all_combinations_in_order() -> None:
    experiment = parse_experiment(GOOD, "be_tree/a")
    full = points(experiment, "full")
    assert len(full) == 2 * 2 * 2 * 2
    assert full == points(parse_experiment(GOOD, "be_tree/a"), "full")
    assert full[0].labels == {
        "case": "plain", "width": 1, "n_subscriptions": 1000, "be_wide.max_capacity": 5,
    }  # fmt: skip
    assert full[-1].labels == {
        "case": "skewed", "width": 2, "n_subscriptions": 3000, "be_wide.max_capacity": 10,
    }  # fmt: skip
    assert full[-1].workload.as_dict() == {
        "generator": "toy", "n_subscriptions": 3000, "n_events": 100, "n_training_events": 512,
        "seed": 1, "cardinality": 20, "zipf": 1.5, "width": 2,
    }  # fmt: skip
    wide = experiment.contenders[2]
    assert full[-1].options_of(wide) == {"max_capacity": 10, "kind": "wide"}
    assert full[-1].options_of(experiment.contenders[0]) == {}


def test_small_points_are_the_overridden_ones() -> None:
    small = points(parse_experiment(GOOD), "small")
    assert len(small) == 2 * 2 * 1 * 2
    assert {(p.workload.n_subscriptions, p.workload.n_events) for p in small} == {(10, 8)}
    assert {p.workload.parameters.get("zipf") for p in small} == {None, 0.5}


def test_what_stands_in_the_file() -> None:
    experiment = parse_experiment(GOOD, "be_tree/a")
    assert [c.name for c in experiment.contenders] == ["be_tree", "scan", "be_wide"]
    assert experiment.contenders[2].index == "be_tree"
    assert [c.statistics for c in experiment.contenders] == [True, True, False]
    assert experiment.statistics
    assert experiment.note("full") == "as in the paper"
    assert experiment.text == GOOD
    (plot,) = experiment.plots
    assert plot.panels == ("width", "case", "be_wide.max_capacity")
    assert (plot.series, plot.log_x, plot.log_y) == ("index", True, False)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('title = "M', 'titel = "M', "f.toml: title: is missing"),
        ("BE-Tree", "Bee-Tree", "f.toml: paper: must be one of BE-Tree, "),
        ('"build"]', '"weight"]', "f.toml: measures: must hold some of match, "),
        ('indexes = ["be_tree", "scan"]', "indexes = []", "f.toml: indexes: must be a list"),
        ('"scan"]', '"scan", "scan"]', "f.toml: indexes: names something twice"),
        ('"scan"]', '"Scan"]', "f.toml: indexes: 'Scan' is no name"),
        ("[workload]", "statistics = 1\n[workload]", "f.toml: statistics: must be true or false"),
        ('generator = "toy"', "", "f.toml: workload.generator: is missing"),
        ("n_events = 100\n", "", "f.toml: workload.n_events: is missing"),
        ("n_events = 100", "n_events = -1", "f.toml: n_events must be a whole number"),
        ("cardinality = 20", "cardinality = [20]", "f.toml: workload.cardinality: must be"),
        ("width = [1, 2]", "width = 1", "f.toml: grid.width: must be a list of values"),
        ("width = [1, 2]", "width = [1, 1]", "f.toml: grid.width: has a value twice"),
        ("width = [1, 2]", 'case = ["a"]', "f.toml: grid.case: cannot be in the grid"),
        ('"be_wide.max_c', '"be_odd.max_c', "there is no contender 'be_odd'"),
        ('"be_wide.max_capacity"', "be_wide.max_capacity", "grid.be_wide: must be a list"),
        ("[small.grid]", "[small.grid]\nzipf = [1]", "f.toml: small.grid.zipf: is not in [grid]"),
        ('name = "skewed"', 'name = "plain"', "f.toml: cases[1].name: occurs twice"),
        ("[[cases]]\nname = \"plain\"", "[[cases]]", "f.toml: cases[0].name: is missing"),
        ('x = "n_subs', 'x = "subs', "f.toml: plot[0].x: must be one of case, width, "),
        ('y = "us_per_event"', 'y = "time"', "f.toml: plot[0].y: must be one of us_per_event"),
        ('panels = "width"', 'panels = "n_subscriptions"', "must differ from each other"),
        ("log_x = true", "logx = true", "f.toml: plot[0].logx: is unknown"),
        ("[full]", "[medium]\nn = 1\n[full]", "f.toml: medium: is unknown"),
        ("[full]", "[full", "f.toml is not TOML"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_place(old: str, new: str, problem: str) -> None:
    assert old in GOOD
    with pytest.raises(InputError) as caught:
        parse_experiment(GOOD.replace(old, new, 1), "x/f", "f.toml")
    assert problem in str(caught.value)


def test_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one/a", "one/b", "two/b"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.toml").write_text(GOOD, encoding="utf-8")
    monkeypatch.setattr(spec, "SPECS", tmp_path)
    assert [e.name for e in experiments()] == ["one/a", "one/b", "two/b"]
    assert load_experiment("a").name == load_experiment("one/a").name == "one/a"
    assert load_experiment(tmp_path / "two" / "b.toml").name == "two/b"
    assert [e.name for e in find_experiments(["two", "a", "two/b"])] == ["two/b", "one/a"]
    assert len(find_experiments(["all"])) == 3
    with pytest.raises(InputError, match="several experiments are called 'b': one/b, two/b"):
        load_experiment("b")
    with pytest.raises(InputError, match="there is no experiment 'c'"):
        load_experiment("c")
    with pytest.raises(InputError, match=r"none.toml cannot be read"):
        load_experiment("none.toml")


def test_all_packaged_experiments_can_be_read() -> None:
    for experiment in experiments():
        for scale in SCALES:
            assert points(experiment, scale)
