"""Operators that harm the worker that first imports or asks them; run by `test_crashes.py`.

The current folder holds what tells them: `driver` has the number of the process that is spared, and
a file is made by whoever does the harm, so that it is done once.
"""

import os
import resource
import signal
from pathlib import Path
from typing import Any

from matchmill import operator

FOLDER = Path(os.environ["MATCHMILL_HOSTILE"])


def is_first(name: str) -> bool:
    if int((FOLDER / "driver").read_text()) == os.getpid():
        return False
    try:
        os.close(os.open(FOLDER / name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


if (FOLDER / "kill at import").exists() and is_first("killed at import"):
    os.kill(os.getpid(), signal.SIGKILL)
if (FOLDER / "full disk").exists() and int((FOLDER / "driver").read_text()) != os.getpid():
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))


@operator(cost_ms=1)
def is_even(event: Any, name: str) -> bool:
    """Kills its process when it is first asked."""
    if event["x"] > 500 and is_first(name):
        os.kill(os.getpid(), signal.SIGKILL)
    return bool(event["x"] % 2 == 0)
