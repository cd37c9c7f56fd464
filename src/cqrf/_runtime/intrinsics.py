"""Instructions that Numba does not offer: bit counts, vector sums and prefetching, as LLVM code.

With ``NUMBA_DISABLE_JIT=1``, as in the measurement of coverage, kernels run as plain Python and
these come from :mod:`cqrf._runtime.plain_intrinsics`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core.cgutils import create_struct_proxy, for_range
from numba.extending import intrinsic


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
    """Add row ``row`` of ``source`` to row ``at`` of ``table``, four numbers at a time.

    Both are contiguous (n, 2 * len(pairs)) float64 tables. ``pairs`` is a tuple with an entry for
    each two numbers of a row: the compiler knows its length.
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
    """Running sums over some rows of a table, starting from the row ``start``.

    After the i-th row, ``first[i]`` receives the running sum of the first column and ``squares[i]``
    the sum over the other columns of their squared running sums. Rows are set to zero unless
    ``keep``. Tables and ``pairs`` as for :func:`add_row`.
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
                lanes += _list_lanes(builder, builder.fmul(sums, sums), width)
            length = lanes[1]
            for one, other in zip(lanes[2::2], lanes[3::2], strict=True):
                length = builder.fadd(length, builder.fadd(one, other))
            builder.store(length, point(6, loop.index))
        return context.get_dummy_value()

    signature = types.void(table, rows, types.int64, start, types.boolean, first, squares, pairs)
    return signature, generate


@intrinsic
def bits_of_bytes(_typing_context: Any, seen: Any, word: Any) -> Any:
    """One bit for each nonzero byte of the ``word``-th 64 bytes of ``seen``; clears the bytes."""

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
    """Prefetch an element of an array that will be read soon; an index out of range is harmless."""

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


def _list_lanes(builder: Any, vector: Any, width: int) -> list[Any]:
    """The numbers of a vector."""
    lanes = (ir.Constant(ir.IntType(32), lane) for lane in range(width))
    return [builder.extract_element(vector, lane) for lane in lanes]


def _address(
    context: Any, builder: Any, signature: Any, array: Any, which: int, place: Any, kind: Any
) -> Any:
    """Pointer to the ``place``-th element of an array, read as elements of this LLVM type."""
    data = create_struct_proxy(signature.args[which])(context, builder, array).data
    return builder.gep(builder.bitcast(data, kind.as_pointer()), [place])


if config.DISABLE_JIT:
    from cqrf._runtime.plain_intrinsics import *  # noqa: F403
