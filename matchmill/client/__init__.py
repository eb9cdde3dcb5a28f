"""Clients of a matchmill service, for threads and for asyncio; extra `client`.

from matchmill.client import Client

with Client("http://127.0.0.1:8080", key=…) as client:
    made = client.subscribe("u42", "origin = 'JFK' and dep_delay > 60")
    for match in client.receive("u42", ticket=made.ticket):
        print(match)
"""

from matchmill.client.async_client import AsyncClient
from matchmill.client.client import Client
from matchmill.client.responses import (
    Backtest,
    CheckReport,
    DeadLetter,
    Digest,
    Dropped,
    Match,
    Published,
    PublishReport,
    SubscribeReport,
    Subscription,
)
from matchmill.client.signatures import SIGNATURE_HEADER, answer_challenge, sign, verify

__all__ = [
    "SIGNATURE_HEADER",
    "AsyncClient",
    "Backtest",
    "CheckReport",
    "Client",
    "DeadLetter",
    "Digest",
    "Dropped",
    "Match",
    "PublishReport",
    "Published",
    "SubscribeReport",
    "Subscription",
    "answer_challenge",
    "sign",
    "verify",
]
