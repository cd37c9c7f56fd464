"""Models of interval-censored times, as they are served."""

import re

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, interval
from cqrf.cli.roles import GivenRoles
from cqrf.cli.serve import ServeTask, load_view
from cqrf.serve.app import make_app
from cqrf.serve.curve_times import choose_curve_times
from cqrf.serve.data_rows import read_data_rows
from cqrf.serve.model_view import make_view
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
    forest = CensoredQuantileForest(n_estimators=20, time_unit="months", random_state=0)
    forest.fit(*table).notes_ = {"time": "R", "lower": "L"}
    return forest


@pytest.fixture(scope="module")
def address(forest, table, start_server):
    X, y = table
    rows = read_data_rows(forest, X, y, [str(i + 1) for i in range(len(X))], "t.csv", None)
    with start_server(make_app(make_view(forest, "m.cqrf", rows), n_jobs=1)) as address:
        yield address


@pytest.fixture(scope="module")
def client(address, make_client):
    return make_client(address)


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
    assert (load_view(task).data.training is not None) == is_training


def test_curves_are_given_at_their_steps(client, forest, table):
    """So that the page draws each step at the quantiles that it has."""
    X = table[0].head(2)
    answer = client.post("/subjects", {"subjects": X.to_dict("records")})[1]
    times = np.array(answer["times"])
    assert (np.diff(times) > 0).all()
    curves = forest.predict_survival(X)
    for subject, curve in zip(answer["subjects"], curves, strict=True):
        assert set(curve.times) <= set(times)
        for quantile in subject["quantiles"]:
            if quantile["value"] is not None:
                at = int(np.searchsorted(times, quantile["value"]))
                assert times[at] == quantile["value"]
                assert subject["survival"][at] <= 1 - quantile["level"] + 1e-6
                assert subject["survival"][at - 1] >= 1 - quantile["level"] - 1e-6


def test_rounded_times_of_steps_are_multiples_of_the_unit(forest, table):
    view = make_view(forest, "m", unit=2.0)
    times = choose_curve_times(view, table[0].head(3).to_numpy(), None)
    np.testing.assert_array_equal(times % 2, 0)
    assert len(np.unique(times)) == len(times)


def test_rows_have_the_left_ends_of_their_intervals(client, table):
    y = table[1]
    kinds = {
        "exact": y["lower"] == y["upper"],
        "left": (y["lower"] == 0) & (y["upper"] > 0),
        "right": np.isinf(y["upper"]),
    }
    for kind, rows in kinds.items():
        number = int(np.flatnonzero(rows)[0])
        row = client.get(f"/rows/{number + 1}")[1]
        assert row["lower"] == (None if kind == "left" else y["lower"][number])
        assert row["time"] == (y["lower"] if kind == "right" else y["upper"])[number]
    number = int(np.flatnonzero(~np.logical_or.reduce([*kinds.values()]))[0])
    row = client.get(f"/rows/{number + 1}")[1]
    assert (row["lower"], row["time"]) == (y["lower"][number], y["upper"][number])
    (subject,) = client.post("/subjects", {"subjects": table[0].head(1).to_dict("records")})[1][
        "subjects"
    ]
    for each in subject["neighbours"]:
        assert each["lower"] in (None, y["lower"][each["row"] - 1])


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_the_page_shows_intervals_as_such(browser, address, table, width, scheme):
    browser.open(f"{address}/", width=width, scheme=scheme)
    browser.wait("Number(document.body.dataset.ready || 0) > 0")
    browser.settle()
    assert browser.complaints() == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    texts = browser.run("[...document.querySelectorAll('#curves text')].map(t => t.textContent)")
    assert "time (months)" in texts
    cells = browser.run(
        "[...document.querySelectorAll('table.neighbours tbody tr')]"
        ".map(r => [r.cells[0].textContent, r.cells[2].textContent, r.cells[3].textContent])"
    )
    y = table[1]
    for label, time, kind in cells:
        lower, upper = y[int(label) - 1].tolist()
        assert kind == (
            "exact"
            if lower == upper
            else "right-censored"
            if upper == np.inf
            else "left-censored"
            if lower == 0
            else "interval"
        )
        if kind == "interval":
            assert re.fullmatch(r"[\d.]+ to [\d.]+", time)
    browser.run(
        "[...document.querySelectorAll('table.neighbours tbody tr')].find(r =>"
        " r.cells[3].textContent === 'interval').querySelector('button').click()"
    )
    browser.wait("/between [\\d.]+ and [\\d.]+\\u00a0months/.test(document.body.innerText)")
