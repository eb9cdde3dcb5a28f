"""Operators that come with matchmill: importing this registers them."""

from matchmill.operators.builtin import attributes
from matchmill.operators.builtin import geography as places
from matchmill.operators.builtin import text_distance as words

__all__ = ["attributes", "places", "words"]
