"""Threads: independent pieces of work, done side by side, their results in order.

Kernels hold no lock, so threads share the table and the forest without a copy. The standard
library's pool wakes as soon as a result is there: a forest of a few hundred rows is grown in less
time than a pool that looks around every few milliseconds would lose.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend

Result = TypeVar("Result")

TASKS_AHEAD = 4  # per thread: none waits for the next task, and few are there to be called off


def side_by_side(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], n_jobs: int | None
) -> Iterator[Result]:
    """As :func:`in_threads`, unless ``joblib.parallel_config`` names a backend of processes.

    Then that backend, such as Dask's or Ray's, does the work.
    """
    backend, _ = get_active_backend(prefer="threads")
    if isinstance(backend, ThreadingBackend | SequentialBackend):
        yield from in_threads(function, tasks, n_jobs)
    else:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        yield from parallel(delayed(function)(*task) for task in tasks)


def in_threads(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], n_jobs: int | None
) -> Iterator[Result]:
    """Results of the function for each tuple of arguments, in order, as they become ready.

    ``n_jobs`` counts as in joblib, whose ``parallel_config`` is heeded. If one task fails, or
    Ctrl-C arrives, those that have not begun never do.
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
    """Let Ctrl-C in the midst of a kernel be the KeyboardInterrupt that it is.

    A signal that arrives while the main thread is in a kernel comes out of Numba as a chain
    of SystemErrors, with the interrupt as their first cause.
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
