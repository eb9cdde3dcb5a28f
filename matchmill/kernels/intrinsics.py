"""Machine instructions that Numba has no name for.

prefetch         start to load a cache line, do not wait. A random access to memory takes some
                 60 ns when the next step depends on it; kernels that know early which lines they
                 will need ask for them in advance. Results never depend on it.
trailing_zeros   the number of the lowest bit that is set
lanes_within     compare 64 ranges of bytes with one byte: bit i is set if
                 ranges[at + i] <= byte <= ranges[at + 64 + i]
lanes_inside     the same with < instead of <=
count_ones       how many bits of a word are set
meet_two_rows    words = the bits that two rows have in common; a row is 8 words, rows[at : at + 8].
                 Return whether any bit is set
meet_four_rows   words &= the bits that four rows have in common; return whether any bit is left
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.kernels.jit import JIT_DISABLED

__all__ = [
    "LANES",
    "ROW_WORDS",
    "count_ones",
    "lanes_inside",
    "lanes_within",
    "meet_four_rows",
    "meet_two_rows",
    "prefetch",
    "trailing_zeros",
]

LANES = 64
"""How many ranges `lanes_within` compares."""
ROW_WORDS = 8
"""How many words of 64 bits a row has."""

prefetch: Any
trailing_zeros: Any
lanes_within: Any
lanes_inside: Any
count_ones: Any
meet_two_rows: Any
meet_four_rows: Any

if JIT_DISABLED:

    def _load_nothing(array: np.ndarray, index: Any) -> None:
        """Python has no cache lines."""

    def _count_zeros(word: Any) -> int:
        bits = int(word)
        return (bits & -bits).bit_length() - 1

    def _bits(lanes: np.ndarray) -> Any:
        return np.packbits(lanes, bitorder="little").view(np.uint64)[0]

    def _within(ranges: np.ndarray, at: Any, byte: Any) -> Any:
        lows, highs = ranges[at : at + LANES], ranges[at + LANES : at + 2 * LANES]
        return _bits((lows <= byte) & (byte <= highs))

    def _inside(ranges: np.ndarray, at: Any, byte: Any) -> Any:
        lows, highs = ranges[at : at + LANES], ranges[at + LANES : at + 2 * LANES]
        return _bits((lows < byte) & (byte < highs))

    def _ones(word: Any) -> int:
        return int(word).bit_count()

    def _meet_two(words: np.ndarray, rows: np.ndarray, i: Any, j: Any) -> bool:
        words[:ROW_WORDS] = rows[i : i + ROW_WORDS] & rows[j : j + ROW_WORDS]
        return bool(words[:ROW_WORDS].any())

    def _meet_four(words: np.ndarray, rows: np.ndarray, i: Any, j: Any, k: Any, m: Any) -> bool:
        for at in (i, j, k, m):
            words[:ROW_WORDS] &= rows[at : at + ROW_WORDS]
        return bool(words[:ROW_WORDS].any())

    count_ones, meet_two_rows, meet_four_rows = _ones, _meet_two, _meet_four
    prefetch, trailing_zeros = _load_nothing, _count_zeros
    lanes_within, lanes_inside = _within, _inside
else:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
        """Load the line that holds array[index]; of a table, index is a row or (row, column)."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array_type, index_type = signature.args
            view = context.make_array(array_type)(context, builder, arguments[0])
            given, index_types = [arguments[1]], [index_type]
            if isinstance(index_type, types.BaseTuple):
                given = cgutils.unpack_tuple(builder, arguments[1])
                index_types = list(index_type)
            indices = [
                context.cast(builder, value, type_, types.intp)
                for value, type_ in zip(given, index_types, strict=True)
            ]
            indices += [indices[0].type(0)] * (array_type.ndim - len(indices))
            pointer = cgutils.get_item_pointer(
                context, builder, array_type, view, indices, wraparound=False
            )
            byte = ir.IntType(8).as_pointer()
            flag = ir.IntType(32)
            function = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag]),
                "llvm.prefetch.p0",
            )
            read, keep, data = (ir.Constant(flag, n) for n in (0, 3, 1))
            builder.call(function, [builder.bitcast(pointer, byte), read, keep, data])
            return context.get_dummy_value()

        return types.void(array, index), generate

    def _trailing_zeros(typing_context: Any, word: Any) -> Any:
        """Count the zeros below the lowest bit of a word that is not 0."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

        return types.int64(types.uint64), generate

    def _comparison(operator: str) -> Any:
        """Make an intrinsic of (array of uint8, index, uint8): one vector compare per bound."""

        def compare(typing_context: Any, ranges: Any, at: Any, byte: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                view = context.make_array(signature.args[0])(context, builder, arguments[0])
                start = context.cast(builder, arguments[1], signature.args[1], types.intp)
                lane, lanes = ir.IntType(8), ir.VectorType(ir.IntType(8), LANES)
                number = ir.IntType(32)

                def bounds(first: int) -> Any:
                    place = builder.add(start, start.type(first))
                    pointer = builder.gep(view.data, [place])
                    return builder.load(builder.bitcast(pointer, lanes.as_pointer()), align=1)

                undefined = ir.Constant(lanes, ir.Undefined)
                value = builder.trunc(
                    context.cast(builder, arguments[2], signature.args[2], types.uint64), lane
                )
                first = builder.insert_element(undefined, value, number(0))
                nowhere = ir.Constant(ir.VectorType(number, LANES), [0] * LANES)
                values = builder.shuffle_vector(first, undefined, nowhere)
                both = builder.and_(
                    builder.icmp_unsigned(operator, bounds(0), values),
                    builder.icmp_unsigned(operator, values, bounds(LANES)),
                )
                return builder.bitcast(both, ir.IntType(64))

            return types.uint64(ranges, at, byte), generate

        return intrinsic(compare)

    def _count_ones(typing_context: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.ctpop(arguments[0])

        return types.int64(types.uint64), generate

    def _row(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
        """Return the address of eight words."""
        view = context.make_array(array_type)(context, builder, array)
        pointer = builder.gep(view.data, [at])
        row = ir.VectorType(ir.IntType(64), ROW_WORDS).as_pointer()
        return builder.bitcast(pointer, row)

    def _meet(builder: Any, addresses: Any, out: Any, *, keep: bool) -> Any:
        """Write the bits that all rows have; with `keep`, those that `out` has as well."""
        rows = [builder.load(a, align=8) for a in ([out, *addresses] if keep else addresses)]
        common = rows[0]
        for row in rows[1:]:
            common = builder.and_(common, row)
        builder.store(common, out, align=8)
        nothing = ir.Constant(common.type, [0] * ROW_WORDS)
        some = builder.bitcast(builder.icmp_unsigned("!=", common, nothing), ir.IntType(ROW_WORDS))
        return builder.icmp_unsigned("!=", some, some.type(0))

    def _generate_meet(*, keep: bool) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            words_type, rows_type = signature.args[:2]
            zero = ir.Constant(ir.IntType(64), 0)
            out = _row(context, builder, words_type, arguments[0], zero)
            places = [
                context.cast(builder, place, type_, types.intp)
                for place, type_ in zip(arguments[2:], signature.args[2:], strict=True)
            ]
            rows = [_row(context, builder, rows_type, arguments[1], at) for at in places]
            return _meet(builder, rows, out, keep=keep)

        return generate

    def _meet_two_rows(typing_context: Any, words: Any, rows: Any, i: Any, j: Any) -> Any:
        return types.boolean(words, rows, i, j), _generate_meet(keep=False)

    def _meet_four_rows(
        typing_context: Any, words: Any, rows: Any, i: Any, j: Any, k: Any, m: Any
    ) -> Any:
        return types.boolean(words, rows, i, j, k, m), _generate_meet(keep=True)

    count_ones = intrinsic(_count_ones)
    meet_two_rows, meet_four_rows = intrinsic(_meet_two_rows), intrinsic(_meet_four_rows)
    prefetch, trailing_zeros = intrinsic(_prefetch), intrinsic(_trailing_zeros)
    lanes_within, lanes_inside = _comparison("<="), _comparison("<")
