"""What is counted: for Prometheus, and for /v1/stats by tenant and over the last minutes."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Metrics"]

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_WINDOWS = (60, 300)
_LATENCIES = 2_000


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
    """Any thread may count. Each service has a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = self._counter(
            "requests", "Requests, by route and status.", "route", "status"
        )
        self._events = self._counter("events", "Events published.")
        self._matches = self._counter("matches", "Matches put into mailboxes.")
        self._deliveries = self._counter("deliveries", "Matches delivered, by way.", "way")
        self._failures = self._counter("webhook_failures", "Calls of webhooks that failed.")
        self._expired = self._counter("expired", "Subscriptions removed after they expired.")
        self._errors = self._counter("background_errors", "Background work that failed.", "kind")
        self._publish_seconds = Histogram(
            "matchmill_publish_seconds",
            "From a request to publish to its response.",
            buckets=_BOUNDS,
            registry=self._registry,
        )
        self._lock = threading.Lock()
        self._recent: dict[int, _Recent] = {}

    def _counter(self, name: str, help: str, *labels: str) -> Counter:
        return Counter(f"matchmill_{name}", help, labels, registry=self._registry)

    def gauge(self, name: str, help: str, value: Callable[[], float]) -> None:
        """Have a present value shown, too."""
        gauge = Gauge(f"matchmill_{name}", help, registry=self._registry)
        gauge.set_function(value)

    def request(self, route: str, status: int) -> None:
        """Count a request."""
        self._requests.labels(route, str(status)).inc()

    def delivered(self, n_matches: int, way: str) -> None:
        """Count matches that were sent: by poll, stream or webhook."""
        if n_matches:
            self._deliveries.labels(way).inc(n_matches)

    def webhook_failed(self) -> None:
        """Count a call of a webhook that failed."""
        self._failures.inc()

    def expired(self, n_subscriptions: int) -> None:
        """Count subscriptions that were removed after they expired."""
        self._expired.inc(n_subscriptions)

    def background_error(self, kind: str) -> None:
        """Count an error of a background thread."""
        self._errors.labels(kind).inc()

    def published(self, tenant: int, n_events: int, n_matches: int, seconds: float) -> None:
        """Count the events of a request to publish, when it is answered."""
        self._events.inc(n_events)
        self._matches.inc(n_matches)
        self._publish_seconds.observe(seconds)
        with self._lock:
            recent = self._recent.setdefault(tenant, _Recent())
            recent.add(int(time.monotonic()), n_events, n_matches)
            recent.latencies.append(seconds)

    def rates(self, tenant: int) -> dict[str, Any]:
        """Return events and matches per second, and latencies, of one tenant."""
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

    def text(self) -> bytes:
        """Return all figures in the text format of Prometheus."""
        return generate_latest(self._registry)
