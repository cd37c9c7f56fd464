"""Models of interval-censored times, as they are served."""

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, interval
from cqrf.cli.roles import GivenRoles
from cqrf.cli.serve import ServeTask, load_view
from cqrf.serve.schema import Limits


@pytest.fixture(scope="module")
def table():
    """Ends of intervals between visits: 0 if the event came before the first, inf after the last.

    Every tenth time is exact.
    """
    rng = np.random.default_rng(0)
    n = 200
    X = pd.DataFrame(rng.uniform(size=(n, 2)), columns=["a", "b"])
    time = (rng.exponential(10 + 20 * X["a"].to_numpy()) + 0.5).round(1)
    visits = np.sort(rng.uniform(0, 50, (n, 5)).round(1), axis=1)
    visits = np.c_[np.zeros(n), visits, np.full(n, np.inf)]
    before = (visits < time[:, np.newaxis]).sum(axis=1)
    lower, upper = visits[np.arange(n), before - 1], visits[np.arange(n), before]
    lower[::10] = upper[::10] = time[::10]
    return X, interval(lower, upper)


@pytest.fixture(scope="module")
def forest(table):
    return CensoredQuantileForest(n_estimators=20, random_state=0).fit(*table)


@pytest.fixture(scope="module")
def folder(forest, table, tmp_path_factory):
    """A model file, its table with empty cells for ends that are not there, and other rows."""
    folder = tmp_path_factory.mktemp("intervals")
    forest.save(folder / "m.cqrf", notes={"time": "R", "lower": "L"})
    X, y = table
    frame = X.assign(L=y["lower"], R=np.where(np.isinf(y["upper"]), np.nan, y["upper"]))
    frame.to_csv(folder / "empty.csv", index=False)
    frame.assign(R=y["upper"]).to_csv(folder / "inf.csv", index=False)
    frame.assign(R=np.nan, L=np.nan).to_csv(folder / "unknown.csv", index=False)
    frame.drop(columns="L").to_csv(folder / "half.csv", index=False)
    return folder


@pytest.mark.parametrize(
    ("name", "is_training"),
    [("empty", True), ("inf", True), ("unknown", False), ("half", False)],
)
def test_the_training_table_is_known_by_its_intervals(folder, name, is_training):
    """An end of an interval that is not there is an empty cell or infinite."""
    path = str(folder / f"{name}.csv")
    given = GivenRoles()
    limits = Limits(rows=10, bytes=10_000, values=100)
    task = ServeTask(
        str(folder / "m.cqrf"), path, given, None, "127.0.0.1", 0, (), limits, False, 1, False
    )
    assert load_view(task).shows_training == is_training
