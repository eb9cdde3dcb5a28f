"""All settings of the service: one table of name, default and help, and an object that has them.

Each is an option of `matchmill serve`: `max_streams` is `--max-streams`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from matchmill.errors import InputError

__all__ = ["SERVICE_SETTINGS", "ServiceSetting", "ServiceSettings"]


class ServiceSetting(NamedTuple):
    name: str
    default: int | str | bool
    help: str


_DAY = 24 * 60 * 60

SERVICE_SETTINGS: tuple[ServiceSetting, ...] = (
    ServiceSetting("default_ttl_seconds", _DAY, "how long a subscription lasts if nobody says"),
    ServiceSetting("max_ttl_seconds", 30 * _DAY, "how long it lasts at most"),
    ServiceSetting("anonymous_tenant", "", "who has no key may publish to this tenant; empty: no"),
    ServiceSetting("max_body_bytes", 4 << 20, "bytes in one request"),
    ServiceSetting("max_batch_items", 10_000, "events or subscriptions in one request"),
    ServiceSetting("max_expression_length", 10_000, "characters in one expression"),
    ServiceSetting("max_subscriptions", 1_000_000, "subscriptions of one tenant"),
    ServiceSetting("requests_per_second", 1_000, "of one key, or of one ticket, in the long run"),
    ServiceSetting("request_burst", 2_000, "requests of one key or ticket at once"),
    ServiceSetting("max_queued_events", 100_000, "events that wait to be matched or stored"),
    ServiceSetting("max_streams", 5_000, "streams and long polls at the same time"),
    ServiceSetting("max_live", 1_000, "matches that wait for a reader of /v1/live; more are lost"),
    ServiceSetting("max_mailbox", 10_000, "entries in one mailbox; beyond, the oldest are dropped"),
    ServiceSetting("keep_events", 1_000_000, "events of one tenant that are kept"),
    ServiceSetting("keep_events_seconds", 7 * _DAY, "how long an event is kept"),
    ServiceSetting("keep_changes", 1_000_000, "lines of the change log that are kept"),
    ServiceSetting("checkpoint_changes", 50_000, "changes after which a tenant's engine is saved"),
    ServiceSetting("cleanup_seconds", 10, "how often expired and old things are removed"),
    ServiceSetting("heartbeat_seconds", 15, "how often a silent stream says that it is there"),
    ServiceSetting("threads", 1, "threads that match one batch of events"),
    ServiceSetting("webhook_threads", 8, "webhooks that are called at the same time"),
    ServiceSetting("webhook_timeout_seconds", 10, "for one call of a webhook, all in all"),
    ServiceSetting("webhook_attempts", 8, "calls before matches become dead letters"),
    ServiceSetting("webhook_backoff_seconds", 1, "before the second call; doubled each time"),
    ServiceSetting("allow_private_webhooks", False, "call webhooks at private addresses, too"),
    ServiceSetting("shutdown_seconds", 10, "for requests under way, when the service is to stop"),
)


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Limits, times and sizes of a service."""

    default_ttl_seconds: int = _DAY
    max_ttl_seconds: int = 30 * _DAY
    anonymous_tenant: str = ""
    max_body_bytes: int = 4 << 20
    max_batch_items: int = 10_000
    max_expression_length: int = 10_000
    max_subscriptions: int = 1_000_000
    requests_per_second: int = 1_000
    request_burst: int = 2_000
    max_queued_events: int = 100_000
    max_streams: int = 5_000
    max_live: int = 1_000
    max_mailbox: int = 10_000
    keep_events: int = 1_000_000
    keep_events_seconds: int = 7 * _DAY
    keep_changes: int = 1_000_000
    checkpoint_changes: int = 50_000
    cleanup_seconds: int = 10
    heartbeat_seconds: int = 15
    threads: int = 1
    webhook_threads: int = 8
    webhook_timeout_seconds: int = 10
    webhook_attempts: int = 8
    webhook_backoff_seconds: int = 1
    allow_private_webhooks: bool = False
    shutdown_seconds: int = 10

    def __post_init__(self) -> None:
        for setting in SERVICE_SETTINGS:
            value = getattr(self, setting.name)
            if type(value) is not type(setting.default):
                kind = type(setting.default).__name__
                raise InputError(f"setting {setting.name} must be of type {kind}, not {value!r}")
            if type(value) is int and value < 1:
                raise InputError(f"setting {setting.name} must be at least 1, not {value}")
        if self.default_ttl_seconds > self.max_ttl_seconds:
            raise InputError(
                "setting default_ttl_seconds must be at most max_ttl_seconds,"
                f" {self.max_ttl_seconds}"
            )
