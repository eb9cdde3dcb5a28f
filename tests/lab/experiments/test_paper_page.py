"""The page on a paper says of every experiment what was found, or is not written."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchmill.cli import main
from matchmill.errors import InputError
from matchmill.lab.experiments.paper_page import write_paper_page
from matchmill.lab.experiments.results import Results, read_results, result_files

GOOD = """
introduction = "What we found."

[fig03_subscription_matching]
verdict = "does not hold"
measured = "A scan takes 7 µs."
reason = "It was alone."
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Results]:
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("results")
    spec = "two_stage/fig03_subscription_matching"
    command = ["bench", "run", spec, "--out", str(folder), "--indexes", "scan", "--quiet"]
    assert main([*command, "--rounds", "1"]) == 0
    return [read_results(file) for file in result_files(folder)]


def test_claim_figures_and_verdict_stand_together(results: list[Results], tmp_path: Path) -> None:
    (tmp_path / "two_stage.toml").write_text(GOOD, encoding="utf-8")
    text = write_paper_page(results, tmp_path, "two_stage").read_text(encoding="utf-8")
    assert text.startswith("# Two-stage: experiments\n\nWhat we found.\n")
    for part in (
        "| [Figure 3](#figure-3-",
        results[0].experiment.claim,
        "**Measured.** A scan takes 7 µs.",
        "**Verdict.** Does not hold. It was alone.",
        "| scan |",
    ):
        assert part in text
    pictures = [line[line.index("(") + 1 : -1] for line in text.splitlines() if line[:2] == "!["]
    assert pictures
    assert all((tmp_path / picture).is_file() for picture in pictures)


def test_the_command_writes_the_page(
    results: list[Results], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "two_stage.toml").write_text(GOOD, encoding="utf-8")
    folder = str(results[0].path.parent)
    assert main(["bench", "page", "two_stage", folder, "--out", str(tmp_path)]) == 0
    assert f"written: {tmp_path / 'two_stage.md'}" in capsys.readouterr().err
    assert (tmp_path / "two_stage.md").read_text(encoding="utf-8").startswith("# Two-stage")
    assert main(["bench", "page", "be_tree", folder, "--out", str(tmp_path)]) == 2
    assert "has no results of be_tree/" in capsys.readouterr().err
    assert main(["bench", "page", "two_stage", folder, "--out", str(tmp_path / "none")]) == 2
    assert "two_stage.toml is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("introduction", "preface"), "has no introduction"),
        (("fig03_subscription_matching", "fig99"), "says nothing of fig03_subscription_matching"),
        (("does not hold", "so so"), "a verdict is one of holds,"),
        (("reason", "cause"), "it does not hold: say why"),
        (("measured", "seen"), "say what was `measured`"),
    ],
)
def test_no_page_without_a_verdict(
    results: list[Results], tmp_path: Path, change: tuple[str, str], complaint: str
) -> None:
    (tmp_path / "two_stage.toml").write_text(GOOD.replace(*change), encoding="utf-8")
    with pytest.raises(InputError, match=complaint):
        write_paper_page(results, tmp_path, "two_stage")
    assert not (tmp_path / "two_stage.md").exists()


def test_a_page_is_on_one_paper(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text('introduction = "…"', encoding="utf-8")
    with pytest.raises(InputError, match="a page is on one paper, not on none"):
        write_paper_page([], tmp_path, "x")
