"""Sign the calls of a webhook, and check that one comes from the service and is not an old one.

Matchmill-Signature: t=1700000000,v1=HMAC-SHA256(secret, t + "." + body) in hexadecimal

The first call is a challenge: `{"subscription_id": …, "challenge": text}`. Its receiver answers
with HMAC-SHA256(secret, "challenge." + text) in hexadecimal.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time

__all__ = ["SIGNATURE_HEADER", "answer_challenge", "sign", "verify"]

SIGNATURE_HEADER = "Matchmill-Signature"


def sign(secret: str, body: bytes, *, now: float | None = None) -> str:
    """Make the value of the header `Matchmill-Signature` for a body.

    Parameters
    ----------
    secret
        The secret of the webhook.
    body
        What is sent, byte for byte.
    now
        The time of signing in seconds since 1970; by default the present.

    Returns
    -------
    str
        The value of the header.

    Examples
    --------
    >>> sign("secret", b"{}", now=1_700_000_000)[:20]
    't=1700000000,v1=b856'
    """
    moment = str(int(time.time() if now is None else now))
    return f"t={moment},v1={_digest(secret, moment, body)}"


def verify(
    secret: str,
    header: str | None,
    body: bytes,
    *,
    tolerance: float = 300.0,
    now: float | None = None,
) -> bool:
    """Tell whether a call of a webhook was signed with the secret, recently.

    Parameters
    ----------
    secret
        The secret of the webhook: `Subscription.webhook_secret`.
    header
        The value of the header `Matchmill-Signature`, None if it is absent.
    body
        What arrived, byte for byte: JSON that was read and written again is another body.
    tolerance
        The most seconds between signing and now.
    now
        The time in seconds since 1970; by default the present.

    Returns
    -------
    bool
        True if the signature is right and recent.

    Examples
    --------
    >>> header = sign("secret", b"{}", now=1_700_000_000)
    >>> verify("secret", header, b"{}", now=1_700_000_010)
    True
    >>> verify("secret", header, b"{}", now=1_700_009_999)
    False
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
    age = abs((time.time() if now is None else now) - int(moments[0][:15]))
    if len(moments[0]) > 15 or age > tolerance:
        return False
    expected = _digest(secret, moments[0], body).encode()
    return any(hmac.compare_digest(expected, one.encode()) for one in signatures)


def answer_challenge(secret: str, body: bytes) -> str | None:
    """Make the answer to the call that asks for a proof, before the first matches are sent.

    Only who knows the secret can make it, so nobody can have the service call a receiver that is
    not theirs. The response to the call has the answer as its body, and a status from 200 to 299.

    Parameters
    ----------
    secret
        The secret of the webhook: `Subscription.webhook_secret`.
    body
        What arrived, byte for byte.

    Returns
    -------
    str or None
        The answer; None if the call is not a challenge, but has matches.

    Examples
    --------
    >>> answer_challenge("secret", b'{"subscription_id": "u42", "challenge": "x"}')[:12]
    '532b5256e1c1'
    >>> answer_challenge("secret", b'{"subscription_id": "u42", "matches": []}') is None
    True
    """
    message = json.loads(body)
    challenge = message.get("challenge") if isinstance(message, dict) else None
    if not isinstance(challenge, str):
        return None
    asked = b"challenge." + challenge.encode()
    return hmac.new(secret.encode(), asked, hashlib.sha256).hexdigest()


def _digest(secret: str, moment: str, body: bytes) -> str:
    signed = hmac.new(secret.encode(), moment.encode() + b"." + body, hashlib.sha256)
    return signed.hexdigest()
