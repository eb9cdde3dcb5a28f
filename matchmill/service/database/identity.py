"""Facts about a store as a whole: which one it is, and by which key its secrets are hashed."""

from __future__ import annotations

import uuid

from matchmill.errors import StoreError
from matchmill.service.database.connection import Link

__all__ = ["check_secret", "read_identity"]


def read_identity(link: Link) -> str:
    """A name that no other store has; given at first use."""
    return _fact(link, "identity", uuid.uuid4().hex)


def check_secret(link: Link, fingerprint: str) -> None:
    """Note the fingerprint of the secret key; StoreError if it was another one before."""
    if _fact(link, "secret", fingerprint) != fingerprint:
        raise StoreError(
            "the store's tickets and keys were made with another secret key: copy the file `secret`"
            " of the folder that the store was first served from, or name it with --secret-file"
        )


def _fact(link: Link, name: str, value: str) -> str:
    """What is known under a name; if nothing is, the value from now on."""
    link.run("INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO NOTHING", name, value)
    known: str = link.rows("SELECT value FROM facts WHERE name = ?", name)[0][0]
    return known
