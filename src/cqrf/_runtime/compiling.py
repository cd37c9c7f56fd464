"""How kernels are compiled.

A kernel is a Numba function that takes arrays, scalars and NamedTuples of them, releases the
interpreter lock and is cached on disk. Threads live outside, so no result depends on their number.

What is absent is None. Numba leaves out a branch on ``argument is None`` if the argument is one of
the compiled function itself; a field of a NamedTuple is therefore passed on to a ``called`` kernel
that has the branch.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numba import njit
from numba.core import event

# Indices of hot loops are unsigned: an unsigned index spares the check for one that counts from
# the end. Mixed with a signed number it would become a float, hence these constants.
ZERO, ONE = np.uint64(0), np.uint64(1)


class _PauseGarbageCollection(event.Listener):
    """No garbage collection during compilation: all that the compiler makes stays in use.

    Compilations are nested but never concurrent: they hold Numba's lock.
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


event.register("numba:compile", _PauseGarbageCollection())


# No fastmath: sums decide splits and ties. Without NRT, Numba's reference counting: a kernel that
# allocates nothing needs none, compiles faster, and its hot loops do no atomic increments.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


def kernel(function: Callable[..., Any], **options: Any) -> Any:
    """Decorator of a kernel that Python calls. It writes into arrays and allocates none."""
    compile_it = partial(njit, no_cfunc_wrapper=True, **{**OPTIONS, **options})
    try:
        compiled = compile_it(cache=True)(function)
    except RuntimeError:  # the package cannot be written to, and there is no home folder
        _warn_without_cache()
        return compile_it()(function)
    index = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if index is not None:
        index._load_index = partial(load_index, index._load_index)
    return compiled


def load_index(load: Callable[[], Any]) -> Any:
    """The index of a kernel's cache; empty if it names a class that is no longer there.

    Numba reads the classes of a kernel's arguments before it sees that the source has changed. A
    record that was renamed since would otherwise end every call in an AttributeError.
    """
    try:
        return load()
    except (AttributeError, ImportError):
        return {}


def allocating_kernel(function: Callable[..., Any]) -> Any:
    """Decorator of a kernel that allocates or returns arrays."""
    return kernel(function, _nrt=True)


def called(function: Callable[..., Any]) -> Any:
    """Decorator of a kernel that only kernels call: it is compiled without an entry from Python."""
    return kernel(function, no_cpython_wrapper=True)


def inlined(function: Callable[..., Any]) -> Any:
    """Decorator of a part of a kernel, inserted into its caller before compilation.

    It is compiled once with its caller rather than once more alone, and once more for each kernel
    on the way to Python. It must not branch on ``argument is None``: see the module's docstring.
    """
    return njit(inline="always", **OPTIONS)(function)


@cache
def _warn_without_cache() -> None:
    warnings.warn(
        "there is no folder to keep compiled kernels in, so every process compiles its own, which "
        "takes ten seconds or more: set NUMBA_CACHE_DIR to a folder that can be written.",
        RuntimeWarning,
        stacklevel=3,
    )
