"""A real S3 server on this machine, for tests.

Its address and its made-up credentials are in the environment from the first use on, before Spark
starts: Spark's workers have the environment that Spark was started with.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

__all__ = ["s3_environment", "s3_server"]


@cache
def s3_environment() -> str:
    """Choose the address of servers that start later, and put it into the environment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
    }
    return url


@contextmanager
def s3_server(bucket: str) -> Iterator[str]:
    """Run a server with one bucket."""
    import boto3
    from moto.server import ThreadedMotoServer

    url = s3_environment()
    port = int(url.rpartition(":")[2])
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    try:
        boto3.client("s3", endpoint_url=url).create_bucket(Bucket=bucket)
        yield url
    finally:
        server.stop()
