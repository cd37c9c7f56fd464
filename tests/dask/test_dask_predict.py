"""Predictions are lazy, keep partitions and index, and equal those of the plain forest."""

import os
import signal

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
from distributed import Client

from cqrf import CensoredQuantileForest, censored
from cqrf.dask import DaskCensoredQuantileForest
from support.dask_tables import EVEN, UNEVEN, as_dask, as_frame, start_cluster, wait_for_none

CALLS_BY_METHOD = {
    "predict": ({"quantiles": 0.3}, {"quantiles": [0.2, 0.5], "unidentified": "clip"}),
    "predict_interval": ({"coverage": 0.5, "unidentified": "nan"},),
    "predict_survival": ({"times": [1.0, 365.0]}, {"times": 2}),
    "predict_censoring": ({"times": [1.0, 2.0]},),
    "survival_standard_error": ({"times": [1.0, 2.0]},),
    "predict_mean": ({}, {"horizon": 3.0}),
    "max_quantile": ({},),
}
CALLS = [(method, arguments) for method, each in CALLS_BY_METHOD.items() for arguments in each]


@pytest.fixture(scope="module", params=[None, "cox"], ids=["direct", "cox"])
def forests(request, cluster, table):
    """A forest fitted to a frame and one fitted to an array."""
    X, y = table
    settings = {"n_estimators": 20, "random_state": 0, "bag_size": 2}
    settings["working_model"] = request.param
    matrix = X[["a", "c", "count"]].to_numpy(float)
    with Client(cluster):
        return [
            DaskCensoredQuantileForest(**settings).fit(as_dask(data, EVEN), as_dask(y, EVEN))
            for data in (X, matrix)
        ]


@pytest.mark.filterwarnings("ignore::cqrf.BeyondFollowUpWarning")
@pytest.mark.parametrize(("method", "arguments"), CALLS, ids=str)
def test_frames_in_frames_out(method, arguments, client, forests, table):
    forest, X = forests[0], table[0]
    X = X.set_index(np.arange(1200) * 3)
    known = dd.from_pandas(X, npartitions=5)
    lazy = getattr(forest, method)(known, **arguments)
    assert isinstance(lazy, dd.DataFrame | dd.Series)
    assert lazy.divisions == known.divisions
    found = lazy.compute()
    expected = getattr(forest.to_local(), method)(X, **arguments)
    assert found.index.equals(X.index)
    assert np.array_equal(found.to_numpy(), expected, equal_nan=True)
    assert found.iloc[:0].equals(lazy._meta)
    # Empty partitions stay, and the divisions may be unknown.
    lazy = getattr(forest, method)(as_dask(X, UNEVEN), **arguments)
    assert lazy.npartitions == len(UNEVEN)
    assert lazy.map_partitions(len).compute().tolist() == UNEVEN
    assert lazy.compute().equals(found)


def test_columns_are_named(client, forests, table):
    forest, X = forests[0], as_dask(table[0], EVEN)
    assert forest.predict(X).name == "q0.5"
    assert list(forest.predict(X, [0.25, 0.5]).columns) == ["q0.25", "q0.5"]
    assert list(forest.predict_interval(X).columns) == ["lower", "upper"]
    assert list(forest.predict_survival(X, [1, 2.5]).columns) == ["survival1", "survival2.5"]
    assert list(forest.predict_censoring(X, 3).columns) == ["censoring3"]
    assert forest.predict_mean(X).name == "mean"
    assert forest.max_quantile(X).name == "max_quantile"


@pytest.mark.filterwarnings("ignore::cqrf.BeyondFollowUpWarning")
@pytest.mark.parametrize(("method", "arguments"), CALLS, ids=str)
def test_arrays_in_arrays_out(method, arguments, client, forests, table):
    forest, X = forests[1], table[0][["a", "c", "count"]].to_numpy(float)
    expected = getattr(forest.to_local(), method)(X, **arguments)
    known = da.from_array(X, chunks=((100, 900, 200), (2, 1)))
    lazy = getattr(forest, method)(known, **arguments)
    assert isinstance(lazy, da.Array)
    assert lazy.shape == expected.shape
    assert lazy.chunks[0] == (100, 900, 200)
    assert np.array_equal(lazy.compute(), expected, equal_nan=True)
    some = known[da.from_array(X[:, 0] > 0.5, chunks=((100, 900, 200),))]
    unknown = getattr(forest, method)(some.rechunk({1: -1}), **arguments)
    assert np.isnan(unknown.chunks[0]).all()
    assert np.array_equal(unknown.compute(), expected[X[:, 0] > 0.5], equal_nan=True)


