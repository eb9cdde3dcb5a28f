"""Secrets of a service: its own key, by which all others are hashed, and new API keys.

    FOLDER/secret    32 random bytes, readable by the owner alone
    API key          `mk_`, an id that may be shown, `_`, and a random text
    ticket           a random text, in the header `Matchmill-Ticket`

A copy of the database without the file `secret` is of no use to anyone who wants to read a
mailbox. The secrets of webhooks are not stored at all: each is made from the key and a random
nonce.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from matchmill.errors import StoreError
from matchmill.service.database.rows import Key
from matchmill.service.database.writes import Writes

__all__ = ["SECRET_NAME", "TICKET_HEADER", "SecretKey", "make_key"]

SECRET_NAME = "secret"
TICKET_HEADER = "Matchmill-Ticket"
_N_BYTES = 32


def _write_new(path: Path) -> None:
    """Write a key to another name and link it: another process never sees half of one."""
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file, "wb") as written:
            written.write(secrets.token_bytes(_N_BYTES))
            written.flush()
            os.fsync(written.fileno())
        with suppress(FileExistsError):  # another process was first
            os.link(new, path)
    finally:
        new.unlink()


class SecretKey:
    """The key of a service."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def read(cls, path: Path) -> SecretKey:
        """Return the key in a file, which is made if there is none."""
        if not path.exists():
            _write_new(path)
        if path.stat().st_mode & 0o077:
            raise StoreError(f"{path} can be read by others: chmod 600 {path}")
        key = path.read_bytes()
        if len(key) != _N_BYTES:
            raise StoreError(
                f"{path} has {len(key)} bytes and not {_N_BYTES}: it is not the secret key of a"
                " service; take it from a backup"
            )
        return cls(key)

    @property
    def fingerprint(self) -> str:
        """Return a text that differs between keys and does not reveal them."""
        return self._digest(b"fingerprint", b"").hex()

    def hashed(self, secret: str) -> bytes:
        """Return what is stored of a ticket or an API key."""
        return self._digest(b"secret", secret.encode("utf-8", "surrogatepass"))

    def webhook_secret(self, nonce: bytes) -> str:
        """Return what the messages to a webhook are signed with."""
        return "whsec_" + self._digest(b"webhook", nonce).hex()

    def _digest(self, purpose: bytes, value: bytes) -> bytes:
        return hmac.new(self._key, purpose + b"\0" + value, hashlib.sha256).digest()


def make_key(
    transaction: Writes,
    secret_key: SecretKey,
    tenant: tuple[int, str],
    name: str,
    scopes: Iterable[str],
) -> tuple[Key, str]:
    """Make an API key of a tenant; return it and its secret, of which only the hash is stored."""
    now = time.time_ns() // 1000
    key = Key(secrets.token_hex(6), *tenant, name, frozenset(scopes), now)
    secret = f"mk_{key.key_id}_{secrets.token_urlsafe(32)}"
    transaction.add_key(key, secret_key.hashed(secret))
    return key, secret
