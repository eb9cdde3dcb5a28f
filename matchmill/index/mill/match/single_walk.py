"""The walk over all slots that one event visits: which of their clauses hold.

Tests are done in two steps without branches that could be predicted wrong: the first tests of a
stretch of entries, then all others of those that are left. The first test is the least likely.
The next slots are being loaded meanwhile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.index.mill.arrays import (
    N_MASKS,
    N_POINTS,
    ids_of,
    pool_of,
    sizes_of,
    tests_of,
    words_of,
)
from matchmill.index.mill.match.event_state import (
    STRETCH,
    candidates_of,
    codes_of,
    out_of,
    truth_of,
    values_of,
    visits_of,
)
from matchmill.index.mill.match.inline_tests import inline_tests_hold, missing_tests, word_holds
from matchmill.index.mill.words import (
    INLINE_KIND,
    MASK_KIND,
    block_at,
    column_of,
    slot_length,
    slot_start,
)
from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["walk_slots"]

_AHEAD = 3  # slots that are being loaded
_LOADED = 512  # words of a slot that are loaded in advance, at most
_ONE, _TWO, _FOUR = (uint64(n) for n in (1, 2, 4))


@kernel
def _holds(truth: np.ndarray, test: Any) -> Any:
    """Return 1 if a shared predicate holds, else 0."""
    return uint64(truth[uint64(test)])


@kernel
def _four_hold(truth: np.ndarray, tests: np.ndarray, k: Any) -> Any:
    first = _holds(truth, tests[k]) & _holds(truth, tests[k + _ONE])
    return first & _holds(truth, tests[k + _TWO]) & _holds(truth, tests[k + _TWO + _ONE])


@kernel
def walk_slots(mill: Any, state: Any, n_slots: int, n_out: int) -> tuple[int, int]:
    """Append the ids of all entries that hold; return (ids written, entries looked at).

    If there is no room for a block's entries, the first number is beyond it.
    """
    sizes, words, ids, tests = sizes_of(mill), words_of(mill), ids_of(mill), tests_of(mill)
    pool = pool_of(mill)
    truth, values, codes = truth_of(state), values_of(state), codes_of(state)
    visits, candidates, out = visits_of(state), candidates_of(state), out_of(state)
    n_masks = uint64(sizes[N_MASKS])
    first_interval = n_masks + uint64(sizes[N_POINTS])
    missing = uint64(0)  # tests of the slot's dictionary that do not hold
    n_seen = 0
    for i in range(n_slots):
        if i + _AHEAD < n_slots:
            start = slot_start(visits[i + _AHEAD])
            length = min(slot_length(visits[i + _AHEAD]), _LOADED)
            for k in range(start + 8, start + length, 8):
                prefetch(words, k)
        at = slot_start(visits[i])
        follows = True
        while follows:
            block = block_at(words, at)
            follows = block.follows
            at = block.end
            n = block.n_entries
            if n == 0:
                missing = missing_tests(truth, tests, block.tests_at, block.n_tests)
                continue
            n_seen += n
            if n_out + n >= len(out):
                return len(out) + 1, n_seen
            tests_at, step = uint64(block.tests_at), uint64(block.n_tests)
            skipped = uint64(block.n_tests > 0)  # the first test, done before
            n_rest = step - skipped
            e = 0
            while e < n:
                # First tests: which entries of this stretch are left.
                stop_at = min(n, e + STRETCH)
                n_left = 0
                k = tests_at + uint64(e) * step
                if block.uses_dictionary:
                    while e < stop_at:
                        candidates[uint64(n_left)] = e
                        n_left += int64(words[uint64(block.masks_at + e)] & missing == 0)
                        e += 1
                elif block.n_tests == 0:
                    while e < stop_at:
                        candidates[uint64(n_left)] = e
                        n_left += 1
                        e += 1
                while e < stop_at:
                    t = uint64(tests[k])
                    candidates[uint64(n_left)] = e
                    n_left += int64(truth[t])
                    k += step
                    e += 1
                # All other tests of those.
                for j in range(n_left):
                    entry = uint64(candidates[uint64(j)])
                    k = tests_at + entry * step + skipped
                    ok = _ONE
                    for _ in range(n_rest >> _TWO):
                        ok &= _four_hold(truth, tests, k)
                        k += _FOUR
                    if n_rest & _TWO != 0:
                        ok &= _holds(truth, tests[k]) & _holds(truth, tests[k + _ONE])
                        k += _TWO
                    if n_rest & _ONE != 0:
                        ok &= _holds(truth, tests[k])
                    k = uint64(block.inline_at) + entry * uint64(block.n_inline)
                    stop = k + uint64(block.n_inline)
                    if block.kind == MASK_KIND:
                        while k < stop:
                            ok &= words[k] >> uint64(values[column_of(words[k])])
                            k += _ONE
                    elif block.kind == INLINE_KIND:
                        found = uint64(0)
                        while k < stop:
                            value = uint64(values[column_of(words[k])])
                            holds, found = word_holds(
                                words[k], value, found, n_masks, first_interval
                            )
                            ok &= holds
                            k += _ONE
                    elif ok & _ONE != 0:
                        ok = uint64(inline_tests_hold(sizes, words, pool, k, stop, values, codes))
                    out[uint64(n_out)] = ids[uint64(block.ids_at) + entry]
                    n_out += int64(ok & _ONE)
    return n_out, n_seen
