"""Values that JSON cannot write, in named cases: {"$date": "2013-01-01"}, {"$float": "nan"}, …"""

from __future__ import annotations

import datetime as dt
from typing import Any


def from_json(value: Any) -> Any:
    """Replace the marked objects inside a JSON value."""
    if isinstance(value, list):
        return [from_json(v) for v in value]
    if isinstance(value, dict):
        if len(value) == 1:
            ((key, inner),) = value.items()
            if key == "$date":
                return dt.date.fromisoformat(inner)
            if key == "$timestamp":
                return dt.datetime.fromisoformat(inner)
            if key == "$float":
                return float(inner)
        return {key: from_json(inner) for key, inner in value.items()}
    return value
