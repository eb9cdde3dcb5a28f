"""New API keys: `mk_`, an id that may be shown, and a secret."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable

from matchmill.service.database.interface import Key, Writing
from matchmill.service.secrets import SecretKey

__all__ = ["make_key"]


def make_key(
    transaction: Writing,
    secret_key: SecretKey,
    tenant: tuple[int, str],
    name: str,
    scopes: Iterable[str],
) -> tuple[Key, str]:
    """A new key of a tenant, and its secret, of which only the hash is stored."""
    now = time.time_ns() // 1000
    key = Key(secrets.token_hex(6), *tenant, name, frozenset(scopes), now)
    secret = f"mk_{key.key_id}_{secrets.token_urlsafe(32)}"
    transaction.add_key(key, secret_key.hashed(secret))
    return key, secret
