"""Children of the bench: what a signal does while one is started."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, signal
from matchmill.lab.experiments.child_process import run_in_child

os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    run_in_child(lambda tell: signal.pause(), print)
except KeyboardInterrupt:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("interrupted, and the child is gone")
"""


def test_ctrl_c_during_a_fork_is_not_lost() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "interrupted, and the child is gone\n", done.stderr
