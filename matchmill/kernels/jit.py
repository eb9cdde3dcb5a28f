"""The one place where Numba is configured: `kernel` compiles a function and caches the result.

Kernels are compiled quietly when they are first called; `matchmill.warm()` compiles all of them
in advance. `cache.py` says where machine code is kept.

An exception in the middle of compiling, or of loading machine code, can end the process. So that
happens where no signal handler runs (`uninterrupted.py`). A call of a kernel that is compiled for
its types does not pass through any of this.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numba
import numpy as np

from matchmill.kernels.cache import KernelCache
from matchmill.kernels.uninterrupted import uninterrupted

__all__ = ["CHECKED", "JIT_DISABLED", "int64", "kernel", "uint64"]

JIT_DISABLED: bool = bool(numba.config.DISABLE_JIT)
"""True under NUMBA_DISABLE_JIT=1: kernels are then plain Python functions."""

CHECKED: bool = os.environ.get("MATCHMILL_CHECKED", "") not in ("", "0")
"""True under MATCHMILL_CHECKED=1: kernels check their indices, `addresses.py` checks arrays."""

# Conversions inside kernels: what they return is an integer like any other there, compiled or not.
int64: Any = np.int64
uint64: Any = np.uint64

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a function on its first call, for the types it is called with, and cache that.

    A kernel releases the interpreter lock, and dividing by zero gives what NumPy gives.
    """
    if JIT_DISABLED:
        return function
    # No C wrappers: nothing calls kernels but Python and other kernels.
    compiled = numba.njit(
        nogil=True, error_model="numpy", no_cfunc_wrapper=True, boundscheck=CHECKED or None
    )(function)
    compiled._cache = KernelCache(function)
    for name in ("_compile_for_args", "compile"):  # Numba calls them when a version is missing
        setattr(compiled, name, partial(uninterrupted, getattr(compiled, name)))
    return cast(F, compiled)
