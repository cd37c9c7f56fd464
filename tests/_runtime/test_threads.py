"""Threads: results in order, whatever the number of threads; no task starts after a failure."""

import os
import threading
import time

import joblib
import pytest

from cqrf._runtime.threads import (
    TASKS_AHEAD,
    computed_once,
    interruptible,
    parallel_map,
    thread_map,
)


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 8, -1])
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 100])
def test_results_come_in_the_order_of_the_tasks(n_jobs, n_tasks):
    def slow_first(i, j):
        time.sleep(0.01 if i < 2 else 0)
        return i + j

    tasks = [(i, 1000) for i in range(n_tasks)]
    assert list(thread_map(slow_first, tasks, n_jobs)) == [1000 + i for i in range(n_tasks)]


def test_tasks_run_in_parallel():
    both = threading.Barrier(2, timeout=240)
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
def test_after_a_failure_no_new_task_starts(n_jobs):
    started = []

    def fail_at_ten(i):
        started.append(i)
        if i == 10:
            raise ArithmeticError("ten")
        time.sleep(0.001)
        return i

    results = thread_map(fail_at_ten, [(i,) for i in range(1000)], n_jobs)
    with pytest.raises(ArithmeticError, match="ten"):
        list(results)
    assert max(started) <= 10 + 2 * TASKS_AHEAD


def test_closing_the_results_early_cancels_the_rest():
    started = []
    results = thread_map(started.append, [(i,) for i in range(1000)], 2)
    next(results)
    results.close()
    assert len(started) < 100


def test_processes_are_used_if_joblib_names_such_a_backend():
    with joblib.parallel_config("loky", n_jobs=2):
        assert os.getpid() not in set(parallel_map(os.getpid, [()] * 4, None))
    with joblib.parallel_config("threading", n_jobs=2):
        assert set(parallel_map(os.getpid, [()] * 4, None)) == {os.getpid()}


def chain(first):
    """SystemErrors of which the first was caused by another error, as Numba raises them."""
    inner, outer = SystemError("returned a result with an exception set"), SystemError("again")
    inner.__cause__, outer.__cause__ = first, inner
    return outer


def test_an_interrupt_during_a_kernel_is_raised_as_itself():
    with pytest.raises(KeyboardInterrupt), interruptible():
        raise chain(KeyboardInterrupt())
    with pytest.raises(SystemError), interruptible():
        raise chain(ValueError())
    with pytest.raises(ValueError, match="plain"), interruptible():
        raise ValueError("plain")


def test_a_property_is_computed_once_and_threads_do_not_wait_for_each_other():
    together = threading.Barrier(2, timeout=240)

    class Slow:
        n_calls = 0

        @computed_once
        def value(self):
            """What it is."""
            self.n_calls += 1
            together.wait()  # both threads must be in here at the same time
            return self.n_calls

    both = [Slow(), Slow()]
    assert list(thread_map(lambda each: each.value, [(each,) for each in both], 2)) == [1, 1]
    assert [each.value for each in both] == [1, 1]
    assert [each.n_calls for each in both] == [1, 1]
