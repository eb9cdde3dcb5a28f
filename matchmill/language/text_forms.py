r"""Readable forms of `like`: each takes plain text and means a pattern.

    name startswith 'a%'       name like 'a\%%'           istartswith    ilike
    name endswith '.exe'       name like '%.exe'         iendswith
    name contains text 'ab'    name like '%ab%'          icontains text
    name iequals 'Ab'          name ilike 'Ab'

They are written only: what is read is a `Like`, and it prints as one.
"""

from __future__ import annotations

from typing import NamedTuple

from matchmill.language.patterns import escape_like

__all__ = ["TEXT_FORMS", "TextForm"]


class TextForm(NamedTuple):
    """One form, by its words."""

    words: str

    @property
    def ignore_case(self) -> bool:
        """Whether upper and lower case are the same."""
        return self.words.startswith("i")

    @property
    def is_literal(self) -> bool:
        """Whether it takes plain text, not a pattern."""
        return not self.words.endswith("like")

    def pattern(self, text: str) -> str:
        """Return the pattern of a text."""
        if not self.is_literal:
            return text
        before, after = _AROUND[self.words.removeprefix("i")]
        return before + escape_like(text) + after


_AROUND = {
    "startswith": ("", "%"),
    "endswith": ("%", ""),
    "contains text": ("%", "%"),
    "equals": ("", ""),
}
_WORDS = ("like", "ilike", "startswith", "istartswith", "endswith", "iendswith", "iequals")
TEXT_FORMS = tuple(map(TextForm, _WORDS))
"""Those that are one word."""
