"""The summary of a pipeline as one HTML page, without scripts and other files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import PurePath
from typing import Any

from matchmill.io.html_page import page_of
from matchmill.spark.pipeline.charts import columns_chart, rows_chart
from matchmill.spark.pipeline.step_records import counts_text

__all__ = ["summary_page"]

Row = Sequence[Any]


def summary_page(summary: Mapping[str, Any]) -> str:
    """Write the page."""
    config = PurePath(summary["config"])
    title = f"Pipeline {'/'.join(config.parts[-2:])}"
    return page_of(title, "\n".join(_body(title, summary)))


def _body(title: str, summary: Mapping[str, Any]) -> Iterator[str]:
    steps = {step["step"]: step for step in summary["steps"]}
    yield f"<h1>{escape(title)}</h1>"
    yield (
        f'<p class="dim">{escape(summary["config"])} → {escape(summary["output"])},'
        f" {escape(summary['written_at'])}</p>"
    )
    yield from _steps(summary["steps"])
    if "match" in steps:
        yield from _matches(steps["match"])
    for name in ("subscriptions", "events"):
        if name in steps:
            yield from _quarantine(name, steps[name])
    yield from _skew(summary["skew"], steps)
    if "statistics" in steps:
        yield from _attributes(steps["statistics"], steps["events"]["counts"]["n_accepted"])
    if "stream" in steps:
        yield from _stream(steps["stream"])


# -- sections -------------------------------------------------------------------------------------


def _steps(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "<h2>Steps</h2>"
    yield _figure(
        rows_chart([(s["step"], s["seconds"], f"{s['seconds']:.1f} s") for s in steps], "seconds"),
        "Seconds of each step, when it last ran",
    )
    yield _table(
        ("step", "counts", "rows per second", "made"),
        [
            (s["step"], counts_text(s["counts"]), _rounded(s["rows_per_second"]), s["made"])
            for s in steps
        ],
        n_labels=2,
    )


def _matches(step: Mapping[str, Any]) -> Iterator[str]:
    counts, details = step["counts"], step["details"]
    yield "<h2>Matches</h2>"
    n_none = counts["n_events"] - counts["n_matched_events"]
    how = "by the driver, without an engine" if details["by_driver"] else "by the workers"
    each = counts["n_matches"] / counts["n_events"] if counts["n_events"] else 0
    yield (
        f"<p>{counts['n_matches']:,} matches, {each:,.1f} per event, found {how}; at most"
        f" {details['n_matches_of_one_event']:,} of one event."
        f" {counts['n_matched_subscriptions']:,} subscriptions match at all.</p>"
    )
    columns = [("0", n_none, f"{n_none:,}")]
    columns += [(f"{low:,}", n, f"{n:,}") for low, _, n in details["histogram"]]
    yield _figure(
        columns_chart(columns, "events"),
        "Events by the number of their matches: none, from 1, from 2, from 4 on, …",
    )
    yield "<h3>The busiest subscriptions</h3>"
    yield _table(
        ("subscription", "matches", "of all events", "expression"),
        [
            (i, f"{n:,}", f"{n / counts['n_events']:.2%}", _cut(str(text)))
            for i, n, text in details["busiest"]
        ],
        n_labels=1,
        left=(3,),
    )


def _quarantine(name: str, step: Mapping[str, Any]) -> Iterator[str]:
    n_rejected = step["counts"]["n_rejected"]
    yield f"<h2>Rejected: {name}</h2>"
    if not n_rejected:
        yield "<p>None.</p>"
        return
    where = escape(f"{step['made']}/quarantine")
    yield f"<p>{n_rejected:,} of {step['counts']['n_in']:,}; all are in {where}.</p>"
    yield _table(
        ("reason", "rows", "for example"),
        [(reason, f"{n:,}", _cut(raw)) for reason, n, _, raw in step["details"]["reasons"]],
        n_labels=1,
        left=(2,),
    )


def _skew(skew: Mapping[str, Mapping[str, float]], steps: Mapping[str, Any]) -> Iterator[str]:
    if not skew:
        return
    yield "<h2>Distribution of the work</h2>"
    yield _table(
        ("", "pieces", "least", "median", "most", "most / mean"),
        [
            (name, f"{s['pieces']:,}", *(_rounded(s[k]) for k in ("least", "median", "most")),
             f"{s['most_over_mean']:.2f}")
            for name, s in skew.items()
        ],
        n_labels=1,
    )  # fmt: skip
    if "build" in steps:
        shards = steps["build"]["details"]["shards"]
        sizes = [(str(i), shard[0], f"{shard[0]:,}") for i, shard in enumerate(shards)]
        yield _figure(columns_chart(sizes, "subscriptions"), "Subscriptions of each shard")
        times = [(str(i), s[2] + s[3], f"{s[2] + s[3]:.1f} s") for i, s in enumerate(shards)]
        yield _figure(columns_chart(times, "seconds"), "Seconds to encode and build each shard")
    if "match" in steps:
        details = steps["match"]["details"]
        partitions = [(str(i), n, f"{n:,}") for i, n in enumerate(details["n_by_partition"])]
        yield _figure(columns_chart(partitions, "matches"), "Matches in each partition")
        tasks = [(str(i), t[0], f"{t[0]:.1f} s") for i, t in enumerate(details["tasks"])]
        if tasks:
            yield _figure(columns_chart(tasks, "seconds"), "Seconds of each task of matching")


def _attributes(step: Mapping[str, Any], n_events: int) -> Iterator[str]:
    yield "<h2>Attributes of events</h2>"
    yield _table(
        ("attribute", "events", "share", "distinct values"),
        [
            (name, f"{n:,}", f"{n / n_events:.1%}" if n_events else "", f"{distinct:,}")
            for name, n, distinct in step["details"]["attributes"]
        ],
        n_labels=1,
    )
    if step["details"]["conditions"]:
        yield "<h3>Conditions that are true most often, of those used most</h3>"
        yield _table(
            ("condition", "events"),
            [(_cut(text), f"{n:,}") for text, n in step["details"]["conditions"]],
            n_labels=1,
        )


def _stream(step: Mapping[str, Any]) -> Iterator[str]:
    yield "<h2>Stream</h2>"
    yield f"<p>The last run: {escape(counts_text(step['counts']))}.</p>"
    batches = step["details"]["batches"]
    if batches:
        columns = [(str(b["batch_id"]), b["seconds"], f"{b['seconds']:.1f} s") for b in batches]
        yield _figure(columns_chart(columns, "seconds"), "Seconds of each batch")
        yield _table(
            ("batch", "events", "seconds", "events per second"),
            [
                (b["batch_id"], f"{b['n_events']:,}", f"{b['seconds']:.2f}",
                 _rounded(b["n_events"] / b["seconds"] if b["seconds"] else None))
                for b in batches
            ],
            n_labels=1,
        )  # fmt: skip


# -- pieces ---------------------------------------------------------------------------------------


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _table(
    header: Sequence[str], rows: Sequence[Row], *, n_labels: int, left: Sequence[int] = ()
) -> str:
    label = " class=label style='white-space: normal'"

    def cells(tag: str, row: Row) -> str:
        return "".join(
            f"<{tag}{label if i < n_labels or i in left else ''}>{escape(str(cell))}</{tag}>"
            for i, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f'<div class="wide"><table><thead><tr>{cells("th", header)}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cut(text: str) -> str:
    return text if len(text) <= 120 else text[:119] + "…"


def _rounded(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
