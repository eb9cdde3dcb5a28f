"""The page on a paper says of every experiment what was found, or is not written."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchmill.cli import main
from matchmill.errors import InputError
from matchmill.lab.experiments.kept_results import kept
from matchmill.lab.experiments.paper_page import check_paper_page, paper_page, write_paper_page
from matchmill.lab.experiments.report import markdown_table
from matchmill.lab.experiments.report_tables import tables
from matchmill.lab.experiments.results import Results, read_results, result_files

GOOD = """
introduction = "What we found."

[fig03_subscription_matching]
verdict = "does not hold"
reason = "It was alone."
guess = "It was tired."
why_this_size = "it is a test"

[[fig03_subscription_matching.checks]]
says = "a scan takes no time"
value = "scan"
is = "<="
paper = 0

[[fig03_subscription_matching.checks]]
says = "it takes more on a Pentium"
undecided = "there is none"
"""
FULL = GOOD.replace("paper = 0", "paper = 1_000_000_000").replace("does not hold", "holds in part")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Results]:
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("results")
    spec = "two_stage/fig03_subscription_matching"
    command = ["bench", "run", spec, "--out", str(folder), "--indexes", "scan", "--quiet"]
    assert main([*command, "--rounds", "1"]) == 0
    return [read_results(file) for file in result_files(folder)]


def test_claim_parts_figures_and_verdict_stand_together(
    results: list[Results], tmp_path: Path
) -> None:
    (tmp_path / "two_stage.toml").write_text(GOOD, encoding="utf-8")
    text = write_paper_page(tmp_path, "two_stage", results).read_text(encoding="utf-8")
    assert text.startswith("# Two-stage: experiments\n\nWhat we found.\n")
    for part in (
        "| [Figure 3](#figure-3-",
        "| does not hold | 0 of 2 |",
        results[0].experiment.claim,
        "**Verdict.** Does not hold.",
        "| a scan takes no time | `scan` | at most 0 | ",
        "holds at 0 of 2 | **no** |",
        "| it takes more on a Pentium | | | there is none | not decided |",
        "**Why.** It was alone.",
        "**A guess, not measured.** It was tired.",
        "| scan |",
        "*Sizes.* Subscriptions: the paper 1,000 to 5,000,000, here 100 to 400, because it is a",
    ):
        assert part in text
    pictures = [line[line.index("(") + 1 : -1] for line in text.splitlines() if line[:2] == "!["]
    assert pictures
    assert all((tmp_path / picture).is_file() for picture in pictures)


def test_figures_are_kept_and_make_the_same_page_again(
    results: list[Results], tmp_path: Path
) -> None:
    (tmp_path / "two_stage.toml").write_text(GOOD, encoding="utf-8")
    page = write_paper_page(tmp_path, "two_stage", results)
    text = page.read_text(encoding="utf-8")
    page.unlink()
    assert write_paper_page(tmp_path, "two_stage").read_text(encoding="utf-8") == text
    assert check_paper_page(tmp_path, "two_stage") == []
    (again,) = kept(tmp_path / "two_stage.json").values()
    for one, other in zip(tables(results[0]), tables(again), strict=True):
        assert list(markdown_table(one)) == list(markdown_table(other))


def test_a_wrong_verdict_is_an_error_that_shows_why(results: list[Results], tmp_path: Path) -> None:
    source = tmp_path / "two_stage.toml"
    source.write_text(GOOD, encoding="utf-8")
    write_paper_page(tmp_path, "two_stage", results)
    for wrong in ("holds", "holds in part", "cannot be decided"):
        text = GOOD.replace('verdict = "does not hold"', f'verdict = "{wrong}"')
        source.write_text(text, encoding="utf-8")
        said = f"the verdict is '{wrong}', but the figures say 'does not hold'"
        with pytest.raises(InputError, match=said) as caught:
            paper_page(tmp_path, "two_stage")
        assert "a scan takes no time: " in str(caught.value)
        (problem,) = check_paper_page(tmp_path, "two_stage")
        assert said in problem
    source.write_text(FULL, encoding="utf-8")
    assert "**Verdict.** Holds in part." in paper_page(tmp_path, "two_stage")


def test_a_page_that_was_edited_by_hand_is_found(results: list[Results], tmp_path: Path) -> None:
    (tmp_path / "two_stage.toml").write_text(GOOD, encoding="utf-8")
    page = write_paper_page(tmp_path, "two_stage", results)
    page.write_text(page.read_text(encoding="utf-8").replace("**no**", "yes"), encoding="utf-8")
    (problem,) = check_paper_page(tmp_path, "two_stage")
    assert "is not what its figures say" in problem


def test_the_command_writes_and_checks_the_page(
    results: list[Results], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "two_stage.toml"
    source.write_text(GOOD, encoding="utf-8")
    folder, out = str(results[0].path.parent), ["--out", str(tmp_path)]
    assert main(["bench", "page", "two_stage", *out]) == 2
    assert "two_stage.json; give results" in capsys.readouterr().err
    assert main(["bench", "page", "two_stage", folder, *out]) == 0
    assert f"written: {tmp_path / 'two_stage.md'}" in capsys.readouterr().err
    assert (tmp_path / "two_stage.md").read_text(encoding="utf-8").startswith("# Two-stage")
    assert main(["bench", "page", "two_stage", *out, "--check"]) == 0
    source.write_text(GOOD.replace("does not hold", "holds"), encoding="utf-8")
    assert main(["bench", "page", "two_stage", *out, "--check"]) == 1
    assert "the figures say 'does not hold'" in capsys.readouterr().err
    assert main(["bench", "page", "two_stage", folder, *out, "--check"]) == 2
    assert main(["bench", "page", "be_tree", folder, *out]) == 2
    assert "has no results of be_tree/" in capsys.readouterr().err
    assert main(["bench", "page", "two_stage", folder, "--out", str(tmp_path / "none")]) == 2
    assert "two_stage.toml is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("introduction", "preface"), "has no introduction"),
        (("fig03_subscription_matching", "fig99"), "says nothing of fig03_subscription_matching"),
        (("does not hold", "so so"), "a verdict is one of holds,"),
        (("reason =", "cause ="), "cause is unknown"),
        (('reason = "It was alone."\nguess = "It was tired."\n', ""), "it does not hold: say why"),
        (('why_this_size = "it is a test"\n', ""), "say why, as `why_this_size`"),
        (("guess =", "facts = ['none']\nguess ="), "has no table 'none'"),
    ],
)
def test_no_page_without_a_verdict(
    results: list[Results], tmp_path: Path, change: tuple[str, str], complaint: str
) -> None:
    (tmp_path / "two_stage.toml").write_text(GOOD.replace(*change), encoding="utf-8")
    with pytest.raises(InputError, match=complaint):
        write_paper_page(tmp_path, "two_stage", results)
    assert not (tmp_path / "two_stage.md").exists()
