"""Threads: results in order, whatever their number; nothing begins after a failure."""

import threading
import time

import joblib
import pytest

from cqrf._runtime.threads import TASKS_AHEAD, thread_map


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 8, -1])
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 100])
def test_results_come_in_the_order_of_the_tasks(n_jobs, n_tasks):
    def slow_first(i, j):
        time.sleep(0.01 if i < 2 else 0)
        return i + j

    tasks = [(i, 1000) for i in range(n_tasks)]
    assert list(thread_map(slow_first, tasks, n_jobs)) == [1000 + i for i in range(n_tasks)]


def test_tasks_run_side_by_side():
    both = threading.Barrier(2, timeout=10)
    assert len(list(thread_map(both.wait, [(), ()], 2))) == 2


def test_the_number_of_threads_is_joblibs():
    def name():
        return threading.current_thread().name

    names = set(thread_map(name, [()] * 20, None))
    assert names == {threading.main_thread().name}
    with joblib.parallel_config("threading", n_jobs=2):
        names = set(thread_map(name, [()] * 20, None))
    assert threading.main_thread().name not in names


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_after_a_failure_nothing_new_begins(n_jobs):
    begun = []

    def fail_at_ten(i):
        begun.append(i)
        if i == 10:
            raise ArithmeticError("ten")
        time.sleep(0.001)
        return i

    results = thread_map(fail_at_ten, [(i,) for i in range(1000)], n_jobs)
    with pytest.raises(ArithmeticError, match="ten"):
        list(results)
    assert max(begun) <= 10 + 2 * TASKS_AHEAD


def test_a_reader_that_leaves_early_stops_the_rest():
    begun = []
    results = thread_map(begun.append, [(i,) for i in range(1000)], 2)
    next(results)
    results.close()
    assert len(begun) < 100
