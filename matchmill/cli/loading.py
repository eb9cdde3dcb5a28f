"""An engine from SUBSCRIPTIONS, for match and build."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matchmill.cli.arguments import declared_types
from matchmill.cli.inputs import are_sigma_rules, file_rows, file_sources, subscription_rows
from matchmill.cli.output import rate
from matchmill.cli.progress import Progress
from matchmill.cli.rejected import RejectedRows, listed
from matchmill.cli.targets import engine_settings, import_operators, is_engine_folder, is_url

if TYPE_CHECKING:
    from matchmill.engine.engine import Engine
    from matchmill.io.reports import Finding
    from matchmill.sigma.rules import SigmaRules

__all__ = ["Loaded", "load"]


def load(arguments: argparse.Namespace, rejected: RejectedRows, progress: Progress) -> Loaded:
    """Open a folder, or read files of subscriptions into an engine."""
    from matchmill.engine.engine import Engine

    import_operators(arguments)
    start = time.perf_counter()
    text = arguments.subscriptions
    options: dict[str, Any] = {"settings": engine_settings(arguments)}
    if getattr(arguments, "index", None):
        options["index"] = arguments.index
    if getattr(arguments, "index_options", None):
        options["index_options"] = arguments.index_options
    if is_engine_folder(text) and not are_sigma_rules(arguments):
        progress.stage("reading the log")
        engine = Engine.open(text, read_only=True, progress=progress.update, **options)
        return Loaded(engine, start, {})
    engine = Engine(types=declared_types(getattr(arguments, "types", [])), **options)
    columns = {
        arguments.subscription_id: "--subscription-id",
        arguments.expression_column: "--expression",
    }
    loaded = Loaded(engine, start, columns)
    progress.stage("reading subscriptions")
    if is_url(text):
        rows = (row for _, row in subscription_rows(arguments))
        loaded.add(engine.subscribe_many(rows, progress=progress.update), text, rejected)
        return loaded
    if are_sigma_rules(arguments):
        from matchmill.sigma import load as load_rules

        rules = loaded.rules = load_rules(
            text, pipelines=arguments.sigma_pipeline, settings=engine.settings
        )
        rejected.add(rules.rejected)
        loaded.add(engine.subscribe_many(rules, progress=progress.update), text, rejected)
        return loaded
    for source in file_sources(text):
        report = engine.subscribe_many(
            _until_bad(file_rows(source, arguments), arguments.strict),
            dialect=arguments.dialect,
            progress=progress.update,
        )
        loaded.add(report, str(source.path), rejected)
    return loaded


def _until_bad(rows: Any, strict: bool) -> Any:
    """With --strict, read nothing after the first row that cannot be read."""
    for row in rows:
        yield row
        if strict and row.problem is not None:
            return


def _with_option(reason: str, options: Mapping[str, str]) -> str:
    """Name the option, if the key of a JSON object is not there."""
    for column, option in options.items():
        if reason.startswith(f"there is no {column!r}; it has: "):
            return f"{reason}; name the right one with {option}"
    return reason


class Loaded:
    """An engine, and what to say about how it was made."""

    def __init__(self, engine: Engine, start: float, options: Mapping[str, str]) -> None:
        self.engine = engine
        self.rules: SigmaRules | None = None  # that the subscriptions came from
        self._options = options  # column → the option that names it
        self._start = start
        self._seconds = time.perf_counter() - start
        self._n_accepted: int | None = None
        self._warnings: list[Finding] = []

    def add(self, report: Any, name: str, rejected: RejectedRows) -> None:
        """Note what became of one file."""
        rejected.add(
            one._replace(source=name, reason=_with_option(one.reason, self._options))
            for one in report.rejected
        )
        self._n_accepted = (self._n_accepted or 0) + report.n_accepted
        self._warnings += report.warnings
        self._seconds = time.perf_counter() - self._start

    def summary(self, n_rejected: int) -> str:
        """Say how many subscriptions there are, and how long it took."""
        if self._n_accepted is None:
            return f"subscriptions: {len(self.engine):,} opened in {self._seconds:.2f} s"
        parts = [f"{self._n_accepted:,} accepted", f"{n_rejected:,} rejected"]
        for kind, words in (("never", "can never match"), ("always", "match every event")):
            ids = [finding.id for finding in self._warnings if finding.kind == kind]
            if ids:
                parts.append(f"{len(ids):,} {words} ({listed(ids)})")
        speed = rate(self._n_accepted + n_rejected, self._seconds)
        return f"subscriptions: {', '.join(parts)}; {speed}"
