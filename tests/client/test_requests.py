"""What the client sends, and whom it believes."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchmill as mm
from matchmill.client import verify_signature
from matchmill.client.requests import batches, event_text, expression_text
from matchmill.errors import EventError, InputError
from matchmill.service.webhooks import signature


def test_expressions() -> None:
    assert expression_text("x = 1") == "x = 1"
    assert expression_text(mm.attr("x") == 1) == "x = 1"
    assert expression_text({"x": [1]}) == '{"x":[1]}'
    with pytest.raises(InputError, match="an expression is text"):
        expression_text(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({"n": 2**63 - 1, "é": True}, '{"n":9223372036854775807,"é":true}'),
        ({"x": float("nan"), "y": [float("nan"), (1, {})]}, '{"x":null,"y":[null,[1,{}]]}'),
        ({"n": np.int64(5), "x": np.float64("nan")}, '{"n":5,"x":null}'),
        (MappingProxyType({"a": MappingProxyType({"b": 1})}), '{"a":{"b":1}}'),
    ],
)
def test_events(event: Mapping[str, Any], text: str) -> None:
    assert event_text(event) == text


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"x": float("inf")}, "infinite"),
        ({"d": dt.date(2013, 1, 31)}, "JSON has no dates, and 2013-01-31 is one"),
        ({"d": dt.datetime(2013, 1, 31), "x": float("nan")}, "JSON has no dates"),
        ({"s": {1}}, "cannot hold set"),
        ([], "an event is a dict"),
    ],
)
def test_events_that_json_cannot_say(event: Any, reason: str) -> None:
    with pytest.raises(EventError, match=reason):
        event_text(event)


@given(st.lists(st.integers(0, 600_000)), st.integers(1, 5))
def test_batches_hold_everything_in_order(sizes: list[int], most: int) -> None:
    found = list(batches(sizes, lambda size: size, most))
    assert [size for batch in found for size in batch] == sizes
    for batch in found:
        assert 1 <= len(batch) <= most
        assert len(batch) == 1 or sum(batch) <= 1 << 20


# -- signatures -----------------------------------------------------------------------------------


BODY = json.dumps({"matches": []}).encode()
NOW = 1_700_000_000


def test_the_services_signature_is_good() -> None:
    header = signature("secret", BODY, NOW)
    assert verify_signature("secret", header, BODY, now=NOW + 300)
    assert verify_signature("secret", f"v1=00, {header}", BODY, now=NOW)  # two keys for a while
    assert not verify_signature("secret", header, BODY, now=NOW + 301)
    assert not verify_signature("secret", header, BODY, now=NOW - 301)
    assert verify_signature("secret", header, BODY, 1000, now=NOW + 999)
    assert not verify_signature("secret", header, BODY)  # it is from 2023
    assert not verify_signature("other", header, BODY, now=NOW)
    assert not verify_signature("secret", header, BODY + b" ", now=NOW)
    assert not verify_signature("secret", header.replace(str(NOW), str(NOW + 1)), BODY, now=NOW)


@pytest.mark.parametrize(
    "header",
    [None, "", "t=", "v1=", f"t={NOW}", f"t={NOW},v1=é", f"t={NOW},t={NOW},v1=0", "t=²,v1=0",
     f"t={'9' * 5000},v1=0", "t=-1,v1=0", "=,=,"],
)  # fmt: skip
def test_bad_signatures(header: str | None) -> None:
    assert not verify_signature("secret", header, BODY, now=NOW)


@given(st.text(alphabet="tv1=,0é ²\n"))
def test_no_header_is_an_error(header: str) -> None:
    assert not verify_signature("secret", header, BODY, now=NOW)
