"""One stored subscription, as engines return and accept it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Subscription"]


@dataclass(frozen=True, slots=True)
class Subscription:
    """A stored subscription.

    Parameters
    ----------
    id
        Its id.
    expression
        Its expression as text.

    Examples
    --------
    >>> import matchmill as mm
    >>> engine = mm.Engine({"u1": "price < 20"})
    >>> engine["u1"]
    Subscription(id='u1', expression='price < 20')
    """

    id: str | int
    expression: str

    def __str__(self) -> str:
        return f"{self.id}: {self.expression}"
