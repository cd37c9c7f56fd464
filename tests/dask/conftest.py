"""A cluster of two processes, and a table with all kinds of columns."""

import numpy as np
import pandas as pd
import pytest
from distributed import Client

from cqrf import censored
from support.dask_tables import start_cluster


@pytest.fixture(scope="session")
def cluster():
    with start_cluster(n_workers=2) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        yield client


@pytest.fixture(scope="session")
def table():
    """A frame with every kind of column and missing values, and its target."""
    n = 1200
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3)).round(2)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    frame.loc[rng.random(n) < 0.1, "b"] = np.nan
    frame["count"] = rng.integers(0, 9, n)
    frame["flag"] = rng.random(n) < 0.5
    frame["city"] = rng.choice(["x", "y", "zzz", None], n)
    frame["colour"] = pd.Categorical(rng.choice(["red", "green"], n), categories=["red", "green"])
    frame["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 500, n), "D")
    late = 2.0 * (frame["city"] == "x") + 1.0 * (frame["colour"] == "red")
    time = rng.exponential(np.exp(x[:, 0] + late)).round(1) + 0.1
    return frame, censored(time, rng.random(n) < 0.7)
