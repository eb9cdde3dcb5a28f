"""What is counted: for Prometheus as text, for /v1/stats by tenant and over the last minutes."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

__all__ = ["Metrics"]

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_WINDOWS = (60, 300)
_LATENCIES = 2_000

_HELP = {
    "matchmill_requests_total": "Requests answered, by route and status.",
    "matchmill_events_total": "Events published.",
    "matchmill_matches_total": "Matches put into mailboxes.",
    "matchmill_deliveries_total": "Matches handed out, by way.",
    "matchmill_webhook_failures_total": "Calls of webhooks that failed.",
    "matchmill_expired_total": "Subscriptions removed because they had expired.",
    "matchmill_background_errors_total": "Work beside the requests that failed.",
}


class _Recent:
    """Of one tenant: events and matches by second, and the latest latencies."""

    def __init__(self) -> None:
        self.seconds: deque[list[int]] = deque(maxlen=max(_WINDOWS))
        self.latencies: deque[float] = deque(maxlen=_LATENCIES)

    def add(self, second: int, n_events: int, n_matches: int) -> None:
        if not self.seconds or self.seconds[-1][0] != second:
            self.seconds.append([second, 0, 0])
        self.seconds[-1][1] += n_events
        self.seconds[-1][2] += n_matches


class Metrics:
    """Any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counters: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        self._buckets = [0] * (len(_BOUNDS) + 1)
        self._seconds = 0.0
        self._recent: dict[int, _Recent] = {}

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        with self._lock:
            self._counters[name, tuple(sorted(labels.items()))] += amount

    def published(self, tenant: int, n_events: int, n_matches: int, seconds: float) -> None:
        """A request to publish was answered."""
        self.count("matchmill_events_total", n_events)
        self.count("matchmill_matches_total", n_matches)
        with self._lock:
            place = next((i for i, bound in enumerate(_BOUNDS) if seconds <= bound), len(_BOUNDS))
            self._buckets[place] += 1
            self._seconds += seconds
            recent = self._recent.setdefault(tenant, _Recent())
            recent.add(int(time.monotonic()), n_events, n_matches)
            recent.latencies.append(seconds)

    def rates(self, tenant: int) -> dict[str, Any]:
        """Events and matches a second, and latencies, of one tenant."""
        with self._lock:
            recent = self._recent.get(tenant) or _Recent()
            seconds, latencies = list(recent.seconds), sorted(recent.latencies)
        now = int(time.monotonic())
        rates: dict[str, Any] = {}
        for window in _WINDOWS:
            inside = [row for row in seconds if row[0] > now - window]
            rates[f"last_{window}_seconds"] = {
                "events_per_second": round(sum(row[1] for row in inside) / window, 3),
                "matches_per_second": round(sum(row[2] for row in inside) / window, 3),
            }
        rates["publish_milliseconds"] = {
            f"p{part}": round(1000 * latencies[int(part / 100 * (len(latencies) - 1))], 3)
            for part in (50, 95, 99)
            if latencies
        }
        return rates

    def text(self, gauges: dict[str, float]) -> str:
        """The exposition format of Prometheus."""
        return "\n".join((*self._lines(gauges), ""))

    def _lines(self, gauges: dict[str, float]) -> Iterator[str]:
        with self._lock:
            counters = sorted(self._counters.items())
            buckets, total = list(self._buckets), self._seconds
        name = ""
        for (counter, labels), value in counters:
            if counter != name:
                name = counter
                yield f"# HELP {name} {_HELP[name]}"
                yield f"# TYPE {name} counter"
            yield f"{name}{_labels(labels)} {value}"
        name = "matchmill_publish_seconds"
        yield f"# HELP {name} From a request to publish to its answer."
        yield f"# TYPE {name} histogram"
        so_far = 0
        for bound, n in zip((*_BOUNDS, "+Inf"), buckets, strict=True):
            so_far += n
            yield f'{name}_bucket{{le="{bound}"}} {so_far}'
        yield f"{name}_sum {total}"
        yield f"{name}_count {so_far}"
        for gauge, number in gauges.items():
            yield f"# TYPE {gauge} gauge"
            yield f"{gauge} {number}"


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
