"""The command line: `matchmill match | check | explain | build`, one module each.

Errors become messages and exit codes here. A command's module, and with it the engine, is imported
when it is called for, so that `--help` is quick.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from matchmill.cli.exit_codes import BROKEN_PIPE, BUG, INTERRUPTED, TERMINATED, USER_ERROR
from matchmill.cli.parser import build_parser
from matchmill.errors import MatchmillError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    if argv is None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminate)  # unwind, so that no temporary file remains
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict":  # a terminal that knows no ✓
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        arguments = build_parser().parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    return _guarded(arguments)


def _guarded(arguments: argparse.Namespace) -> int:
    try:
        command = import_module(
            "matchmill.lab.bench"
            if arguments.command == "bench"
            else f"matchmill.cli.{arguments.command}"
        )
        code: int = command.run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Python flushes standard output once more at exit; let that go nowhere.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        if arguments.debug:
            traceback.print_exc()
        return _complain("interrupted", INTERRUPTED)
    except (MatchmillError, OSError, MemoryError) as error:
        if arguments.debug:
            traceback.print_exc()
        return _complain(str(error) or "out of memory", USER_ERROR)
    except Exception:
        traceback.print_exc()
        return _complain("this is a bug in matchmill, please report it", BUG)


def _terminate(*_: object) -> NoReturn:
    raise SystemExit(TERMINATED)


def _complain(message: str, code: int) -> int:
    print(f"matchmill: {'error: ' if code == USER_ERROR else ''}{message}", file=sys.stderr)
    return code
