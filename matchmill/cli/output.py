"""What commands print: JSON, facts, and summaries on standard error."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

__all__ = ["print_facts", "print_json", "rate", "say"]


def print_json(value: Any, *, indent: int | None = None, file: TextIO | None = None) -> None:
    """Print a value as JSON; times are text."""
    print(json.dumps(value, ensure_ascii=False, indent=indent, default=_plain), file=file)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def print_facts(facts: Mapping[str, Any], form: str) -> None:
    """Print names and values, one per line or as one JSON object; None is left out."""
    known = {name: value for name, value in facts.items() if value is not None}
    if form == "json":
        print_json(known)
        return
    for name, value in known.items():
        shown = _plain(value) if not isinstance(value, int | float | str) else value
        print(f"{name}: {shown:,}" if type(shown) is int else f"{name}: {shown}")


def say(arguments: argparse.Namespace, lines: Iterable[str]) -> None:
    """Print a summary on standard error, unless --quiet."""
    if not arguments.quiet:
        for line in lines:
            print(line, file=sys.stderr)


def rate(count: int, seconds: float) -> str:
    """Return a time, and how many of something it is per second."""
    per_second = f", {count / seconds:,.0f} per second" if seconds > 0 and count else ""
    return f"{seconds:.2f} s{per_second}"
