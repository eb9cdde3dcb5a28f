"""Machine instructions that Numba has no name for.

prefetch         start to load a cache line, do not wait. A random access to memory takes some
                 60 ns when the next step depends on it; kernels that know early which lines they
                 will need ask for them ahead. The answer to any question stays the same.
trailing_zeros   the number of the lowest bit that is set
places_of        some arrays as one argument. Kernels that are given many arrays take long to
                 compile and to call (0.1 µs an array), so they get the arrays' places instead:
                 address, rows, address, rows, … The caller keeps the arrays alive.
array_at         the array at a place, array_at(places, n, dtype)
table_at         the same in two dimensions, table_at(places, n, dtype, width)

Without compilation places are the arrays themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.kernels.jit import JIT_DISABLED

__all__ = ["array_at", "places_of", "prefetch", "table_at", "trailing_zeros"]

array_at: Any
table_at: Any
prefetch: Any
trailing_zeros: Any

if JIT_DISABLED:

    def _load_nothing(array: np.ndarray, index: int) -> None:
        """Python has no cache lines."""

    def _count_zeros(word: Any) -> int:
        bits = int(word)
        return (bits & -bits).bit_length() - 1

    def _nth(places: Any, n: int, *_: Any) -> Any:
        return places[n]

    prefetch, trailing_zeros = _load_nothing, _count_zeros
    array_at = table_at = _nth
else:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
    from numba.np.arrayobj import populate_array

    def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
        """The line that holds array[index], or the start of that row."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array_type = signature.args[0]
            view = context.make_array(array_type)(context, builder, arguments[0])
            position = context.cast(builder, arguments[1], signature.args[1], types.intp)
            indices = [position] + [position.type(0)] * (array_type.ndim - 1)
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
        """Of a word that is not 0."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

        return types.int64(types.uint64), generate

    def _load_array(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Fill in the array structure of the return type from a place."""
        places_type, n_type = signature.args[:2]
        places = context.make_array(places_type)(context, builder, arguments[0])
        n = context.cast(builder, arguments[1], n_type, types.intp)
        at = builder.mul(n, n.type(2))
        address = builder.load(builder.gep(places.data, [at]))
        shape = [builder.load(builder.gep(places.data, [builder.add(at, n.type(1))]))]
        array_type = signature.return_type
        item = context.get_constant(types.intp, array_type.dtype.bitwidth // 8)
        strides = [item]
        if array_type.ndim == 2:
            width = context.cast(builder, arguments[3], signature.args[3], types.intp)
            shape.append(width)
            strides.insert(0, builder.mul(width, item))
        array = context.make_array(array_type)(context, builder)
        populate_array(
            array,
            data=builder.inttoptr(address, array.data.type),
            shape=cgutils.pack_array(builder, shape),
            strides=cgutils.pack_array(builder, strides),
            itemsize=item,
            meminfo=None,
        )
        return array._getvalue()

    def _array_at(typing_context: Any, places: Any, n: Any, dtype: Any) -> Any:
        return types.Array(dtype.dtype, 1, "C")(places, n, dtype), _load_array

    def _table_at(typing_context: Any, places: Any, n: Any, dtype: Any, width: Any) -> Any:
        return types.Array(dtype.dtype, 2, "C")(places, n, dtype, width), _load_array

    prefetch, trailing_zeros = intrinsic(_prefetch), intrinsic(_trailing_zeros)
    array_at, table_at = intrinsic(_array_at), intrinsic(_table_at)


def places_of(*arrays: np.ndarray) -> Any:
    if JIT_DISABLED:
        return arrays
    return np.array([n for a in arrays for n in (a.ctypes.data, len(a))], np.int64)
