"""Competing risks on Dask: the forest of the same rows in one machine's memory."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf.dask import DaskCensoredQuantileForest

TIMES = [0.5, 1.0]


@pytest.fixture(scope="module")
def rows():
    """Rows whose first part has no event of cause 2."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(600, 4))
    time, cause = rng.exponential(np.exp(X[:, 0])), rng.integers(0, 3, 600)
    cause[:200][cause[:200] == 2] = 1
    return X, time, cause


@pytest.mark.parametrize("settings", [{}, {"split_causes": 2}, {"criterion": "logrank"}])
def test_incidences_are_those_of_the_local_forest_bit_for_bit(client, rows, settings):
    X, time, cause = rows
    y, settings = censored(time, cause), {"n_estimators": 20, "random_state": 0, **settings}
    lazy = da.from_array(X, chunks=(200, -1))
    on_dask = DaskCensoredQuantileForest(**settings).fit(lazy, da.from_array(y, chunks=200))
    local = CensoredQuantileForest(**settings).fit(X, y)
    assert on_dask.to_local().causes_ == on_dask.causes_ == (1, 2)
    for cause_of in (1, 2):
        found = on_dask.predict_incidence(lazy, TIMES, cause_of).compute()
        assert np.array_equal(found, local.predict_incidence(X, TIMES, cause_of))
    assert np.array_equal(
        on_dask.predict(lazy, 0.1, cause=1, unidentified="nan").compute(),
        local.predict(X, 0.1, cause=1, unidentified="nan"),
        equal_nan=True,
    )
    assert np.array_equal(
        on_dask.predict_mean(lazy, 1.0, cause=2).compute(), local.predict_mean(X, 1.0, cause=2)
    )
    assert np.array_equal(
        on_dask.max_quantile(lazy, cause=2).compute(), local.max_quantile(X, cause=2)
    )


def test_a_frame_of_times_and_causes_is_read(client, rows):
    X, time, cause = rows
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=3)
    y = dd.from_pandas(pd.DataFrame({"time": time, "cause": cause}), npartitions=3)
    settings = {"n_estimators": 10, "random_state": 0}
    on_dask = DaskCensoredQuantileForest(**settings).fit(frame, y)
    local = CensoredQuantileForest(**settings).fit(X, censored(time, cause))
    found = on_dask.predict_incidence(frame, TIMES, 2).compute()
    assert list(found.columns) == ["incidence0.5", "incidence1"]
    assert np.array_equal(found.to_numpy(), local.predict_incidence(X, TIMES, 2))


def test_incidences_of_all_causes_at_once(client, rows):
    X, time, cause = rows
    lazy, y = da.from_array(X, chunks=(200, -1)), da.from_array(censored(time, cause), chunks=200)
    forest = DaskCensoredQuantileForest(n_estimators=10, random_state=0).fit(lazy, y)
    expected = forest.to_local().predict_incidence(X, TIMES)
    assert expected.shape == (600, 2, 2)
    found = forest.predict_incidence(lazy, TIMES)
    assert found.shape == expected.shape
    assert np.array_equal(found.compute(), expected)
    assert np.array_equal(forest.predict_incidence(lazy, 0.5).compute(), expected[..., :1])
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    unknown = forest.predict_incidence(frame.to_dask_array(), TIMES)
    assert np.array_equal(unknown.compute(), expected)
    found = forest.predict_incidence(frame, TIMES).compute()
    names = ["incidence0.5 1", "incidence1 1", "incidence0.5 2", "incidence1 2"]
    assert list(found.columns) == names
    assert np.array_equal(found, expected.reshape(600, -1))
    plain = DaskCensoredQuantileForest(n_estimators=5).fit(lazy, da.from_array(time, chunks=200))
    assert plain.causes_ == ()
    for cause_of in (None, 1):
        with pytest.raises(ValueError, match="this forest knows one kind of event"):
            plain.predict_incidence(lazy, TIMES, cause_of)


def test_a_cause_that_no_partition_has_is_refused(client, rows):
    X, time, cause = rows
    lazy = da.from_array(X, chunks=(200, -1))
    y = da.from_array(censored(time, cause), chunks=200)
    with pytest.raises(ValueError, match="split_causes=7 is no cause of this forest"):
        DaskCensoredQuantileForest(split_causes=7, n_estimators=10).fit(lazy, y)
    forest = DaskCensoredQuantileForest(n_estimators=10).fit(lazy, y)
    with pytest.raises(ValueError, match="cause=7 is no cause of this forest"):
        forest.predict_incidence(lazy, TIMES, 7)
