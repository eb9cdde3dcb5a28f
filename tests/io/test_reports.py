"""Reports of bulk calls: short to look at, readable to print, safe in a notebook."""

from __future__ import annotations

import subprocess
import sys

import pytest

from matchmill.io.reports import Finding, Rejected, SubscribeReport, html_table


@pytest.mark.parametrize(
    ("rejected", "text"),
    [
        (("subscription", 3, 4, "alerts.csv", "u3", "bad"), "alerts.csv:4: u3: bad"),
        (("subscription", 3, None, "a.parquet", "u3", "bad"), "a.parquet, row 3: u3: bad"),
        (("event", 3, None, None, None, "bad"), "row 3: bad"),
        (("event", 3, 7, None, None, "bad"), "line 7: bad"),
    ],
)
def test_a_rejected_item_says_where_it_is(rejected: tuple[object, ...], text: str) -> None:
    assert str(Rejected(*rejected)) == text  # type: ignore[arg-type]


def report(n_rejected: int) -> SubscribeReport:
    rejected = [
        Rejected("subscription", i, None, None, f"<u{i}>", "bad & worse") for i in range(n_rejected)
    ]
    return SubscribeReport(5, 2, rejected, [Finding("u9", "never", "no event", "drop it")], ["bid"])


def test_a_report_is_short_and_readable() -> None:
    assert repr(report(1)) == "<SubscribeReport: 5 accepted, 2 replaced, 1 rejected, 1 warnings>"
    assert repr(SubscribeReport(1_234)) == "<SubscribeReport: 1,234 accepted, 0 rejected>"
    assert str(report(12)).splitlines() == [
        "5 accepted, 2 replaced, 12 rejected, 1 warnings",
        *(f"rejected: row {i}: <u{i}>: bad & worse" for i in range(10)),
        "rejected: and 2 more",
        "warning: u9: no event; drop it",
        "columns not used: bid",
    ]
    assert report(3).n_rejected == 3


def test_html_is_escaped_and_bounded() -> None:
    html = report(30)._repr_html_()
    assert "<td>&lt;u1&gt;</td><td>bad &amp; worse</td>" in html
    assert "<u1>" not in html
    assert "and 11 more" in html
    assert html_table("a < b", ("x",), []) == "<div><p>a &lt; b</p></div>"


def test_reports_need_nothing_but_the_standard_library() -> None:
    program = (
        "import matchmill.io.reports, sys;"
        "print(*sorted({'numpy', 'pyarrow', 'numba', 'msgspec'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
