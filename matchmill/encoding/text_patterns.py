"""Find many patterns in a text at once.

Every index says how many `instructions` it has: what it costs for each byte of text, at worst, in
units of one instruction of RE2 (about 20 ns). `encoding/pattern_work` keeps events from costing
more than the settings allow.

Substrings are found by one Aho-Corasick automaton in flat arrays:

    edge_slots   open-addressed hash of (node, byte) → child
    fail         the longest proper suffix of a node's path that is a path itself
    report       the pattern that ends at a node, or -1
    shorter      the next node on the fail chain that reports a pattern, or -1

Like patterns with several pieces, such as 'a%b_c', are found by their longest literal, and checked:

    '%error_code%='      literal  'error'      tokens  % e r r o r _ c o d e % =

The check goes through text and tokens once, and back to the last `%` on a mismatch; so it takes at
most (text × pattern) steps, of about a nanosecond. Patterns without a literal are always checked.

Regular expressions are found by `re2.Set`s of bounded size, one pass per set. Each set also holds a
pattern that fits every text: if its answer is missing, the set ran out of memory, and the patterns
are tried one by one. So a limit can cost time, but never a match.

Patterns that come later are compiled by themselves, in *tiers*: 1,000 patterns, then 60, then 2. A
tier is compiled again only together with at least half as many new ones, so that a pattern is
compiled a few times however many come one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import re2

from matchmill.encoding.texts import Texts, one_text, strings_to_texts
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import kernel
from matchmill.language.patterns import compile_regex, like_tokens, program_size, regex_options
from matchmill.language.values import fold_case

__all__ = [
    "LikeIndex",
    "PatternMatcher",
    "PatternTiers",
    "RegexIndex",
    "SubstringIndex",
    "lower_texts",
]


# -- substrings -----------------------------------------------------------------------------------


class Automaton(NamedTuple):
    """The automaton of all substrings."""

    edge_keys: np.ndarray  # node * 256 + byte, or -1 for a free slot
    edge_children: np.ndarray
    fail: np.ndarray
    report: np.ndarray
    shorter: np.ndarray


@kernel
def _slot(edge_keys: np.ndarray, key: int) -> int:
    mask = len(edge_keys) - 1
    slot = (key * 0x9E3779 >> 13) & mask  # keys stay below 2**39: no overflow
    while edge_keys[slot] != -1 and edge_keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def _build_automaton(patterns: Texts, edge_keys: np.ndarray, n_nodes_max: int) -> Automaton:
    edge_children = np.zeros(len(edge_keys), np.int32)
    fail = np.zeros(n_nodes_max, np.int32)
    report = np.full(n_nodes_max, -1, np.int32)
    shorter = np.full(n_nodes_max, -1, np.int32)
    parent = np.zeros(n_nodes_max, np.int32)
    byte = np.zeros(n_nodes_max, np.int32)
    depth = np.zeros(n_nodes_max, np.int32)
    n_nodes = 1
    for p in range(len(patterns.offsets) - 1):
        node = 0
        for k in range(patterns.offsets[p], patterns.offsets[p + 1]):
            key = np.int64(node) * 256 + patterns.data[k]
            slot = _slot(edge_keys, key)
            if edge_keys[slot] == -1:
                edge_keys[slot] = key
                edge_children[slot] = n_nodes
                parent[n_nodes] = node
                byte[n_nodes] = patterns.data[k]
                depth[n_nodes] = depth[node] + 1
                n_nodes += 1
            node = edge_children[slot]
        report[node] = p
    for node in np.argsort(depth[:n_nodes]):  # parents before children
        if depth[node] > 1:
            up = fail[parent[node]]
            while True:
                slot = _slot(edge_keys, np.int64(up) * 256 + byte[node])
                if edge_keys[slot] != -1:
                    fail[node] = edge_children[slot]
                    break
                if up == 0:
                    break
                up = fail[up]
        below = fail[node]
        shorter[node] = below if report[below] >= 0 else shorter[below]
    return Automaton(edge_keys, edge_children, fail[:n_nodes], report[:n_nodes], shorter[:n_nodes])


@kernel
def _find_substrings(
    automaton: Automaton, texts: Texts, seen: np.ndarray, out: np.ndarray, n_out: int
) -> int:
    """Write (text, pattern) pairs, each once; return how many there are, even if out is full."""
    for t in range(len(texts.offsets) - 1):
        node = 0
        for k in range(texts.offsets[t], texts.offsets[t + 1]):
            while True:
                slot = _slot(automaton.edge_keys, np.int64(node) * 256 + texts.data[k])
                if automaton.edge_keys[slot] != -1:
                    node = automaton.edge_children[slot]
                    break
                if node == 0:
                    break
                node = automaton.fail[node]
            hit = node if automaton.report[node] >= 0 else automaton.shorter[node]
            while hit >= 0:
                p = automaton.report[hit]
                if seen[p] == t + 1:
                    break  # then all shorter ones have been seen as well
                seen[p] = t + 1
                if n_out < len(out):
                    out[n_out, 0] = t
                    out[n_out, 1] = p
                n_out += 1
                hit = automaton.shorter[hit]
    return n_out


class SubstringIndex:
    """Finds distinct, non-empty substrings."""

    instructions = 0  # its time does not depend on what it looks for

    def __init__(self, patterns: list[str]) -> None:
        texts = strings_to_texts(patterns)
        n_nodes_max = len(texts.data) + 1
        n_slots = 1 << max(4, int(2 * n_nodes_max).bit_length())
        self._n_patterns = len(patterns)
        self._automaton = _build_automaton(texts, np.full(n_slots, -1, np.int64), n_nodes_max)

    def find(self, texts: Texts) -> np.ndarray:
        """Return (text, pattern) pairs."""
        out = np.empty((4 * texts.n_texts + 64, 2), np.int64)
        while True:
            seen = np.zeros(self._n_patterns, np.int64)
            n_found = _find_substrings(self._automaton, texts, seen, out, 0)
            if n_found <= len(out):
                return out[:n_found]
            out = np.empty((n_found, 2), np.int64)

    def patterns_of(self, text: str) -> list[int]:
        """Return the patterns that one text has."""
        patterns: list[int] = self.find(one_text(text))[:, 1].tolist()
        return patterns


# -- like -----------------------------------------------------------------------------------------

_ANY_CHARACTER, _ANY_TEXT = -1, -2
_CHECKS_PER_INSTRUCTION = 16
_FEW_LITERALS = 64  # Python looks for so few faster than the automaton


class LikePatterns(NamedTuple):
    """Patterns as tokens: characters, and negative numbers for the wildcards."""

    offsets: np.ndarray
    tokens: np.ndarray
    literal_offsets: np.ndarray  # CSR: literal → the patterns that need it
    patterns_of_literal: np.ndarray
    unfiltered: np.ndarray  # patterns without a literal


@kernel
def _decode(texts: Texts, t: int, out: np.ndarray) -> int:
    """Write the characters of one text; return how many there are."""
    n = 0
    k = texts.offsets[t]
    while k < texts.offsets[t + 1]:
        lead = texts.data[k]
        length = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        code = np.int64(lead) if length == 1 else np.int64(lead) & (0x7F >> length)
        for j in range(1, length):
            code = (code << 6) | (texts.data[k + j] & 0x3F)
        out[n] = code
        n += 1
        k += length
    return n


@kernel
def _like_fits(tokens: np.ndarray, p: int, end: int, text: np.ndarray, n: int) -> bool:
    """Tell whether tokens[p:end] fit the whole text, as `patterns.like_matches` does."""
    t = 0
    resume_token, resume_text = -1, 0
    while t < n:
        if p < end and tokens[p] == -2:
            resume_token, resume_text = p, t
            p += 1
            if p == end:
                return True
        elif p < end and (tokens[p] == -1 or tokens[p] == text[t]):
            p += 1
            t += 1
        elif resume_token >= 0:
            resume_text += 1
            p, t = resume_token + 1, resume_text
        else:
            return False
    while p < end and tokens[p] == -2:
        p += 1
    return p == end


@kernel
def _find_likes(
    patterns: LikePatterns, texts: Texts, hits: np.ndarray, characters: np.ndarray, out: np.ndarray
) -> int:
    """Write (text, pattern) pairs; return how many there are, even if out is full."""
    n_out = h = 0
    for t in range(len(texts.offsets) - 1):
        first = h
        while h < len(hits) and hits[h, 0] == t:
            h += 1
        if first == h and len(patterns.unfiltered) == 0:
            continue
        n = _decode(texts, t, characters)
        for k in range(first - 1, h):
            if k < first:
                start, stop = 0, len(patterns.unfiltered)
            else:
                start = patterns.literal_offsets[hits[k, 1]]
                stop = patterns.literal_offsets[hits[k, 1] + 1]
            for i in range(start, stop):
                p = patterns.unfiltered[i] if k < first else patterns.patterns_of_literal[i]
                at, end = patterns.offsets[p], patterns.offsets[p + 1]
                if _like_fits(patterns.tokens, at, end, characters, n):
                    if n_out < len(out):
                        out[n_out, 0] = t
                        out[n_out, 1] = p
                    n_out += 1
    return n_out


class LikeIndex:
    """Finds like patterns that fit the whole of a text."""

    def __init__(self, patterns: list[str]) -> None:
        tokens = [_tokens_of(pattern) for pattern in patterns]
        self.instructions = sum(1 + len(each) // _CHECKS_PER_INSTRUCTION for each in tokens)
        literals: dict[str, list[int]] = {}
        for p, each in enumerate(tokens):
            literals.setdefault(_longest_literal(each), []).append(p)
        unfiltered = literals.pop("", [])
        counts = np.array([len(users) for users in literals.values()], np.int64)
        self._patterns = LikePatterns(
            offsets_of(np.array([len(each) for each in tokens], np.int64)),
            np.array([token for each in tokens for token in each], np.int32),
            offsets_of(counts),
            np.array([p for users in literals.values() for p in users], np.int64),
            np.array(unfiltered, np.int64),
        )
        self._literals = list(literals)
        self._index = SubstringIndex(self._literals)

    def find(self, texts: Texts) -> np.ndarray:
        """Return (text, pattern) pairs."""
        return self._checked(texts, self._index.find(texts))

    def _checked(self, texts: Texts, hits: np.ndarray) -> np.ndarray:
        characters = np.empty(int(np.diff(texts.offsets).max(initial=0)), np.int32)
        out = np.empty((len(hits) + len(self._patterns.unfiltered) * texts.n_texts, 2), np.int64)
        while True:
            n_found = _find_likes(self._patterns, texts, hits, characters, out)
            if n_found <= len(out):
                return out[:n_found]
            out = np.empty((n_found, 2), np.int64)

    def patterns_of(self, text: str) -> list[int]:
        """Return the patterns that fit one text."""
        texts = one_text(text)
        if len(self._literals) > _FEW_LITERALS:
            hits = self._index.find(texts)
        else:
            found = [(0, n) for n, literal in enumerate(self._literals) if literal in text]
            if not found and not len(self._patterns.unfiltered):
                return []
            hits = np.array(found, np.int64).reshape(-1, 2)
        patterns: list[int] = self._checked(texts, hits)[:, 1].tolist()
        return patterns


def _tokens_of(pattern: str) -> list[int]:
    wildcards = {"_": _ANY_CHARACTER, "%": _ANY_TEXT}
    return [ord(c) if literal else wildcards[c] for c, literal in like_tokens(pattern)]


def _longest_literal(tokens: list[int]) -> str:
    """Return the longest run of characters, an empty text if there is none."""
    text = "".join("\0" if token < 0 else chr(token) for token in tokens)
    return max(text.split("\0"), key=len)


# -- regular expressions --------------------------------------------------------------------------

_PATTERNS_PER_SET = 500
_BYTES_PER_SET = 64 << 20


@kernel
def _expand(offsets: np.ndarray, patterns: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return (text, pattern) pairs from the patterns of each distinct text."""
    n = 0
    for t in range(len(codes)):
        n += offsets[codes[t] + 1] - offsets[codes[t]]
    out = np.empty((n, 2), np.int64)
    n = 0
    for t in range(len(codes)):
        for k in range(offsets[codes[t]], offsets[codes[t] + 1]):
            out[n, 0] = t
            out[n, 1] = patterns[k]
            n += 1
    return out


