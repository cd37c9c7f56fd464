"""Tasks of a fit: what is no longer needed is released at once, not only at the end of the fit."""

from types import SimpleNamespace

import pytest

from cqrf.dask import preparing
from cqrf.dask import tasks as module
from cqrf.dask.tasks import ClusterTasks


class FakeFuture:
    """A result on the cluster, which can be read until it is released."""

    def __init__(self, key, result):
        self.key, self.result, self.n_released = key, result, 0

    def release(self):
        self.n_released += 1


class FakeClient:
    """Computes at once, and keeps every future that it gave."""

    def __init__(self):
        self.given = []

    def compute(self, tasks):
        futures = [FakeFuture(task.key, task.compute(scheduler="synchronous")) for task in tasks]
        self.given += futures
        return futures

    def gather(self, futures):
        assert all(future.n_released == 0 for future in futures)
        return [future.result for future in futures]


class FakeCompletion:
    """As distributed.as_completed, with futures in the order in which they were added."""

    def __init__(self, futures, with_results):
        assert with_results
        self.waiting = list(futures)

    def add(self, future):
        self.waiting.append(future)

    def __iter__(self):
        while self.waiting:
            future = self.waiting.pop(0)
            assert future.n_released == 0
            yield future, future.result


@pytest.fixture
def client():
    return FakeClient()


def squares(tasks, n):
    return [tasks.task("square", i, lambda i: i * i, i) for i in range(n)]


def released(client):
    return [future.n_released for future in client.given]


def test_results_that_were_fetched_are_released(client):
    with ClusterTasks(client) as tasks:
        assert tasks.run(squares(tasks, 4)) == [0, 1, 4, 9]
        assert released(client) == [1] * 4
        assert tasks.futures == set()


def test_results_that_stay_on_the_cluster_are_released_at_the_end(client):
    with ClusterTasks(client) as tasks:
        shared = tasks.share("value")
        tasks.submit(squares(tasks, 3))
        assert shared.result == "value"
        assert released(client) == [0] * 4
    assert released(client) == [1] * 4


def test_a_result_is_released_before_the_next_one_is_given(client, monkeypatch):
    monkeypatch.setattr(module, "as_completed", FakeCompletion)
    with ClusterTasks(client) as tasks:
        found = []
        for _, result in tasks.run_bounded(squares(tasks, 7), n_threads=1):
            assert released(client)[: len(found)] == [1] * len(found)
            found.append(result)
            assert len(client.given) - len(found) < module.TASKS_PER_THREAD
        assert found == [i * i for i in range(7)]
        assert released(client) == [1] * 7


def test_targets_are_released_once_the_partitions_are_binned(client):
    """Bins hold the targets: keeping both would take twice their memory on the workers."""
    targets = [FakeFuture(f"target {k}", k) for k in range(3)]
    parts = [
        SimpleNamespace(number=k, X=None, target=target, summary=SimpleNamespace(n_rows=5))
        for k, target in enumerate(targets)
    ]
    table = SimpleNamespace(parts=parts, context=None)
    preprocessing = SimpleNamespace(edges=None, working=None)
    given = []

    class Recorded(ClusterTasks):
        def submit(self, tasks):
            assert all(target.n_released == 0 for target in targets)
            given.extend(tasks)
            return ["binned"] * len(tasks)

    found = preparing.bin_partitions(Recorded(client), table, preprocessing, [0, 5, 10])
    assert found == ["binned"] * 3
    assert len(given) == 3
    assert [target.n_released for target in targets] == [1, 1, 1]
