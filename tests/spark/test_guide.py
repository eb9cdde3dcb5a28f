"""The examples of the guide run, one after the other, as one program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

GUIDES = sorted((Path(__file__).parents[2] / "docs" / "guides").glob("SPARK*.md"))


@pytest.mark.slow
@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.name)
def test_the_examples_run(
    guide: Path, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
