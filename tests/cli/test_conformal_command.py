"""conformal: bounds from the command line are those of the library."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf.conformal import ConformalForest
from support.commands import FAST, ROLES, call, make_table, refused

FIT = [*ROLES, *FAST, "-o", "c.cqrf", "--force"]


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = make_table(n=200)
    table.to_csv("data.csv", index=False)
    return table


def fit_library(table, **settings):
    forest = CensoredQuantileForest(n_estimators=20, random_state=0)
    y = censored(table["days"], table["status"])
    fitted = {name: settings.pop(name) for name in FITTED if name in settings}
    model = ConformalForest(forest, random_state=0, **settings)
    return model.fit(table[["age", "group"]], y, **fitted)


FITTED = ("censoring_time", "sample_weight", "groups")


def predict(*options):
    return pd.read_csv(io.StringIO(call("predict", "c.cqrf", "data.csv", *options).stdout))


def test_bounds_are_those_of_the_library(table):
    said = call("conformal", "data.csv", *FIT, "--coverage", ".8").stderr
    model = fit_library(table, coverage=0.8)
    X = table[["age", "group"]]
    found = predict()
    assert found.columns.tolist() == ["lower_bound0.8"]
    np.testing.assert_allclose(found["lower_bound0.8"], model.predict_lower(X))
    assert "Fitted  100 rows and calibrated on 100, in " in said
    assert (
        f"Bounds  of coverage 0.8: quantiles of the forest at the level {model.level_:.3g}" in said
    )
    found = predict("--lower-bound", ".8", "--interval", ".8", "-q", ".1", "--survival", "5")
    ends = model.predict_interval(X)
    columns = {
        "q0.1": model.forest_.predict(X, 0.1),
        "survival5": model.forest_.predict_survival(X, [5])[:, 0],
        "lower0.8": ends[:, 0],
        "upper0.8": ends[:, 1],
        "lower_bound0.8": model.predict_lower(X),
    }
    assert found.columns.tolist() == list(columns)
    for name, expected in columns.items():
        np.testing.assert_allclose(found[name], expected)


def test_options_reach_the_library(table):
    table["weight"], table["ward"] = 1 + np.arange(200) % 3, np.arange(200) // 4
    table["until"] = np.where(table["status"], table["days"] + 20, table["days"])
    table.to_csv("data.csv", index=False)
    roles = ["--weight", "weight", "--groups", "ward", "--ignore", "until"]
    call("conformal", "data.csv", *FIT, *roles, "--calibration-share", ".3")
    groups, weight = table["ward"].astype(str), table["weight"]
    model = fit_library(table, sample_weight=weight, groups=groups, calibration_share=0.3)
    X = table[["age", "group"]]
    np.testing.assert_allclose(predict()["lower_bound0.9"], model.predict_lower(X))
    fixed = ["--ignore", "weight", "--ignore", "ward", "--censoring-time", "until"]
    call("conformal", "data.csv", *FIT, *fixed, "--method", "fixed", "--cutoff", "15")
    model = fit_library(table, censoring_time=table["until"], method="fixed", cutoff=15.0)
    np.testing.assert_allclose(predict()["lower_bound0.9"], model.predict_lower(X))


def test_json_and_notes(table):
    options = ["--unit", "days", "--event-name", "death", "--json"]
    facts = json.loads(call("conformal", "data.csv", *FIT, *options).stdout)
    model = ConformalForest.load("c.cqrf")
    assert (facts["coverage"], facts["level"]) == (0.9, model.level_)
    assert (facts["rows"], facts["columns"]) == (200, ["age", "group"])
    assert model.notes_ == {"time": "days", "event": "status", "source": "data.csv"}
    assert (model.forest_.time_unit, model.forest_.event_name) == ("days", "death")
    about = json.loads(call("info", "c.cqrf", "--json").stdout)
    assert (about["coverage"], about["conformal"]["method"]) == (0.9, "adaptive")
    assert (about["rows"], about["notes"]["time"]) == (100, "days")
    assert "Bounds   conformal, of coverage 0.9; " in call("info", "c.cqrf").stdout


def test_what_cannot_be_asked_is_said_on_one_line(table):
    call("conformal", "data.csv", *FIT)
    asked = ["predict", "c.cqrf", "data.csv"]
    for option in ("--lower-bound", "--interval"):
        said = refused(*asked, option, ".8")
        assert said.startswith(f"{option} 0.8: c.cqrf is calibrated for a coverage of 0.9.")
        assert "cqrf conformal --coverage 0.8" in said
        assert "do not go together" in refused(*asked, option, ".9", "--given", "3")
    for command in (["evaluate", "c.cqrf"], ["report", "c.cqrf", "data.csv", "-o", "r.html"]):
        assert "c.cqrf: holds a conformal forest" in refused(*command)
    assert "coverage=2" in refused("conformal", "data.csv", *FIT, "--coverage", "2")
    assert "method='best'" in refused("conformal", "data.csv", *FIT, "--method", "best")


def test_too_few_rows_for_a_coverage_are_said(table):
    said = call("conformal", "data.csv", *FIT, "--coverage", ".999").stderr
    assert "Note    there are no bounds of coverage 0.999 above the smallest possible time" in said
    assert (predict()["lower_bound0.999"] == 0).all()
