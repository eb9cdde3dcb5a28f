"""The same functions through Spark Connect, where there is no JVM to reach into."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.long
def test_the_data_side_works_through_connect(tmp_path: Path) -> None:
    pytest.importorskip("pyspark.sql.connect.session")
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.connect_program", str(tmp_path)],
        cwd=REPOSITORY,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "subscriptions": [4, 2, 2],
        "events": [3, 2, 1],
        "misses": [["x > 5", 1.0]],
        "truths": {"x = 1": 1, "x > 5": 0},
        "sampled": [1, 1, 4, 4],
        "generated": 50,
        "event": 5,
        "loaded": [["u", "x = 1"]],
    }
