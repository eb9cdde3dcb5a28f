"""The steps of a pipeline: what each is made from, and what it does.

    subscriptions, events    ingest: good rows and a quarantine, as tables
    statistics               the events counted
    build                    a version of the engine
    match                    the matches
    stream                   the matches of events that come later; never "done"

A step's `made_from` changes when its part of the config, its files or the steps before it change.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from matchmill import spark as ms
from matchmill.errors import FileFormatError, InputError, MatchmillError
from matchmill.spark.matching.direct_output import can_write_matches, write_matches
from matchmill.spark.pipeline.config import is_local, local_files
from matchmill.spark.pipeline.figures import (
    match_figures,
    quarantine_figures,
    statistics_figures,
    times_figures,
    written_figures,
)
from matchmill.spark.pipeline.job import Job
from matchmill.spark.pipeline.step_records import StepRecord, digest_of
from matchmill.spark.pipeline.stream_step import run_stream
from matchmill.spark.pipeline.task_times import counting_tasks

__all__ = ["ENGINE", "STEPS", "Step"]

ENGINE = "engine"  # its folder below the output


class Step(NamedTuple):
    """One step; two of them are called `ingest` by users."""

    name: str
    public_name: str
    made_from: Callable[[Job], str]
    run: Callable[[Job, str], StepRecord]
    is_needed: Callable[[Job], bool] = lambda job: True


# -- ingest ---------------------------------------------------------------------------------------


def _source(job: Job, section: str) -> str:
    given = job.config[section] | {"settings": job.config["settings"]}
    return digest_of(given | {"files": files_of(given["path"], job.spark)})


def files_of(path: str, spark: Callable[[], Any]) -> list[tuple[str, int, int]]:
    """List the files of a source as (name, bytes, time of the last change).

    Spark is asked only about files that only Hadoop knows.
    """
    if is_local(path):
        found = [(str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in local_files(path)]
    else:
        found = _hadoop_files(path, spark())
    if not found:
        raise FileFormatError(f"{path}: there is no such file or folder, or nothing in it")
    return found


def _hadoop_files(path: str, spark: Any) -> list[tuple[str, int, int]]:
    context = spark.sparkContext
    hadoop_path = context._jvm.org.apache.hadoop.fs.Path(path)
    system = hadoop_path.getFileSystem(context._jsc.hadoopConfiguration())
    files: list[tuple[str, int, int]] = []
    for root in system.globStatus(hadoop_path) or ():
        walk = system.listFiles(root.getPath(), True)
        while walk.hasNext():
            status = walk.next()
            name = status.getPath().toString()
            if not status.getPath().getName().startswith(("_", ".")):
                files.append((name, status.getLen(), status.getModificationTime()))
    return sorted(files)


def _ingest_subscriptions(job: Job, made_from: str) -> StepRecord:
    given, start = job.config["subscriptions"], time.perf_counter()
    folder = job.state.new_folder("subscriptions")
    with (
        job.stage("checking subscriptions"),
        ms.ingest_subscriptions(
            given["path"], spark=job.spark(), format=given["format"],
            subscription_id=given["subscription_id"], expression=given["expression"],
            dialect=given["dialect"], integer_ids=given["integer_ids"],
            latest_by=given["latest_by"] or None, operators=given["operators"],
            settings=job.config.settings,
        ) as ingested,
    ):  # fmt: skip
        counts = ingested.write(job.path(folder))
    return _ingest_record(job, "subscriptions", made_from, folder, start, counts)


def _ingest_events(job: Job, made_from: str) -> StepRecord:
    given, start = job.config["events"], time.perf_counter()
    folder = job.state.new_folder("events")
    with (
        job.stage("checking events"),
        ms.ingest_events(
            given["path"], spark=job.spark(), format=given["format"], layout=_layout(given),
            options=given["options"], settings=job.config.settings,
        ) as ingested,
    ):  # fmt: skip
        counts = ingested.write(job.path(folder))
    return _ingest_record(job, "events", made_from, folder, start, counts)


def _layout(given: dict[str, Any]) -> ms.EventLayout:
    return ms.EventLayout(
        given["layout"], given["event_id"], tuple(given["attributes"]), given["attribute"],
        given["value"], tuple(given["types"].items()),
    )  # fmt: skip


def _ingest_record(
    job: Job, step: str, made_from: str, folder: str, start: float, counts: ms.Counts
) -> StepRecord:
    reasons = []
    if counts.n_rejected:
        with job.stage("counting rejected rows"):
            quarantine = job.spark().read.parquet(job.path(f"{folder}/quarantine"))
            reasons = quarantine_figures(quarantine)
    return StepRecord(
        step, made_from, folder, time.perf_counter() - start,
        counts._asdict(),
        {"reasons": reasons},
    )  # fmt: skip


# -- statistics -----------------------------------------------------------------------------------


def _statistics_from(job: Job) -> str:
    return digest_of({step: job.made(step).made_from for step in ("subscriptions", "events")})


def _statistics(job: Job, made_from: str) -> StepRecord:
    start = time.perf_counter()
    folder = job.state.new_folder("statistics")
    with job.stage("counting events"):
        table = ms.statistics(
            job.read("events", "accepted"), job.read("subscriptions", "accepted"),
            layout=job.accepted_layout(),
        )  # fmt: skip
        table.write.parquet(job.path(folder))
        figures = statistics_figures(table)
        n_events = sum(row["n"] for row in table.where("kind = 'events'").collect())
    counts = {"n_events": n_events, "n_attributes": len(figures["attributes"])}
    return StepRecord("statistics", made_from, folder, time.perf_counter() - start, counts, figures)


# -- build ----------------------------------------------------------------------------------------


def _build_from(job: Job) -> str:
    given = job.config["build"] | {"settings": job.config["settings"]}
    given.pop("keep")
    subscriptions = job.made("subscriptions").made_from
    statistics = job.made("statistics").made_from if _wants_statistics(job) else None
    return digest_of(given | {"statistics": statistics, "subscriptions": subscriptions})


def _wants_statistics(job: Job) -> bool:
    return bool(job.config["statistics"]["enabled"])


def _build(job: Job, made_from: str) -> StepRecord:
    given, start = job.config["build"], time.perf_counter()
    with job.stage("building the engine"):
        learn = None
        if _wants_statistics(job) and job.made("statistics").counts["n_events"]:
            learn = job.read("statistics")
        engine = ms.build(
            job.read("subscriptions", "accepted"), job.path(ENGINE), index=given["index"],
            index_options=given["index_options"], shards=given["shards"] or None,
            keep=given["keep"], strict=given["strict"], learn=learn,
            operators=job.config["subscriptions"]["operators"], settings=job.config.settings,
        )  # fmt: skip
    stats = engine.stats()
    n_accepted = job.made("subscriptions").counts["n_accepted"]
    if stats.n_subscriptions + stats.n_rejected != n_accepted:
        raise MatchmillError(
            f"{n_accepted:,} subscriptions were accepted, but the engine has {len(engine):,} and"
            f" rejected {stats.n_rejected:,}: run the pipeline again with --force"
        )
    counts = {
        "n_subscriptions": stats.n_subscriptions,
        "n_rejected": stats.n_rejected,
        "n_bytes": stats.n_bytes,
    }
    details = {
        "shards": [list(shard) for shard in stats.shards],
        "index": stats.index,
        "rejected": [[row.id, row.reason] for row in engine.rejected[:20]],
    }
    return StepRecord(
        "build", made_from, engine.version, time.perf_counter() - start, counts, details
    )


def _needs_engine(job: Job) -> bool:
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
        counted = _write_matches(job, subscriptions, events, job.path(folder))
    seconds = time.perf_counter() - start
    with job.stage("counting matches"):
        matches = job.spark().read.parquet(job.path(folder))
        if counted is None:
            figures = match_figures(matches, subscriptions, given["per_event"])
        else:
            figures = written_figures(counted, subscriptions, matches.count())
    n_events = job.made("events").counts["n_accepted"]
    totals = {figures[name] for name in ("n_matches", "n_by_subscription", "n_by_event")}
    if len(totals) != 1 or figures["n_matched_events"] > n_events:
        raise MatchmillError(
            f"the counts of matches do not agree: {sorted(totals)} matches, "
            f"{figures['n_matched_events']:,} of {n_events:,} events; run again with --from match"
        )
    counts = {
        "n_events": n_events,
        "n_matches": figures["n_matches"],
        "n_matched_events": figures["n_matched_events"],
        "n_matched_subscriptions": figures["n_matched_subscriptions"],
    }
    details = {"by_driver": job.is_small, "tasks": times_figures(times)} | figures
    return StepRecord("match", made_from, folder, seconds, counts, details)


def _write_matches(job: Job, subscriptions: Any, events: Any, folder: str) -> Any | None:
    """Write the matches; return what workers counted of them, or None if Spark wrote them."""
    layout, per_event = job.accepted_layout(), job.config["match"]["per_event"]
    if job.is_small:
        found = ms.match(
            subscriptions, events, layout=layout, per_event=per_event, plan="driver",
            settings=job.config.settings, operators=job.config["subscriptions"]["operators"],
        )  # fmt: skip
    else:
        version = job.made("build").made
        engine = ms.open(job.path(ENGINE), version=version, spark=job.spark())
        if not per_event and can_write_matches(events, layout.event_id, folder):
            return write_matches(engine, events, folder, layout=layout)
        found = ms.match(engine, events, layout=layout, per_event=per_event)
    found.write.parquet(folder)
    return None


def _spread(events: Any) -> Any:
    """Spread events over all cores.

    Spark would read a file of a few megabytes in one task, and that is much to match.
    """
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
        job.made("build")  # there is an engine
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
    Step("build", "build", _build_from, _build, _needs_engine),
    Step("match", "match", _match_from, _match),
    Step("stream", "stream", _stream_from, _stream, lambda job: job.config.has_stream),
)  # fmt: skip
