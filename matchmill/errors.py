"""Every error that matchmill raises on purpose.

An error says what is wrong, where, and how to mend it. `MatchmillError` is the common base, so
one `except` catches them all; each also derives from the built-in error a Python programmer
would expect.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "BackgroundError",
    "DuplicateIdError",
    "EventError",
    "ExpressionError",
    "FileFormatError",
    "FolderError",
    "FolderInUseError",
    "InputError",
    "LimitError",
    "MatchmillError",
    "MissingDependencyError",
    "QuotaError",
    "ReadOnlyError",
    "ServiceError",
    "StoreError",
    "UnknownIdError",
]


class MatchmillError(Exception):
    """Base of all errors of this package."""


class ExpressionError(MatchmillError, ValueError):
    """An expression that cannot be read. Shows the line, a caret under the place, and the fix."""

    def __init__(
        self, message: str, *, text: str | None = None, position: int | None = None, hint: str = ""
    ) -> None:
        self.message = message
        self.text = text
        self.position = position
        self.hint = hint
        super().__init__(self._render())

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_expression_error, (self.message, self.text, self.position, self.hint))

    @property
    def line(self) -> int:
        """The line of the error, counted from 1."""
        return (self.text or "").count("\n", 0, self.position or 0) + 1

    @property
    def column(self) -> int:
        """The column of the error, counted from 1."""
        return (self.position or 0) - ((self.text or "").rfind("\n", 0, self.position or 0) + 1) + 1

    @property
    def summary(self) -> str:
        """The error in one line, for tables of refused rows."""
        where = "" if self.position is None else f" at line {self.line}, column {self.column}"
        return f"{self.message}{where}" + (f"; {self.hint}" if self.hint else "")

    def _render(self) -> str:
        lines = [self.message]
        if self.text is not None and self.position is not None:
            lines[0] += f" (line {self.line}, column {self.column})"
            lines += _excerpt(self.text, self.position)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


def _rebuild_expression_error(
    message: str, text: str | None, position: int | None, hint: str
) -> ExpressionError:
    return ExpressionError(message, text=text, position=position, hint=hint)


def _excerpt(text: str, position: int, width: int = 76) -> list[str]:
    """The line around a position and a caret below it; a long line is cut on both sides."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : len(text) if end < 0 else end].replace("\t", " ")
    offset = position - start
    if len(line) > width:
        cut = max(0, offset - width // 2)
        line = (
            ("…" if cut else "")
            + line[cut : cut + width]
            + ("…" if cut + width < len(line) else "")
        )
        offset = offset - cut + (1 if cut else 0)
    printable = "".join(c if c.isprintable() else "�" for c in line)
    return ["  " + printable, "  " + " " * offset + "^"]


class LimitError(ExpressionError):
    """An expression larger than the settings allow."""

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_limit_error, (self.message, self.text, self.position, self.hint))


def _rebuild_limit_error(
    message: str, text: str | None, position: int | None, hint: str
) -> LimitError:
    return LimitError(message, text=text, position=position, hint=hint)


class EventError(MatchmillError, ValueError):
    """An event that cannot be read: an infinite number, an integer beyond 64 bits, …"""


class InputError(MatchmillError, ValueError):
    """An argument that makes no sense: a bad identifier, an unknown index name, …"""


class DuplicateIdError(MatchmillError, ValueError):
    """A subscription with this identifier exists already."""


class UnknownIdError(MatchmillError, KeyError):
    """No subscription has this identifier."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class FileFormatError(MatchmillError, ValueError):
    """A file of subscriptions or events that cannot be read."""


class FolderError(MatchmillError, ValueError):
    """A saved engine that is missing, incomplete, damaged or of another version."""


class FolderInUseError(MatchmillError, RuntimeError):
    """Another engine has this folder open for writing."""


class ReadOnlyError(MatchmillError, RuntimeError):
    """A change to an engine that only matches: opened with read_only=True, or closed."""


class BackgroundError(MatchmillError, RuntimeError):
    """Work beside the calls (merging, saving) failed; the cause is attached."""


class StoreError(MatchmillError, RuntimeError):
    """The service's store cannot be used: of another version, with another key, out of reach."""


class QuotaError(MatchmillError, RuntimeError):
    """More than a tenant of the service may have."""


class ServiceError(MatchmillError, RuntimeError):
    """What a service answered instead of doing it, or that it did not answer.

    `status` is that of HTTP, None where there was no answer; `code` names the kind of error,
    `position` the place in an expression, `retry_after` the seconds after which to ask again.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str = "",
        hint: str = "",
        field: str | None = None,
        position: dict[str, int] | None = None,
        text: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.message = message
        self.status = status
        self.code = code
        self.hint = hint
        self.field = field
        self.position = position
        self.text = text
        self.retry_after = retry_after
        super().__init__(self._render())

    def __reduce__(self) -> tuple[object, ...]:
        names = ("status", "code", "hint", "field", "position", "text", "retry_after")
        return (_rebuild_service_error, (self.message, {n: getattr(self, n) for n in names}))

    def _render(self) -> str:
        lines = [self.message]
        if self.position is not None:
            lines[0] += f" (line {self.position['line']}, column {self.position['column']})"
            if self.text is not None:
                lines += _excerpt(self.text, self.position["offset"])
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


def _rebuild_service_error(message: str, options: dict[str, Any]) -> ServiceError:
    return ServiceError(message, **options)


class MissingDependencyError(MatchmillError, ImportError):
    """An optional package is needed; the message holds the command that installs it."""
