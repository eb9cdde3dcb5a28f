"""The settings of a service: those of its engines, and its own, made by the same mechanism."""

from __future__ import annotations

from dataclasses import dataclass

from matchmill.errors import InputError
from matchmill.settings import UNLIMITED, Settings, list_settings, setting, settings_table

__all__ = ["ServiceSettings"]

_DAY = 24 * 60 * 60
_EXPRESSIONS, _EVENTS, _FOLDER = "expressions", "events", "folder"
_WORK, _QUOTAS = "work", "quotas"
_LIMITS, _KEEPING, _WEBHOOKS, _OTHER = "limits", "keeping", "webhooks", "other"


@settings_table
@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings(Settings):
    """Limits, times and sizes of a service, and all settings of its engines.

    Parameters
    ----------
    **values
        Settings by name; all others keep their defaults. An unknown name or a value that is not
        accepted is an `InputError`. docs/guides/SERVICE.md lists them.

    Examples
    --------
    >>> from matchmill.service import ServiceSettings
    >>> settings = ServiceSettings(max_mailbox=100, max_clauses=16)
    >>> settings.max_mailbox
    100
    >>> settings
    ServiceSettings(max_clauses=16, max_mailbox=100)
    """

    # Settings of the engine that have another default here.
    max_expression_length: int = setting(
        10_000, "characters in the text of one expression", group=_EXPRESSIONS
    )
    max_pattern_work: int = setting(
        1 << 26,
        "bytes of text in an attribute, times instructions of all like and rlike patterns of the"
        " tenant on it; the sum over the attributes of one event",
        group=_EVENTS,
    )
    sync: str = setting(
        "never",
        "when an engine's own files are written to the disk; what a crash loses is in the store",
        group=_FOLDER,
        choices=("always", "seconds", "never"),
    )

    threads: int = setting(1, "threads that match one batch of events", group=_WORK)
    max_subscriptions: int = setting(1_000_000, "subscriptions of one tenant", group=_QUOTAS)
    max_body_bytes: int = setting(4 << 20, "bytes in one request", group=_LIMITS)
    max_batch_items: int = setting(10_000, "events or subscriptions in one list", group=_LIMITS)
    max_queued_events: int = setting(
        100_000, "events that wait to be matched or stored", group=_LIMITS
    )
    max_tenant_events: int = setting(
        50_000, "events of one tenant that wait to be matched or stored", group=_LIMITS
    )
    max_tenant_bytes: int = setting(
        16 << 20, "bytes that the requests of one tenant hold in memory", group=_LIMITS
    )
    max_tenant_queries: int = setting(
        32, "queries of one tenant, such as backtests, that wait for their turn", group=_LIMITS
    )
    query_seconds: int = setting(
        10, "seconds after which a backtest stops reading older events", group=_LIMITS
    )
    max_matches: int = setting(10_000, "subscriptions that one event may satisfy", group=_LIMITS)
    matches_per_second: int = setting(
        20_000, "matches per second of one tenant, on average; more wait", group=_LIMITS
    )
    matches_burst: int = setting(20_000, "matches of one tenant at once", group=_LIMITS)
    max_page_size: int = setting(
        4 << 20,
        "characters of events in one page of a mailbox; one event always fits",
        group=_LIMITS,
    )
    max_streams: int = setting(5_000, "streams and long polls at the same time", group=_LIMITS)
    max_tenant_streams: int = setting(
        2_500, "streams and long polls of one tenant at the same time", group=_LIMITS
    )
    max_subscription_streams: int = setting(
        10, "streams and long polls of one subscription at the same time", group=_LIMITS
    )
    max_live: int = setting(
        1_000, "matches that wait for a reader of /v1/live; more are dropped", group=_LIMITS
    )
    max_mailbox: int = setting(
        10_000, "entries in one mailbox; the oldest are dropped if there are more", group=_LIMITS
    )
    requests_per_second: int = setting(
        1_000, "requests per second of one key, on average", group=_LIMITS
    )
    request_seconds: int = setting(
        30, "seconds for a request to arrive, the header and the body each", group=_LIMITS
    )
    max_silent_connections: int = setting(
        10_000,
        "connections that have not sent a header; at most half of the descriptors",
        group=_LIMITS,
    )
    request_burst: int = setting(2_000, "requests of one key at once", group=_LIMITS)
    ticket_requests_per_second: int = setting(
        100, "requests per second of one ticket, on average", group=_LIMITS
    )
    ticket_burst: int = setting(500, "requests of one ticket at once", group=_LIMITS)
    default_ttl_seconds: int = setting(
        _DAY, "seconds until a subscription expires, unless it says otherwise", group=_KEEPING
    )
    max_ttl_seconds: int = setting(
        30 * _DAY, "the most that a subscription may ask for", group=_KEEPING
    )
    keep_events: int = setting(1_000_000, "events of one tenant that are kept", group=_KEEPING)
    keep_events_size: int = setting(
        4 << 30, "characters of the events of one tenant that are kept", group=_KEEPING
    )
    keep_events_seconds: int = setting(7 * _DAY, "seconds that an event is kept", group=_KEEPING)
    keep_expired_seconds: int = setting(
        _DAY,
        "seconds of service before what has expired is deleted; until then it can be renewed",
        group=_KEEPING,
    )
    cleanup_limit: int = setting(
        20_000,
        "subscriptions, or events, that one cleanup deletes because of their age",
        group=_KEEPING,
    )
    store_timeout_seconds: int = setting(
        10, "seconds that one statement in the store may take, or wait for a lock", group=_OTHER
    )
    min_free_bytes: int = setting(
        64 << 20,
        "bytes free on the disk of the folder; with less the service is not ready",
        group=_OTHER,
    )
    keep_changes: int = setting(1_000_000, "lines of the change log that are kept", group=_KEEPING)
    checkpoint_changes: int = setting(
        50_000, "changes after which a tenant's engine is saved", group=_KEEPING
    )
    cleanup_seconds: int = setting(
        10, "seconds between removals of what is expired or old", group=_KEEPING
    )
    webhook_threads: int = setting(32, "webhooks that are called at the same time", group=_WEBHOOKS)
    webhook_tenant_threads: int = setting(
        8, "webhooks of one tenant that are called at the same time", group=_WEBHOOKS
    )
    webhook_host_threads: int = setting(
        4, "webhooks of one tenant at one host that are called at the same time", group=_WEBHOOKS
    )
    webhook_challenge: bool = setting(
        True, "call a webhook only after it has answered a challenge", group=_WEBHOOKS
    )
    webhook_timeout_seconds: int = setting(
        10, "seconds for one call of a webhook, from connecting to the response", group=_WEBHOOKS
    )
    webhook_attempts: int = setting(8, "calls before matches become dead letters", group=_WEBHOOKS)
    webhook_backoff_seconds: int = setting(
        1, "seconds before the second call; doubled each time", group=_WEBHOOKS
    )
    allow_private_webhooks: bool = setting(
        False, "call webhooks at private addresses, too", group=_WEBHOOKS
    )
    anonymous_tenant: str = setting(
        "", "the tenant that anyone may publish to without a key; empty: none", group=_OTHER
    )
    types: str = setting(
        "",
        "what attributes are read as: timestamp, date, number, text or boolean, as in"
        " ts=timestamp,code=text",
        group=_EVENTS,
    )
    heartbeat_seconds: int = setting(
        15, "seconds between signs of life on a silent stream", group=_OTHER
    )
    shutdown_seconds: int = setting(
        10, "seconds for unfinished requests when the service stops", group=_OTHER
    )

    def __post_init__(self) -> None:
        """Check settings that depend on each other."""
        if self.default_ttl_seconds > self.max_ttl_seconds:
            raise InputError(
                "setting default_ttl_seconds must be at most max_ttl_seconds,"
                f" {self.max_ttl_seconds}"
            )
        self.attribute_types()

    def __repr__(self) -> str:
        """Show the settings that differ from their defaults."""
        changed = (
            f"{one.name}={getattr(self, one.name)!r}"
            for one in list_settings(ServiceSettings)
            if getattr(self, one.name) != one.default
        )
        return f"ServiceSettings({', '.join(changed)})"

    def attribute_types(self) -> dict[str, str]:
        """Return the declared types of attributes.

        Examples
        --------
        >>> from matchmill.service import ServiceSettings
        >>> ServiceSettings(types="ts=timestamp, code=text").attribute_types()
        {'ts': 'timestamp', 'code': 'text'}
        """
        if not self.types:
            return {}
        from matchmill.language.attribute_types import checked_types  # which --help need not load

        pairs = [part.rpartition("=") for part in self.types.split(",") if part.strip()]
        for name, _, kind in pairs:
            if not name:
                raise InputError(f"setting types is written name=type,name=type, not {kind!r}")
        return checked_types({name.strip(): kind.strip() for name, _, kind in pairs})

    def engine_settings(self) -> Settings:
        """Return the settings of the tenants' engines.

        The limits of expressions and of the form of events are not among them: both are checked
        when they arrive, and an expression that was stored under other limits stays. What an
        event costs only its engine knows.

        Examples
        --------
        >>> from matchmill.service import ServiceSettings
        >>> ServiceSettings(max_clauses=16).engine_settings().max_clauses
        16
        """
        values = {}
        for one in list_settings(Settings):
            unlimited = getattr(UNLIMITED, one.name)
            is_checked_before = unlimited != one.default and one.name != "max_pattern_work"
            values[one.name] = unlimited if is_checked_before else getattr(self, one.name)
        return Settings(**values)
