"""Parallel maps over independent tasks, with results in order.

Kernels release the interpreter lock, so threads share the table and the forest without a copy. The
pool is the standard library's: it returns a result as soon as it is there. joblib's polls every few
milliseconds, longer than a forest of a few hundred rows takes to grow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import Any, Generic, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend
from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")
Value = TypeVar("Value")

TASKS_AHEAD = 4  # queued per thread: enough that none waits, few to cancel


def parallel_map(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], n_jobs: int | None
) -> Iterator[Result]:
    """:func:`thread_map`, or the process backend that ``joblib.parallel_config`` names.

    Such a backend is Dask's or Ray's.
    """
    backend, _ = get_active_backend(prefer="threads")
    if isinstance(backend, ThreadingBackend | SequentialBackend):
        yield from thread_map(function, tasks, n_jobs)
    else:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        yield from parallel(delayed(function)(*task) for task in tasks)


def thread_map(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], n_jobs: int | None
) -> Iterator[Result]:
    """Results of the function for each tuple of arguments, in order, as they become ready.

    ``n_jobs`` and ``parallel_config`` are joblib's. If a task fails, or Ctrl-C arrives, tasks that
    have not begun are cancelled.
    """
    n_threads = min(effective_n_jobs(n_jobs), len(tasks))
    if n_threads <= 1:
        with interruptible():
            for task in tasks:
                yield function(*task)
        return
    coming = iter(tasks)
    with ThreadPoolExecutor(n_threads) as pool:
        ahead = deque(
            pool.submit(function, *task) for task in islice(coming, TASKS_AHEAD * n_threads)
        )
        try:
            while ahead:
                result = ahead.popleft().result()
                ahead.extend(pool.submit(function, *task) for task in islice(coming, 1))
                yield result
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise Ctrl-C during a kernel as KeyboardInterrupt.

    A signal that arrives while the main thread runs a kernel leaves Numba as a chain of
    SystemErrors with the interrupt as their first cause.
    """
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if isinstance(cause, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


def one_blas_thread() -> Any:
    """A context in which linear algebra uses one thread: its sums depend on their number."""
    return _thread_controller().limit(limits=1, user_api="blas")


@cache
def _thread_controller() -> ThreadpoolController:
    return ThreadpoolController()


class computed_once(Generic[Value]):  # noqa: N801 -- a decorator
    """A property that is computed at its first use, as ``functools.cached_property``.

    Before Python 3.12 that one holds a lock which all instances share, so that threads would wait
    for each other.
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Value:
        value = self.function(instance)
        vars(instance)[self.function.__name__] = value  # found first from now on
        return value
