"""Many arrays as one argument of a kernel: their addresses.

A kernel with dozens of array arguments takes long to compile and to call (0.1 µs per array). It
gets one array of 64-bit integers instead: address, length, address, length, …

    class Tree(NamedTuple):            declares the arrays, with the dtype of each, once
        parents: Int32Array
        boxes: Annotated[np.ndarray, Form(np.float64, 4)]

    parents_of = accessor(Tree, "parents")

    @kernel
    def depth(tree: Any, node: int) -> int:
        parents = parents_of(tree)     an int32 array, as any other
        …

    depth(addresses_of(Tree(parents, boxes)), 7)

An address says nothing of what is there: a wrong dtype, a strided view or a short array would make
kernels read foreign memory. `check_arrays` compares arrays with their declaration. In the checked
mode ($MATCHMILL_CHECKED=1) `addresses_of` does so each time, and kernels are compiled with checks
of every index: what an accessor returns has a length. `set_checked` switches the first part on
alone, without compiling anything.

The caller keeps the arrays alive. Without compilation, the addresses are the arrays themselves.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeAlias, get_type_hints

import numpy as np

from matchmill.errors import InputError
from matchmill.kernels.jit import CHECKED, JIT_DISABLED

__all__ = [
    "Form",
    "Int32Array",
    "Int64Array",
    "UInt8Array",
    "UInt64Array",
    "accessor",
    "addresses_of",
    "borrowed",
    "check_arrays",
    "is_checked",
    "set_checked",
]


class Form(NamedTuple):
    """What an array looks like.

    It is contiguous and has this dtype; if it has two dimensions, its rows have this width.
    """

    dtype: Any
    width: int | None = None

    def __str__(self) -> str:
        """Describe the form in words, for error messages."""
        rows = "" if self.width is None else f" in rows of {self.width}"
        return f"a contiguous array of {np.dtype(self.dtype)}{rows}"


Int32Array: TypeAlias = Annotated[np.ndarray, Form(np.int32)]
Int64Array: TypeAlias = Annotated[np.ndarray, Form(np.int64)]
UInt8Array: TypeAlias = Annotated[np.ndarray, Form(np.uint8)]
UInt64Array: TypeAlias = Annotated[np.ndarray, Form(np.uint64)]

_checked = CHECKED


def is_checked() -> bool:
    """Return whether `addresses_of` compares arrays with their declaration."""
    return _checked


def set_checked(checked: bool) -> bool:
    """Switch the checked mode on or off; return what it was."""
    global _checked  # a switch of the whole process, for tests
    before, _checked = _checked, checked
    return before


def _forms(arrays: type) -> dict[str, Form]:
    """Return the form of each field of a declaration."""
    if arrays not in _known_forms:
        hints = get_type_hints(arrays, include_extras=True)
        _known_forms[arrays] = {name: hint.__metadata__[0] for name, hint in hints.items()}
    return _known_forms[arrays]


_known_forms: dict[type, dict[str, Form]] = {}


def check_arrays(arrays: Any) -> None:
    """Compare each array of a declared `NamedTuple` with its form; InputError if one differs."""
    for (name, form), array in zip(_forms(type(arrays)).items(), arrays, strict=True):
        width = array.shape[1] if array.ndim == 2 else None
        if (
            array.dtype != form.dtype
            or array.ndim != (1 if form.width is None else 2)
            or width != form.width
            or not array.flags.c_contiguous
            or not array.flags.aligned
        ):
            raise InputError(
                f"array {name!r} of {type(arrays).__name__} must be {form}, "
                f"not {array.dtype} with shape {array.shape} and strides {array.strides}"
            )


def addresses_of(arrays: Any) -> Any:
    """Return the addresses of the arrays of a declared `NamedTuple`, for its accessors."""
    if _checked:
        check_arrays(arrays)
    if JIT_DISABLED:
        return arrays
    return np.array([n for a in arrays for n in (a.ctypes.data, len(a))], np.int64)


def accessor(arrays: type, name: str, view_as: Any = None) -> Any:
    """Return a function for kernels that turns addresses into one of the arrays.

    With `view_as`, an array of one dimension is read as items of that dtype.
    """
    form = _forms(arrays)[name]
    number = list(_forms(arrays)).index(name)
    if JIT_DISABLED:
        return _plain_accessor(number, view_as)
    return _compiled_accessor(number, form, view_as)


def _compiled_borrowed() -> Any:
    from numba.extending import intrinsic

    def borrow(typing_context: Any, addresses: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.return_type)(context, builder, arguments[0])
            array.meminfo = array.meminfo.type(None)
            return array._getvalue()

        return addresses(addresses), generate

    return intrinsic(borrow)


borrowed: Any = (lambda addresses: addresses) if JIT_DISABLED else _compiled_borrowed()
"""Inside kernels: the same addresses without a reference count. Numba counts references, with
atomic instructions, whenever an array is passed on, so the outermost kernel borrows its addresses
before it passes them to others. Its caller keeps them alive."""


def _plain_accessor(number: int, view_as: Any) -> Any:
    def read(addresses: Any) -> Any:
        array = addresses[number]
        return array if view_as is None else array.view(view_as)

    return read


def _compiled_accessor(number: int, form: Form, view_as: Any) -> Any:
    from llvmlite import ir
    from numba import from_dtype, types
    from numba.core import cgutils
    from numba.extending import intrinsic
    from numba.np.arrayobj import populate_array

    dtype = np.dtype(form.dtype if view_as is None else view_as)
    n_old, n_new = np.dtype(form.dtype).itemsize, dtype.itemsize
    array_type = types.Array(from_dtype(dtype), 1 if form.width is None else 2, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        addresses = context.make_array(signature.args[0])(context, builder, arguments[0])

        def word(n: int) -> Any:
            at = ir.Constant(ir.IntType(64), n)
            return builder.load(builder.gep(addresses.data, [at]))

        n_items = word(2 * number + 1)
        if n_old > n_new:
            n_items = builder.mul(n_items, n_items.type(n_old // n_new))
        elif n_old < n_new:
            n_items = builder.udiv(n_items, n_items.type(n_new // n_old))
        item = context.get_constant(types.intp, n_new)
        shape, strides = [n_items], [item]
        if form.width is not None:
            shape.append(context.get_constant(types.intp, form.width))
            strides.insert(0, context.get_constant(types.intp, form.width * n_new))
        array = context.make_array(array_type)(context, builder)
        populate_array(
            array,
            data=builder.inttoptr(word(2 * number), array.data.type),
            shape=cgutils.pack_array(builder, shape),
            strides=cgutils.pack_array(builder, strides),
            itemsize=item,
            meminfo=None,
        )
        return array._getvalue()

    def read(typing_context: Any, addresses: Any) -> Any:
        return array_type(addresses), generate

    return intrinsic(read)
