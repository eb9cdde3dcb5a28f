"""An operator that does harm in the middle of matching; `stream_kills.py` says which and when."""

import os
import signal
from pathlib import Path
from typing import Any

from matchmill import operator

FOLDER = Path(os.environ["MATCHMILL_HOSTILE"])


def take(name: str) -> bool:
    """Whether this process is the one that finds an order to do harm, and took it away."""
    try:
        (FOLDER / name).rename(FOLDER / f"{name} taken by {os.getpid()}")
    except FileNotFoundError:
        return False
    return True


@operator(cost_ms=1)
def harmless(event: Any) -> bool:
    """True; unless there is an order."""
    if take("kill the driver"):
        os.killpg(int((FOLDER / "driver").read_text()), signal.SIGKILL)
    if take("kill the worker"):
        os.kill(os.getpid(), signal.SIGKILL)
    if take("kill the executor"):
        parent = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(parent, signal.SIGKILL)  # the daemon that forks workers is the executor's child
    return True
