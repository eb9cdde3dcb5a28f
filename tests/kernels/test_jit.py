"""The kernel decorator."""

from __future__ import annotations

import os

import numpy as np
import pytest

from matchmill.kernels.jit import JIT_DISABLED, kernel


@kernel
def add_up(values: np.ndarray, scale: float) -> float:
    total = 0.0
    for i in range(len(values)):
        total += values[i] / scale
    return total


# --- kernel ---------------------------------------------------------------------------


@pytest.mark.kernels
def test_a_kernel_computes() -> None:
    assert add_up(np.array([1.0, 2.0, 3.0]), 2.0) == 3.0


@pytest.mark.kernels
def test_a_kernel_is_a_plain_function_exactly_when_the_jit_is_off() -> None:
    assert (type(add_up) is type(lambda: 0)) == JIT_DISABLED
    assert JIT_DISABLED == (os.environ.get("NUMBA_DISABLE_JIT", "0") != "0")


@pytest.mark.skipif(JIT_DISABLED, reason="plain Python raises")
def test_division_by_zero_is_numpys() -> None:
    assert add_up(np.array([1.0]), 0.0) == np.inf
