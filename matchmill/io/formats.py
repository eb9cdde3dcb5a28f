"""Files: their format by suffix and first bytes, opening them, and plain errors.

    .csv                      comma-separated, the first line names the columns
    .tsv                      the same, separated by tabs
    .jsonl  .ndjson  .json    JSON lines: one object per line
    .parquet                  Parquet

Text may be compressed: .gz (gzip) or .zst (zstd) follows the suffix. A file without a line holds
nothing, which is no error. Text is UTF-8; a byte order mark at the start is skipped. Bytes that are
not UTF-8 come out as lone surrogates (Python's `surrogateescape`), so that one bad row does not
spoil the others.
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
    "compression_of",
    "encoding_problem",
    "folder_files",
    "format_of",
    "missing_column",
    "open_bytes",
    "parquet_input",
    "plain_words",
    "source_of_bytes",
    "text_lines",
]

Kind: TypeAlias = Literal["csv", "jsonl", "parquet"]
Compression: TypeAlias = Literal["gzip", "zstd"]

MAX_LINE = 64 << 20
"""Characters of one line, or of one CSV field; without a bound, one lost quote fills the memory."""

_KINDS: dict[str, Kind] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}
_NO_NAME = Path("<bytes>")
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_COMPRESSIONS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}
_SUFFIXES = ".csv, .tsv, .jsonl, .ndjson, .json (each also with .gz or .zst) and .parquet"
_FIRST_BYTES = (
    (b"\xff\xfe", "UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"),
    (b"PAR1", "Parquet", "name it .parquet"),
    (_GZIP, "compressed by gzip", "add .gz to its name"),
    (_ZSTD, "compressed by zstd", "add .zst to its name"),
    (b"PK\x03\x04", "a zip archive or a spreadsheet", "unpack it, or export it as CSV"),
)


class FileFormat(NamedTuple):
    """The kind of a file, how it is compressed, and what separates the fields of CSV."""

    kind: Kind
    compression: Compression | None = None
    delimiter: str = ","


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
    name, compression = _uncompressed(Path(path).name.lower())
    suffix = Path(name).suffix
    kind = _KINDS.get(suffix)
    if kind is None or (compression and kind == "parquet"):
        raise FileFormatError(f"{path}: the name must end in one of {_SUFFIXES}")
    return FileFormat(kind, compression, "\t" if suffix == ".tsv" else ",")


def _uncompressed(name: str) -> tuple[str, Compression | None]:
    for suffix, compression in _COMPRESSIONS.items():
        if name.endswith(suffix):
            return name.removesuffix(suffix), compression
    return name, None


def compression_of(data: bytes) -> Compression | None:
    """Return how content that begins so is compressed."""
    return "gzip" if data.startswith(_GZIP) else "zstd" if data.startswith(_ZSTD) else None


def source_of_bytes(
    data: bytes, kind: Kind, name: str | None = None, delimiter: str = ","
) -> Source:
    """Return the content of a file that is in memory as a source."""
    if kind not in ("csv", "jsonl", "parquet"):
        raise FileFormatError(f"a format is csv, jsonl or parquet, not {shown(kind)}")
    form = FileFormat(kind, compression_of(data), delimiter)
    source = Source(Path(name) if name else _NO_NAME, form, data)
    if kind != "parquet":
        with plain_words(source.path), closing(open_bytes(source)) as stream:
            _check_first_bytes(source, stream.read(8))
    return source


def check_file(path: str | os.PathLike[str] | Source, kind: Kind | None = None) -> Source:
    """Raise unless the path is a file that looks like what its name says.

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
        if path.stat().st_size == 0 and source.format.kind == "parquet":
            raise FileFormatError(f"{path} is empty, which no Parquet file is")
        if source.format.kind != "parquet":
            with closing(open_bytes(source)) as stream:
                _check_first_bytes(source, stream.read(8))
    return source


def folder_files(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the files in a folder of data, such as Spark writes, and in folders inside of it.

    Names that begin with `_` or `.` are not data. Raises FileFormatError if there are none, or if
    names of folders hold the values of a column.
    """
    root = Path(folder)
    found = []
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root).parts
        if any(part.startswith(("_", ".")) for part in inside) or not path.is_file():
            continue
        columns = [part for part in inside[:-1] if "=" in part]
        if columns:
            raise FileFormatError(
                f"{folder} is partitioned: the name of the folder {columns[0]} holds values of a"
                " column, which is not read; give one such folder"
            )
        try:
            format_of(path)
        except FileFormatError:
            continue
        found.append(path)
    if not found:
        raise FileFormatError(f"{folder} is a folder without data: names end in one of {_SUFFIXES}")
    return found


def _format(path: Path, kind: Kind | None) -> FileFormat:
    if kind is None:
        return format_of(path)
    name, compression = _uncompressed(path.name.lower())
    return FileFormat(kind, compression, "\t" if name.endswith(".tsv") else ",")


def _files_inside(folder: Path) -> str:
    inside = sorted(p.name for p in folder.iterdir() if p.suffix in _KINDS and p.is_file())
    return f" in it, such as {inside[0]}" if inside else ""


def _similar_file(path: Path) -> str:
    if not path.parent.is_dir():
        return f", nor a folder {path.parent}"
    # Suffixes are alike anyway, so ask for more.
    return did_you_mean(path.name, (p.name for p in path.parent.iterdir()), 0.75)


def _check_first_bytes(source: Source, start: bytes) -> None:
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
    except _ZstdError as error:
        raise FileFormatError(
            f"{path} is cut short or damaged, or not compressed by zstd although its name says so:"
            f" {error}"
        ) from error
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
    raw: IO[bytes] | None = None if source.data is None else io.BytesIO(source.data)
    if source.format.compression == "gzip":
        return cast(IO[bytes], gzip.open(source.path if raw is None else raw, "rb"))
    if raw is None:
        raw = source.path.open("rb")
    return io.BufferedReader(_Zstd(raw)) if source.format.compression else raw


class _ZstdError(Exception):
    """The content is not what zstd has written."""


class _Zstd(io.RawIOBase):
    """Uncompressed bytes."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._stream = pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except OSError as error:
            if error.strerror is not None:
                raise
            raise _ZstdError(str(error)) from error
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._raw.close()
        super().close()


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