class RegexIndex:
    """Finds regular expressions anywhere in a text."""

    def __init__(self, patterns: list[str], *, max_mem: int = _BYTES_PER_SET) -> None:
        self._patterns = patterns
        self.instructions = sum(map(program_size, patterns))
        self._sets: list[tuple[int, Any]] = []
        for start in range(0, len(patterns), _PATTERNS_PER_SET):
            group = patterns[start : start + _PATTERNS_PER_SET]
            self._sets.append((start, _compiled_set(group, max_mem)))

    def find(self, texts: pa.LargeStringArray) -> np.ndarray:
        """Return (text, pattern) pairs."""
        encoded = texts.dictionary_encode()
        hits = [self.patterns_of(text) for text in encoded.dictionary.to_pylist()]
        counts = np.fromiter((len(h) for h in hits), np.int64, len(hits))
        patterns = np.fromiter((p for h in hits for p in h), np.int64, int(counts.sum()))
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        return _expand(offsets_of(counts), patterns, codes)

    def patterns_of(self, text: str) -> list[int]:
        """Return the patterns that one text has."""
        hits: list[int] = []
        for start, compiled in self._sets:
            stop = min(start + _PATTERNS_PER_SET, len(self._patterns))
            answer = compiled.Match(text) if compiled is not None else []
            if stop - start in answer:  # the pattern that fits every text
                hits += (start + p for p in answer if p < stop - start)
            else:
                hits += (p for p in range(start, stop) if self._fits(p, text))
        return hits

    def _fits(self, p: int, text: str) -> bool:
        return compile_regex(self._patterns[p]).search(text) is not None


