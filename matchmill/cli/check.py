"""`matchmill check`: the mistakes in a file of subscriptions, or damage to a saved engine."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from matchmill.cli.exit_codes import ALL_GOOD, NO
from matchmill.cli.load_engine import import_operators, rows
from matchmill.cli.progress import Progress
from matchmill.cli.rejected import listed, shown
from matchmill.engine.engine import Engine
from matchmill.engine.expression_input import normal_form, read_expression
from matchmill.engine.subscription_table import check_id
from matchmill.errors import InputError, MatchmillError
from matchmill.io.subscription_files import SubscriptionRow
from matchmill.settings import DEFAULT_SETTINGS
from matchmill.storage.array_folder import is_saved_engine

__all__ = ["run"]


class _Findings:
    def __init__(self) -> None:
        self.n_rows = 0
        self.refused: list[dict[str, object]] = []
        self.never: list[object] = []
        self.always: list[object] = []
        self.duplicates: list[object] = []
        self._first_rows: dict[object, int] = {}

    def read(self, row: SubscriptionRow) -> None:
        """Judge a row as `Engine.subscribe_many` would; raise if it is no good."""
        self.n_rows += 1
        if row.problem is not None:
            raise InputError(row.problem)
        identifier = check_id(row.id)
        expression = read_expression(row.expression)
        first = next(iter(self._first_rows), identifier)
        if type(first) is not type(identifier):
            raise InputError(
                f"ids are all strings or all integers; {identifier!r} differs from those before it"
            )
        if identifier in self._first_rows:
            self.duplicates.append(identifier)
            raise InputError(
                f"the id {identifier!r} occurs twice: first in row {self._first_rows[identifier]}"
            )
        self._first_rows[identifier] = row.line or self.n_rows
        kind = normal_form(row.expression, expression, DEFAULT_SETTINGS).kind
        if kind != "ordinary":
            (self.never if kind == "never" else self.always).append(identifier)

    @property
    def n_accepted(self) -> int:
        return self.n_rows - len(self.refused)

    def to_dict(self) -> dict[str, object]:
        return {
            "n_rows": self.n_rows,
            "n_accepted": self.n_accepted,
            "refused": self.refused,
            "duplicates": self.duplicates,
            "never": self.never,
            "always": self.always,
        }


def run(arguments: argparse.Namespace) -> int:
    import_operators(arguments)
    if is_saved_engine(Path(arguments.subscriptions)):
        return _check_folder(arguments)
    findings = _Findings()
    as_text = arguments.format == "text"
    with Progress(arguments.quiet or (as_text and sys.stdout.isatty())) as progress:
        progress.stage("checking subscriptions")
        for row in rows(arguments):
            try:
                findings.read(row)
            except MatchmillError as error:
                reason = error.summary
                place = {"row": findings.n_rows - 1, "line": row.line, "id": row.id}
                refused = place | {"reason": reason, "detail": str(error)}
                findings.refused.append(refused)
                if as_text:
                    _print_refused(arguments.subscriptions, refused)
            if findings.n_rows % 2000 == 0:
                progress.update(findings.n_rows)
    if not as_text:
        print(json.dumps(findings.to_dict(), indent=2, ensure_ascii=False, default=str))
    elif not arguments.quiet:
        _print_findings(findings)
    return NO if findings.refused else ALL_GOOD


def _check_folder(arguments: argparse.Namespace) -> int:
    """Read every file of a saved engine; what is damaged is an error that names it."""
    with Progress(arguments.quiet) as progress:
        progress.stage("reading all files")
        engine = Engine.open(
            arguments.subscriptions, read_only=True, verify=True, progress=progress.update
        )
    if arguments.format == "json":
        print(json.dumps({"n_subscriptions": len(engine)}, indent=2))
    elif not arguments.quiet:
        print(f"{len(engine):,} subscriptions; every file is whole")
    return ALL_GOOD


def _print_refused(path: str, refused: dict[str, object]) -> None:
    named = "" if refused["id"] is None else f" (id {shown(refused['id'])})"
    print(f"{path}, row {refused['line'] or refused['row']}{named}:")
    for line in str(refused["detail"]).split("\n"):
        print("  " + "".join(c if c.isprintable() else "�" for c in line))


def _print_findings(findings: _Findings) -> None:
    print(f"{findings.n_accepted:,} fine, {len(findings.refused):,} bad")
    for identifiers, what in (
        (findings.duplicates, "with an id that occurs before"),
        (findings.never, "can never match"),
        (findings.always, "match every event"),
    ):
        if identifiers:
            print(f"{len(identifiers):,} {what}: {listed(identifiers)}")
