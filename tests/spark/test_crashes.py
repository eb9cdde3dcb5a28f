"""Killed workers, killed builds, a full disk: the same matches, and the current version stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark_session import why_not
from tests.support.tiers import first_cases

pytest.importorskip("pyspark")
from matchmill import spark as ms
from matchmill.spark.published.open_version import OpenVersion

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not())]


def command(program: str, folder: Path) -> dict[str, Any]:
    """What starts one of the programs."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    text = (
        "import sys; from pathlib import Path; "
        "from tests.support import spark_crash_programs as programs;"
        f"programs.{program}(Path(sys.argv[1]))"
    )
    return {
        "args": [sys.executable, "-c", text, str(folder)],
        "env": os.environ | {
            "PYTHONPATH": os.pathsep.join(paths),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "MATCHMILL_HOSTILE": str(folder),
        },
        "cwd": folder,
        "text": True,
    }  # fmt: skip


@pytest.mark.parametrize("program", first_cases(1, ["killed_workers", "full_disk"]))
def test_what_happens_to_workers(program: str, tmp_path: Path) -> None:
    done = subprocess.run(**command(program, tmp_path), capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# -- builds that are killed -----------------------------------------------------------------------


def new_versions(folder: Path, known: set[str]) -> Iterator[Path]:
    return (path for path in (folder / "versions").iterdir() if path.name not in known)


STEPS = {  # what has appeared in the folder of a version when its build is killed
    "the first pass": "shards",
    "the second pass": "shards/*",
}


@pytest.mark.long
def test_builds_that_are_killed(tmp_path: Path) -> None:
    folder = tmp_path / "i"
    published: list[str] = []
    for pattern in STEPS.values():
        child = subprocess.Popen(
            **command("builds", tmp_path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert child.stdout is not None
        published.append(child.stdout.readline().strip())
        known = set(published) | {path.name for path in (folder / "versions").iterdir()}
        while not any(any(new.glob(pattern)) for new in new_versions(folder, known)):
            assert child.poll() is None
            time.sleep(0.001)
        child.kill()
        published += child.stdout.read().split()
        child.wait()
        child.stdout.close()
        current = ms.open(folder)
        # The last one that was told of, or the one after it, published but not yet told of.
        later = int(current.version[:6]) - int(published[-1][:6])
        assert current.version == published[-1] or later == 1
        version = OpenVersion(folder / "versions" / current.version, verify=True)
        assert sum(shard.state.subscriptions.n_live for shard in version.shards) == 3000
    # The first build of each child has removed what the one before it left; so does the next.
    assert len(list((folder / "versions").iterdir())) <= 3
