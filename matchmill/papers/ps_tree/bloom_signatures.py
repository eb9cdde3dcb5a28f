"""Signatures of leaves: which clauses have a predicate, not of access, that holds there.

A signature is a Bloom filter with one hash (PS-Tree, section 5.1):

    leaf         extra: its first word; extra_size: the logarithm of its number of bits, or 0
    clause       one bit, named by the first bits of the mixed place of the clause

It has eight bits or more for each predicate that covers the leaf, up to a limit, `most`: its
logarithm, 17 unless the option `signature_bits` says more or less. As the first bits of the hash
count, a filter that is too small is doubled without knowing what is in it: each bit becomes two.
Nothing is taken out of a filter; one that no predicate needs is dropped, and the index writes all
of them again once as many clauses have been deleted as there are.
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.hashing import mix31
from matchmill.kernels.jit import int64, kernel
from matchmill.papers.common.pools import Spans, give_span, take_span
from matchmill.papers.ps_tree.forest import EXTRA, EXTRA_SIZE

__all__ = [
    "FEWEST_BITS",
    "HASH_BITS",
    "MOST_BITS",
    "copy_signature",
    "drop_signature",
    "grow_signature",
    "is_too_small",
    "new_signature",
    "sign",
    "signature_words_needed",
]

HASH_BITS = 31
_LEAST = 6
FEWEST_BITS, MOST_BITS = 1 << _LEAST, 1 << 30  # of a signature, whatever its limit
_BITS_PER_PREDICATE = 8


@kernel
def signature_words_needed(leaves: np.ndarray, leaf: int) -> int:
    """At most so many words are taken while a leaf is divided twice and signed once."""
    return 3 * 2 * ((1 << max(int(leaves[leaf, EXTRA_SIZE]), _LEAST)) >> 6)


@kernel
def new_signature(signatures: Spans, leaves: np.ndarray, leaf: int, n: int, most: int) -> None:
    """Make an empty signature for n predicates; the leaf must have none."""
    size = _LEAST
    while size < most and 1 << size < _BITS_PER_PREDICATE * n:
        size += 1
    _take(signatures, leaves, leaf, size)


@kernel
def _take(signatures: Spans, leaves: np.ndarray, leaf: int, size: int) -> None:
    n_words = (1 << size) >> 6
    start = take_span(signatures, n_words)
    signatures.cells[start : start + n_words] = 0
    leaves[leaf, EXTRA] = start
    leaves[leaf, EXTRA_SIZE] = size


@kernel
def is_too_small(leaves: np.ndarray, leaf: int, n: int, most: int) -> bool:
    """Whether a signature should grow before n predicates cover the leaf."""
    size = leaves[leaf, EXTRA_SIZE]
    return bool(size < most and 1 << size < _BITS_PER_PREDICATE * n)


@kernel
def grow_signature(signatures: Spans, leaves: np.ndarray, leaf: int) -> None:
    """Twice the bits, or the first ones."""
    if leaves[leaf, EXTRA_SIZE] == 0:
        _take(signatures, leaves, leaf, _LEAST)
    else:
        _double(signatures, leaves, leaf)


@kernel
def sign(signatures: Spans, leaves: np.ndarray, leaf: int, place: int) -> None:
    """Put a clause into the signature of a leaf that has one."""
    size = int(leaves[leaf, EXTRA_SIZE])
    bit = mix31(place) >> (HASH_BITS - size)
    signatures.cells[leaves[leaf, EXTRA] + (bit >> 6)] |= int64(1) << int64(bit & 63)


@kernel
def _double(signatures: Spans, leaves: np.ndarray, leaf: int) -> None:
    words = signatures.cells
    size = int(leaves[leaf, EXTRA_SIZE])
    old = int(leaves[leaf, EXTRA])
    _take(signatures, leaves, leaf, size + 1)
    new = int(leaves[leaf, EXTRA])
    for bit in range(1 << size):
        if (words[old + (bit >> 6)] >> int64(bit & 63)) & 1:
            # Both halves of a pair lie in one word.
            words[new + (bit >> 5)] |= int64(3) << int64(2 * bit & 63)
    give_span(signatures, old, (1 << size) >> 6)


@kernel
def copy_signature(signatures: Spans, leaves: np.ndarray, old: int, new: int) -> None:
    """Give a leaf that was divided off a signature of its own."""
    size = int(leaves[old, EXTRA_SIZE])
    if size:
        _take(signatures, leaves, new, size)
        words = signatures.cells
        first, start = leaves[old, EXTRA], leaves[new, EXTRA]
        for k in range((1 << size) >> 6):
            words[start + k] = words[first + k]


@kernel
def drop_signature(signatures: Spans, leaves: np.ndarray, leaf: int) -> None:
    """Give back the signature of a leaf."""
    size = int(leaves[leaf, EXTRA_SIZE])
    if size:
        give_span(signatures, int(leaves[leaf, EXTRA]), (1 << size) >> 6)
        leaves[leaf, EXTRA_SIZE] = 0
