"""The steps of a pipeline: what each is made from, and what it does.

    subscriptions, events    ingest: good rows and a quarantine, as tables
    statistics               the events counted
    build                    a version of the published index
    match                    the pairs
    stream                   the pairs of events that come later; never "done"

A step's `made_from` changes when its part of the config, its files or the steps before it change.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from matchmill import spark as ms
from matchmill.errors import InputError, MatchmillError
from matchmill.spark.ingestion.event_files import read_event_files
from matchmill.spark.pipeline.figures import (
    match_figures,
    quarantine_figures,
    statistics_figures,
    times_figures,
)
from matchmill.spark.pipeline.inputs import files_of
from matchmill.spark.pipeline.job import Job
from matchmill.spark.pipeline.step_records import StepRecord, digest_of
from matchmill.spark.pipeline.stream_step import run_stream
from matchmill.spark.pipeline.task_times import counting_tasks

__all__ = ["STEPS", "Step", "steps_named"]

_INDEX = "index"


class Step(NamedTuple):
    name: str
    command: str  # by which it is called alone
    made_from: Callable[[Job], str]
    run: Callable[[Job, str], StepRecord]
    is_needed: Callable[[Job], bool] = lambda job: True


# -- ingest ---------------------------------------------------------------------------------------


def _source(job: Job, section: str) -> str:
    given = job.config[section]
    return digest_of(given | {"files": files_of(given["path"], job.spark)})


def _ingest_subscriptions(job: Job, made_from: str) -> StepRecord:
    given, start = job.config["subscriptions"], time.perf_counter()
    folder = job.state.new_folder("subscriptions")
    with (
        job.stage("checking subscriptions"),
        ms.read_subscriptions(
            job.spark(), given["path"], given["format"], id_column=given["id_column"],
            expression_column=given["expression_column"], integer_ids=given["integer_ids"],
            latest_by=given["latest_by"] or None, operators=given["operators"],
        ) as ingested,
    ):  # fmt: skip
        counts = ingested.write(job.path(folder))
    return _ingest_record(job, "subscriptions", made_from, folder, start, counts)


def _ingest_events(job: Job, made_from: str) -> StepRecord:
    given, start = job.config["events"], time.perf_counter()
    folder = job.state.new_folder("events")
    with job.stage("checking events"):
        files = read_event_files(
            job.spark(), given["path"], given["format"], _layout(given), given["options"]
        )
        with ms.ingest_events(files.rows, files.layout) as ingested:
            counts = ingested.write(job.path(folder))
        if files.bad_lines is not None:
            target = job.path(f"{folder}/quarantine")
            files.bad_lines.write.mode("append").parquet(target)
            n_bad = job.spark().read.parquet(target).count() - counts.n_quarantined
            counts = ms.Counts(counts.n_in + n_bad, counts.n_accepted, counts.n_quarantined + n_bad)
    return _ingest_record(job, "events", made_from, folder, start, counts)


def _layout(given: dict[str, Any]) -> ms.EventLayout:
    return ms.EventLayout(
        given["layout"], given["event_id"], tuple(given["columns"]), given["attribute"],
        given["value"],
    )  # fmt: skip


def _ingest_record(
    job: Job, step: str, made_from: str, folder: str, start: float, counts: ms.Counts
) -> StepRecord:
    reasons = []
    if counts.n_quarantined:
        with job.stage("counting what was set aside"):
            quarantine = job.spark().read.parquet(job.path(f"{folder}/quarantine"))
            reasons = quarantine_figures(quarantine)
    return StepRecord(
        step, made_from, folder, time.perf_counter() - start,
        {"in": counts.n_in, "accepted": counts.n_accepted, "set_aside": counts.n_quarantined},
        {"reasons": reasons},
    )  # fmt: skip


# -- statistics -----------------------------------------------------------------------------------


def _statistics_from(job: Job) -> str:
    return digest_of({step: job.made(step).made_from for step in ("subscriptions", "events")})


def _statistics(job: Job, made_from: str) -> StepRecord:
    start = time.perf_counter()
    folder = job.state.new_folder("statistics")
    with job.stage("counting events"):
        table = ms.event_statistics(
            job.read("events", "accepted"), job.accepted_layout(),
            subscriptions=job.read("subscriptions", "accepted"),
        )  # fmt: skip
        table.write.parquet(job.path(folder))
        figures = statistics_figures(table)
        n_events = sum(row["n"] for row in table.where("kind = 'events'").collect())
    counts = {"events": n_events, "attributes": len(figures["attributes"])}
    return StepRecord("statistics", made_from, folder, time.perf_counter() - start, counts, figures)


# -- build ----------------------------------------------------------------------------------------


def _build_from(job: Job) -> str:
    given = dict(job.config["index"])
    given.pop("keep")
    subscriptions = job.made("subscriptions").made_from
    statistics = job.made("statistics").made_from if _wants_statistics(job) else None
    return digest_of(given | {"statistics": statistics, "subscriptions": subscriptions})


def _wants_statistics(job: Job) -> bool:
    return bool(job.config["statistics"]["enabled"])


def _build(job: Job, made_from: str) -> StepRecord:
    given, start = job.config["index"], time.perf_counter()
    with job.stage("building the index"):
        subscriptions = job.read("subscriptions", "accepted")
        sample = None
        if _wants_statistics(job) and job.made("statistics").counts["events"]:
            sample = ms.sample_events(job.read("statistics"))
        index = ms.build(
            subscriptions, job.path(_INDEX), shards=given["shards"] or None, index=given["name"],
            keep=given["keep"], statistics=sample,
            operators=job.config["subscriptions"]["operators"] or None,
        )  # fmt: skip
    manifest = index.manifest
    n_accepted = job.made("subscriptions").counts["accepted"]
    if len(index) + manifest.n_refused != n_accepted:
        raise MatchmillError(
            f"{n_accepted:,} subscriptions were accepted, but the index has {len(index):,} and"
            f" refused {manifest.n_refused:,}: run the pipeline again with --force"
        )
    shards = [
        [s.n_subscriptions, s.n_bytes, s.meta["encode_seconds"], s.meta["build_seconds"]]
        for s in manifest.shards
    ]
    counts = {"subscriptions": len(index), "refused": manifest.n_refused, "bytes": manifest.n_bytes}
    details = {"shards": shards, "index": manifest.index_name, "refused": manifest.refused[:20]}
    return StepRecord(
        "build", made_from, index.version, time.perf_counter() - start, counts, details
    )


def _needs_index(job: Job) -> bool:
    return job.config.has_stream or not job.is_small


# -- match ----------------------------------------------------------------------------------------


def _match_from(job: Job) -> str:
    by = job.made("build").made if not job.is_small else job.made("subscriptions").made_from
    return digest_of(job.config["match"] | {"by": by, "events": job.made("events").made_from})


def _match(job: Job, made_from: str) -> StepRecord:
    given, start = job.config["match"], time.perf_counter()
    folder = job.state.new_folder("match")
    with job.stage("matching"), counting_tasks(job.spark()) as times:
        subscriptions = job.read("subscriptions", "accepted")
        events = _spread(job.read("events", "accepted"))
        how: dict[str, Any] = {"layout": job.accepted_layout(), "as_arrays": given["arrays"]}
        if job.is_small:
            found = ms.match(
                events, subscriptions, distributed=False,
                operators=job.config["subscriptions"]["operators"] or None, **how,
            )  # fmt: skip
        else:
            index = ms.open_index(job.path(_INDEX), job.made("build").made, spark=job.spark())
            found = ms.match(events, index, **how)
        found.write.parquet(job.path(folder))
    seconds = time.perf_counter() - start
    with job.stage("counting matches"):
        matches = job.spark().read.parquet(job.path(folder))
        figures = match_figures(matches, subscriptions, given["arrays"])
    n_events = job.made("events").counts["accepted"]
    totals = {figures[name] for name in ("pairs", "pairs_by_subscription", "pairs_by_event")}
    if len(totals) != 1 or figures["events_that_match"] > n_events:
        raise MatchmillError(
            f"the counts of matches do not agree: {sorted(totals)} pairs, "
            f"{figures['events_that_match']:,} of {n_events:,} events; run again with --from match"
        )
    counts = {
        "events": n_events,
        "matches": figures["pairs"],
        "events_that_match": figures["events_that_match"],
        "subscriptions_that_match": figures["subscriptions_that_match"],
    }
    details = figures | {"by_driver": job.is_small, "tasks": times_figures(times)}
    return StepRecord("match", made_from, folder, seconds, counts, details)


def _spread(events: Any) -> Any:
    """Events for all cores: a file of few megabytes, which Spark would read in one task, is much to
    match."""
    n_cores = events.sparkSession.sparkContext.defaultParallelism
    is_few = events.rdd.getNumPartitions() < n_cores
    return events.repartition(n_cores) if is_few else events


# -- stream ---------------------------------------------------------------------------------------


def _stream_from(job: Job) -> str:
    if not job.config.has_stream:
        raise InputError(f"{job.config.path} has no section [stream]; add one")
    return digest_of(job.config["stream"])


def _stream(job: Job, made_from: str) -> StepRecord:
    start = time.perf_counter()
    with job.stage("matching the stream"):
        job.made("build")  # there is an index
        given = job.config["stream"]
        counts, batches = run_stream(job.spark(), given, _layout(given), job.path)
    return StepRecord(
        "stream", made_from, "stream/matches", time.perf_counter() - start, counts,
        {"batches": batches},
    )  # fmt: skip


STEPS = (
    Step("subscriptions", "ingest", lambda job: _source(job, "subscriptions"),
         _ingest_subscriptions),
    Step("events", "ingest", lambda job: _source(job, "events"), _ingest_events),
    Step("statistics", "statistics", _statistics_from, _statistics, _wants_statistics),
    Step("build", "build", _build_from, _build, _needs_index),
    Step("match", "match", _match_from, _match),
    Step("stream", "stream", _stream_from, _stream, lambda job: job.config.has_stream),
)  # fmt: skip


def steps_named(command: str) -> tuple[Step, ...]:
    """The steps that a command runs."""
    return tuple(step for step in STEPS if command in ("run", step.command))
