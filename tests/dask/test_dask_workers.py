"""Workers that die, tables larger than the memory of a worker, and interrupted fits."""

import os
import signal

import dask.array as da
import numpy as np
import pytest
from distributed import Client, KilledWorker
from distributed.client import FutureCancelledError

from cqrf import CensoredQuantileForest
from cqrf._forest import binning
from cqrf._working_model import fit as working_fit
from cqrf.dask import DaskCensoredQuantileForest, fitting
from cqrf.dask.tasks import ClusterTasks
from support.dask_tables import EVEN, as_dask, assert_same_model, start_cluster, wait_for_none

SETTINGS = {"n_estimators": 30, "random_state": 0, "verbose": 1}


def after_batches(monkeypatch, n_batches, do):
    """Call ``do`` during a fit, after so many batches of trees."""
    done = []

    def watch(batches, *_):
        for batch in batches:
            done.append(batch)
            if len(done) == n_batches:
                do()
            yield batch

    monkeypatch.setattr(fitting, "show_progress", watch)
    return done


@pytest.mark.slow
@pytest.mark.parametrize("working_model", [None, "cox"])
def test_a_worker_killed_during_a_fit_has_no_effect(working_model, monkeypatch, table):
    X, y = table
    settings = SETTINGS | {"working_model": working_model}
    local = CensoredQuantileForest(**settings | {"verbose": 0}).fit(X, y)
    with start_cluster(n_workers=2) as cluster, Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
        done = after_batches(monkeypatch, 2, lambda: os.kill(pids[0], signal.SIGKILL))
        on_dask = DaskCensoredQuantileForest(**settings).fit(as_dask(X, EVEN), as_dask(y, EVEN))
        assert len(done) > 5
        client.wait_for_workers(2)
        assert pids[0] not in client.run(os.getpid).values()
        assert wait_for_none(client) == []
    assert_same_model(local.model_, on_dask.model_)


def test_a_fit_can_be_interrupted(monkeypatch, client, table):
    X, y = as_dask(table[0], EVEN), as_dask(table[1], EVEN)
    done = after_batches(monkeypatch, 1, interrupt)
    forest = DaskCensoredQuantileForest(**SETTINGS)
    with pytest.raises(KeyboardInterrupt) as caught:
        forest.fit(X, y)
    assert len(done) == 1
    assert not hasattr(forest, "model_")
    assert wait_for_none(client) == []
    assert caught.tb is not None  # the traceback still holds every variable of the fit
    monkeypatch.undo()
    forest.set_params(verbose=0).fit(X, y)  # the cluster still works


def test_an_error_in_a_task_is_raised_and_leaves_nothing(monkeypatch, client, table):
    X, y = as_dask(table[0], EVEN), as_dask(table[1], EVEN)
    monkeypatch.setattr(fitting, "grow_batch", fail)
    with pytest.raises(RuntimeError, match="task failed"):
        DaskCensoredQuantileForest(**SETTINGS | {"verbose": 0}).fit(X, y)
    assert wait_for_none(client) == []


def test_errors_of_dask_say_what_to_do():
    for error, match in (
        (KilledWorker("key", None, 3), "smaller partitions"),
        (FutureCancelledError("key", "lost dependencies"), "read it from files"),
    ):
        with pytest.raises(type(error)) as caught, ClusterTasks(None):
            raise error
        assert any(match in note for note in caught.value.__notes__)


def interrupt():
    """As Ctrl-C does; a signal may arrive while a finalizer runs, where Python ignores it."""
    raise KeyboardInterrupt


def fail(*_):
    raise RuntimeError("task failed")


LIMIT = 500_000_000  # Python and its libraries take half of it
N_ROWS, N_COLUMNS = 1_250_000, 100
BLOCK = 12_500


def make_rows(first, end, n_columns=N_COLUMNS):
    """Rows of a lazy table: pseudo-random numbers by row and column."""
    row = np.arange(first, end, dtype=np.uint64)[:, np.newaxis] * np.uint64(0x9E3779B97F4A7C15)
    column = np.arange(n_columns, dtype=np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
    place = row ^ column
    place *= np.uint64(0x94D049BB133111EB)
    place >>= np.uint64(44)
    return place.astype(np.float64)


def make_times(first, end):
    return 1.0 + make_rows(first, end, 2).sum(axis=1)


def make_lazy(make, *width):
    """The rows in blocks that are generated whenever they are read."""
    chunks = ((BLOCK,) * (N_ROWS // BLOCK), *width)

    def read_block(block_info=None):
        return make(*block_info[None]["array-location"][0])

    return da.map_blocks(read_block, chunks=chunks, dtype=float, meta=np.empty((0,) * len(chunks)))


def read_peak():
    """Peak memory of this process in bytes; ru_maxrss would include that of its parent."""
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))


@pytest.mark.slow
@pytest.mark.parametrize("working_model", [None, "cox"])
def test_a_table_of_twice_the_memory_of_a_worker(working_model, monkeypatch, client):
    # Samples of the table come to one worker whole.
    monkeypatch.setattr(binning, "EDGE_SAMPLE", 20_000)
    monkeypatch.setattr(working_fit, "MOST_ROWS", 5_000)
    X, y = make_lazy(make_rows, (N_COLUMNS,)), make_lazy(make_times)
    assert X.nbytes == 2 * LIMIT
    settings = {"n_estimators": 6, "max_samples": 5000, "max_features": 5, "random_state": 0}
    settings["working_model"] = working_model
    # On the larger cluster first: compiling kernels takes more memory than using them.
    DaskCensoredQuantileForest(client=client, **settings).fit(X[: 2 * BLOCK], y[: 2 * BLOCK])
    with start_cluster(n_workers=2, memory_limit=LIMIT) as cluster, Client(cluster) as client:
        pids = client.run(os.getpid)
        on_dask = DaskCensoredQuantileForest(**settings).fit(X, y)
        peaks = client.run(read_peak)
        assert client.run(os.getpid) == pids  # none was killed for its memory
    assert max(peaks.values()) < LIMIT
    local = CensoredQuantileForest(**settings).fit(make_rows(0, N_ROWS), make_times(0, N_ROWS))
    assert_same_model(local.model_, on_dask.model_)
