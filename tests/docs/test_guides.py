"""The examples of every guide run, one after the other, as one program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "guides"
EXAMPLES = {
    guide: re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    for guide in sorted(FOLDER.glob("*.md"))
}
# tests/spark runs those of Spark, in its session; tests/client/test_client.py that of the client.
GUIDES = [
    guide
    for guide, blocks in EXAMPLES.items()
    if blocks and not guide.name.startswith(("SPARK", "CLIENT"))
]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.name)
def test_the_examples_run(guide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in EXAMPLES[guide]:
        exec(block, names)


def test_the_guide_to_check_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    guide = FOLDER / "CHECKING.md"
    names: dict[str, object] = {}
    for block in EXAMPLES[guide]:
        exec(block, names)
    said = re.findall(r"```text\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    assert capsys.readouterr().out == "".join(said)


def test_requests_of_the_guides_say_what_they_send_and_reach_a_service() -> None:
    """`curl -d` alone sends a form, which the service rejects."""
    text = (FOLDER / "SERVICE.md").read_text(encoding="utf-8").replace("\\\n", "")
    commands = re.findall(r"^curl .*$", text, re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        assert "localhost:8080/v1/" in command, command
        assert (" -d " in command) == ("-H 'Content-Type: application/json'" in command), command


def test_there_are_guides_with_examples() -> None:
    assert {"LEARNING.md", "UPDATES.md"} <= {guide.name for guide in GUIDES}
