"""Comments in expressions: `-- …` to the end of the line, and `/* … */`.

    price > 5 -- in euros             ─►    price > 5
    /* cheap */ price < 20 and x      ─►                price < 20 and x

A comment is replaced by as many spaces, so that the places of errors stay right. Inside of quotes
there are none.
"""

from __future__ import annotations

import re

from matchmill.errors import ExpressionError

__all__ = ["may_have_comments", "without_comments"]

_QUOTED_OR_COMMENT = re.compile(
    r"('[^']*+(?:''[^']*+)*+'?|\"[^\"]*+(?:\"\"[^\"]*+)*+\"?)|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+(\*/)?"
)


def may_have_comments(text: str) -> bool:
    """Whether a text may have comments: a quick look."""
    return "--" in text or "/*" in text


def without_comments(text: str) -> str:
    """Return a text with spaces in place of its comments."""

    def replaced(found: re.Match[str]) -> str:
        whole = found.group()
        if found.group(1) is not None:
            return whole
        if whole[0] == "/" and found.group(2) is None:
            raise ExpressionError(
                "the comment is never closed",
                text=text,
                position=found.start(),
                hint="add the closing */",
            )
        return " " * len(whole)

    return _QUOTED_OR_COMMENT.sub(replaced, text)
