"""Texts of conditions for bulk loads: plain, odd, damaged, in every spelling."""

from __future__ import annotations

from random import Random

__all__ = ["mixed_text", "odd_ids", "odd_text"]

_NAMES = ("a", "b", "price", "x.y", "_n", '"a b"', '"in"', '"q""q"', "größe", "A", '"a"', "date")
_NUMBERS = (
    *(
        "0",
        "-0",
        "-0.0",
        "1",
        "007",
        "-5",
        "3.0",
        "3.",
        ".5",
        "-.5",
        "1e3",
        "1E+3",
        "2.5e-3",
        "1e22",
    ),
    *("9007199254740991", "9007199254740992", "9007199254740993", "9007199254740993.0", "1e23"),
    *("9223372036854775804", "9223372036854775807", "9223372036854775808", "9223372036854775807.0"),
    *("-9223372036854775808", "-9223372036854775809", "9.223372036854775807e18", "1e19", "-1e19"),
    *("1e308", "1e309", "5e-324", "1e-400", "0.1", "0.30000000000000004", "123456789012345678901"),
    *("0.1234567890123456789012", "18014398509481985", "1.7976931348623157e308", "1_000", "5and"),
    *("1.2.3", "1e", "- 1", "+1", "--1", "1.e5", "0x10", "2.2250738585072011e-308"),
)
_STRINGS = (
    *("'x'", "''", "'it''s'", "'''", "'a and b'", "'Zürich'", "'\U0001f600'", "'x\ty'", "'open"),
    *("'?'", "'a'", "'b'", "'ab'", "'a''b'", "'a~'", "'\u212a'", "'{'", "'z'''", "''''", "'a''"),
)
_OTHERS = (
    *("true", "FALSE", "date '2013-01-31'", "date '2013-02-29'", "DATE'2012-02-29'", "null"),
    *("timestamp '2013-01-31 10:00'", "timestamp '2013-01-31T10:00:00.5Z'", "date '0001-01-01'"),
    *("timestamp '2013-01-31'", "timestamp '2013-01-31 10:00+01:00'", "date '9999-12-31'"),
    *("timestamp '2013-01-31 24:00'", "timestamp '1969-12-31 23:59:59.999999'", "date '13-1-1'"),
)
_PATTERNS = ("'a%'", "'%'", "'a_%'", "'a\\%%'", "'ab'", "'%a'", "'&%'", "'''%'", "'ü%'", "'~%'")
_SPACES = (" ", " ", " ", " ", "", "  ", "\t", "\n ", "\u00a0", "\r\n")
_SIGNS = ("=", "=", "==", "!=", "<>", "<", "<=", ">", ">=", "=<", "=!", "<<", "===")
_WORDS = {
    "and": ("and", "and", "and", "AND", "And", "andy", "an\u0064"),
    "in": ("in", "IN"),
    "not": ("not", "NOT"),
    "between": ("between", "Between", "xbetween"),
    "like": ("like", "LIKE", "li\u212ae", "ilike"),
    "is": ("is", "IS"),
    "or": ("or", "OR"),
    "null": ("null", "NULL"),
}


def _word(rng: Random, word: str, oddness: float) -> str:
    return rng.choice(_WORDS[word]) if rng.random() < oddness else word


def _space(rng: Random, oddness: float) -> str:
    return rng.choice(_SPACES) if rng.random() < oddness else " "


def _literal(rng: Random, kind: int) -> str:
    if kind == 0:
        return str(rng.randint(-9, 9))
    if kind == 1:
        return rng.choice(_NUMBERS)
    if kind == 2:
        return repr(
            rng.choice(
                (rng.random(), rng.uniform(-1e6, 1e6), rng.random() * 10.0 ** rng.randint(-30, 30))
            )
        )
    if kind == 3:
        return f"'{rng.choice('abcxyz')}'"
    return rng.choice(_STRINGS if kind == 4 else _OTHERS)


def _condition(rng: Random, oddness: float) -> str:
    def say(word: str) -> str:
        return _word(rng, word, oddness)

    name = rng.choice(_NAMES) if rng.random() < oddness else rng.choice(("a", "b", "c", "d", "e"))
    kinds = (0, 1, 2, 3, 4, 5) if rng.random() < oddness else (0, 2, 3)
    kind = rng.choice(kinds)

    def literal() -> str:
        same = rng.random() > oddness / 4
        return _literal(rng, kind if same else rng.randrange(6))

    negation = f"{say('not')} " if rng.random() < 0.2 else ""
    form = rng.randrange(10)
    space = _space(rng, oddness)
    if form < 5:
        sign = rng.choice(_SIGNS if rng.random() < oddness else _SIGNS[:9])
        return f"{name}{_space(rng, oddness)}{sign}{space}{literal()}"
    if form == 5:
        values = f"{_space(rng, oddness)},".join(literal() for _ in range(rng.randint(1, 6)))
        return f"{name} {negation}{say('in')}{space}({values})"
    if form == 6:
        return f"{name} {negation}{say('between')} {literal()}{space}{say('and')} {literal()}"
    if form == 7:
        return f"{name} {negation}{say('like')}{space}{rng.choice(_PATTERNS)}"
    if form == 8:
        return f"{name} {say('is')} {negation}{say('null')}"
    return name


def odd_text(rng: Random, oddness: float = 0.3) -> str:
    """Make a text that is a conjunction, or nearly one."""
    parts = []
    for _ in range(rng.choice((1, 1, 2, 2, 3, 5))):
        part = _condition(rng, oddness)
        if rng.random() < 0.15:
            several = [part, *(_condition(rng, oddness) for _ in range(rng.randint(0, 3)))]
            joined = f" {_word(rng, 'or', oddness)} ".join(several)
            part = (
                f"{_word(rng, 'not', oddness)} ({joined})" if rng.random() < 0.2 else f"({joined})"
            )
        elif rng.random() < 0.05:
            part = f"not {part}"
        parts.append(part)
    word = _word(rng, "or" if rng.random() < 0.08 else "and", oddness)
    text = f"{_space(rng, oddness)}{word}{_space(rng, oddness)}".join(parts)
    if rng.random() < oddness / 3:  # damage it
        at = rng.randrange(len(text) + 1)
        text = (
            text[:at] + rng.choice(("", "'", '"', "(", ")", "é", "\0", "?", " ")) + text[at + 1 :]
        )
    return f"{_space(rng, oddness)}{text} " if rng.random() < oddness else text


def mixed_text(rng: Random) -> str:
    """Make a text that is most likely plain."""
    return odd_text(rng, 0.02)


def odd_ids(rng: Random, n: int) -> list[object]:
    """Make ids, some of which repeat or are none."""
    return [
        rng.choice(("", None, 7, "id 0", "\ud800", 2**70)) if rng.random() < 0.05 else f"id {i}"
        for i in range(n)
    ]
