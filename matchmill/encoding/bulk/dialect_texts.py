"""What is stored of patterns of another dialect: its name, and the JSON text in quotes.

    { "a": ["it's"] }   ─►   eventbridge '{"a":["it''s"]}'

White space outside of texts is left out. The patterns are valid JSON.
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.texts import Texts
from matchmill.kernels.jit import int64, kernel

__all__ = ["dialect_texts"]


def dialect_texts(dialect: str, texts: Texts, rows: np.ndarray) -> Texts:
    """Return what is stored of some of these texts."""
    prefix = np.frombuffer(bytearray(f"{dialect} '".encode()), np.uint8)
    n_bytes = int((texts.offsets[rows + 1] - texts.offsets[rows]).sum())
    out = np.empty(2 * n_bytes + len(rows) * (len(prefix) + 1), np.uint8)
    offsets = np.zeros(len(rows) + 1, np.int64)
    _quote(texts.data, texts.offsets, rows, prefix, out, offsets)
    return Texts(offsets, out[: offsets[-1]].copy())


@kernel
def _quote(
    data: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
    prefix: np.ndarray,
    out: np.ndarray,
    out_offsets: np.ndarray,
) -> None:
    n = int64(0)
    for i in range(len(rows)):
        for k in range(len(prefix)):
            out[n] = prefix[k]
            n += 1
        is_text = is_escaped = False
        for k in range(offsets[rows[i]], offsets[rows[i] + 1]):
            b = data[k]
            if not is_text and (b == 32 or b == 10 or b == 13 or b == 9):
                continue
            if b == 39:
                out[n] = 39
                n += 1
            elif b == 34 and not is_escaped:
                is_text = not is_text
            is_escaped = b == 92 and not is_escaped
            out[n] = b
            n += 1
        out[n] = 39
        n += 1
        out_offsets[i + 1] = n
