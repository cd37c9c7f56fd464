"""What every compiled loop shares: how it is compiled, and one bit trick.

Kernels take and return arrays and scalars only, release the interpreter lock and
are cached on disk. Threads live outside them, so no result depends on their number.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic


def kernel(function: Callable[..., Any], **options: Any) -> Any:
    """Decorator of every compiled loop. No fastmath: sums decide splits and ties."""
    compile_it = partial(njit, nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)
    try:
        return compile_it(cache=True)(function)
    except RuntimeError:  # an install that cannot be written, and no home
        _say_that_nothing_is_kept()
        return compile_it()(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Decorator of the body of a hot loop, where a call would cost more than its work."""
    return kernel(function, forceinline=True)


@cache
def _say_that_nothing_is_kept() -> None:
    warnings.warn(
        "there is no folder to keep compiled kernels in, so every process compiles its own, which "
        "takes half a minute: set NUMBA_CACHE_DIR to a folder that can be written.",
        RuntimeWarning,
        stacklevel=3,
    )


@intrinsic
def trailing_zeros(_typing_context: Any, word: Any) -> Any:
    """Index of the lowest set bit of a nonzero unsigned 64-bit word."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate
