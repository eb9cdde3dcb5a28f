"""Results are Parquet files: one for each run of an experiment at one scale.

A row is one round of one contender at one point; what holds for all rounds is repeated in each. A
contender without rounds (absent, failed, over its budget) has one row, with `round` null and its
reason. COLUMNS lists all columns with their meaning. The metadata of the file hold, as text:

    matchmill.experiment   the spec, as it was
    matchmill.machine      JSON: processor, cores, memory, versions, hash of the sources, load
    matchmill.run          JSON: name, scale, rounds, budget, number of points

The file is written again after every point, beside its place, and renamed: whenever a run stops,
the points so far are there, and `RunFile.open(resume=True)` goes on after them.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from matchmill.errors import FileFormatError, InputError
from matchmill.lab.experiments.machine_info import machine
from matchmill.lab.experiments.measurement import Budget, Measurement
from matchmill.lab.experiments.spec import Experiment, Point, Scale, parse_experiment

__all__ = ["COLUMNS", "Results", "RunFile", "Summary", "read_results", "result_files"]


class Column(NamedTuple):
    name: str
    type: pa.DataType
    help: str


COLUMNS = (
    Column("experiment", pa.string(), "name of the experiment"),
    Column("scale", pa.string(), "small or full"),
    Column("point", pa.int32(), "number of the point, from 0"),
    Column("labels", pa.string(), "JSON: what makes this point differ from others"),
    Column("workload", pa.string(), "JSON: generator, sizes, seed, parameters"),
    Column("contender", pa.string(), "name of the contender"),
    Column("index", pa.string(), "its index, by name in the registry"),
    Column("options", pa.string(), "JSON: options of its build"),
    Column("status", pa.string(), "ok, wrong, failed, slow, memory, absent, no workload"),
    Column("reason", pa.string(), "why it is not ok"),
    Column("round", pa.int32(), "number of the round, from 0; null if there was none"),
    Column("round_us_per_event", pa.float64(), "µs per event in this round"),
    Column("round_yardstick_us", pa.float64(), "µs of fixed work beside it: the machine's speed"),
    Column("us_per_event", pa.float64(), "µs per event, median of the rounds"),
    Column("us_per_event_min", pa.float64(), "… the least"),
    Column("us_per_event_max", pa.float64(), "… the most"),
    Column("us_per_event_spread", pa.float64(), "… (third - first quartile) / median"),
    Column("ns_per_match", pa.float64(), "nanoseconds per match, median of the rounds"),
    Column("build_seconds", pa.float64(), "seconds to build"),
    Column("index_bytes", pa.int64(), "bytes of the index, as it says itself"),
    Column("bytes_per_subscription", pa.float64(), "… for each subscription"),
    Column("peak_bytes", pa.int64(), "most memory in use while building and first matching"),
    Column("candidates_per_event", pa.float64(), "clauses looked at, per event"),
    Column("matches_per_event", pa.float64(), "subscriptions that match, per event"),
    Column("n_matches", pa.int64(), "matches of all events that it was measured on"),
    Column("n_events", pa.int64(), "events that it was measured on: the first of the workload"),
    Column("n_clauses", pa.int64(), "clauses in the index"),
    Column("digest", pa.string(), "of all (event, subscription) pairs, whatever their order"),
    Column("reference", pa.string(), "what its matches were compared with"),
    Column("race", pa.int32(), "contenders of one point with one number ran interleaved"),
)  # fmt: skip

SCHEMA = pa.schema([(column.name, column.type) for column in COLUMNS])
_PER_ROUND = ("round", "round_us_per_event", "round_yardstick_us")


class Summary(NamedTuple):
    """One contender at one point: all columns but those of a round, and the rounds together."""

    labels: dict[str, Any]
    columns: dict[str, Any]
    rounds: list[float]  # µs per event
    relative: list[float]  # the same, for each µs of the yardstick

    @property
    def contender(self) -> str:
        """Name of the contender."""
        return str(self.columns["contender"])

    @property
    def status(self) -> str:
        """Status of the contender."""
        return str(self.columns["status"])

    @property
    def key(self) -> tuple[str, str]:
        """The point and the contender, as one thing to look up."""
        return str(self.columns["labels"]), self.contender


class Results(NamedTuple):
    """A file of results, read."""

    path: Path
    experiment: Experiment
    machine: dict[str, str]
    run: dict[str, Any]
    table: pa.Table

    @property
    def scale(self) -> Scale:
        """The scale of the run."""
        scale: Scale = self.run["scale"]
        return scale

    def summaries(self) -> list[Summary]:
        """Put the rounds of each contender at each point together."""
        found: dict[tuple[int, str], Summary] = {}
        for row in self.table.to_pylist():
            key = (row["point"], row["contender"])
            if key not in found:
                columns = {k: v for k, v in row.items() if k not in _PER_ROUND}
                found[key] = Summary(json.loads(row["labels"]), columns, [], [])
            if row["round"] is not None:
                time, yardstick = row["round_us_per_event"], row["round_yardstick_us"]
                found[key].rounds.append(time)
                found[key].relative.append(time / yardstick)
        return list(found.values())

    @property
    def finished(self) -> set[str]:
        """Labels of the points that need not be measured again."""
        status, labels = self.table["status"].to_pylist(), self.table["labels"].to_pylist()
        missed = {label for s, label in zip(status, labels, strict=True) if s == "no workload"}
        return set(labels) - missed


# -- writing --------------------------------------------------------------------------------------


class RunFile:
    """The file of a run that grows point by point."""

    def __init__(self, path: Path, metadata: dict[str, str], rows: list[dict[str, Any]]) -> None:
        self.path = path
        self._metadata = metadata
        self._rows = rows

    @classmethod
    def open(
        cls,
        folder: Path,
        experiment: Experiment,
        scale: Scale,
        *,
        rounds: int,
        budget: Budget,
        resume: bool = False,
        overwrite: bool = False,
    ) -> RunFile:
        """Open a new file, or one to go on with; an existing one is never replaced unasked."""
        path = folder / f"{experiment.name.replace('/', '.')}.{scale}.parquet"
        run = {
            "name": experiment.name,
            "scale": scale,
            "contenders": [contender.name for contender in experiment.contenders],
            "rounds": rounds,
            "budget": asdict(budget),
        }
        metadata = {
            "matchmill.experiment": experiment.text,
            "matchmill.machine": json.dumps(machine()),
            "matchmill.run": json.dumps(run),
        }
        rows: list[dict[str, Any]] = []
        if path.exists() and not overwrite:
            if not resume:
                raise InputError(
                    f"{path} exists; --resume goes on with it, --overwrite replaces it"
                )
            old = read_results(path)
            _check_same(path, old, experiment, run)
            finished = old.finished
            rows = [row for row in old.table.to_pylist() if row["labels"] in finished]
        return cls(path, metadata, rows)

    def finished(self, point: Point) -> bool:
        """Tell whether a point has been measured."""
        labels = _json(point.labels)
        return any(row["labels"] == labels for row in self._rows)

    def statuses(self) -> Counter[str]:
        """How often each status occurs, over points and contenders."""
        return Counter(row["status"] for row in self._rows if not row.get("round"))

    def add(
        self, number: int, point: Point, measurements: Sequence[Measurement], name: str, scale: str
    ) -> None:
        """Add a point and write the file."""
        labels = _json(point.labels)
        self._rows = [row for row in self._rows if row["labels"] != labels]
        for m in measurements:
            common = {
                "experiment": name,
                "scale": scale,
                "point": number,
                "labels": labels,
                "workload": _json(point.workload.as_dict()),
                **_columns(m, point),
            }
            for i, (value, yardstick) in enumerate(zip(m.rounds, m.yardsticks, strict=True)):
                own = {"round": i, "round_us_per_event": value, "round_yardstick_us": yardstick}
                self._rows.append({**common, **own})
            if not m.rounds:
                self._rows.append(common)
        self.write()

    def take_from_others(
        self, number: int, point: Point, experiment: Experiment, scale: Scale
    ) -> str:
        """Take the point from a neighbouring file with the same measurements; whose, if any."""
        workload = _json(point.workload.as_dict())
        wanted = {c.name: (c.index, _json(point.options_of(c))) for c in experiment.contenders}
        run = json.loads(self._metadata["matchmill.run"])
        for path in self.path.parent.glob(f"[!.]*.{scale}.parquet"):
            other = read_results(path)
            if (
                path == self.path
                or other.run["rounds"] != run["rounds"]
                or _clock(other.run) != _clock(run)
                or other.experiment.statistics != experiment.statistics
            ):
                continue
            rows = [
                row
                for row in other.table.filter(pc.field("workload") == workload).to_pylist()
                if wanted.get(row["contender"]) == (row["index"], row["options"])
            ]
            if {row["contender"] for row in rows} == set(wanted):
                own = {
                    "experiment": experiment.name,
                    "point": number,
                    "labels": _json(point.labels),
                }
                self._rows += [{**row, **own} for row in rows]
                self.write()
                return other.experiment.name
        return ""

    def write(self) -> None:
        """Write the file, beside its place, and rename it."""
        self._rows.sort(key=lambda row: row["point"])  # stable: contenders stay in their order
        table = pa.Table.from_pylist(self._rows, SCHEMA).replace_schema_metadata(self._metadata)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            pq.write_table(table, beside)
            os.replace(beside, self.path)
        finally:
            with suppress(FileNotFoundError):
                beside.unlink()


def _check_same(path: Path, old: Results, experiment: Experiment, run: dict[str, Any]) -> None:
    if old.experiment.text != experiment.text:
        raise InputError(
            f"{path} was measured with another version of this experiment; measure into another "
            "folder, or replace it with --overwrite"
        )
    if _clock(old.run) != _clock(run):
        raise InputError(
            f"{path} was measured by another clock: --clock {_clock(old.run)}; give that, or "
            "replace it with --overwrite"
        )
    for name in ("rounds", "contenders"):
        if old.run[name] != run[name]:
            raise InputError(
                f"{path} was measured with other {name}: {old.run[name]}, not {run[name]}; give "
                "the same ones, or replace it with --overwrite"
            )


def _clock(run: Mapping[str, Any]) -> str:
    return str(run["budget"].get("clock", "wall"))  # older files do not say it


def _columns(m: Measurement, point: Point) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "contender": m.contender.name,
        "index": m.contender.index,
        "options": _json(m.options),
        "status": m.status,
        "reason": m.reason,
        "n_clauses": m.n_clauses,
        "n_events": m.n_events,
        "digest": m.digest,
        "reference": m.reference,
    }
    for name in (
        "build_seconds", "index_bytes", "peak_bytes", "candidates_per_event", "n_matches", "race",
    ):  # fmt: skip
        columns[name] = getattr(m, name)
    if m.index_bytes is not None:
        columns["bytes_per_subscription"] = m.index_bytes / max(point.workload.n_subscriptions, 1)
    if m.n_matches is not None and m.n_events:
        columns["matches_per_event"] = m.n_matches / m.n_events
    if m.rounds:
        first, median, third = np.quantile(m.rounds, (0.25, 0.5, 0.75)).tolist()
        columns |= {
            "us_per_event": median,
            "us_per_event_min": min(m.rounds),
            "us_per_event_max": max(m.rounds),
            "us_per_event_spread": (third - first) / median if median else 0.0,
        }
        if m.n_matches:
            columns["ns_per_match"] = median * 1000 * m.n_events / m.n_matches
    return columns


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), sort_keys=False, ensure_ascii=False)


# -- reading --------------------------------------------------------------------------------------


def read_results(path: Path) -> Results:
    """Read a file that a run has written."""
    try:
        table = pq.read_table(path)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise FileFormatError(f"{path} cannot be read as Parquet: {error}") from None
    metadata = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
    if "matchmill.experiment" not in metadata or not set(SCHEMA.names) <= set(table.column_names):
        raise FileFormatError(f"{path} holds no results of `matchmill bench run`")
    run = json.loads(metadata["matchmill.run"])
    return Results(
        path,
        parse_experiment(metadata["matchmill.experiment"], run["name"], str(path)),
        json.loads(metadata["matchmill.machine"]),
        run,
        table.select(SCHEMA.names).cast(SCHEMA),
    )


def result_files(folder: Path) -> Iterator[Path]:
    """Return the files of results in a folder, by name; or the one file that the path is."""
    if folder.is_file():
        yield folder
        return
    found = sorted(p for p in folder.glob("*.parquet") if not p.name.startswith("."))
    if not found:
        raise InputError(f"there are no results (*.parquet) in {folder}")
    yield from found
