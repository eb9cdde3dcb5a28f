"""The pages on the papers' experiments: every verdict follows from the figures beside it."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from matchmill.errors import InputError
from matchmill.lab.experiments.claims import VERDICTS
from matchmill.lab.experiments.facts import read_facts
from matchmill.lab.experiments.kept_results import kept
from matchmill.lab.experiments.paper_page import check_paper_page, paper_page
from matchmill.lab.experiments.spec import experiments

FOLDER = Path(__file__).parents[2] / "docs" / "experiments"
PAGES = ("be_tree", "op_index", "operators", "ps_tree", "two_stage")
NUMBERS = r"[\d,]+(?: to [\d,]+)?"
SIZES = re.compile(
    rf"Subscriptions: the paper {NUMBERS}, here {NUMBERS}, because "
    rf"|{NUMBERS} subscriptions, as in the paper\."
    rf"|{NUMBERS} subscriptions, paper: {NUMBERS}\."
    rf"|{NUMBERS} subscriptions; the paper does not say how many it has\."
)
every_page = pytest.mark.parametrize("name", PAGES)


def said_in(name: str) -> dict[str, dict[str, str]]:
    source = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return {key: own for key, own in source.items() if isinstance(own, dict)}


@every_page
def test_the_page_is_made_from_its_figures_and_verdicts_follow(name: str) -> None:
    assert check_paper_page(FOLDER, name) == []


@every_page
def test_every_experiment_has_figures_and_a_verdict(name: str) -> None:
    of_paper = {e.name for e in experiments() if e.name.startswith(f"{name}/")}
    assert set(kept(FOLDER / f"{name}.json")) == of_paper
    assert {f"{name}/{short}" for short in said_in(name)} == of_paper


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "two_stage" else pytest.mark.slow) for n in PAGES]
)
def test_a_wrong_verdict_would_fail_in_every_section(name: str, tmp_path: Path) -> None:
    for file in (f"{name}.json", "facts.json"):
        shutil.copy(FOLDER / file, tmp_path)
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    for short, own in said_in(name).items():
        wrong = next(v for v in VERDICTS if v != own["verdict"])
        right = f'[{short}]\nverdict = "{own["verdict"]}"'
        assert right in text
        changed = text.replace(right, f'[{short}]\nverdict = "{wrong}"')
        (tmp_path / f"{name}.toml").write_text(changed, encoding="utf-8")
        with pytest.raises(InputError, match=f"{short}: the verdict is '{wrong}'"):
            paper_page(tmp_path, name)


# Numbers of claims that say what was measured, and not what came out.
_SETTINGS = {
    "be_tree/fig12a_authors": {"8"},
    "be_tree/fig12b_titles": {"35"},
    "op_index/fig07_be_tree_capacity": {"20,000"},
    "operators/fig04_greedy_path": {"4.2.5"},
    "operators/fig04_zipf_09": {"4"},
    "ps_tree/fig10_subscription_size": {"5"},
    "ps_tree/fig15_query_log": {"17,577"},
    "ps_tree/tab03_predicate_structures": {"100,000"},
}
_NUMBER = re.compile(r"\d[\d,.]*\d|\d")


def _in_other_words(number: str) -> set[str]:
    """A percentage may be checked as what is left, or as a ratio; seconds as milliseconds."""
    value = float(number.replace(",", ""))
    others = (value, value / 100, 1 - value / 100, 1 + value / 100, 1e3 * value, 1e6 * value)
    return {f"{other:.6g}" for other in others}


@every_page
def test_every_number_of_a_claim_is_in_one_of_its_parts(name: str) -> None:
    said = said_in(name)
    for experiment in experiments():
        paper, _, short = experiment.name.partition("/")
        if paper != name:
            continue
        checked = set()
        for part in said[short]["checks"]:
            assert isinstance(part, dict)
            texts = " ".join(str(part.get(key, "")) for key in ("says", "paper", "at"))
            found = (n.replace(",", "") for n in _NUMBER.findall(texts))
            checked |= {f"{float(n):.6g}" for n in found if n.count(".") < 2}
        for number in set(_NUMBER.findall(experiment.claim)) - _SETTINGS.get(
            experiment.name, set()
        ):
            assert _in_other_words(number) & checked, (experiment.name, number)


def test_a_changed_figure_fails(tmp_path: Path) -> None:
    """Whether it is one of the results or one of the facts."""
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    assert check_paper_page(tmp_path, "operators") == []
    for file, column in (("operators.json", "candidates_per_event"), ("facts.json", "Zipf 0.9")):
        text = (FOLDER / file).read_text(encoding="utf-8")
        kept_tables = json.loads(text)
        table = next(t for name, t in kept_tables.items() if name.startswith("operators"))
        names = table["header"] if "header" in table else table["columns"]
        table["rows"][0][names.index(column)] *= 10
        (tmp_path / file).write_text(json.dumps(kept_tables), encoding="utf-8")
        assert check_paper_page(tmp_path, "operators") != []
        (tmp_path / file).write_text(text, encoding="utf-8")
    assert check_paper_page(tmp_path, "operators") == []


def test_every_fact_is_shown_somewhere() -> None:
    shown = {
        fact for name in PAGES for own in said_in(name).values() for fact in own.get("facts", ())
    }
    assert set(read_facts(FOLDER / "facts.json").tables) == shown


@every_page
def test_sizes_are_those_that_ran(name: str) -> None:
    """No note claims the paper's sizes: the sentence on sizes is made from what was run."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    sizes = re.findall(r"^\*Sizes\.\* (.*)$", text, flags=re.MULTILINE)
    assert len(sizes) == len(said_in(name))
    for sentence in sizes:
        assert SIZES.match(sentence), sentence
        assert "paper's sizes" not in sentence


@every_page
def test_every_picture_is_there(name: str) -> None:
    pictures = set(re.findall(r"\]\((plots/[^)]+)\)", (FOLDER / f"{name}.md").read_text("utf-8")))
    stored = {f"plots/{p.name}" for p in (FOLDER / "plots").glob(f"{name}.*.svg")}
    assert pictures == stored
