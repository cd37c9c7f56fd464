"""How kernels are compiled.

A kernel is a Numba function that takes arrays, scalars and NamedTuples of them, releases the
interpreter lock and is cached on disk. No kernel starts threads, so no result depends on their
number.

What is absent is None. Numba leaves out a branch on ``argument is None`` if the argument is one of
the compiled function itself; a field of a NamedTuple is therefore passed on to a ``called`` kernel
that has the branch.

Numba's cache on disk looks at the file of a kernel, not at the files of the kernels that it calls.
Here the sources of all packages with kernels decide whether what is kept is still right.
"""

from __future__ import annotations

import gc
import hashlib
import re
import threading
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numba.core import config, event
from numba.core.caching import CompileResultCacheImpl, FunctionCache

from cqrf._runtime.progress import draw_until, write_line

# Indices of hot loops are unsigned: an unsigned index spares the check for one that counts from
# the end. Mixed with a signed number it would become a float, hence these constants.
ZERO, ONE = np.uint64(0), np.uint64(1)

PACKAGE = Path(__file__).resolve().parent.parent
# Those with kernels, or with records that kernels read.
KERNEL_PACKAGES = (
    "_runtime",
    "_input",
    "_forest",
    "_working_model",
    "_survival",
    "metrics",
    "_model",
    "_effects",
)
QUIET_SECONDS = 1.0  # of compilation in a process, before a line says so


# Numba's class for NUMBA_CACHE_DIR, the first that it tries; its name differs between versions.
ProvidedLocator: Any = CompileResultCacheImpl._locator_classes[0]


class ReadOnlyLocator(ProvidedLocator):
    """The folder NUMBA_CACHE_DIR as it is found, in a container for example."""

    @classmethod
    def from_function(cls, function: Callable[..., Any], path: str) -> ReadOnlyLocator | None:
        """The locator of a function, if there is such a folder; it may lack kernels of the file."""
        is_there = config.CACHE_DIR and Path(config.CACHE_DIR).is_dir() and Path(path).is_file()
        return cls(function, path) if is_there else None


class ReadOnlyImplementation(CompileResultCacheImpl):
    """What Numba needs to find and rebuild kernels of a folder that cannot be written to."""

    _locator_classes = (ReadOnlyLocator,)


class ReadOnlyCache(FunctionCache):
    """Kernels of a folder that cannot be written to; Numba itself would not look at it.

    It is used where Numba finds no other folder.
    """

    _impl_class = ReadOnlyImplementation

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep nothing: a kernel that is not in the folder is compiled by every process."""
        _warn_without_cache()


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


class CompilationNotice(event.Listener):
    """One line on standard error once the kernels of this package have been compiled for a second.

    A kernel that is read from the cache is not compiled: Numba then announces nothing. While a
    kernel is compiled a thread waits, as the line is of use only before the end.
    """

    def __init__(self, package: str = "cqrf") -> None:
        self.package = package
        self.n_kernels, self.seconds, self.is_announced = 0, 0.0, False
        self._depth, self._began = 0, 0.0
        self._is_done = threading.Event()
        self._waiting: threading.Thread | None = None

    def on_start(self, announced: Any) -> None:
        """Start to wait, if this is a kernel of the package and not part of another."""
        self._depth += 1
        if self._depth == 1 and self._is_ours(announced):
            self._began = time.perf_counter()
            self._is_done.clear()
            self._waiting = threading.Thread(target=self._wait, daemon=True)
            self._waiting.start()

    def on_end(self, _announced: Any) -> None:
        """Count the kernel."""
        self._depth -= 1
        if self._depth == 0 and self._waiting is not None:
            self._is_done.set()
            self._waiting.join()
            self._waiting = None
            self.seconds += time.perf_counter() - self._began
            self.n_kernels += 1

    def _is_ours(self, announced: Any) -> bool:
        function = getattr((announced.data or {}).get("dispatcher"), "py_func", None)
        return str(getattr(function, "__module__", "")).partition(".")[0] == self.package

    def _wait(self) -> None:
        if self._is_done.wait(max(0.0, QUIET_SECONDS - self.seconds)):
            return
        if not self.is_announced:
            self.is_announced = True
            kept = "" if _warn_without_cache.cache_info().currsize else KEPT
            write_line(f"cqrf is compiling its kernels.{kept}")
        draw_until(self._is_done, self._began - self.seconds, f"compiling, {self.n_kernels} done")


KEPT = " This is done once: later processes read them from a cache. `cqrf warm` does it beforehand."
notice = CompilationNotice()
event.register("numba:compile", _PauseGarbageCollection())
event.register("numba:compile", notice)


# No fastmath: sums decide splits and ties. Without NRT, Numba's reference counting: a kernel that
# allocates nothing needs none, compiles faster, and its hot loops do no atomic increments.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


def kernel(function: Callable[..., Any], **options: Any) -> Any:
    """Decorator of a kernel that Python calls. It writes into arrays and allocates none."""
    compile_it = partial(njit, no_cfunc_wrapper=True, **{**OPTIONS, **options})
    try:
        compiled = compile_it(cache=True)(function)
    except RuntimeError:  # the package cannot be written to, and there is no home folder
        compiled = compile_it()(function)
        try:
            compiled._cache = ReadOnlyCache(function)
        except RuntimeError:  # there is no such folder, or no file with the source
            _warn_without_cache()
            return compiled
    index = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if index is not None:
        index._source_stamp = (index._source_stamp, hash_sources())
        index._load_index = partial(load_index, index._load_index)
        index.save = partial(save_kernel, index, index.save)
    return compiled


@cache
def hash_sources(package: Path = PACKAGE) -> str:
    """Hash of the names and bytes of all sources in packages with kernels."""
    digest = hashlib.sha256()
    for folder in KERNEL_PACKAGES:
        for path in sorted((package / folder).rglob("*.py")):
            digest.update(path.relative_to(package).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def save_kernel(index: Any, save: Callable[[Any, Any], None], key: Any, data: Any) -> None:
    """Keep a compiled kernel; what was kept of it from other sources is removed before.

    Numba leaves that: it would stay for ever if the kernel has moved to another line.
    """
    if not index._load_index():
        for path in list_kept(Path(index._index_path)):
            path.unlink(missing_ok=True)
    save(key, data)


def list_kept(index: Path) -> list[Path]:
    """Files of the cache of a kernel: ``FILE.NAME-LINE.pyXYZ.nbi`` and ``....NUMBER.nbc``."""
    name, _, rest = index.name.removesuffix(".nbi").rpartition("-")
    python = rest.partition(".")[2]
    pattern = re.compile(rf"{re.escape(name)}-\d+\.{re.escape(python)}\.(nbi|\d+\.nbc)")
    return [path for path in index.parent.iterdir() if pattern.fullmatch(path.name)]


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
    """Decorator of a kernel that only kernels call: it has no entry from Python.

    It is not cached: what is kept of its caller contains it.
    """
    return njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS)(function)


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
