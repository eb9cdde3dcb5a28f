"""Rows of a CSV file with their line numbers; a bad row does not stop the others.

The first row names the columns. Fields are separated by commas, or by tabs if the name of the file
says so; a field with separators, line feeds or quotes stands in double quotes, and a quote inside
it is doubled. Blank lines are skipped. Python's reader in strict mode does the splitting: it keeps
a quote inside of an unquoted field, and rejects text after a closing quote, which lenient readers
silently append.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

from matchmill.errors import FileFormatError
from matchmill.io.formats import MAX_LINE, Source, encoding_problem, text_lines

__all__ = ["CsvRow", "CsvRows"]

_ROWS_AT_ONCE = 1024
_limit_lock = Lock()


class CsvRow(NamedTuple):
    """A row, and the line where it begins. A row with a problem has no fields that make sense."""

    line: int
    fields: list[str]
    problem: str | None


class CsvRows:
    """Iterates, once, over the rows below the header; close it afterwards."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lines = text_lines(source)
        self._n_lines = 0
        self._ended = False
        delimiter = source.format.delimiter
        self._reader = csv.reader(self._checked_lines(), strict=True, delimiter=delimiter)
        try:
            self.header = self._read_header()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._lines.close()  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[CsvRow]:
        n_columns = len(self.header)
        while not self._ended:
            for row in self._some_rows():
                if row.problem is None and len(row.fields) != n_columns:
                    yield row._replace(problem=_wrong_length(len(row.fields), n_columns))
                else:
                    yield row

    def _checked_lines(self) -> Iterator[str]:
        for line in self._lines:
            self._n_lines += 1
            if "\0" in line:
                self._fail(self._n_lines, "a NUL byte; is this text, in UTF-8?")
            yield line
        self._ended = True

    def _fail(self, line: int, what: str) -> None:
        raise FileFormatError(f"{self._source.path}, line {line}: {what}")

    def _read_header(self) -> list[str]:
        for row in self._some_rows(1):
            problem = row.problem or encoding_problem("".join(row.fields))
            if problem:
                self._fail(row.line, f"the names of the columns: {problem}")
            return row.fields
        return []  # nothing but blank lines

    def _some_rows(self, n_rows: int = _ROWS_AT_ONCE) -> list[CsvRow]:
        """Return the next rows; fewer only at the end."""
        rows: list[CsvRow] = []
        with _wide_fields():
            while len(rows) < n_rows:
                line = self._n_lines + 1
                try:
                    fields = next(self._reader)
                except StopIteration:
                    break
                except csv.Error as error:
                    rows.append(CsvRow(line, [], self._explain(line, error)))
                else:
                    if fields:
                        rows.append(CsvRow(line, fields, None))
        return rows

    def _explain(self, line: int, error: csv.Error) -> str:
        if self._ended:
            self._fail(line, "a double quote that opens in this row is never closed")
        if "limit" in str(error):
            self._fail(
                line,
                f"a field in this row is longer than {MAX_LINE:,} characters;"
                " perhaps a double quote that opens in it is never closed",
            )
        if "new-line" in str(error):
            return "a carriage return without a line feed; end lines with a line feed"
        where = "" if self._n_lines == line else f" (this row goes on to line {self._n_lines})"
        return (
            f"text after a closing double quote{where}; a field with commas or quotes stands in"
            ' quotes, and each quote inside it is doubled: "say ""hi"""'
        )


@contextmanager
def _wide_fields() -> Iterator[None]:
    """Allow longer fields for a moment; Python has one limit for the whole process."""
    with _limit_lock:
        limit = csv.field_size_limit(MAX_LINE)
        try:
            yield
        finally:
            csv.field_size_limit(limit)


def _wrong_length(n_fields: int, n_columns: int) -> str:
    hint = "; a field with commas stands in double quotes" if n_fields > n_columns else ""
    return f"{n_fields} fields instead of {n_columns}{hint}"
