"""The secret key of a service: tickets and API keys are stored only as hashes by it.

    FOLDER/secret    32 random bytes, readable by the owner alone

A copy of the database without this file is of no use to anyone who wants to read a mailbox. The
secrets of webhooks are not stored at all: each is made from the key and a random nonce.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from matchmill.errors import StoreError

__all__ = ["SECRET_NAME", "SecretKey"]

SECRET_NAME = "secret"
_N_BYTES = 32


def _write_new(path: Path) -> None:
    """Write a key beside its place and link it there: another process never sees half of one."""
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
    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def read(cls, path: Path) -> SecretKey:
        """The key in a file, which is made if there is none."""
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
        """Tells one key from another, and nothing about it."""
        return self._digest(b"fingerprint", b"").hex()

    def hashed(self, secret: str) -> bytes:
        """What is stored of a ticket or an API key."""
        return self._digest(b"secret", secret.encode("utf-8", "surrogatepass"))

    def webhook_secret(self, nonce: bytes) -> str:
        """What a webhook's messages are signed with."""
        return "whsec_" + self._digest(b"webhook", nonce).hex()

    def _digest(self, purpose: bytes, value: bytes) -> bytes:
        return hmac.new(self._key, purpose + b"\0" + value, hashlib.sha256).digest()
