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

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import event
from numba.core.cgutils import create_struct_proxy, for_range
from numba.extending import intrinsic

# Places in arrays are unsigned where loops are hot: that spares the check for one that counts from
# the end. With a signed number they would become a float, hence these.
ZERO, ONE = np.uint64(0), np.uint64(1)


class _CollectorPause(event.Listener):
    """Collects no garbage while kernels are compiled: all they make is in use until the end.

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
    the time that a first fit takes to compile. A branch on ``argument is None`` is left out only
    if the argument is one of the kernel itself, and not before the part has been written in: what
    few fits need is called instead.
    """
    return njit(nogil=True, error_model="numpy", inline="always")(function)


@cache
def _say_that_nothing_is_kept() -> None:
    warnings.warn(
        "there is no folder to keep compiled kernels in, so every process compiles its own, which "
        "takes ten seconds or more: set NUMBA_CACHE_DIR to a folder that can be written.",
        RuntimeWarning,
        stacklevel=3,
    )


@intrinsic
def trailing_zeros(_typing_context: Any, word: Any) -> Any:
    """Index of the lowest set bit of a nonzero unsigned 64-bit word."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@intrinsic
def count_bits(_typing_context: Any, word: Any) -> Any:
    """Number of set bits of an unsigned 64-bit word."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


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
def sum_rows(
    _typing_context: Any,
    table: Any,
    rows: Any,
    n_rows: Any,
    start: Any,
    keep: Any,
    first: Any,
    squares: Any,
    pairs: Any,
) -> Any:
    """Running sums over some rows of a table, which begin with the numbers of ``start``.

    Writes that of the first number of a row, and the sum of squares of those of the others, as
    they are after each row; empties the rows unless ``keep``. Tables and ``pairs`` as for
    :func:`add_row`.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.DoubleType()
        widths = [4] * (pairs.count // 2) + [2] * (pairs.count % 2)
        places = [4 * k for k in range(len(widths))]

        def point(which: int, place: Any, width: int = 1) -> Any:
            address = _address(context, builder, signature, arguments[which], which, place, number)
            kind = number if width == 1 else ir.VectorType(number, width)
            return builder.bitcast(address, kind.as_pointer())

        def at(place: int) -> Any:
            return ir.Constant(ir.IntType(64), place)

        running = []
        for place, width in zip(places, widths, strict=True):
            running.append(builder.alloca(ir.VectorType(number, width)))
            builder.store(builder.load(point(3, at(place), width), align=8), running[-1])
        with for_range(builder, arguments[2]) as loop:
            row = builder.load(
                _address(context, builder, signature, arguments[1], 1, loop.index, ir.IntType(64))
            )
            row = builder.mul(row, at(2 * pairs.count))
            lanes = []
            for place, width, total in zip(places, widths, running, strict=True):
                address = point(0, builder.add(row, at(place)), width)
                numbers = builder.load(address, align=8)
                empty = ir.Constant(numbers.type, [0.0] * width)
                builder.store(builder.select(arguments[4], numbers, empty), address, align=8)
                sums = builder.fadd(builder.load(total), numbers)
                builder.store(sums, total)
                if place == 0:
                    mass = builder.extract_element(sums, ir.Constant(ir.IntType(32), 0))
                    builder.store(mass, point(5, loop.index))
                squared = builder.fmul(sums, sums)
                lanes += [
                    builder.extract_element(squared, ir.Constant(ir.IntType(32), lane))
                    for lane in range(width)
                ]
            length = lanes[1]
            for one, other in zip(lanes[2::2], lanes[3::2], strict=True):
                length = builder.fadd(length, builder.fadd(one, other))
            builder.store(length, point(6, loop.index))
        return context.get_dummy_value()

    signature = types.void(table, rows, types.int64, start, types.boolean, first, squares, pairs)
    return signature, generate


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
