"""What has been done already: one file, replaced at once when a step of the pipeline is done.

    OUTPUT/pipeline.json              a record for each step
    OUTPUT/subscriptions/0003/…       what the record names; other folders are removed

A step writes into a new folder. Whatever fails or is killed, the file names what was there before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from matchmill.errors import FolderError
from matchmill.spark.published.locations import Location, read_published

__all__ = ["State", "StepRecord", "counts_text", "digest_of"]

FILE = "pipeline.json"
_FORMAT = 2


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step that is done: what it was made from, what it made, and its figures."""

    step: str
    made_from: str  # a digest
    made: str  # a folder below the output, or the version of an engine
    seconds: float
    counts: dict[str, int] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


class State:
    """The records of all steps that are done."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._records = _read(location)

    def __getitem__(self, step: str) -> StepRecord | None:
        """Return the record of a step."""
        return self._records.get(step)

    def records(self) -> list[StepRecord]:
        """List the records."""
        return list(self._records.values())

    def new_folder(self, step: str) -> str:
        """Name a folder that is not there yet."""
        numbers = [int(name) for name in self._location.names(step) if name.isdecimal()]
        return f"{step}/{max(numbers, default=0) + 1:04d}"

    def publish(self, record: StepRecord) -> None:
        """Add a record in one step, and remove what it replaces."""
        self._write(self._records | {record.step: record})
        self.remove_leftovers(record.step)

    def remove_leftovers(self, step: str) -> None:
        """Remove the folders of a step that no record names."""
        record = self._records.get(step)
        for name in self._location.names(step):
            if name.isdecimal() and (record is None or record.made != f"{step}/{name}"):
                self._location.remove(f"{step}/{name}")

    def forget(self, step: str) -> None:
        """Remove the record of a step that was not needed this time."""
        if step in self._records:
            self._write({name: one for name, one in self._records.items() if name != step})

    def _write(self, records: dict[str, StepRecord]) -> None:
        body = {"format": _FORMAT, "steps": [asdict(one) for one in records.values()]}
        self._location.publish(FILE, json.dumps(body, indent=1, ensure_ascii=False).encode())
        self._records = records


def _read(location: Location) -> dict[str, StepRecord]:
    return read_published(location, FILE, lambda content: _parsed(location, content)) or {}


def _parsed(location: Location, content: bytes) -> dict[str, StepRecord]:
    try:
        body = json.loads(content)
        if body["format"] != _FORMAT:
            raise ValueError(f"its format is {body['format']!r}, not {_FORMAT}")
        return {one["step"]: StepRecord(**one) for one in body["steps"]}
    except (ValueError, KeyError, TypeError) as error:
        raise FolderError(
            f"{location.root}/{FILE} is damaged ({error}); remove it, and all steps run again"
        ) from error


def digest_of(parts: Mapping[str, Any]) -> str:
    """Return a short text that changes when any of the parts does."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def counts_text(counts: Mapping[str, int]) -> str:
    """Write counts as text: `200,005 in = 200,000 accepted + 5 rejected`."""
    if "n_in" in counts:
        return (
            f"{counts['n_in']:,} in = {counts['n_accepted']:,} accepted"
            f" + {counts['n_rejected']:,} rejected"
        )
    return ", ".join(
        f"{n:,} {name.removeprefix('n_').replace('_', ' ')}" for name, n in counts.items()
    )
