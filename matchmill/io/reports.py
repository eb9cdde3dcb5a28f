"""What a bulk call did: how many items it accepted, and which it rejected and why.

Engine and client return the same reports. This module and what it imports need nothing but the
standard library.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal, NamedTuple

from matchmill.errors import shown

__all__ = ["CheckReport", "Finding", "Rejected", "SubscribeReport", "html_table"]

_MOST_SHOWN = 10
_ONLY_COSTS = frozenset({"duplicate", "contained", "costly", "slow_pattern"})


class Rejected(NamedTuple):
    """One item that was not accepted, and why.

    Parameters
    ----------
    kind
        ``"subscription"``, ``"event"`` or ``"change"``.
    row
        Its position in the source, from 0; -1 for a row of a Spark DataFrame, which has none.
    line
        Its line in a text file, from 1; None for other sources.
    source
        The path of the file it came from, or None.
    id
        Its id, if it has one.
    reason
        What is wrong, in one line.

    Examples
    --------
    >>> import matchmill as mm
    >>> report = mm.Engine().subscribe_many([("u1", "price <")])
    >>> report.rejected[0].row
    0
    """

    kind: Literal["subscription", "event", "change"]
    row: int
    line: int | None
    source: str | None
    id: object
    reason: str

    def __str__(self) -> str:
        if self.source is None:
            where = f"row {self.row}" if self.line is None else f"line {self.line}"
        else:
            place = f", row {self.row}" if self.line is None else f":{self.line}"
            where = f"{self.source}{place}"
        if self.row < 0 and self.line is None:
            where = self.source or self.kind
        name = "" if self.id is None else f"{_text_of(self.id)}: "
        return f"{where}: {name}{self.reason}"


class Finding(NamedTuple):
    """One subscription that was accepted but needs a second look.

    Parameters
    ----------
    id
        The id of the subscription.
    kind
        ``"unknown_attribute"``: no event has an attribute that it asks for. ``"wrong_type"``: a
        condition needs a type that the attribute never has. ``"never"``, ``"always"``: no event
        satisfies it or one of its conditions, or every event does. ``"duplicate"``: it asks for the
        same as another one. ``"contained"``: one of its conditions adds nothing to another.
        ``"costly"``: the index looks at it far more often than it matches. ``"slow_pattern"``: a
        regular expression takes long.
    message
        What was found, in one line.
    suggestion
        What to do about it, or an empty string.

    Examples
    --------
    >>> import matchmill as mm
    >>> report = mm.Engine().subscribe_many([("u1", "price < 1 and price > 2")])
    >>> report.warnings[0].kind
    'never'
    """

    id: object
    kind: str
    message: str
    suggestion: str = ""

    def __str__(self) -> str:
        return f"{_text_of(self.id)}: {self.message}" + (
            f"; {self.suggestion}" if self.suggestion else ""
        )


@dataclass(frozen=True, slots=True, repr=False)
class CheckReport:
    """What `check` found.

    Parameters
    ----------
    n_subscriptions
        How many subscriptions were checked.
    n_events
        How many events they were compared with; 0 if none were given or learned.
    rejected
        Subscriptions and events that could not be read, each with its reason.
    warnings
        What needs a second look: likely mistakes first.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.check({"u1": "price < 20 and price > 30"})
    <CheckReport: 1 subscriptions, 1 warnings>
    """

    n_subscriptions: int
    n_events: int = 0
    rejected: list[Rejected] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing was rejected and nothing looks like a mistake.

        What only costs time (duplicates, what adds nothing, costly ones, slow patterns) is no
        mistake.
        """
        return not self.rejected and all(one.kind in _ONLY_COSTS for one in self.warnings)

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON has it.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.check({"u1": "price < 20"}).to_dict()["ok"]
        True
        """
        return {
            "ok": self.ok,
            "n_subscriptions": self.n_subscriptions,
            "n_events": self.n_events,
            "rejected": [one._asdict() for one in self.rejected],
            "warnings": [one._asdict() for one in self.warnings],
        }

    def _counts(self) -> str:
        parts = [f"{self.n_subscriptions:,} subscriptions"]
        if self.n_events:
            parts.append(f"{self.n_events:,} events")
        if self.rejected:
            parts.append(f"{len(self.rejected):,} rejected")
        if self.warnings:
            parts.append(f"{len(self.warnings):,} warnings")
        return ", ".join(parts)

    def __repr__(self) -> str:
        return f"<CheckReport: {self._counts()}>"

    def __str__(self) -> str:
        lines = [self._counts(), *_first("rejected", self.rejected)]
        for kind in dict.fromkeys(one.kind for one in self.warnings):
            lines += _first(kind, [one for one in self.warnings if one.kind == kind])
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = []
        rows += [("rejected", one.id, one.reason, "") for one in self.rejected]
        rows += [(one.kind, one.id, one.message, one.suggestion) for one in self.warnings]
        return html_table(self._counts(), ("", "id", "what", "suggestion"), rows)


@dataclass(frozen=True, slots=True, repr=False)
class SubscribeReport:
    """What `subscribe_many` did.

    Parameters
    ----------
    n_accepted
        How many subscriptions were stored, replaced ones included.
    n_replaced
        How many of them replaced one with the same id.
    rejected
        Those that were not stored, each with its reason.
    warnings
        Those that were stored, but can never match or always do. Of an engine that has learned
        events, also those that ask for an attribute that no event had.
    ignored_columns
        Columns of the source that were not used.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.Engine().subscribe_many([("u1", "price < 20"), ("u2", "price <")])
    <SubscribeReport: 1 accepted, 1 rejected>
    """

    n_accepted: int
    n_replaced: int = 0
    rejected: list[Rejected] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    ignored_columns: list[str] = field(default_factory=list)

    @property
    def n_rejected(self) -> int:
        """How many subscriptions were not stored."""
        return len(self.rejected)

    def _counts(self) -> str:
        parts = [f"{self.n_accepted:,} accepted"]
        if self.n_replaced:
            parts.append(f"{self.n_replaced:,} replaced")
        parts.append(f"{self.n_rejected:,} rejected")
        if self.warnings:
            parts.append(f"{len(self.warnings):,} warnings")
        return ", ".join(parts)

    def __repr__(self) -> str:
        return f"<SubscribeReport: {self._counts()}>"

    def __str__(self) -> str:
        lines = [self._counts()]
        lines += _first("rejected", self.rejected)
        lines += _first("warning", self.warnings)
        if self.ignored_columns:
            lines.append(f"columns not used: {', '.join(self.ignored_columns)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = []
        rows += [("rejected", one.row, one.id, one.reason) for one in self.rejected]
        rows += [("warning", None, one.id, one.message) for one in self.warnings]
        return html_table(self._counts(), ("", "row", "id", "reason"), rows)


def _first(what: str, items: Sequence[object]) -> list[str]:
    lines = [f"{what}: {item}" for item in items[:_MOST_SHOWN]]
    n_more = len(items) - len(lines)
    return [*lines, f"{what}: and {n_more:,} more"] if n_more else lines


def _text_of(value: object) -> str:
    """Return a text as it is; of a rejected row it may be any object."""
    return str.__str__(value) if isinstance(value, str) else shown(value)


def html_table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[object]], most: int = 20
) -> str:
    """Make a small HTML table for a notebook; rows beyond `most` are counted."""
    listed = list(rows)
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{'' if v is None else escape(_text_of(v))}</td>" for v in row)
        + "</tr>"
        for row in listed[:most]
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if body else ""
    more = f"<p>and {len(listed) - most:,} more</p>" if len(listed) > most else ""
    return f"<div><p>{escape(caption)}</p>{table}{more}</div>"
