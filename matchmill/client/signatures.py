"""Whether a call of a webhook comes from the service, and is not an old one sent again.

Matchmill-Signature: t=1700000000,v1=HMAC-SHA256(secret, t + "." + body) in hexadecimal
"""

from __future__ import annotations

import hashlib
import hmac
import time

__all__ = ["SIGNATURE_HEADER", "verify_signature"]

SIGNATURE_HEADER = "Matchmill-Signature"


def verify_signature(
    secret: str,
    header: str | None,
    body: bytes,
    tolerance: float = 300,
    *,
    now: float | None = None,
) -> bool:
    """True if `header` is the signature of `body`, made at most `tolerance` seconds from now.

    `body` is what arrived, byte for byte: JSON that was read and written again is another body.
    """
    moments: list[str] = []
    signatures: list[str] = []
    for part in (header or "").split(","):
        name, _, value = part.strip().partition("=")
        if name == "t":
            moments.append(value)
        elif name == "v1":
            signatures.append(value)
    if len(moments) != 1 or not (moments[0].isascii() and moments[0].isdigit()):
        return False
    if (
        len(moments[0]) > 15
        or abs((time.time() if now is None else now) - int(moments[0])) > tolerance
    ):
        return False
    signed = hmac.new(secret.encode(), moments[0].encode() + b"." + body, hashlib.sha256)
    wanted = signed.hexdigest().encode()
    return any(hmac.compare_digest(wanted, one.encode()) for one in signatures)
