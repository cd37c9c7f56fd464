"""What every compiled loop shares: how it is compiled, and a few instructions.

Kernels take and return arrays and scalars only, release the interpreter lock and
are cached on disk. Threads live outside them, so no result depends on their number.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import event
from numba.core.cgutils import create_struct_proxy
from numba.extending import intrinsic


class _CollectorPause(event.Listener):
    """Collects no garbage while kernels are compiled, which is a tenth of the time it takes.

    Compilations are nested but never side by side: they hold Numba's lock.
    """

    depth, was_on = 0, False

    def on_start(self, _event: Any) -> None:
        if self.depth == 0:
            self.was_on = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, _event: Any) -> None:
        self.depth -= 1
        if self.depth == 0 and self.was_on:
            gc.enable()


event.register("numba:compile", _CollectorPause())


def kernel(function: Callable[..., Any], **options: Any) -> Any:
    """Decorator of every compiled loop. No fastmath: sums decide splits and ties."""
    compile_it = partial(njit, nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)
    try:
        return compile_it(cache=True)(function)
    except RuntimeError:  # an install that cannot be written, and no home
        _say_that_nothing_is_kept()
        return compile_it()(function)


def called(function: Callable[..., Any]) -> Any:
    """Decorator of a kernel that only other kernels call: Python has no way in."""
    return kernel(function, no_cpython_wrapper=True)


def inlined(function: Callable[..., Any]) -> Any:
    """Decorator of a part of a kernel: it is written where it is called, before compilation.

    Such a part is compiled once with its caller rather than once more alone, which is half of
    the time that a first fit takes to compile. A branch on ``argument is None`` stays behind
    with both its sides: parts that have one are kernels.
    """
    return njit(nogil=True, error_model="numpy", inline="always")(function)


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


@intrinsic
def add_row(_typing_context: Any, table: Any, at: Any, source: Any, row: Any, pairs: Any) -> Any:
    """Add row ``row`` of ``source`` to row ``at`` of ``table``, by four numbers at once.

    Both are contiguous tables of float64. ``pairs`` is a tuple with an entry for each two
    numbers of a row.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        n_pairs = pairs.count

        def load(array: int, first: int, width: int) -> tuple[Any, Any]:
            place = builder.mul(arguments[array + 1], ir.Constant(ir.IntType(64), 2 * n_pairs))
            place = builder.add(place, ir.Constant(ir.IntType(64), first))
            address = _address(
                context, builder, signature, arguments[array], array, place, ir.DoubleType()
            )
            together = ir.VectorType(ir.DoubleType(), width).as_pointer()
            address = builder.bitcast(address, together)
            return address, builder.load(address, align=8)

        first = 0
        while first < 2 * n_pairs:
            width = min(4, 2 * n_pairs - first)
            address, old = load(0, first, width)
            _, addend = load(2, first, width)
            builder.store(builder.fadd(old, addend), address, align=8)
            first += width
        return context.get_dummy_value()

    return types.void(table, types.int64, source, types.int64, pairs), generate


@intrinsic
def bits_of_bytes(_typing_context: Any, seen: Any, word: Any) -> Any:
    """A bit for each of the 64 bytes of a word of 64 that is not zero; clear the bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        n_bytes = ir.VectorType(ir.IntType(8), 64)
        source = _address(context, builder, signature, arguments[0], 0, arguments[1], n_bytes)
        zeros = ir.Constant(n_bytes, [0] * 64)
        bits = builder.icmp_unsigned("!=", builder.load(source, align=1), zeros)
        builder.store(zeros, source, align=1)
        return builder.bitcast(bits, ir.IntType(64))

    return types.uint64(seen, types.int64), generate


@intrinsic
def prefetch(_typing_context: Any, values: Any, place: Any) -> Any:
    """Ask for an element of an array that will be read soon; a place outside does no harm."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, number = ir.IntType(8), ir.IntType(32)
        kind = context.get_data_type(signature.args[0].dtype)
        address = _address(context, builder, signature, arguments[0], 0, arguments[1], kind)
        declared = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte.as_pointer()], declared)
        for_reading, keep, data = (ir.Constant(number, choice) for choice in (0, 3, 1))
        builder.call(
            function, [builder.bitcast(address, byte.as_pointer()), for_reading, keep, data]
        )
        return context.get_dummy_value()

    return types.void(values, types.int64), generate


def _address(
    context: Any, builder: Any, signature: Any, array: Any, which: int, place: Any, kind: Any
) -> Any:
    """Pointer to the ``place``-th element of an array, read as elements of this kind."""
    data = create_struct_proxy(signature.args[which])(context, builder, array).data
    return builder.gep(builder.bitcast(data, kind.as_pointer()), [place])
