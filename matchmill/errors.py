"""Every error that matchmill raises on purpose.

An error says what is wrong, where, and what to do about it. `MatchmillError` is the base of all of
them; each also derives from the built-in error that a Python programmer expects. The classes are
the same whether an engine or a service reports the error.

    MatchmillError
    ├ InputError (ValueError)
    │ ├ ExpressionError ─ LimitError
    │ ├ EventError
    │ ├ FileFormatError
    │ └ DuplicateIdError
    ├ UnknownIdError (KeyError)
    ├ FolderError (RuntimeError) ─ FolderInUseError, ReadOnlyError
    ├ BackgroundError (RuntimeError)
    ├ ServiceError (RuntimeError) ─ QuotaError, StoreError
    └ MissingDependencyError (ImportError)
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable
from typing import Any, ClassVar

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
    "did_you_mean",
    "shown",
    "warn_caller",
]


class MatchmillError(Exception):
    """Base of all errors of this package.

    Parameters
    ----------
    message
        What is wrong, in one line.
    hint
        What to do about it, or an empty string.
    code
        A short name for the kind of error. Every class has its own; a service may send another.

    Attributes
    ----------
    code : str
        The kind of error, such as ``"bad_expression"``. It is also in the answers of a service.
    hint : str
        What to do about it. Often empty, because the message says it.
    summary : str
        Message and hint in one line, for tables of rejected rows.

    Examples
    --------
    >>> import matchmill as mm
    >>> try:
    ...     mm.Engine(index="nonsense")
    ... except mm.MatchmillError as error:
    ...     print(error.code)
    bad_request
    """

    code: str = "error"
    _extra: ClassVar[tuple[str, ...]] = ()  # further attributes, to copy and pickle

    def __init__(self, message: str = "", *, hint: str = "", code: str | None = None) -> None:
        self.message = str(message)
        self.hint = hint
        if code is not None:
            self.code = code
        super().__init__(self.message)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("hint", "code", *self._extra)
        return _rebuild, (type(self), self.message, {name: getattr(self, name) for name in names})

    @property
    def summary(self) -> str:
        """Message and hint in one line."""
        return " ".join("; ".join(filter(None, (self.message, self.hint))).split("\n"))

    def _lines(self) -> list[str]:
        return [self.message, f"hint: {self.hint}"] if self.hint else [self.message]


def _rebuild(
    kind: type[MatchmillError], message: str, attributes: dict[str, Any]
) -> MatchmillError:
    return kind(message, **attributes)


class InputError(MatchmillError, ValueError):
    """An argument, an option or a source of data that cannot be used.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.Settings(max_clauses=0)
    Traceback (most recent call last):
    matchmill.errors.InputError: setting max_clauses must be a whole number of at least 1, not 0
    """

    code = "bad_request"


class ExpressionError(InputError):
    """An expression that cannot be read. The message shows the place with a caret.

    Parameters
    ----------
    message
        What is wrong.
    text
        The expression.
    position
        Where in the text, from 0.
    hint, code
        As for every `MatchmillError`.

    Attributes
    ----------
    text : str or None
        The expression.
    position : int or None
        The place of the error in the text, from 0.
    line, column : int
        The same place, both from 1.

    Examples
    --------
    >>> import matchmill as mm
    >>> try:
    ...     mm.parse("price >")
    ... except mm.ExpressionError as error:
    ...     print(error.line, error.column)
    1 8
    """

    code = "bad_expression"
    _extra = ("text", "position")

    def __init__(
        self,
        message: str = "",
        *,
        text: str | None = None,
        position: int | None = None,
        hint: str = "",
        code: str | None = None,
    ) -> None:
        self.text = text
        self.position = position
        super().__init__(message, hint=hint, code=code)

    @property
    def line(self) -> int:
        """The line of the error, from 1."""
        return (self.text or "").count("\n", 0, self.position or 0) + 1

    @property
    def column(self) -> int:
        """The column of the error, from 1."""
        return (self.position or 0) - ((self.text or "").rfind("\n", 0, self.position or 0) + 1) + 1

    @property
    def summary(self) -> str:
        """Message, place and hint in one line."""
        where = "" if self.position is None else f" at line {self.line}, column {self.column}"
        return " ".join("; ".join(filter(None, (self.message + where, self.hint))).split("\n"))

    def _lines(self) -> list[str]:
        lines = super()._lines()
        if self.text is None or self.position is None:
            return lines
        lines[0] += f" (line {self.line}, column {self.column})"
        return [lines[0], *_excerpt(self.text, self.position), *lines[1:]]


def _excerpt(text: str, position: int, width: int = 76) -> list[str]:
    """Show the line around a position, with a caret below it; cut a long line on both sides."""
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
    """An expression that is larger than the settings allow.

    Examples
    --------
    >>> import matchmill as mm
    >>> engine = mm.Engine(settings=mm.Settings(max_conditions=1))
    >>> engine.subscribe("u1", "a = 1 and b = 2")
    Traceback (most recent call last):
    matchmill.errors.LimitError: ...
    """


class EventError(InputError):
    """An event that cannot be read, for instance because it is no mapping.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.evaluate("price > 1", 5)
    Traceback (most recent call last):
    matchmill.errors.EventError: ...
    """

    code = "bad_event"


class FileFormatError(InputError):
    """A file that cannot be read or written. The message names the file and what to change.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.read_events("absent.csv")
    Traceback (most recent call last):
    matchmill.errors.FileFormatError: absent.csv: there is no such file
    """

    code = "bad_file"


class DuplicateIdError(InputError):
    """A subscription with this id exists already.

    Examples
    --------
    >>> import matchmill as mm
    >>> engine = mm.Engine({"u1": "price < 20"})
    >>> engine.subscribe("u1", "price < 30")
    Traceback (most recent call last):
    matchmill.errors.DuplicateIdError: ...
    """

    code = "duplicate_id"


class UnknownIdError(MatchmillError, KeyError):
    """There is no subscription with this id.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.Engine().unsubscribe("u1")
    Traceback (most recent call last):
    matchmill.errors.UnknownIdError: there is no subscription 'u1'
    """

    code = "not_found"


class FolderError(MatchmillError, RuntimeError):
    """The folder of an engine is missing, incomplete, damaged, or of another version.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.Engine.open("absent.mill")
    Traceback (most recent call last):
    matchmill.errors.FolderError: ...
    """

    code = "folder"


class FolderInUseError(FolderError):
    """Another engine has this folder open for writing.

    Examples
    --------
    >>> import matchmill as mm
    >>> try:
    ...     engine = mm.Engine.open("alerts.mill", create=True)
    ... except mm.FolderInUseError:
    ...     engine = mm.Engine.open("alerts.mill", read_only=True)
    """

    code = "folder_in_use"


class ReadOnlyError(FolderError):
    """A change to an engine that was opened with read_only=True, or is closed.

    Examples
    --------
    >>> import matchmill as mm
    >>> engine = mm.Engine()
    >>> engine.close()
    >>> engine.subscribe("u1", "price < 20")
    Traceback (most recent call last):
    matchmill.errors.ReadOnlyError: this engine is closed: it cannot be changed
    """

    code = "read_only"


class BackgroundError(MatchmillError, RuntimeError):
    """Merging or saving in the background failed; `__cause__` is the error.

    Examples
    --------
    >>> import matchmill as mm
    >>> engine = mm.Engine()
    >>> try:
    ...     engine.close()
    ... except mm.BackgroundError as error:
    ...     print(error.__cause__)
    """

    code = "background"


class ServiceError(MatchmillError, RuntimeError):
    """A service rejected a request for a reason that a library call does not have.

    Parameters
    ----------
    message
        What is wrong.
    status
        The HTTP status, or None if there was no answer.
    retry_after
        After how many seconds to try again, if the service said so.
    field
        The field of the request that is wrong, if it is one.
    hint, code
        As for every `MatchmillError`.
    position, text
        The place in an expression, and the expression.

    Examples
    --------
    >>> import matchmill as mm
    >>> try:
    ...     mm.Client("http://localhost:1", retries=0).stats()
    ... except mm.ServiceError as error:
    ...     print(error.status)
    None
    """

    code = "service"
    _extra = ("status", "retry_after", "field", "position", "text")

    def __init__(
        self,
        message: str = "",
        *,
        status: int | None = None,
        retry_after: float | None = None,
        code: str | None = None,
        hint: str = "",
        field: str | None = None,
        position: dict[str, int] | None = None,
        text: str | None = None,
    ) -> None:
        self.status = status
        self.retry_after = retry_after
        self.field = field
        self.position = position
        self.text = text
        super().__init__(message, hint=hint, code=code)

    def _lines(self) -> list[str]:
        lines = super()._lines()
        if self.position is None:
            return lines
        lines[0] += f" (line {self.position['line']}, column {self.position['column']})"
        if self.text is None:
            return lines
        return [lines[0], *_excerpt(self.text, self.position["offset"]), *lines[1:]]


class QuotaError(ServiceError):
    """A tenant of a service would have more than it may have.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.QuotaError("this tenant has 10 subscriptions, and may have no more").code
    'quota'
    """

    code = "quota"


class StoreError(ServiceError):
    """The database of a service cannot be used.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.StoreError("PostgreSQL cannot be reached").code
    'store'
    """

    code = "store"


class MissingDependencyError(MatchmillError, ImportError):
    """An optional package is needed; the message has the command that installs it.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.MissingDependencyError("pip install 'matchmill[spark]'").code
    'missing_dependency'
    """

    code = "missing_dependency"


def warn_caller(message: str) -> None:
    """Warn with the line outside of this package that led here; Python shows it once per line."""
    package = __name__.partition(".")[0]
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        (f"{package}.", "contextlib")
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def shown(value: object, longest: int = 200) -> str:
    """Return the repr of any object in one message: cut if it is long, and even if it has none."""
    if isinstance(value, int) and value.bit_length() > 1000:  # Python refuses to print longer ones
        return f"an integer of {value.bit_length():,} bits"
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - code of the user; the error to report is another one
        return f"an object of type {type(value).__name__} (its repr fails)"
    return text if len(text) <= longest else text[: longest - 1] + "…"


def did_you_mean(name: str, known: Iterable[str], similarity: float = 0.6) -> str:
    """Return `; did you mean 'x'?` if something similar is known, else an empty string."""
    by_folded = {other.casefold(): other for other in known}
    close = difflib.get_close_matches(name.casefold(), by_folded, 1, similarity)
    return f"; did you mean {by_folded[close[0]]!r}?" if close else ""
