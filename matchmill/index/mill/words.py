"""Every word of `mill` that packs several fields: its bit positions, and how to read it.

Each word is described here and nowhere else. Positions count from the lowest bit.

    slot place     of a slot: the first word of its blocks, and how many words they take
                   first word 24…63 | length 0…23 (at most MOST_SLOT_WORDS; a hint what to load)
    block header   entries 40…63 | dictionary 39 | tests per entry 23…38 | kind of inline tests
                   21…22 | inline words per entry 1…20 | whether another block follows 0
    inline test    column 48…63 | payload 0…47, which depends on the column's kind:
       mask        one bit for each of at most 48 values
       points      whether the next word has more points 47 | whether the points are exceptions
                   46 | unused 45 | three values of 15 bits; the last one is repeated
       interval    highest code 24…47 | lowest code 0…23
       general     column GENERAL; dimension 24…47 | one bit for each code modulo 24, 0…23
                   the word after it: first interval in `pool` 24…63 | number of intervals 0…23
    shape          of an entry, while building: dictionary 62 | kind 60…61 | inline words 40…59 |
                   tests 16…39 | first test 0…15
    node           of a dimension, while building: level 32…63 | place on its level 0…31
    node level     of a dimension, while matching: first slot 6…63 | level 0…5
    facts          of a distinct predicate, while building: chance (the bits of a float32, which
                   sort as the number does) 32…63 | inline words 17…31 | shared number + 1, 0…16

A block is what its header says, followed by

    masks          one word per entry, only if the block uses a dictionary: the tests of the
                   dictionary that the entry needs; it has no others
    tests          16 bits each, those of an entry together, the least likely first; padded with
                   the test that is always true, and at the end to a multiple of 32 bits
    ids            32 bits each, one per entry; padded at the end to a multiple of 64 bits
    inline tests   64 bits each, those of an entry together; padded with ALWAYS_HOLDS

A dictionary is a block without entries: a header with the bit `dictionary`, and its tests.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from matchmill.kernels.jit import int64, kernel, uint64

__all__ = [
    "ALWAYS_HOLDS",
    "GENERAL",
    "GENERAL_KIND",
    "INLINE_KIND",
    "MASK_KIND",
    "MOST_ENTRIES",
    "MOST_INLINE_WORDS",
    "MOST_SLOT_WORDS",
    "Block",
    "block_at",
    "block_header",
    "slot_length",
    "slot_place",
    "slot_start",
]

_ONE = uint64(1)

# -- slot place -----------------------------------------------------------------------------------

_SLOT_LENGTH_BITS = 24
MOST_SLOT_WORDS = (1 << _SLOT_LENGTH_BITS) - 1


@kernel
def slot_place(start: int, length: int) -> int:
    """Pack the first word of a slot and its length."""
    return (start << _SLOT_LENGTH_BITS) | min(length, MOST_SLOT_WORDS)


@kernel
def slot_start(place: Any) -> Any:
    """Return the first word of a slot."""
    return place >> _SLOT_LENGTH_BITS


@kernel
def slot_length(place: Any) -> Any:
    """Return how many words a slot has, or MOST_SLOT_WORDS if there are more."""
    return place & MOST_SLOT_WORDS


# -- block ----------------------------------------------------------------------------------------

_FOLLOWS = uint64(1)
_INLINE_SHIFT, _INLINE_BITS = 1, 20
_KIND_SHIFT, _KIND_BITS = 21, 2
_TESTS_SHIFT, _TESTS_BITS = 23, 16
_DICTIONARY_SHIFT = 39
_ENTRIES_SHIFT, _ENTRIES_BITS = 40, 24
MOST_INLINE_WORDS = (1 << _INLINE_BITS) - 1
MOST_ENTRIES = (1 << _ENTRIES_BITS) - 1

# Kinds of a block: its inline tests are masks alone; also points and intervals; also general ones.
MASK_KIND, INLINE_KIND, GENERAL_KIND = 0, 1, 2


class Block(NamedTuple):
    """The header of a block, and where its parts begin."""

    follows: bool  # another block of the slot comes after this one
    uses_dictionary: bool
    kind: int  # MASK_KIND, INLINE_KIND or GENERAL_KIND
    n_entries: int  # 0: this is a dictionary
    n_tests: int  # per entry; of a dictionary, all of them
    n_inline: int  # words per entry
    masks_at: int  # in words
    tests_at: int  # in pieces of 16 bits
    ids_at: int  # in pieces of 32 bits
    inline_at: int  # in words
    end: int  # in words: where the next block begins


@kernel
def block_header(
    n_entries: Any, uses_dictionary: Any, n_tests: Any, kind: Any, n_inline: Any, follows: Any
) -> Any:
    """Pack the header of a block."""
    return (
        (uint64(n_entries) << uint64(_ENTRIES_SHIFT))
        | (uint64(uses_dictionary) << uint64(_DICTIONARY_SHIFT))
        | (uint64(n_tests) << uint64(_TESTS_SHIFT))
        | (uint64(kind) << uint64(_KIND_SHIFT))
        | (uint64(n_inline) << uint64(_INLINE_SHIFT))
        | uint64(follows)
    )


@kernel
def _field(word: Any, shift: int, n_bits: int) -> Any:
    return int64((word >> uint64(shift)) & ((_ONE << uint64(n_bits)) - _ONE))


@kernel
def block_at(words: Any, at: Any) -> Block:
    """Read the header of the block at a place in `words`."""
    header = words[at]
    n = int64(header >> uint64(_ENTRIES_SHIFT))
    n_tests = _field(header, _TESTS_SHIFT, _TESTS_BITS)
    n_inline = _field(header, _INLINE_SHIFT, _INLINE_BITS)
    uses_dictionary = (header >> uint64(_DICTIONARY_SHIFT)) & _ONE != 0
    masks_at = int64(at) + 1
    tests_at = 4 * (masks_at + (n if uses_dictionary else 0))
    ids_at = (tests_at + max(n, 1) * n_tests + 1) >> 1
    inline_at = (ids_at + n + 1) >> 1
    return Block(
        header & _FOLLOWS != 0,
        uses_dictionary,
        _field(header, _KIND_SHIFT, _KIND_BITS),
        n,
        n_tests,
        n_inline,
        masks_at,
        tests_at,
        ids_at,
        inline_at,
        inline_at + n * n_inline,
    )


# -- inline test ----------------------------------------------------------------------------------

COLUMN_SHIFT = uint64(48)
MASK_BITS = 48
CODE_BITS = 24
_CODE_MASK = uint64((1 << CODE_BITS) - 1)
POINT_BITS, POINTS_PER_WORD = 15, 3
_POINT_MASK = uint64((1 << POINT_BITS) - 1)
_MORE_SHIFT, _EXCEPTION_SHIFT = uint64(47), uint64(46)
GENERAL = 65_535  # the column of general tests
GENERAL_BITS = 24  # codes modulo this have a bit each
ALWAYS_HOLDS = 1  # column 0, a mask of which every event has value 0


@kernel
def column_of(test: Any) -> Any:
    """Return the column of an inline test."""
    return test >> COLUMN_SHIFT


@kernel
def inline_test(column: Any, payload: Any) -> Any:
    """Pack an inline test."""
    return (uint64(column) << COLUMN_SHIFT) | payload


@kernel
def low_of(test: Any) -> Any:
    """Return the lowest code of an interval test."""
    return test & _CODE_MASK


@kernel
def high_of(test: Any) -> Any:
    """Return the highest code of an interval test."""
    return (test >> uint64(CODE_BITS)) & _CODE_MASK


@kernel
def interval_payload(low: Any, high: Any) -> Any:
    """Pack the bounds of an interval test."""
    return uint64(low) | (uint64(high) << uint64(CODE_BITS))


@kernel
def points_payload(has_more: Any, is_exception: Any) -> Any:
    """Pack the two flags of a word of points, without points."""
    return (uint64(has_more) << _MORE_SHIFT) | (uint64(is_exception) << _EXCEPTION_SHIFT)


@kernel
def point_payload(code: Any, i: Any) -> Any:
    """Return the bits of point number i of a word."""
    return uint64(code) << uint64(POINT_BITS * i)


@kernel
def point_of(test: Any, i: Any) -> Any:
    """Return point number i of a word."""
    return int64((test >> uint64(POINT_BITS * i)) & _POINT_MASK)


@kernel
def has_more(test: Any) -> Any:
    """Return 1 if the next word has more points of the same test, else 0."""
    return (test >> _MORE_SHIFT) & _ONE


@kernel
def is_exception(test: Any) -> Any:
    """Return 1 if the points of a test are those that do not hold, else 0."""
    return (test >> _EXCEPTION_SHIFT) & _ONE


@kernel
def general_payload(dimension: Any) -> Any:
    """Pack the dimension of a general test, without its bits for codes."""
    return uint64(dimension) << uint64(CODE_BITS)


@kernel
def general_bit(code: Any) -> Any:
    """Return the bit of a code in a general test."""
    return uint64(code % GENERAL_BITS)


@kernel
def general_intervals(start: Any, n: Any) -> Any:
    """Pack the word after a general test: where its intervals are in `pool`, and how many."""
    return (uint64(start) << uint64(CODE_BITS)) | uint64(n)


@kernel
def general_test(test: Any, following: Any) -> tuple[int, int, int]:
    """Read a general test and the word after it: dimension, first interval, intervals."""
    first = int64(following >> uint64(CODE_BITS))
    return int64(high_of(test)), first, int64(following & _CODE_MASK)


# -- shape of an entry, node of a dimension, facts of a predicate ---------------------------------

_SHAPE_TESTS, _SHAPE_INLINE, _SHAPE_KIND = 16, 40, 60
DICTIONARY_SHAPE = 1 << 62
_NODE_LEVEL = 32
_NODE_PLACE = (1 << _NODE_LEVEL) - 1
_LEVEL_BITS, _LEVEL_MASK = 6, 63
_FACT_INLINE, _FACT_CHANCE = 17, 32
_FACT_SHARED_MASK, _FACT_INLINE_MASK = (1 << 17) - 1, (1 << 15) - 1


@kernel
def shape_of(kind: Any, n_inline: Any, n_tests: Any, first_test: Any) -> Any:
    """Pack the shape of an entry."""
    return (
        (int64(kind) << _SHAPE_KIND)
        | (int64(n_inline) << _SHAPE_INLINE)
        | (int64(n_tests) << _SHAPE_TESTS)
        | int64(first_test)
    )


@kernel
def shape_with_dictionary(shape: Any, n_tests: Any) -> Any:
    """Return the shape of an entry whose tests are in a dictionary of n_tests."""
    kind_and_inline = shape >> _SHAPE_INLINE
    return DICTIONARY_SHAPE | (kind_and_inline << _SHAPE_INLINE) | (n_tests << _SHAPE_TESTS)


@kernel
def shape_kind(shape: Any) -> Any:
    """Return the kind of inline tests of a shape."""
    return (shape >> _SHAPE_KIND) & 3


@kernel
def shape_inline(shape: Any) -> Any:
    """Return the number of inline words of a shape."""
    return (shape >> _SHAPE_INLINE) & MOST_INLINE_WORDS


@kernel
def shape_tests(shape: Any) -> Any:
    """Return the number of tests of a shape, or of its dictionary."""
    return (shape >> _SHAPE_TESTS) & 0xFFFFFF


@kernel
def shape_first_test(shape: Any) -> Any:
    """Return the first test of a shape that uses no dictionary."""
    return shape & 0xFFFF


@kernel
def node_of(level: Any, place: Any) -> Any:
    """Pack a node of a dimension."""
    return (int64(level) << _NODE_LEVEL) | place


@kernel
def node_level(node: Any) -> Any:
    """Return the level of a node."""
    return node >> _NODE_LEVEL


@kernel
def node_position(node: Any) -> Any:
    """Return the place of a node on its level."""
    return node & _NODE_PLACE


@kernel
def level_word(first_slot: Any, level: Any) -> Any:
    """Pack a level in use of a dimension: its first slot, and its number."""
    return (first_slot << _LEVEL_BITS) | level


@kernel
def level_start(word: Any) -> Any:
    """Return the first slot of a level in use."""
    return word >> _LEVEL_BITS


@kernel
def level_number(word: Any) -> Any:
    """Return the number of a level in use."""
    return word & _LEVEL_MASK


@kernel
def slot_on_level(word: Any, code: Any) -> Any:
    """Return the slot of a code on a level in use."""
    return (word >> _LEVEL_BITS) + (code >> (word & _LEVEL_MASK))


@kernel
def fact_shared(fact: Any) -> Any:
    """Return the shared number of a predicate plus one; 0 if it is not shared."""
    return fact & _FACT_SHARED_MASK


@kernel
def fact_inline(fact: Any) -> Any:
    """Return the number of inline words of a predicate."""
    return (fact >> _FACT_INLINE) & _FACT_INLINE_MASK


def fact_of(chance_bits: Any, n_inline: Any, shared: Any) -> Any:
    """Pack the facts of all distinct predicates, given as arrays."""
    return (chance_bits << _FACT_CHANCE) | (n_inline << _FACT_INLINE) | (shared + 1)
