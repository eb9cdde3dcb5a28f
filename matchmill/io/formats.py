"""Files: their format by suffix and first bytes, opening them, and plain errors.

    .csv  .csv.gz                       comma-separated, the first line names the columns
    .jsonl  .ndjson  .json  (and .gz)   JSON lines: one object per line
    .parquet                            Parquet

Text is UTF-8; a byte order mark at the start is skipped. Bytes that are not UTF-8 come out as
lone surrogates (Python's `surrogateescape`), so that one bad row does not spoil the others.
"""

from __future__ import annotations

import difflib
import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias, cast

import pyarrow as pa

from matchmill.errors import FileFormatError, did_you_mean, shown

__all__ = [
    "MAX_LINE",
    "FileFormat",
    "Kind",
    "Source",
    "check_file",
    "encoding_problem",
    "format_of",
    "missing_column",
    "open_bytes",
    "parquet_input",
    "plain_words",
    "source_of_bytes",
    "text_lines",
]

Kind: TypeAlias = Literal["csv", "jsonl", "parquet"]

MAX_LINE = 64 << 20
"""Characters of one line, or of one CSV field; without a bound, one lost quote fills the memory."""

_KINDS: dict[str, Kind] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}
_NO_NAME = Path("<bytes>")
_GZIP = b"\x1f\x8b"
_SUFFIXES = ".csv, .jsonl, .ndjson, .json (each also with .gz) and .parquet"
_FIRST_BYTES = (
    (b"\xff\xfe", "UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"),
    (b"PAR1", "Parquet", "name it .parquet"),
    (_GZIP, "compressed by gzip", "add .gz to its name"),
    (b"PK\x03\x04", "a zip archive or a spreadsheet", "unpack it, or export it as CSV"),
)


class FileFormat(NamedTuple):
    """The kind of a file, and whether it is compressed."""

    kind: Kind
    is_gzip: bool


class Source(NamedTuple):
    """A file that exists, or its content in memory, and its format."""

    path: Path  # or a name for messages
    format: FileFormat
    data: bytes | None = None  # the content, if it is in memory

    @property
    def name(self) -> str | None:
        """The path as text; None for content without a name."""
        return None if self.path == _NO_NAME else str(self.path)


def format_of(path: str | os.PathLike[str]) -> FileFormat:
    """Return the format that the suffix of a name stands for."""
    name = Path(path).name.lower()
    is_gzip = name.endswith(".gz")
    kind = _KINDS.get(Path(name.removesuffix(".gz")).suffix)
    if kind is None or (is_gzip and kind == "parquet"):
        raise FileFormatError(f"{path}: the name must end in one of {_SUFFIXES}")
    return FileFormat(kind, is_gzip)


def source_of_bytes(data: bytes, kind: Kind, name: str | None = None) -> Source:
    """Return the content of a file that is in memory as a source."""
    if kind not in ("csv", "jsonl", "parquet"):
        raise FileFormatError(f"a format is csv, jsonl or parquet, not {shown(kind)}")
    source = Source(Path(name) if name else _NO_NAME, FileFormat(kind, data[:2] == _GZIP), data)
    if kind != "parquet":
        with plain_words(source.path), closing(open_bytes(source)) as stream:
            _check_first_bytes(source, stream.read(8))
    return source


def check_file(path: str | os.PathLike[str] | Source, kind: Kind | None = None) -> Source:
    """Raise unless the path is a file that is not empty and looks like what its name says.

    `kind` is what the file holds, if its name does not say it.
    """
    if isinstance(path, Source):
        return path
    path = Path(str.__str__(path) if isinstance(path, str) else path)
    with plain_words(path):
        if path.is_dir():
            raise FileFormatError(f"{path} is a folder; give a file{_files_inside(path)}")
        if not path.exists():
            raise FileFormatError(f"{path}: there is no such file{_similar_file(path)}")
        source = Source(path, _format(path, kind))
        if not path.is_file():
            return source  # a pipe: what is read of it here would be lost
        if path.stat().st_size == 0:
            raise FileFormatError(f"{path} is empty")
        if source.format.kind != "parquet":
            with closing(open_bytes(source)) as stream:
                _check_first_bytes(source, stream.read(8))
    return source


def _format(path: Path, kind: Kind | None) -> FileFormat:
    if kind is None:
        return format_of(path)
    return FileFormat(kind, path.name.lower().endswith(".gz"))


