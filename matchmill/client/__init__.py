"""A client of the service, with nothing but the standard library below it.

from matchmill.client import Client

with Client("http://127.0.0.1:8080", key=…) as client:
    made = client.subscribe("origin = 'JFK' and dep_delay > 60")
    for match in client.matches(made.id, made.ticket):
        print(match)
"""

from matchmill.client.client import Client
from matchmill.client.responses import (
    Backtest,
    Checked,
    DeadLetter,
    Digest,
    Dropped,
    Explained,
    LiveMatch,
    Match,
    Published,
    PublishReport,
    Rejected,
    Subscribed,
    Subscription,
)
from matchmill.client.signatures import SIGNATURE_HEADER, verify_signature

__all__ = [
    "SIGNATURE_HEADER",
    "Backtest",
    "Checked",
    "Client",
    "DeadLetter",
    "Digest",
    "Dropped",
    "Explained",
    "LiveMatch",
    "Match",
    "PublishReport",
    "Published",
    "Rejected",
    "Subscribed",
    "Subscription",
    "verify_signature",
]
