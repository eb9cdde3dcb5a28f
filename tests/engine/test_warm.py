"""`warm` compiles all that engines need, and tells how far it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from matchmill.engine.warm import warm
from matchmill.kernels.jit import JIT_DISABLED

COMPILED_BY_AN_ENGINE = """
import tempfile
from numba.core.event import RecordingListener, install_listener
import matchmill as mm
import numba
record = RecordingListener()
with install_listener("numba:compile", record):
    engine = mm.Engine(settings=mm.Settings(fresh_clauses=2))
    engine.subscribe_many([(str(k), f"a = {k} and b > 2 and note like '%x'") for k in range(9)])
    assert engine.match({"a": 1, "b": 3, "note": "x"}) == {"1"}
    engine.match_many([{"a": 1, "b": 3, "note": "x"}] * 9)
    engine.match_many([{"a": 1, "b": 3, "note": "x"}] * 3_000)
    engine.match_expression("a = 1 and b = 3")
    def change(engine, k):
        engine.unsubscribe(str(k))
        engine.subscribe(f"new {k}", "a = 1 and c = 'z'")
        assert engine.match({"a": 1, "b": 3, "note": "x"}) == {"1"}
        engine.match_many([{"a": 1, "b": 3, "note": "x"}] * 9)
        engine.compact()
    change(engine, 2)
    with tempfile.TemporaryDirectory() as folder:
        engine.save(folder)
        with mm.Engine.open(folder, settings=mm.Settings(fresh_clauses=2)) as opened:
            change(opened, 3)
    @numba.njit
    def seen(number):
        return number
    seen(1)
names = {event.data["dispatcher"].py_func.__name__ for _, event in record.buffer}
print(*sorted(names))
"""


@pytest.mark.long
@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled without the JIT")
def test_engines_compile_nothing_after_it(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "MATCHMILL_CACHE_DIR": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }
    warmed = subprocess.run(
        [sys.executable, "-m", "matchmill.engine.warm"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert warmed.stdout + warmed.stderr == "", "no terminal, no bar"
    done = subprocess.run(
        [sys.executable, "-c", COMPILED_BY_AN_ENGINE],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["seen"], done.stdout
    assert done.stderr == ""


def test_progress_is_told() -> None:
    calls: list[tuple[int, int | None]] = []
    warm(progress=lambda done, total: calls.append((done, total)))
    total = calls[-1][1]
    assert total is not None
    assert calls == [(done, total) for done in range(total + 1)]