def test_a_prediction_reads_only_the_blocks_it_needs(client, forests):
    """A table of a thousand blocks, of which all but one cannot be read."""

    def read(block_info=None):
        if block_info[None]["chunk-location"][0] != 3:
            raise AssertionError("read a block that is not needed")
        return np.ones((10, 3))

    n_blocks = 1_000
    huge = da.map_blocks(read, chunks=((10,) * n_blocks, (3,)), dtype=float, meta=np.empty((0, 0)))
    lazy = forests[1].predict(huge, [0.2, 0.5], unidentified="clip")
    assert lazy.numblocks == (n_blocks, 1)
    one = lazy.blocks[3].compute()
    expected = forests[1].to_local().predict(np.ones((10, 3)), [0.2, 0.5], unidentified="clip")
    assert np.array_equal(one, expected)
    with pytest.raises(AssertionError, match="not needed"):
        lazy.blocks[4].compute()


def test_wrong_columns_raise_an_error_immediately(client, forests, table):
    X = as_dask(table[0], EVEN)
    matrix = da.zeros((10, 3))
    for forest, wrong, match in (
        (forests[0], X[["a", "b"]], "feature names should match"),
        (forests[0], X.rename(columns={"a": "z"}), "feature names should match"),
        (forests[0], da.zeros((10, 8)), "some columns were categories in fit"),
        (forests[1], matrix[:, :2], "X has 2 features, but .* is expecting 3 features"),
        (forests[1], matrix[0], "X has 1 dimensions"),
    ):
        with pytest.raises(ValueError, match=match):
            forest.predict(wrong)
    with pytest.raises(TypeError, match=r"pandas DataFrame, not a Dask .* predict with to_local"):
        forests[0].predict(table[0])
    with pytest.raises(ValueError, match="quantiles"):
        forests[1].predict(matrix, 2)
    with pytest.raises(ValueError, match="unidentified"):
        forests[1].predict(matrix, unidentified="no")
    with pytest.raises(ValueError, match="coverage"):
        forests[1].predict_interval(matrix, 1.0)
    with pytest.raises(ValueError, match="needs times; to_local"):
        forests[1].predict_survival(matrix, None)


def test_the_score_is_that_of_the_plain_forest(client, forests, table):
    X, y = table
    weight = np.linspace(0, 1, 1200)
    found = forests[0].score(as_dask(X, UNEVEN), as_dask(as_frame(y), UNEVEN))
    assert found == forests[0].to_local().score(X, y)
    found = forests[0].score(as_dask(X, EVEN), as_dask(y, EVEN), as_dask(weight, EVEN))
    assert found == forests[0].to_local().score(X, y, weight)


def test_without_a_cluster_dask_predicts_in_threads(forests, table):
    X = table[0]
    lazy = forests[0].predict(as_dask(X, EVEN), unidentified="clip")
    found = lazy.compute(scheduler="threads")
    assert np.array_equal(found, forests[0].to_local().predict(X, unidentified="clip"))


def test_settings_of_predictions_can_be_changed(client, table):
    X, y = table
    forest = DaskCensoredQuantileForest(n_estimators=12, random_state=3, working_model=None)
    forest.fit(as_dask(X, EVEN), as_dask(y, EVEN))
    asked = as_dask(X, EVEN)
    found = []
    for settings in ({}, {"solver": "argmin"}, {"censoring_survival": "km"}):
        forest.set_params(**settings)
        found.append(forest.predict(asked, 0.8, unidentified="clip").compute())
        expected = forest.to_local().predict(X, 0.8, unidentified="clip")
        assert np.array_equal(found[-1], expected)
    assert not np.array_equal(found[0], found[1])
    assert not np.array_equal(found[1], found[2])


@pytest.mark.slow
def test_a_large_forest_is_sent_once_and_outlives_its_worker():
    """Dask's warning about large graphs is an error here; the forest survives a killed worker."""
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(20_000, 2)), rng.exponential(size=20_000)
    settings = {"n_estimators": 600, "random_state": 0, "max_depth": 3}
    forest = DaskCensoredQuantileForest(**settings)
    plain = CensoredQuantileForest(**settings).fit(X, censored(time, time < 2))
    forest.model_, forest.n_features_in_ = plain.model_, 2
    assert plain.model_.forest.leaf_rows.nbytes > 2 * 5_000_000
    with start_cluster(n_workers=1) as cluster, Client(cluster) as client:
        lazy = forest.predict(da.from_array(X[:60], chunks=(20, 2)), unidentified="clip")
        expected = plain.predict(X[:60], unidentified="clip")
        assert np.array_equal(lazy.compute(), expected)
        key = forest._sent_forest[1].key
        (pid,) = client.run(os.getpid).values()
        os.kill(pid, signal.SIGKILL)
        assert np.array_equal(lazy.compute(), expected)
        forest.predict(da.from_array(X[:60], chunks=(20, 2)))
        assert forest._sent_forest[1].key == key
        del lazy, forest
        assert wait_for_none(client) == []
