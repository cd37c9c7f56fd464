"""Tasks that one fit submits to a Dask cluster, and releases when it ends or fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any
from uuid import uuid4

from dask.delayed import Delayed, delayed
from distributed import Client, Future, KilledWorker, as_completed
from distributed.client import FutureCancelledError

TASKS_PER_THREAD = 2  # submitted at a time: one runs while the next one waits


class ClusterTasks:
    """The tasks of one fit, as a context manager: on exit all their futures are released."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.name = uuid4().hex
        self.futures: set[Future] = set()
        self.n_shared = 0

    def __enter__(self) -> ClusterTasks:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        # Releasing cancels tasks that are still running. Client.cancel fails on the scheduler
        # if a future was released before one that it depends on.
        self.release(list(self.futures))
        if error is not None:
            add_advice(error)

    def task(
        self, stage: str, number: int | tuple[int, ...], function: Callable[..., Any], *args: Any
    ) -> Delayed:
        """Make a task that Dask's dashboard shows as cqrf-stage."""
        key = (f"cqrf-{stage}-{self.name}", *(number if isinstance(number, tuple) else (number,)))
        return delayed(function, pure=False, traverse=False)(*args, dask_key_name=key)

    def share(self, value: Any) -> Future:
        """Send a value that many tasks need to the cluster once."""
        self.n_shared += 1
        (future,) = self.submit([self.task("shared", self.n_shared, _identity, value)])
        return future

    def submit(self, tasks: Sequence[Delayed]) -> list[Future]:
        """Start the tasks; their results stay on the cluster."""
        futures = self.client.compute(list(tasks))
        self.futures.update(futures)
        return list(futures)

    def run(self, tasks: Sequence[Delayed]) -> list[Any]:
        """Results of the tasks, in their order."""
        futures = self.submit(tasks)
        results = self.client.gather(futures)
        self.release(futures)
        return list(results)

    def run_bounded(self, tasks: Iterable[Delayed], n_threads: int) -> Iterator[tuple[Any, Any]]:
        """Key and result of each task as it completes, with few tasks submitted at a time."""
        remaining = iter(tasks)
        completed = as_completed(
            self.submit(list(islice(remaining, TASKS_PER_THREAD * n_threads))), with_results=True
        )
        for future, result in completed:
            yield future.key, result
            self.release([future])
            for added in self.submit(list(islice(remaining, 1))):
                completed.add(added)

    def release(self, futures: Iterable[Future]) -> None:
        """Let the cluster drop results that are no longer needed."""
        for future in futures:
            self.futures.discard(future)
            future.release()


def _identity(value: Any) -> Any:
    return value


def add_advice(error: BaseException) -> None:
    """Add a note to errors of Dask itself that says what to do."""
    if isinstance(error, KilledWorker):
        error.add_note(
            "cqrf: several workers died while running the same task, most often because they ran "
            "out of memory. Use smaller partitions of X, or fewer rows per tree (max_samples)."
        )
    if isinstance(error, FutureCancelledError):
        error.add_note(
            "cqrf: data that the fit needs was lost from the cluster. Scattered or persisted data "
            "cannot be computed again when its worker dies: read it from files."
        )
