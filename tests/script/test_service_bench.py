"""`script/bench service` on a small scale; `service-crashes` is tested with the service."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from benchmarks import service


@pytest.mark.slow
def test_the_service_under_a_little_load(capsys: Any) -> None:
    parser = argparse.ArgumentParser()
    service.add_arguments(parser)
    small = "-n 300 --seconds 1.5 --readers 20 --publishers 2 --batch 20 --read-share 0.5"
    assert service.run(parser.parse_args(small.split())) == 0
    told = capsys.readouterr().out
    told_of = ("events published", "publish to delivery, p99", "CPU per event", "memory, MiB")
    for what in told_of:
        assert what in told
