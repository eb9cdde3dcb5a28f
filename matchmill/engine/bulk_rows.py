"""Many rows at once: expressions and JSON patterns that kernels can read, all others left.

    chunk ─► pieces ─► TextReader     plain expressions, of their bytes
                       PatternReader  plain patterns, of bytes of JSON or of decoded objects
                       the parser     (`loading.py`) all other rows

A piece says of each row how many clauses it has, 0 if it is for the parser, and what read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.bulk.clauses import BulkClauses, PlainRows
from matchmill.encoding.bulk.dialect_texts import dialect_texts
from matchmill.encoding.bulk.kept_texts import kept_texts
from matchmill.encoding.bulk.pattern_reader import PatternReader, PlainPatterns
from matchmill.encoding.bulk.pattern_work import DERIVATIONS
from matchmill.encoding.bulk.scan import TEXT_DERIVATIONS, TextReader
from matchmill.encoding.clause_encoder import AddedCuts
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.texts import Texts, gather_texts, strings_to_texts, texts_of
from matchmill.engine.subscription_table import EXACT, EXACT_WITHOUT_LISTS
from matchmill.io.subscription_chunks import Columns
from matchmill.kernels.threads import in_advance
from matchmill.language.dialects.eventbridge import stored_text
from matchmill.language.dialects.registry import MATCHMILL
from matchmill.settings import Settings

__all__ = ["BY_PARSER", "BulkRows", "Piece"]

BY_PARSER, _BY_TEXT, _BY_JSON, _BY_OBJECT = range(4)  # what reads a row
_BYTES_AT_ONCE = 1 << 18  # of texts that are read by one thread
_EXACTNESS = np.array([EXACT, EXACT_WITHOUT_LISTS, 0], np.uint8)  # as patterns have it
_BRACE = ord("{")
_SPACES = tuple(b" \t\r\n")


class Piece(NamedTuple):
    """Consecutive rows of a chunk."""

    start: int  # in the chunk
    ids: list[Any]
    texts: Texts
    n_clauses: np.ndarray
    way: np.ndarray  # what reads each row
    is_exact: np.ndarray
    plain: PlainRows | None
    patterns: dict[int, tuple[PlainPatterns, Texts]]  # by way, with the texts that are kept


class BulkRows:
    """Reads chunks of rows, gathers the clauses of those that are accepted."""

    def __init__(self, settings: Settings, dialect: str) -> None:
        is_ours = dialect == MATCHMILL
        self._settings = settings
        self._dialect, self._is_ours = dialect, is_ours
        self._texts = TextReader(settings) if is_ours else None
        self._patterns = PatternReader(settings, is_ours=is_ours)
        self._clauses = {
            _BY_TEXT: BulkClauses(TEXT_DERIVATIONS, are_quoted=True),
            _BY_JSON: BulkClauses(DERIVATIONS, are_quoted=False),
            _BY_OBJECT: BulkClauses(DERIVATIONS, are_quoted=False),
        }
        self.is_useful = self._patterns.is_useful

    # reading

    def pieces(self, columns: Columns) -> Iterator[Piece]:
        """Yield the rows of a chunk in pieces."""
        texts = texts_of(columns.expressions)
        cuts = _cuts(texts)
        pieces = (Texts(texts.offsets[a : b + 1], texts.data) for a, b in pairwise(cuts))
        read = in_advance(self._read, pieces)
        for (start, stop), piece in zip(pairwise(cuts), read, strict=True):
            ids = columns.ids[start:stop]
            yield self._with_objects(piece._replace(start=start, ids=ids), columns)

    def _read(self, texts: Texts) -> Piece:
        n = texts.n_texts
        n_clauses, way = np.zeros(n, np.int64), np.zeros(n, np.uint8)
        plain = None
        if self._texts is not None:
            plain = self._texts.read(texts)
            n_clauses[:] = plain.n_clauses
            way[n_clauses > 0] = _BY_TEXT
        piece = Piece(0, [], texts, n_clauses, way, np.full(n, EXACT, np.uint8), plain, {})
        rows = np.flatnonzero((n_clauses == 0) & (np.diff(texts.offsets) > 0))
        first = texts.data[texts.offsets[rows]]
        rows = rows[(first == _BRACE) | np.isin(first, _SPACES)]
        if len(rows):
            self._add(piece, _BY_JSON, self._patterns.read_json(texts, rows), None)
        return piece

    def _with_objects(self, piece: Piece, columns: Columns) -> Piece:
        """Read the patterns among these rows that are objects."""
        places, objects = columns.patterns
        stop = piece.start + len(piece.ids)
        first, last = np.searchsorted(places, (piece.start, stop)).tolist()
        if first < last:
            rows = np.array(places[first:last], np.int64) - piece.start
            some = objects[first:last]
            self._add(piece, _BY_OBJECT, self._patterns.read_objects(rows, some), some)
        return piece

    def _add(
        self, piece: Piece, way: int, patterns: PlainPatterns, objects: list[Any] | None
    ) -> None:
        """Note what patterns say; those whose texts are too long are for the parser."""
        n_clauses = patterns.n_clauses
        plain = np.flatnonzero(n_clauses)
        if self._is_ours:
            texts = self._patterns.texts(patterns, plain)
        elif objects is None:
            texts = dialect_texts(self._dialect, piece.texts, patterns.rows[plain])
        else:
            texts = strings_to_texts([stored_text(objects[k]) for k in plain.tolist()])
        n_clauses[plain[np.diff(texts.offsets) > self._settings.max_expression_length]] = 0
        kept = Texts(np.zeros(len(n_clauses) + 1, np.int64), texts.data)
        kept.offsets[1:] = texts.offsets[np.searchsorted(plain, np.arange(len(n_clauses)) + 1)]
        piece.n_clauses[patterns.rows] = n_clauses
        piece.way[patterns.rows[n_clauses > 0]] = way
        piece.is_exact[patterns.rows] = _EXACTNESS[patterns.scanned.exactness]
        piece.patterns[way] = patterns, kept

    # clauses

    def gather(self, piece: Piece, is_accepted: np.ndarray) -> None:
        """Take the clauses of the rows of a piece that are accepted and plain."""
        rows = np.flatnonzero(is_accepted & (piece.way == _BY_TEXT))
        if len(rows) and piece.plain is not None:
            self._clauses[_BY_TEXT].gather(piece.plain, rows)
        for way, (patterns, _) in piece.patterns.items():
            own = _taken(piece, way, is_accepted, patterns)
            if len(own):
                self._clauses[way].gather(patterns.plain, own)

    def kept(self, piece: Piece, is_accepted: np.ndarray, others: dict[int, str]) -> Texts:
        """Return the texts of accepted rows; `others` has those of the parser."""
        rows = np.array(sorted(others), np.int64)
        parts = [(rows, strings_to_texts([others[row] for row in rows.tolist()]))]
        for way, (patterns, texts) in piece.patterns.items():
            own = _taken(piece, way, is_accepted, patterns)
            some = Texts(*gather_texts(texts.offsets, texts.data, own))
            parts.append((patterns.rows[own], some))
        return kept_texts(piece.texts, np.flatnonzero(is_accepted), parts)

    def add_cuts(self, cuts: AddedCuts) -> None:
        """Add the cut points of all constants to the dimensions."""
        for clauses in self._clauses.values():
            clauses.add_cuts(cuts)

    def tables(
        self, cuts: AddedCuts, clause_ids: np.ndarray, way: np.ndarray
    ) -> list[ConjunctionTable]:
        """Return the clauses; each has an id, and a way that it was read."""
        return [
            clauses.table(cuts, clause_ids[way == w])
            for w, clauses in self._clauses.items()
            if (way == w).any()
        ]


def _taken(piece: Piece, way: int, is_accepted: np.ndarray, patterns: PlainPatterns) -> np.ndarray:
    """Return which patterns are read this way and accepted."""
    rows = patterns.rows
    return np.flatnonzero(is_accepted[rows] & (piece.way[rows] == way))


def _cuts(texts: Texts) -> list[int]:
    """Return where to cut texts so that pieces are not large: what is made of them is larger."""
    n_pieces = int(texts.offsets[-1] - texts.offsets[0]) // _BYTES_AT_ONCE + 1
    steps = texts.offsets[0] + _BYTES_AT_ONCE * np.arange(1, n_pieces)
    inner = np.searchsorted(texts.offsets, steps)
    return sorted({0, *inner.tolist(), texts.n_texts})
