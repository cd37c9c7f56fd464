"""Errands: tasks that one fit sends to a cluster, by name, and takes back if it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any
from uuid import uuid4

from dask.delayed import Delayed, delayed
from distributed import Client, Future, KilledWorker, as_completed
from distributed.client import FutureCancelledError

AHEAD = 2  # tasks per thread that are on their way: none waits for the next


class Errands:
    """The tasks of a fit. Within ``with``; afterwards nothing of them is on the cluster."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.name = uuid4().hex
        self.futures: set[Future] = set()
        self.n_sent = 0

    def __enter__(self) -> Errands:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        # Tasks that nobody waits for any more are called off. Client.cancel would do the same, but
        # fails on the scheduler where a future has been let go before one that it came from.
        self.release(list(self.futures))
        if error is not None:
            explain(error)

    def task(
        self, stage: str, number: int | tuple[int, ...], function: Callable[..., Any], *args: Any
    ) -> Delayed:
        """A task that Dask's dashboard shows as cqrf-stage."""
        key = (f"cqrf-{stage}-{self.name}", *(number if isinstance(number, tuple) else (number,)))
        return delayed(function, pure=False, traverse=False)(*args, dask_key_name=key)

    def send(self, thing: Any) -> Future:
        """Something that many tasks need, once for all of them."""
        self.n_sent += 1
        (future,) = self.start([self.task("guide", self.n_sent, _give_back, thing)])
        return future

    def start(self, tasks: Sequence[Delayed]) -> list[Future]:
        """Begin the tasks; what they give stays on the cluster."""
        futures = self.client.compute(list(tasks))
        self.futures.update(futures)
        return list(futures)

    def run(self, tasks: Sequence[Delayed]) -> list[Any]:
        """What the tasks give."""
        futures = self.start(tasks)
        results = self.client.gather(futures)
        self.release(futures)
        return list(results)

    def run_few_ahead(self, tasks: Iterable[Delayed], n_threads: int) -> Iterator[tuple[Any, Any]]:
        """Key and result of each task, as they become ready; few are on their way at a time."""
        coming = iter(tasks)
        completed = as_completed(
            self.start(list(islice(coming, AHEAD * n_threads))), with_results=True
        )
        for future, result in completed:
            yield future.key, result
            self.release([future])
            for added in self.start(list(islice(coming, 1))):
                completed.add(added)

    def release(self, futures: Iterable[Future]) -> None:
        """Let the cluster forget what nobody will ask for any more."""
        for future in futures:
            self.futures.discard(future)
            future.release()


def _give_back(thing: Any) -> Any:
    return thing


def explain(error: BaseException) -> None:
    """Say what to do about errors that are Dask's own."""
    if isinstance(error, KilledWorker):
        error.add_note(
            "cqrf: workers died again and again at one task, most often for want of memory. Cut X "
            "into smaller partitions, or draw fewer rows a tree (max_samples)."
        )
    if isinstance(error, FutureCancelledError):
        error.add_note(
            "cqrf: something that the fit needs is gone from the cluster. Data that was scattered "
            "or persisted and lost with a worker cannot be computed again: read it from files."
        )