def _compiled_set(patterns: list[str], max_mem: int) -> Any:
    """Return a compiled set with the sentinel last; None if RE2 cannot hold it."""
    compiled = re2.Set.SearchSet(regex_options(max_mem))
    try:
        for pattern in patterns:
            compiled.Add(pattern)
        compiled.Add("")
        compiled.Compile()
    except re2.error:
        return None
    return compiled


# -- tiers ----------------------------------------------------------------------------------------


PatternMatcher: TypeAlias = SubstringIndex | LikeIndex | RegexIndex


class _Tier(NamedTuple):
    start: int  # the number of its first pattern
    n_patterns: int
    matcher: PatternMatcher


class PatternTiers:
    """Finds patterns of one kind, to which others are added."""

    def __init__(
        self,
        kind: Callable[[list[str]], PatternMatcher],
        patterns: list[str],
        earlier: PatternTiers | None = None,
    ) -> None:
        """Compile; `earlier` holds the first of these patterns, and most of it is reused."""
        self._tiers: list[_Tier] = list(earlier._tiers) if earlier is not None else []
        tiers = self._tiers
        start = sum(tier.n_patterns for tier in tiers)
        while tiers and tiers[-1].n_patterns <= 2 * (len(patterns) - start):
            start = tiers.pop().start
        if start < len(patterns):
            tiers.append(_Tier(start, len(patterns) - start, kind(patterns[start:])))
        self.instructions = sum(tier.matcher.instructions for tier in tiers)

    def find(self, texts: Any) -> np.ndarray:
        """Return (text, pattern) pairs; `texts` as the kind of patterns takes them."""
        parts = []
        for tier in self._tiers:
            hits = tier.matcher.find(texts)
            hits[:, 1] += tier.start
            parts.append(hits)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def patterns_of(self, text: str) -> list[int]:
        """Return the patterns that one text has."""
        return [t.start + p for t in self._tiers for p in t.matcher.patterns_of(text)]


