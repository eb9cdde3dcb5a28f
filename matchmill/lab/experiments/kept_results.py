"""The figures behind the pages: one JSON file per paper beside its page, small enough to commit.

    {"be_tree/fig05_workload_size": {
        "scale": "full",
        "run": {…}, "machine": {…},   # as in the metadata of a file of results; the run has
                                      # `digits` where figures are from printed tables
        "columns": ["labels", "contender", "status", …],
        "rows": [[{"zipf": 0.0}, "be_tree", "ok", …], …]}}

A row is one contender at one point: the summary of its rounds. Files of results (Parquet) have
every round; `keep` takes what tables and verdicts need. `kept` gives it back as `Results`, so that
all that reads files of results reads this too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from matchmill.errors import FileFormatError, InputError
from matchmill.lab.experiments.results import SCHEMA, Results
from matchmill.lab.experiments.spec import load_experiment

__all__ = ["keep", "kept", "kept_with", "write_kept"]

_COLUMNS = (
    "labels", "contender", "status", "reason", "n_subscriptions", "n_events", "n_measured_events",
    "us_per_event", "us_per_event_spread", "build_seconds", "index_bytes",
    "bytes_per_subscription", "peak_bytes", "candidates_per_event", "matches_per_event",
)  # fmt: skip
_SAME_NAME = _COLUMNS[1:4] + _COLUMNS[7:]


def keep(results: Results) -> dict[str, Any]:
    """Take what is kept of a file of results."""
    rows = []
    for s in results.summaries():
        workload = json.loads(s.columns["workload"])
        own = {name: _short(s.columns[name]) for name in _SAME_NAME}
        own |= {
            "labels": s.labels,
            "n_subscriptions": workload["n_subscriptions"],
            "n_events": workload["n_events"],
            "n_measured_events": s.columns["n_events"],
        }
        rows.append([own[name] for name in _COLUMNS])
    return {
        "scale": results.scale,
        "run": results.run,
        "machine": results.machine,
        "columns": list(_COLUMNS),
        "rows": rows,
    }


def _short(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def kept(path: Path) -> dict[str, Results]:
    """Read the figures of a paper, by the names of its experiments."""
    return {name: _results(path, name, entry) for name, entry in _read(path).items()}


def kept_with(path: Path, fresh: Sequence[Results]) -> dict[str, dict[str, Any]]:
    """Read the file and put fresh results in the place of older ones."""
    entries = _read(path) if path.is_file() else {}
    return dict(sorted({**entries, **{r.experiment.name: keep(r) for r in fresh}}.items()))


def write_kept(path: Path, entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Write a file of figures, one row on a line, so that a change shows what changed."""
    parts = []
    for name, entry in entries.items():
        head = [f"{_json(k)}: {_json(v)}" for k, v in entry.items() if k != "rows"]
        rows = ",\n".join(_json(row) for row in entry["rows"])
        inside = ",\n".join([*head, f'"rows": [\n{rows}\n]'])
        parts.append(f"{_json(name)}: {{\n{inside}\n}}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        entries: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; give results to write it") from None
    except ValueError as error:
        raise FileFormatError(f"{path} is not JSON: {error}") from None
    return entries


def _results(path: Path, name: str, entry: Mapping[str, Any]) -> Results:
    missing = set(_COLUMNS) - set(entry["columns"])
    if missing:
        raise FileFormatError(f"{path}, {name}: there is no column {', '.join(sorted(missing))}")
    rows, numbers = [], dict[str, int]()
    for values in entry["rows"]:
        row = dict(zip(entry["columns"], values, strict=True))
        sizes = {key: row.pop(key) for key in ("n_subscriptions", "n_events")}
        row["n_events"] = row.pop("n_measured_events")
        labels = _json(row["labels"])
        row |= {
            "experiment": name,
            "scale": entry["scale"],
            "labels": labels,
            "point": numbers.setdefault(labels, len(numbers)),
            "workload": _json(sizes),
        }
        rows.append(row)
    table = pa.Table.from_pylist(rows, SCHEMA)
    return Results(path, load_experiment(name), entry["machine"], entry["run"], table)
