"""What a pipeline did, as summary.json for programs and summary.html for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from matchmill.spark.pipeline.job import Job
from matchmill.spark.pipeline.page import summary_page
from matchmill.spark.pipeline.step_records import StepRecord

__all__ = ["write_summary"]


def write_summary(job: Job) -> str:
    """Write both; return where the page is."""
    summary = {
        "config": str(job.config.path),
        "output": job.location.root,
        "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "steps": [_step(record) for record in job.state.records()],
        "skew": _skew(job.state.records()),
    }
    text = json.dumps(summary, indent=1, ensure_ascii=False)
    job.location.publish("summary.json", text.encode())
    job.location.publish("summary.html", summary_page(summary).encode())
    return job.path("summary.html")


def _step(record: StepRecord) -> dict[str, Any]:
    rows = next(
        record.counts[n] for n in ("n_in", "n_events", "n_subscriptions") if n in record.counts
    )
    rate = rows / record.seconds if record.seconds else None
    return asdict(record) | {"n_rows": rows, "rows_per_second": rate}


def _skew(records: Sequence[StepRecord]) -> dict[str, dict[str, float]]:
    """Measure how uneven the pieces are: the largest over the mean, and the extremes."""
    pieces: dict[str, list[float]] = {}
    for record in records:
        if record.step == "build":
            shards = record.details["shards"]
            pieces["subscriptions per shard"] = [shard[0] for shard in shards]
            pieces["bytes per shard"] = [shard[1] for shard in shards]
            pieces["seconds to build a shard"] = [round(shard[3], 3) for shard in shards]
        if record.step == "match":
            pieces["matches per partition"] = record.details["n_by_partition"]
            pieces["seconds per task"] = [task[0] for task in record.details["tasks"]]
        if record.step == "stream":
            pieces["seconds per batch"] = [b["seconds"] for b in record.details["batches"]]
    return {name: _spread(values) for name, values in pieces.items() if values}


def _spread(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    mean = sum(ordered) / len(ordered)
    return {
        "pieces": len(ordered),
        "least": ordered[0],
        "median": ordered[len(ordered) // 2],
        "most": ordered[-1],
        "most_over_mean": round(ordered[-1] / mean, 3) if mean else 1.0,
    }
