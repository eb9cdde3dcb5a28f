r"""Regular expressions of quamina's patterns, translated into those of RE2.

They are the I-Regexp of RFC 9485, with `~` where that has a backslash, and fit the whole text:

    [a-z]+~.(png|jpg)     ──►     (?s)\A(?:[a-z]+\.(?:png|jpg))\z

Every construct of I-Regexp is one of RE2, and means the same there, but for two that are rejected:
more than 1,000 repetitions (those of nested groups multiply), and the category of characters that
Unicode has not assigned. What RE2 has beyond I-Regexp (anchors, lazy repetition, groups with flags)
is no I-Regexp and rejected, too: quamina reads `^` and `$` as themselves.
"""

from __future__ import annotations

import re
from typing import NoReturn

import re2

from matchmill.errors import ExpressionError

__all__ = ["regexp_to_re2"]

_MOST_REPETITIONS = 1000  # that RE2 takes
_REPETITION = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_CATEGORY = re.compile(r"[pP]\{([A-Z][a-z]?)\}")
_CATEGORIES = frozenset(
    (
        *("L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No"),
        *("P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So"),
        *("Z", "Zl", "Zp", "Zs", "Cc", "Cf", "Co"),
    )
)
_SELF = frozenset("()*+-.?[]^{|}~")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}


def regexp_to_re2(text: str) -> str:
    """Return an RE2 expression that fits the same whole texts.

    Raises
    ------
    ExpressionError
        If this is no I-Regexp, or RE2 cannot say it; the message has the place.
    """
    return r"(?s)\A(?:" + _Translation(text).whole() + r")\z"


class _Translation:
    """One expression; `_i` is the character that comes next."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._i = 0

    def whole(self) -> str:
        parts: list[str] = []
        n_open = 0
        can_repeat = False
        while self._i < len(self._text):
            c = self._text[self._i]
            if c in "?*+{":
                if not can_repeat:
                    self._fail("there is nothing to repeat here")
                parts.append(self._quantifier(c))
                can_repeat = False
                continue
            can_repeat = c not in "(|"
            if c == "(":
                n_open += 1
                parts.append("(?:")
            elif c == ")":
                if n_open == 0:
                    self._fail("nothing was opened here")
                n_open -= 1
                parts.append(")")
            elif c == "[":
                parts.append(self._character_class())
                continue
            elif c == "~":
                parts.append(self._escape())
                continue
            elif c in "]}":
                self._fail(f"write ~{c} for the character itself")
            else:
                parts.append(c if c in ".|" else re2.escape(c))
            self._i += 1
        if n_open:
            self._fail("a parenthesis is not closed")
        return "".join(parts)

    def _quantifier(self, c: str) -> str:
        if c != "{":
            self._i += 1
            return c
        found = _REPETITION.match(self._text, self._i)
        if found is None:
            self._fail("repetitions are written {2}, {2,} or {2,5}")
        low, comma, high = found.groups()
        ends = [int(end) for end in (low, high) if end]
        if max(ends) > _MOST_REPETITIONS:
            self._fail(f"RE2 repeats at most {_MOST_REPETITIONS:,} times")
        if ends != sorted(ends):
            self._fail("the first number of repetitions is above the second one")
        self._i = found.end()
        return f"{{{ends[0]}{comma or ''}{ends[1] if high else ''}}}"

    def _escape(self) -> str:
        """Translate what follows a `~`: a character, or a category of characters."""
        category = _CATEGORY.match(self._text, self._i + 1)
        if category is None:
            return str(re2.escape(self._escaped_character()))
        if category[1] not in _CATEGORIES:
            if category[1] in ("C", "Cn"):
                self._fail("RE2 has no category of characters that are not assigned")
            self._fail(f"there is no category {category[1]}")
        self._i = category.end()
        return f"\\{category[0]}"

    def _escaped_character(self) -> str:
        following = self._text[self._i + 1 : self._i + 2]
        if following in _CONTROLS:
            character = _CONTROLS[following]
        elif following and following in _SELF:
            character = following
        else:
            self._fail("~ stands before one of ()*+-.?[]^{|}~, before n, r, t, or p{…} and P{…}")
        self._i += 2
        return character

    def _character_class(self) -> str:
        start = self._i
        self._i += 1
        parts = ["["]
        if self._peek() == "^":
            parts.append("^")
            self._i += 1
        first = self._i
        while (c := self._peek()) != "]":
            if not c:
                self._i = start
                self._fail("a class of characters is not closed")
            if c == "-":
                if self._i != first and self._text[self._i + 1 : self._i + 2] != "]":
                    self._fail("in a class, - stands first, last, or between two characters")
                parts.append(r"\-")
                self._i += 1
            elif c == "~" and _CATEGORY.match(self._text, self._i + 1):
                parts.append(self._escape())
            else:
                parts.append(self._range())
        if self._i == first:
            self._fail("a class of characters is empty")
        self._i += 1
        return "".join(parts) + "]"

    def _range(self) -> str:
        """Translate `a` or `a-z` in a class."""
        low = self._class_character()
        if self._peek() != "-" or self._text[self._i + 1 : self._i + 2] in ("]", ""):
            return _in_class(low)
        self._i += 1
        high = self._class_character()
        if high < low:
            self._fail(f"the range {low}-{high} is empty")
        return f"{_in_class(low)}-{_in_class(high)}"

    def _class_character(self) -> str:
        c = self._peek()
        if c == "~":
            return self._escaped_character()
        if c in "[-":
            self._fail(f"write ~{c} for the character itself")
        self._i += 1
        return c

    def _peek(self) -> str:
        return self._text[self._i : self._i + 1]

    def _fail(self, problem: str) -> NoReturn:
        raise ExpressionError(f"character {self._i + 1}: {problem}")


def _in_class(character: str) -> str:
    return f"\\x{{{ord(character):x}}}" if not character.isalnum() else character
