"""The strict decoder: what Python's `json` would let pass is an error, with a place."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.language.strict_json import JsonDepthError, JsonError, JsonObject, decode_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(values)
def test_what_json_writes_is_read(value: Any) -> None:
    infinite = "Infinity" in json.dumps(value)
    text = json.dumps(value, ensure_ascii=True)
    if "\\ud" not in text and not infinite:
        assert decode_json(text) == decode_json(text.encode()) == value
        assert decode_json(text, check_unicode=True) == value
    assert repr(decode_json(text, allow_nan=True, mark_duplicates=True)) == repr(value)


BAD = {
    "a name twice": ('{"b": {"a": 1, "a": 2}}', "the name 'a' is given twice in one object"),
    "NaN": ('{"a": NaN}', "NaN is not JSON"),
    "infinite": ('{"a": -Infinity}', "-Infinity is not JSON"),
    "digits": ('{"a": ' + "7" * 5000 + "}", "the integer 77777777777777777777… of 5000 digits is"),
    "brackets": ("[" * 100_000 + "]" * 100_000, "nested too deep"),
    "bytes": (b'{"a": "\xff"}', "not valid UTF-8: invalid start byte at byte 7"),
    "comma": ('{"a": 1,}', "not valid JSON: .* at column 9"),
    "two values": ("{} {}", "not valid JSON: Extra data at column 4"),
    "control character": ('"\x01"', "not valid JSON: Invalid control character at column 2"),
    "nothing": ("", "not valid JSON: Expecting value at column 1"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_errors(text: str | bytes, message: str) -> None:
    with pytest.raises(JsonError, match=message):
        decode_json(text)


def test_the_place_of_an_error() -> None:
    with pytest.raises(JsonError) as caught:
        decode_json('{"a": 1,\n "b": x}')
    assert (caught.value.position, caught.value.line, caught.value.column) == (15, 2, 7)


def test_integers_are_exact() -> None:
    assert decode_json(f"[{2**63}, {-(2**70)}]") == [2**63, -(2**70)]


def test_options() -> None:
    assert math.isnan(decode_json("[NaN]", allow_nan=True)[0])
    node = decode_json('{"a": {"b": 1, "c": 2, "b": 3}}', mark_duplicates=True)
    assert isinstance(node, JsonObject)
    assert (node.duplicate, node["a"].duplicate) == (None, "b")
    assert decode_json('"\\ud800"') == "\ud800"
    assert decode_json('"\\ud83d\\ude00"', check_unicode=True) == "😀"
    with pytest.raises(JsonError, match="half of a character"):
        decode_json('{"\\ud800": 1}', check_unicode=True)
    assert decode_json('[["[[["]]', max_depth=2) == [["[[["]]
    with pytest.raises(JsonDepthError, match="more than 2 deep"):
        decode_json("[[[]]]", max_depth=2)