def _files_inside(folder: Path) -> str:
    inside = sorted(p.name for p in folder.iterdir() if p.suffix in _KINDS and p.is_file())
    return f" in it, such as {inside[0]}" if inside else ""


def _similar_file(path: Path) -> str:
    if not path.parent.is_dir():
        return f", nor a folder {path.parent}"
    # Suffixes are alike anyway, so ask for more.
    return did_you_mean(path.name, (p.name for p in path.parent.iterdir()), 0.75)


def _check_first_bytes(source: Source, start: bytes) -> None:
    if not start:
        raise FileFormatError(f"{source.path} is empty")
    for magic, what, advice in _FIRST_BYTES:
        if start.startswith(magic):
            raise FileFormatError(f"{source.path} is {what}, not UTF-8 text; {advice}")


def missing_column(
    path: Path | str,
    name: str,
    columns: list[str],
    option: str,
    advice: str = "",
    used: Iterable[str] = (),
) -> FileFormatError:
    """Return the error for a column that is absent or there twice; its hint names the option.

    `used` are columns that have another role already.
    """
    listed = ", ".join(columns[:20]) + (", …" if len(columns) > 20 else "")
    if columns.count(name) > 1:
        return FileFormatError(
            f"{path}: the column {shown(name)} occurs {columns.count(name)} times; it has: {listed}"
        )
    error = FileFormatError(f"{path}: there is no column {shown(name)}; it has: {listed}{advice}")
    candidates = [column for column in columns if column not in used] or columns
    if columns and not advice:
        error.hint = f"name the right one with {_option_text(option, _best(name, candidates))}"
    return error


def _best(name: str, columns: list[str]) -> str:
    """Return the column that is most likely meant."""
    last = name.rpartition("_")[2]  # subscription_id: id
    folded = {column.casefold(): column for column in columns}
    close = difflib.get_close_matches(name.casefold(), folded, 1, 0.8)
    return folded.get(last) or (folded[close[0]] if close else columns[0])


def _option_text(option: str, value: str) -> str:
    if not option.startswith("-"):
        return f'{option}="{value}"'
    return f"{option} {value}"


@contextmanager
def plain_words(path: Path) -> Iterator[None]:
    """Turn errors of the operating system, gzip and Arrow into one that names the file."""
    try:
        yield
    except gzip.BadGzipFile as error:
        raise FileFormatError(
            f"{path} is damaged, or not compressed by gzip although its name says so: {error}"
        ) from error
    except (EOFError, zlib.error) as error:
        raise FileFormatError(f"{path} is cut short or damaged: {error}") from error
    except pa.ArrowException as error:
        raise _arrow_error(path, error) from error
    except OSError as error:  # Arrow's errors of reading are of this kind, too
        if error.strerror is None:
            raise _arrow_error(path, error) from error
        raise FileFormatError(f"{path}: {error.strerror}") from error


def _arrow_error(path: Path, error: Exception) -> FileFormatError:
    what = str(error).strip().partition("\n")[0]
    return FileFormatError(f"{path} is not Parquet, cut short or damaged: {what}")


def open_bytes(source: Source) -> IO[bytes]:
    """Open a text file, uncompressed."""
    if source.data is not None:
        data = gzip.decompress(source.data) if source.format.is_gzip else source.data
        return io.BytesIO(data)
    if source.format.is_gzip:
        return cast(IO[bytes], gzip.open(source.path, "rb"))
    return source.path.open("rb")


def parquet_input(source: Source) -> Any:
    """Return what Arrow opens as a Parquet file."""
    return source.path if source.data is None else pa.BufferReader(source.data)


def text_lines(source: Source) -> Iterator[str]:
    """Return the lines of a text file, each with its line feed."""
    with plain_words(source.path), closing(open_bytes(source)) as raw:
        # Not the codec's own `utf-8-sig`: that would decode in Python.
        text = io.TextIOWrapper(raw, "utf-8", errors="surrogateescape", newline="\n")
        line = text.readline(MAX_LINE).removeprefix("\ufeff")
        number = 0
        while line:
            number += 1
            if len(line) == MAX_LINE:
                raise FileFormatError(
                    f"{source.path}, line {number}: longer than {MAX_LINE:,} characters;"
                    " are there line feeds in the file?"
                )
            yield line
            line = text.readline(MAX_LINE)


def encoding_problem(text: str) -> str | None:
    """Return why a text from `text_lines` is not UTF-8; None if it is."""
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"byte 0x{ord(text[error.start]) - 0xDC00:02X} is not valid UTF-8"
    return None
