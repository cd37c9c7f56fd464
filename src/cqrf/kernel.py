"""What every compiled loop shares: how it is compiled, and one bit trick.

Kernels take and return arrays and scalars only, release the interpreter lock and
are cached on disk. Threads live outside them, so no result depends on their number.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

kernel = njit(nogil=True, cache=True, error_model="numpy", no_cfunc_wrapper=True)
"""Decorator of every compiled loop. No fastmath: sums decide splits and ties."""

inlined = njit(nogil=True, cache=True, error_model="numpy", no_cfunc_wrapper=True, forceinline=True)
"""Decorator of the body of a hot loop, where a call would cost more than its work."""


@intrinsic
def trailing_zeros(_typing_context: Any, word: Any) -> Any:
    """Index of the lowest set bit of a nonzero unsigned 64-bit word."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate
