"""Text patterns: what `like`, `rlike` and `in cidr` mean, in plain Python.

The oracle calls these directly; the encoding must agree with them.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Any, NamedTuple

import re2

from matchmill.errors import ExpressionError, LimitError

__all__ = [
    "LikeShape",
    "address_text",
    "check_regex",
    "compile_regex",
    "escape_like",
    "like_matches",
    "like_shape",
    "like_to_regex",
    "like_tokens",
    "longest_search",
    "network_bounds",
    "program_size",
    "regex_options",
]

ANY_TEXT = "%"
ANY_CHARACTER = "_"


@lru_cache(maxsize=512)
def like_tokens(pattern: str) -> tuple[tuple[str, bool], ...]:
    """Return a like pattern as (character, is_literal) pairs; runs of `%` count once."""
    tokens: list[tuple[str, bool]] = []
    i = 0
    while i < len(pattern):
        c = pattern[i]
        if c == "\\":
            if i + 1 == len(pattern):
                raise ExpressionError(
                    "a like pattern cannot end in a single backslash",
                    hint="write two of them to mean a backslash",
                )
            i += 1
            tokens.append((pattern[i], True))
        elif c in (ANY_TEXT, ANY_CHARACTER):
            if not (c == ANY_TEXT and tokens and tokens[-1] == (ANY_TEXT, False)):
                tokens.append((c, False))
        else:
            tokens.append((c, True))
        i += 1
    return tuple(tokens)


def escape_like(text: str) -> str:
    """Return a like pattern that fits this text alone."""
    return re.sub(r"[\\%_]", r"\\\g<0>", text)


def like_matches(tokens: tuple[tuple[str, bool], ...], text: str) -> bool:
    """Whether the whole text fits: the pieces between `%`, one after the other.

    The first piece is at the beginning and the last one at the end. Each of the others is where it
    comes first after the one before: a later place would leave less room for the rest.
    """
    first, *others = _pieces(tokens)
    if not others:
        return len(text) == len(first) and _fits_at(first, text, 0)
    *inner, last = others
    at, end = len(first), len(text) - len(last)
    if at > end or not (_fits_at(first, text, 0) and _fits_at(last, text, end)):
        return False
    for piece in inner:
        at = _find(piece, text, at, end) + len(piece)
        if at < len(piece):
            return False
    return True


_Tokens = tuple[tuple[str, bool], ...]


@lru_cache(maxsize=512)
def _pieces(tokens: _Tokens) -> list[_Tokens]:
    ends = [n for n, token in enumerate(tokens) if token == (ANY_TEXT, False)]
    starts = [0, *(n + 1 for n in ends)]
    return [tokens[start:end] for start, end in zip(starts, [*ends, len(tokens)], strict=True)]


def _fits_at(piece: _Tokens, text: str, at: int) -> bool:
    return all(
        not is_literal or text[n] == character
        for n, (character, is_literal) in enumerate(piece, at)
    )


def _find(piece: _Tokens, text: str, at: int, end: int) -> int:
    """Return the first place of a piece between two places of a text, or -1."""
    run = _longest_run(piece)
    while True:
        found = text.find(run.text, at + run.start, end)
        at = found - run.start
        if found < 0 or at + len(piece) > end:
            return -1
        if _fits_at(piece, text, at):
            return at
        at += 1


class _Run(NamedTuple):
    """Literal characters of a piece, and where in it they begin."""

    start: int
    text: str


@lru_cache(maxsize=512)
def _longest_run(piece: _Tokens) -> _Run:
    runs = [_Run(0, "")]
    for n, (character, is_literal) in enumerate(piece):
        last = runs[-1]
        if is_literal and last.text and last.start + len(last.text) == n:
            runs[-1] = _Run(last.start, last.text + character)
        elif is_literal:
            runs.append(_Run(n, character))
    return max(runs, key=lambda run: len(run.text))


def longest_search(pattern: str) -> int:
    """Return how many characters may have to be compared at each place of a text.

    Pieces without `_` cost nothing here: a text is searched for them in linear time.
    """
    pieces = _pieces(like_tokens(pattern))[1:-1]
    return max((len(piece) for piece in pieces if (ANY_CHARACTER, False) in piece), default=0)


class LikeShape(NamedTuple):
    """The simple form of a like pattern: `kind` is exact, prefix, suffix, substring or general."""

    kind: str
    text: str


def like_shape(pattern: str) -> LikeShape:
    """Return the simple form of a pattern, if it has one: most are a prefix or a substring."""
    tokens = like_tokens(pattern)
    inner = [c for c, literal in tokens if literal]
    wild = [(i, c) for i, (c, literal) in enumerate(tokens) if not literal]
    text = "".join(inner)
    if not wild:
        return LikeShape("exact", text)
    if any(c == ANY_CHARACTER for _, c in wild):
        return LikeShape("general", pattern)
    places = [i for i, _ in wild]
    if places == [len(tokens) - 1]:
        return LikeShape("prefix", text)
    if places == [0]:
        return LikeShape("suffix", text)
    if places == [0, len(tokens) - 1]:
        return LikeShape("substring", text)
    return LikeShape("general", pattern)


def like_to_regex(pattern: str) -> str:
    """Return an RE2 expression for the whole text."""
    parts = []
    for c, literal in like_tokens(pattern):
        if literal:
            parts.append(re2.escape(c))
        else:
            parts.append(".*" if c == ANY_TEXT else ".")
    return r"(?s)\A" + "".join(parts) + r"\z"


def regex_options(max_mem: int = 8 << 20) -> Any:
    """Return the RE2 options used everywhere: quiet, bounded."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = max_mem
    return options


@lru_cache(maxsize=128)  # a program may take up to 8 MB
def compile_regex(pattern: str) -> Any:
    """Compile an RE2 expression; raise ExpressionError if it is none."""
    try:
        return re2.compile(pattern, regex_options())
    except re2.error as error:
        reason = error.args[0] if error.args else "unknown reason"
        if isinstance(reason, bytes):
            reason = reason.decode("utf-8", "replace")
        raise ExpressionError(
            f"not a regular expression of RE2: {reason}",
            hint="RE2 has no backreferences and no look-around",
        ) from None


@lru_cache(maxsize=100_000)
def program_size(pattern: str) -> int:
    """Return how many instructions an RE2 expression compiles to: what it costs per byte of text.

    Some are far larger than they look: `(?:a?c?){1000}` has 4,000 instructions.
    """
    return int(compile_regex(pattern).programsize)


def check_regex(pattern: str, most: int) -> None:
    """Raise ExpressionError for what is no RE2 expression, LimitError for one that is too large."""
    size = program_size(pattern)
    if size > most:
        raise LimitError(
            f"the regular expression compiles to {size:,} instructions, the most is {most:,}",
            hint="shorten its repetitions such as {1000} and its classes such as \\pL, or raise the"
            " setting max_pattern_program",
        )


# -- addresses ------------------------------------------------------------------------------------


def address_text(text: str) -> str | None:
    """Return an IP address as text that sorts like the address; None if it is none."""
    if len(text) > 45 or "%" in text:
        return None
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return _sortable(address)


def network_bounds(text: str) -> tuple[str, str]:
    """Return the first and last address of a network, as `address_text` writes them."""
    network = ipaddress.ip_network(text)
    return _sortable(network.network_address), _sortable(network.broadcast_address)


def _sortable(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    return f"{address.version}:" + address.packed.hex()
