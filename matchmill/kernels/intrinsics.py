"""Machine instructions that Numba has no name for.

prefetch         start to load a cache line, do not wait. A random access to memory takes some
                 60 ns when the next step depends on it; kernels that know early which lines they
                 will need ask for them in advance. Results never depend on it.
trailing_zeros   the number of the lowest bit that is set
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.kernels.jit import JIT_DISABLED

__all__ = ["prefetch", "trailing_zeros"]

prefetch: Any
trailing_zeros: Any

if JIT_DISABLED:

    def _load_nothing(array: np.ndarray, index: Any) -> None:
        """Python has no cache lines."""

    def _count_zeros(word: Any) -> int:
        bits = int(word)
        return (bits & -bits).bit_length() - 1

    prefetch, trailing_zeros = _load_nothing, _count_zeros
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

    prefetch, trailing_zeros = intrinsic(_prefetch), intrinsic(_trailing_zeros)
