"""Operators that come with matchmill: importing this registers them."""

from matchmill.operators.builtin import attributes, places, words

__all__ = ["attributes", "places", "words"]