# -- case -----------------------------------------------------------------------------------------

_FOLD_TABLE_SIZE = 0x20000  # no character beyond has a lower case
_fold_table: np.ndarray | None = None


def lower_texts(texts: Texts) -> Texts:
    """Apply `fold_case` to many texts, by a table made from it."""
    global _fold_table  # noqa: PLW0603 - made at first use: most engines never need it
    if _fold_table is None:
        table = np.arange(_FOLD_TABLE_SIZE, dtype=np.int32)
        for code in range(_FOLD_TABLE_SIZE):
            if not 0xD800 <= code < 0xE000:
                table[code] = ord(fold_case(chr(code)))
        _fold_table = table
    out_offsets = np.empty(len(texts.offsets), np.int64)
    out_data = np.empty(2 * len(texts.data), np.uint8)  # no character more than doubles
    n_bytes = _lower(texts, _fold_table, out_offsets, out_data)
    return Texts(out_offsets, out_data[:n_bytes])


@kernel
def _lower(texts: Texts, table: np.ndarray, out_offsets: np.ndarray, out_data: np.ndarray) -> int:
    n = 0
    for t in range(len(texts.offsets) - 1):
        out_offsets[t] = n
        k = texts.offsets[t]
        while k < texts.offsets[t + 1]:
            lead = texts.data[k]
            length = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            code = np.int64(lead) if length == 1 else np.int64(lead) & (0x7F >> length)
            for j in range(1, length):
                code = (code << 6) | (texts.data[k + j] & 0x3F)
            k += length
            if code < len(table):
                code = np.int64(table[code])
            n = _put_utf8(code, out_data, n)
    out_offsets[len(texts.offsets) - 1] = n
    return n


@kernel
def _put_utf8(code: Any, out_data: np.ndarray, n: int) -> int:
    if code < 0x80:
        out_data[n] = code
        return n + 1
    if code < 0x800:
        out_data[n] = 0xC0 | (code >> 6)
        out_data[n + 1] = 0x80 | (code & 0x3F)
        return n + 2
    if code < 0x10000:
        out_data[n] = 0xE0 | (code >> 12)
        out_data[n + 1] = 0x80 | ((code >> 6) & 0x3F)
        out_data[n + 2] = 0x80 | (code & 0x3F)
        return n + 3
    out_data[n] = 0xF0 | (code >> 18)
    out_data[n + 1] = 0x80 | ((code >> 12) & 0x3F)
    out_data[n + 2] = 0x80 | ((code >> 6) & 0x3F)
    out_data[n + 3] = 0x80 | (code & 0x3F)
    return n + 4
