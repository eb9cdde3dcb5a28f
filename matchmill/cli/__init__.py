"""The command line: errors become messages and exit codes here.

`commands.py` is the table of commands; each has a module that declares its arguments and runs it.
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
from typing import NoReturn

from matchmill.cli.commands import command_parser, top_parser
from matchmill.cli.exit_codes import BROKEN_PIPE, BUG, INTERRUPTED, TERMINATED, USER_ERROR
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
        try:
            arguments = parse(sys.argv[1:] if argv is None else argv)
        except SystemExit as stop:  # of --help, or of a mistake
            sys.stdout.flush()
            return int(stop.code or 0)
        return _guarded(arguments)
    except BrokenPipeError:
        # Python flushes standard output once more at exit; let that go nowhere.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:  # while a command was imported
        return _complain("interrupted", INTERRUPTED)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line with the parser of its command."""
    first = top_parser().parse_args(argv[:1])
    return command_parser(first.command).parse_args(argv[1:])


def _guarded(arguments: argparse.Namespace) -> int:
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        raise
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
