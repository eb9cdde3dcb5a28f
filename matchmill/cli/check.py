"""`matchmill check`: the mistakes in subscriptions, or damage to a saved engine."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from matchmill.cli.arguments import (
    SUBSCRIPTIONS_HELP,
    add_common,
    add_format,
    add_service_options,
    add_subscription_reading,
    examples,
)
from matchmill.cli.exit_codes import ALL_GOOD, NO
from matchmill.cli.inputs import subscription_rows
from matchmill.cli.output import print_json
from matchmill.cli.progress import Progress
from matchmill.cli.rejected import listed, one_line, printable
from matchmill.cli.targets import engine_settings, import_operators, is_url
from matchmill.errors import InputError, MatchmillError

if TYPE_CHECKING:
    from matchmill.io.subscription_files import SubscriptionRow
    from matchmill.settings import Settings

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = "matchmill check SUBSCRIPTIONS [options]"
    parser.description = (
        "Report every row that cannot be used, with the place of the mistake, and the\n"
        "subscriptions that can never match or that match every event. Of a folder made by\n"
        "build, read every file against its checksum."
    )
    parser.epilog = examples(
        "matchmill check alerts.csv",
        "matchmill check alerts.jsonl --format json > report.json",
        "matchmill check alerts.mill",
    )
    parser.add_argument("subscriptions", metavar="SUBSCRIPTIONS", help=SUBSCRIPTIONS_HELP)
    add_format(parser)
    add_subscription_reading(parser)
    add_service_options(parser)
    add_common(parser)


class _Findings:
    """What was found so far; judges a row as `Engine.subscribe_many` does."""

    def __init__(self, settings: Settings, dialect: str) -> None:
        from matchmill.engine.expression_input import normal_form, read_expression
        from matchmill.engine.subscription_table import check_id

        self._read_expression, self._normal_form = read_expression, normal_form
        self._check_id = check_id
        self._settings = settings
        self._dialect = dialect
        self._places: dict[object, str] = {}
        self.n_rows = 0
        self.n_by_source: Counter[str] = Counter()
        self.rejected: list[dict[str, object]] = []
        self.warnings: list[dict[str, object]] = []

    def read(self, name: str, row: SubscriptionRow) -> None:
        """Check a row; raise what is wrong with it."""
        if row.problem is not None:
            raise InputError(row.problem)
        id = self._check_id(row.id)
        expression = self._read_expression(row.expression, self._settings, self._dialect)
        first = next(iter(self._places), id)
        if type(first) is not type(id):
            raise InputError(f"ids are all text or all integers; {id!r} differs from those before")
        if id in self._places:
            raise InputError(f"the id {id!r} occurs twice: first in {self._places[id]}")
        self._places[id] = f"{name}:{row.line}" if row.line else f"{name}, row {self._row(name)}"
        kind = self._normal_form(row.expression, expression, self._settings).kind
        if kind in ("never", "always"):
            self.warnings.append({"id": id, "kind": kind})

    def _row(self, name: str) -> int:
        return self.n_by_source[name] - 1

    def reject(self, name: str, row: SubscriptionRow, error: MatchmillError) -> None:
        """Note a bad row."""
        self.rejected.append(
            {
                "row": self._row(name),
                "line": row.line,
                "source": name,
                "id": row.id,
                "reason": error.summary,
            }
        )

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON has it."""
        return {
            "ok": not self.rejected and not self.warnings,
            "n_subscriptions": self.n_rows - len(self.rejected),
            "rejected": self.rejected,
            "warnings": self.warnings,
        }


def run(arguments: argparse.Namespace) -> int:
    """Check subscriptions, or the files of a saved engine."""
    from matchmill.language.dialects.registry import MATCHMILL
    from matchmill.settings import DEFAULT_SETTINGS

    import_operators(arguments)
    if Path(arguments.subscriptions).is_dir():
        return _check_folder(arguments)
    # What a service has stored is written in our own.
    dialect = MATCHMILL if is_url(arguments.subscriptions) else arguments.dialect
    findings = _Findings(engine_settings(arguments) or DEFAULT_SETTINGS, dialect)
    as_text = arguments.format == "text"
    with Progress(arguments.quiet or (as_text and sys.stdout.isatty())) as progress:
        progress.stage("checking subscriptions")
        for name, row in subscription_rows(arguments):
            findings.n_rows += 1
            findings.n_by_source[name] += 1
            try:
                findings.read(name, row)
            except MatchmillError as error:
                findings.reject(name, row, error)
                if as_text:
                    _print_rejected(findings.rejected[-1], error)
            if findings.n_rows % 2000 == 0:
                progress.update(findings.n_rows)
    if not as_text:
        print_json(findings.to_dict(), indent=2)
    elif not arguments.quiet:
        _print_findings(findings)
    return NO if findings.rejected else ALL_GOOD


def _check_folder(arguments: argparse.Namespace) -> int:
    """Read every file of a saved engine; damage is an error that names the file."""
    from matchmill.engine.engine import Engine

    with Progress(arguments.quiet) as progress:
        progress.stage("reading all files")
        engine = Engine.open(
            arguments.subscriptions, read_only=True, verify=True, progress=progress.update
        )
    if arguments.format == "json":
        print_json({"ok": True, "n_subscriptions": len(engine)}, indent=2)
    elif not arguments.quiet:
        print(f"{len(engine):,} subscriptions; every file is whole")
    return ALL_GOOD


def _print_rejected(rejected: dict[str, object], error: MatchmillError) -> None:
    """Print `alerts.csv:4: u3: reason`, and below it the place in the expression."""
    line = rejected["line"]
    place = f"{rejected['source']}" + (f":{line}" if line else f", row {rejected['row']}")
    id = "" if rejected["id"] is None else f"{printable(rejected['id'])}: "
    first, *rest = str(error).split("\n")
    print(f"{place}: {id}{one_line(first)}")
    for text in rest:
        print("  " + "".join(c if c.isprintable() else "�" for c in text))


def _print_findings(findings: _Findings) -> None:
    n_good = findings.n_rows - len(findings.rejected)
    print(f"{n_good:,} accepted, {len(findings.rejected):,} rejected")
    for kind, words in (("never", "can never match"), ("always", "match every event")):
        ids = [one["id"] for one in findings.warnings if one["kind"] == kind]
        if ids:
            print(f"{len(ids):,} {words}: {listed(ids)}")
