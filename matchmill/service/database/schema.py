"""The tables, and facts about a store as a whole.

The tables are made in steps from version to version. A new store takes all steps, an old one the
rest.

Words in braces differ between databases: {bytes} a string of bytes, {keyed} a table that is stored
in the order of its key where the database can do that.
"""

from __future__ import annotations

import uuid

from matchmill.errors import StoreError
from matchmill.service.database.connection import Connection

__all__ = ["MIGRATIONS", "VERSION", "check_secret", "migrate", "read_identity", "version_of"]

_FIRST = (
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
    "INSERT INTO counters VALUES ('change', 0), ('first_change', 1)",
    """CREATE TABLE tenants (
        number BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, last_event BIGINT NOT NULL,
        n_subscriptions BIGINT NOT NULL)""",
    """CREATE TABLE keys (
        key_id TEXT PRIMARY KEY, tenant BIGINT NOT NULL, name TEXT NOT NULL, scopes TEXT NOT NULL,
        hash {bytes} NOT NULL UNIQUE, created_at BIGINT NOT NULL)""",
    """CREATE TABLE subscriptions (
        number BIGINT PRIMARY KEY, tenant BIGINT NOT NULL, id TEXT NOT NULL,
        expression {bytes} NOT NULL, ticket {bytes} NOT NULL,
        created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL,
        UNIQUE (tenant, id))""",
    "CREATE INDEX subscriptions_by_end ON subscriptions (expires_at)",
    """CREATE TABLE changes (
        seq BIGINT PRIMARY KEY, tenant BIGINT NOT NULL, number BIGINT NOT NULL,
        is_end BIGINT NOT NULL)""",
    "CREATE INDEX changes_by_tenant ON changes (tenant, seq)",
    """CREATE TABLE events (
        tenant BIGINT NOT NULL, seq BIGINT NOT NULL, event_id TEXT NOT NULL, body TEXT NOT NULL,
        published_at BIGINT NOT NULL, n_matches BIGINT NOT NULL,
        PRIMARY KEY (tenant, seq)) {keyed}""",
    "CREATE UNIQUE INDEX events_by_id ON events (tenant, event_id)",
    """CREATE TABLE mailboxes (
        subscription BIGINT PRIMARY KEY, n_pending BIGINT NOT NULL, n_dropped BIGINT NOT NULL)""",
    """CREATE TABLE entries (
        subscription BIGINT NOT NULL, seq BIGINT NOT NULL, matched_at BIGINT NOT NULL,
        PRIMARY KEY (subscription, seq)) {keyed}""",
    """CREATE TABLE webhooks (
        subscription BIGINT PRIMARY KEY, url TEXT NOT NULL, nonce {bytes} NOT NULL,
        n_attempts BIGINT NOT NULL, next_at BIGINT NOT NULL)""",
    "CREATE INDEX webhooks_by_time ON webhooks (next_at)",
    """CREATE TABLE dead_letters (
        subscription BIGINT NOT NULL, seq BIGINT NOT NULL, matched_at BIGINT NOT NULL,
        n_attempts BIGINT NOT NULL, reason TEXT NOT NULL, failed_at BIGINT NOT NULL,
        PRIMARY KEY (subscription, seq)) {keyed}""",
)

# At most so many matches per minute, and a digest of the others.
_DIGESTS = (
    "ALTER TABLE subscriptions ADD COLUMN max_per_minute BIGINT",
    "ALTER TABLE mailboxes ADD COLUMN minute BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE mailboxes ADD COLUMN in_minute BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE entries ADD COLUMN digest_count BIGINT",
    "ALTER TABLE entries ADD COLUMN digest_last_at BIGINT",
    "ALTER TABLE dead_letters ADD COLUMN digest_count BIGINT",
    "ALTER TABLE dead_letters ADD COLUMN digest_last_at BIGINT",
)

# Tickets are compared with those of an id, and not looked up themselves.
_IDS = ("CREATE INDEX subscriptions_by_id ON subscriptions (id)",)

# Webhooks that were there before are trusted; new ones must answer a challenge.
_CONFIRMED = ("ALTER TABLE webhooks ADD COLUMN confirmed BIGINT NOT NULL DEFAULT 1",)

# Those of a tenant that have expired are counted, and the first of them deleted.
_ENDS = ("CREATE INDEX subscriptions_by_tenant_end ON subscriptions (tenant, expires_at)",)

# How many characters the events of a tenant have.
_SIZES = (
    "ALTER TABLE tenants ADD COLUMN events_size BIGINT NOT NULL DEFAULT 0",
    """UPDATE tenants SET events_size =
        (SELECT coalesce(sum(length(body)), 0) FROM events WHERE events.tenant = tenants.number)""",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _DIGESTS, _IDS, _CONFIRMED, _ENDS, _SIZES)
VERSION = len(MIGRATIONS)


def version_of(connection: Connection) -> int:
    """Return the version of a store's tables; `facts` must be there."""
    rows = connection.rows("SELECT value FROM facts WHERE name = 'schema_version'")
    return int(rows[0][0]) if rows else 0


def migrate(connection: Connection, up_to: int = VERSION) -> None:
    """Bring the tables to a version; to be called inside a transaction."""
    connection.run("CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    version = version_of(connection)
    if version > up_to:
        raise StoreError(
            f"the store has schema version {version}, and this matchmill knows versions up to"
            f" {up_to}: it was written by a newer one; use that one, or a backup from before"
        )
    if version < up_to:
        for statement in connection.to_take_long:
            connection.run(statement)
    for step in MIGRATIONS[version:up_to]:
        for statement in step:
            connection.run(statement.format(**connection.words))
    connection.run(
        "INSERT INTO facts VALUES ('schema_version', ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        str(up_to),
    )


# -- facts ----------------------------------------------------------------------------------------


def read_identity(connection: Connection) -> str:
    """Return a name that no other store has; it is given at first use."""
    return _fact(connection, "identity", uuid.uuid4().hex)


def check_secret(connection: Connection, fingerprint: str) -> None:
    """Note the fingerprint of the secret key; StoreError if it was another one before."""
    if _fact(connection, "secret", fingerprint) != fingerprint:
        raise StoreError(
            "the store's tickets and keys were made with another secret key: copy the file `secret`"
            " of the folder that the store was first served from, or name it with --secret-file"
        )


def _fact(connection: Connection, name: str, value: str) -> str:
    """Return what is known under a name; if nothing is, note the value."""
    connection.run("INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO NOTHING", name, value)
    known: str = connection.rows("SELECT value FROM facts WHERE name = ?", name)[0][0]
    return known
