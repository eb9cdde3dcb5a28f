"""Signatures of webhooks: those that are good, and all that are not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.client import sign, verify

BODY = json.dumps({"matches": []}).encode()
NOW = 1_700_000_000


def test_a_signature_is_good_for_some_minutes() -> None:
    header = sign("secret", BODY, now=NOW)
    assert verify("secret", header, BODY, now=NOW + 300)
    assert verify("secret", f"v1=00, {header}", BODY, now=NOW)  # two secrets for a while
    assert not verify("secret", header, BODY, now=NOW + 301)
    assert not verify("secret", header, BODY, now=NOW - 301)
    assert verify("secret", header, BODY, tolerance=1000, now=NOW + 999)
    assert not verify("secret", header, BODY)  # it is from 2023
    assert verify("secret", sign("secret", BODY), BODY)
    assert not verify("other", header, BODY, now=NOW)
    assert not verify("secret", header, BODY + b" ", now=NOW)
    assert not verify("secret", header.replace(str(NOW), str(NOW + 1)), BODY, now=NOW)


@pytest.mark.parametrize(
    "header",
    [None, "", "t=", "v1=", f"t={NOW}", f"t={NOW},v1=é", f"t={NOW},t={NOW},v1=0", "t=²,v1=0",
     f"t={'9' * 5000},v1=0", "t=-1,v1=0", "=,=,"],
)  # fmt: skip
def test_bad_signatures(header: str | None) -> None:
    assert not verify("secret", header, BODY, now=NOW)


@given(st.text(alphabet="tv1=,0é ²\n"))
def test_no_header_is_an_error(header: str) -> None:
    assert not verify("secret", header, BODY, now=NOW)
