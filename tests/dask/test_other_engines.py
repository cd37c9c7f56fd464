"""Other engines: joblib's backends, and functions over pandas frames."""

import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from joblib.externals.loky import get_reusable_executor

from cqrf import CensoredQuantileForest
from cqrf._runtime import threads
from support.dask_tables import assert_same_model

SETTINGS = {"n_estimators": 32, "random_state": 3}


@pytest.fixture
def no_local_threads(monkeypatch):
    """No tree is grown in a thread of this process."""
    thread_map = threads.thread_map

    def refuse(function, *rest):
        assert function.__name__ != "grow_batch"
        return thread_map(function, *rest)

    monkeypatch.setattr(threads, "thread_map", refuse)


def test_the_threads_of_this_process_are_the_default(no_local_threads, table):
    with pytest.raises(AssertionError):
        CensoredQuantileForest(**SETTINGS).fit(*table)
    with joblib.parallel_config(backend="threading", n_jobs=2), pytest.raises(AssertionError):
        CensoredQuantileForest(**SETTINGS).fit(*table)
    with joblib.parallel_config(n_jobs=2), pytest.raises(AssertionError):
        CensoredQuantileForest(**SETTINGS).fit(*table)


def test_the_backend_of_dask_grows_the_same_forest(client, table, request):
    here = CensoredQuantileForest(**SETTINGS).fit(*table)
    request.getfixturevalue("no_local_threads")
    with joblib.parallel_config(backend="dask"):
        there = CensoredQuantileForest(**SETTINGS).fit(*table)
    assert_same_model(here.model_, there.model_)
    assert np.array_equal(here.model_.rows.codes, there.model_.rows.codes)


def test_the_backend_of_loky_grows_the_same_forest(table, request):
    here = CensoredQuantileForest(**SETTINGS).fit(*table)
    request.getfixturevalue("no_local_threads")
    with joblib.parallel_config(backend="loky", n_jobs=2):
        there = CensoredQuantileForest(**SETTINGS).fit(*table)
    get_reusable_executor().shutdown()
    assert_same_model(here.model_, there.model_)


PARTITION_FUNCTION = """
import pickle, sys

import pandas as pd


def predict_partitions(frames):
    forest = pickle.loads(FOREST)
    for frame in frames:
        quantiles = forest.predict(frame, [0.25, 0.5], unidentified="nan")
        yield pd.DataFrame(quantiles, columns=["q0.25", "q0.5"], index=frame.index)


FOREST, frames = pickle.load(sys.stdin.buffer)
pickle.dump(list(predict_partitions(iter(frames))), sys.stdout.buffer)
"""


def test_a_function_over_pandas_frames_needs_only_the_pickled_forest(table):
    """As Spark's mapInPandas and Ray Data's map_batches call it, in another process."""
    X, y = table
    forest = CensoredQuantileForest(**SETTINGS).fit(X, y)
    frames = [X.iloc[:500], X.iloc[500:501], X.iloc[501:]]
    run = subprocess.run(
        [sys.executable, "-c", PARTITION_FUNCTION],
        input=pickle.dumps((pickle.dumps(forest), frames)),
        capture_output=True,
        check=True,
    )
    answers = pickle.loads(run.stdout)
    assert [len(answer) for answer in answers] == [500, 1, 699]
    found = pd.concat(answers)
    assert found.index.equals(X.index)
    expected = forest.predict(X, [0.25, 0.5], unidentified="nan")
    assert np.array_equal(found, expected, equal_nan=True)
