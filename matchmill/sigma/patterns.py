r"""Sigma's strings as conditions on text.

    Sigma           here
    *mimi*          ilike '%mimi%'
    a?b\*           ilike 'a_b*'        a backslash takes a wildcard literally
    4624            in (4624, '4624')   what reads as a number is compared with both

Strings are compared without case, as Sigma has it; with the modifier `cased`, with case.
"""

from __future__ import annotations

import re

from sigma.exceptions import SigmaFeatureNotSupportedByBackendError
from sigma.types import Placeholder, SigmaString, SpecialChars

from matchmill.language.builder import Attribute
from matchmill.language.expression import Expression

__all__ = ["like_pattern", "number_in", "text_condition"]

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,15})?")
_SPECIAL = {SpecialChars.WILDCARD_MULTI: "%", SpecialChars.WILDCARD_SINGLE: "_"}
_ESCAPED = str.maketrans({"%": r"\%", "_": r"\_", "\\": r"\\"})


def text_condition(attribute: Attribute, value: SigmaString, *, is_cased: bool) -> Expression:
    """Return the condition that a value equals a string, whose wildcards stand for any text."""
    number = number_in(value)
    if number is not None:
        return attribute.is_in(number, _plain(value))
    if is_cased:
        plain = None if value.contains_special() else _plain(value)
        return attribute == plain if plain is not None else attribute.like(like_pattern(value))
    return attribute.ilike(like_pattern(value))


def number_in(value: SigmaString) -> int | float | None:
    """Return the number that a string reads as, in its one usual form; else None."""
    if value.contains_special() or any(isinstance(part, Placeholder) for part in value.s):
        return None
    text = _plain(value)
    if not _NUMBER.fullmatch(text) or text in ("-0", "-0.0"):
        return None
    return float(text) if "." in text else int(text)


def like_pattern(value: SigmaString) -> str:
    """Return the pattern of `like` for a string with wildcards."""
    pieces = []
    for part in value.s:
        if isinstance(part, str):
            pieces.append(part.translate(_ESCAPED))
        elif isinstance(part, Placeholder):
            raise SigmaFeatureNotSupportedByBackendError(
                f"the placeholder %{part.name}% has no values: a pipeline has to give them"
            )
        else:
            pieces.append(_SPECIAL[part])
    return "".join(pieces)


def _plain(value: SigmaString) -> str:
    return "".join(part for part in value.s if isinstance(part, str))
