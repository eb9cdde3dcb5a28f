"""A pytest plugin that prints which tests a run consisted of: `-p tests.support.what_ran`."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

_ran: dict[str, _Ran] = {}


class _Ran(NamedTuple):
    """The cases of one test function."""

    n_passed: int = 0
    n_failed: int = 0
    n_skipped: int = 0
    seconds: float = 0.0

    def plus(self, report: pytest.TestReport) -> _Ran:
        """Add one phase of one case: its setup, its call or its teardown."""
        return _Ran(
            self.n_passed + (report.when == "call" and report.passed),
            self.n_failed + report.failed,
            self.n_skipped + report.skipped,
            self.seconds + report.duration,
        )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    name = report.nodeid.partition("[")[0].partition("@")[0]
    _ran[name] = _ran.get(name, _Ran()).plus(report)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.section("what ran")
    terminalreporter.line(f"{'passed':>7} {'failed':>7} {'skipped':>7} {'seconds':>9}")
    for name, ran in sorted(_ran.items()):
        counts = f"{ran.n_passed:7} {ran.n_failed:7} {ran.n_skipped:7} {ran.seconds:9.1f}"
        terminalreporter.line(f"{counts}  {name}")
