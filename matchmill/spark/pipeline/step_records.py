"""What has been done already: one file, replaced in one step when a step of the pipeline is done.

    OUTPUT/pipeline.json              a record for each step
    OUTPUT/subscriptions/0003/…       what the record names; others are rubbish, and removed

A step writes into a new folder. Whatever fails or is killed, the file names what was there before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from matchmill.errors import FolderError
from matchmill.spark.published.locations import Place

__all__ = ["State", "StepRecord", "digest_of"]

FILE = "pipeline.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step that is done: what it was made from, what it made, and what there is to tell."""

    step: str
    made_from: str  # a digest
    made: str  # a folder below the output, or the version of an index
    seconds: float
    counts: dict[str, int] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


class State:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._records = _read(place)

    def __getitem__(self, step: str) -> StepRecord | None:
        return self._records.get(step)

    def records(self) -> list[StepRecord]:
        return list(self._records.values())

    def new_folder(self, step: str) -> str:
        """The name of a folder that is not there yet."""
        numbers = [int(name) for name in self._place.folders(step) if name.isdecimal()]
        return f"{step}/{max(numbers, default=0) + 1:04d}"

    def publish(self, record: StepRecord) -> None:
        self._write(self._records | {record.step: record})
        self.remove_rubbish(record.step)

    def remove_rubbish(self, step: str) -> None:
        """Remove the folders of a step that no record names."""
        record = self._records.get(step)
        for name in self._place.folders(step):
            if name.isdecimal() and (record is None or record.made != f"{step}/{name}"):
                self._place.remove(f"{step}/{name}")

    def forget(self, step: str) -> None:
        """Leave a step out of what is shown: it was not needed this time."""
        if step in self._records:
            self._write({name: one for name, one in self._records.items() if name != step})

    def _write(self, records: dict[str, StepRecord]) -> None:
        body = {"format": _FORMAT, "steps": [asdict(one) for one in records.values()]}
        self._place.publish(FILE, json.dumps(body, indent=1, ensure_ascii=False).encode())
        self._records = records


def _read(place: Place) -> dict[str, StepRecord]:
    content = place.read(FILE)
    if content is None:
        return {}
    try:
        body = json.loads(content)
        if body["format"] != _FORMAT:
            raise ValueError(f"its format is {body['format']!r}, not {_FORMAT}")
        return {one["step"]: StepRecord(**one) for one in body["steps"]}
    except (ValueError, KeyError, TypeError) as error:
        raise FolderError(
            f"{place.root}/{FILE} is damaged ({error}); remove it, and all steps run anew"
        ) from error


def digest_of(parts: Mapping[str, Any]) -> str:
    """A short text that is another one when any of the parts is."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
