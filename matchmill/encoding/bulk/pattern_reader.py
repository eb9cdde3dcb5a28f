"""JSON patterns in bulk: those of a chunk as plain rows, with the texts that are kept of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.bulk.clauses import PlainRows
from matchmill.encoding.bulk.json_tokens import tokens_of_json
from matchmill.encoding.bulk.object_tokens import tokens_of_objects
from matchmill.encoding.bulk.pattern_texts import pattern_texts
from matchmill.encoding.bulk.patterns import ScannedPatterns, scan_patterns
from matchmill.encoding.bulk.tokens import Tokens
from matchmill.encoding.texts import Texts
from matchmill.settings import Settings

__all__ = ["PatternReader", "PlainPatterns"]

_DEEP_ENOUGH = 10  # a limit of depth that no plain pattern comes near


class PlainPatterns(NamedTuple):
    """Patterns of some rows of a chunk."""

    rows: np.ndarray  # in the chunk
    tokens: Tokens
    scanned: ScannedPatterns

    @property
    def n_clauses(self) -> np.ndarray:
        """How many clauses each has, 0 if it is not plain."""
        return self.scanned.scanned.row_clauses

    @property
    def plain(self) -> PlainRows:
        """The patterns as rows."""
        return PlainRows(self.scanned.scanned, self.scanned.names, self.scanned.data)


class PatternReader:
    """Reads patterns of a dialect; those that are not plain have no predicates."""

    def __init__(self, settings: Settings, *, is_ours: bool) -> None:
        self._settings = settings
        self._is_ours = is_ours
        self.is_useful = settings.max_depth >= _DEEP_ENOUGH

    def read_json(self, texts: Texts, rows: np.ndarray) -> PlainPatterns:
        """Read patterns of text: some rows of a chunk."""
        lengths = texts.offsets[rows + 1] - texts.offsets[rows]
        rows = rows[lengths <= self._settings.max_expression_length]
        return self._read(rows, tokens_of_json(texts, rows))

    def read_objects(self, rows: np.ndarray, objects: Sequence[Any]) -> PlainPatterns:
        """Read decoded patterns, which are at these rows of a chunk."""
        return self._read(rows, tokens_of_objects(objects))

    def _read(self, rows: np.ndarray, tokens: Tokens) -> PlainPatterns:
        return PlainPatterns(rows, tokens, scan_patterns(tokens, self._settings, self._is_ours))

    def texts(self, patterns: PlainPatterns, some: np.ndarray) -> Texts:
        """Return some plain patterns as expressions."""
        return pattern_texts(patterns.tokens, patterns.scanned, some)
