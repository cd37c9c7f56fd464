"""Several causes on the command line: how they are read, predicted and named."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cqrf import CensoredQuantileForest, UnidentifiedQuantileWarning, censored
from cqrf.cli.notation import Notation
from cqrf.cli.roles import GivenRoles
from cqrf.cli.serve import read_outcomes
from cqrf.cli.target_columns import Rows
from support.commands import FAST, call, refused

ROLES = ["--time", "days", "--event", "status"]


def make_table(n=160, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.normal(60, 9, n).round(1), "dose": rng.uniform(size=n)})
    table["days"] = rng.exponential(300 * np.exp((60 - table["age"]) / 20)).round(1) + 1
    table["status"] = rng.choice([0, 1, 2], n, p=[0.2, 0.3, 0.5])
    return table


def as_words(table):
    return table.assign(status=table["status"].map({0: "alive", 1: "relapse", 2: "death"}))


def make_forest(table, **settings):
    """What the command line should have fitted, by way of the library."""
    forest = CensoredQuantileForest(n_estimators=20, random_state=0, n_jobs=1, **settings)
    return forest.fit(table[["age", "dose"]], censored(table["days"], table["status"]))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Folder with tables and models: codes in bags, and words."""
    folder = tmp_path_factory.mktemp("causes")
    table = make_table()
    table.to_csv(folder / "codes.csv", index=False)
    as_words(table).to_csv(folder / "words.csv", index=False)
    bags = ["--bag-size", "2"]
    call("fit", folder / "codes.csv", *ROLES, *FAST, *bags, "-o", folder / "codes.cqrf")
    alive = ["--censored", "alive"]
    call("fit", folder / "words.csv", *ROLES, *alive, *FAST, "-o", folder / "words.cqrf")
    return folder


@pytest.fixture
def folder(model, monkeypatch):
    monkeypatch.chdir(model)
    return model


def predicted(*arguments):
    call("predict", *arguments, "--force", "-o", "p.csv")
    return pd.read_csv("p.csv")


def test_codes_are_causes_and_0_is_censored(folder):
    forest = CensoredQuantileForest.load("codes.cqrf")
    assert forest.causes_ == (1, 2)
    expected = make_forest(make_table(), bag_size=2)
    rows = make_table(seed=1)[["age", "dose"]]
    found, wanted = (each.predict_incidence(rows, [50, 200]) for each in (forest, expected))
    np.testing.assert_array_equal(found, wanted)


def test_words_are_causes_beside_the_one_that_is_censored(folder):
    forest = CensoredQuantileForest.load("words.cqrf")
    assert forest.causes_ == ("death", "relapse")
    table = make_table()
    of_death = forest.predict_incidence(table[["age", "dose"]], [100], cause="death")
    # Causes are numbered by name, and the split criterion weighs all equally.
    other = make_forest(table.assign(status=table["status"].map({0: 0, 2: 1, 1: 2})))
    wanted = other.predict_incidence(table[["age", "dose"]], [100], cause=1)
    np.testing.assert_array_equal(of_death, wanted)


@pytest.mark.parametrize(
    ("statuses", "options", "n_events"),
    [([0, 2], [], 80), (["out", "in"], ["--censored", "in"], 80), ([3, 1], ["--censored", 1], 80)],
)
def test_one_cause_is_an_ordinary_event(folder, statuses, options, n_events):
    make_table().assign(status=statuses * 80).to_csv("one.csv", index=False)
    done = call("fit", "one.csv", *ROLES, *options, *FAST, "--json", "--force", "-o", "one.cqrf")
    content = json.loads(done.stdout)
    assert (content["events"], content["causes"]) == (n_events, [])
    assert CensoredQuantileForest.load("one.cqrf").causes_ == ()


@pytest.mark.parametrize("name", ["words", "codes"])
def test_a_missing_value_may_mean_censored(folder, name):
    table = pd.read_csv(f"{name}.csv")
    gone = table["status"].isin(["alive", 0])
    table.assign(status=table["status"].astype(object).where(~gone)).to_csv("gaps.csv", index=False)
    message = refused("fit", "gaps.csv", *ROLES, "--force", "-o", "gaps.cqrf")
    assert "is missing in" in message
    assert "if a missing value means censored, give --censored ''" in message
    call("fit", "gaps.csv", *ROLES, "--censored", "", *FAST, "--force", "-o", "gaps.cqrf")
    found, expected = (CensoredQuantileForest.load(f"{each}.cqrf") for each in ("gaps", "words"))
    if name == "codes":
        expected = make_forest(make_table())
    np.testing.assert_array_equal(
        found.predict_incidence(table[["age", "dose"]], [50, 200]),
        expected.predict_incidence(table[["age", "dose"]], [50, 200]),
    )
    assert "censored: ''" in call("info", "gaps.cqrf").stdout
    # Later commands read it from the file.
    assert pd.read_csv("gaps.csv")["status"].isna().any()
    done = call("evaluate", "gaps.cqrf", "gaps.csv", "--json")
    assert json.loads(done.stdout)["rows"] == len(table)
    rows = Rows(pa.table(pd.read_csv("gaps.csv")), "gaps.csv", Notation())
    served = read_outcomes(found, rows, GivenRoles())
    np.testing.assert_array_equal(served["event"], ~gone)


def test_a_missing_value_is_looked_for_where_it_means_censored(folder):
    message = refused("fit", "words.csv", *ROLES, "--censored", "", "-o", "none.cqrf")
    assert "never has the value ''" in message


def test_counts_of_the_causes_are_named(folder):
    counts = make_table()["status"].value_counts()
    done = call("fit", "codes.csv", *ROLES, *FAST, "--force", "-o", "m.cqrf")
    assert f"({counts[1]} of cause 1, {counts[2]} of cause 2)" in done.stderr
    shown = call("info", "words.cqrf").stdout
    assert f"Causes   death ({counts[2]} events), relapse ({counts[1]} events)" in shown
    causes = json.loads(call("info", "codes.cqrf", "--json").stdout)["causes"]
    expected = [{"cause": k, "events": counts[k]} for k in (1, 2)]
    assert causes == expected
    assert json.loads(call("info", "words.cqrf", "--json").stdout)["notes"]["censored"] == "alive"


def test_quantiles_incidence_and_time_lost_of_a_cause(folder):
    asked = ["-q", ".1,.9", "--incidence", "50,200", "--mean", "--horizon", "300"]
    found = predicted("words.cqrf", "words.csv", "--cause", "death", *asked, "--max-quantile")
    names = ["q0.1", "q0.9", "incidence50", "incidence200", "time_lost", "max_quantile"]
    assert list(found) == [f"{name}_death" for name in names]
    forest, X = CensoredQuantileForest.load("words.cqrf"), make_table()[["age", "dose"]]
    with pytest.warns(UnidentifiedQuantileWarning):
        quantiles = forest.predict(X, [0.1, 0.9], cause="death")
    np.testing.assert_allclose(found.to_numpy()[:, :2], quantiles)
    of_death = forest.predict_incidence(X, [50, 200], "death")
    np.testing.assert_allclose(found.to_numpy()[:, 2:4], of_death)
    lost = forest.predict_mean(X, 300, cause="death", beyond="nan")
    np.testing.assert_allclose(found["time_lost_death"], lost)
    np.testing.assert_allclose(found["max_quantile_death"], forest.max_quantile(X, cause="death"))


def test_all_causes_and_survival_add_up_to_1(folder):
    found = predicted("codes.cqrf", "codes.csv", "--incidence", 150, "--survival", 150, "-q", ".2")
    names = ["q0.2", "survival150", "incidence150_1", "incidence150_2"]
    assert list(found) == names
    np.testing.assert_allclose(found[names[1:]].sum(axis=1), 1, atol=1e-12)


def test_confidence_intervals_of_incidence(folder):
    asked = ["--incidence", 150, "--confidence", 0.9]
    found = predicted("codes.cqrf", "codes.csv", "--cause", "2", *asked)
    forest, X = CensoredQuantileForest.load("codes.cqrf"), make_table()[["age", "dose"]]
    wanted = forest.incidence_confidence_interval(X, [150], 2, 0.9)[:, 0]
    names = ["incidence150_2", "incidence150_2_lower0.9", "incidence150_2_upper0.9"]
    assert list(found) == names
    np.testing.assert_allclose(found[names[1:]], wanted)


def test_a_table_may_lack_a_cause(folder):
    table = as_words(make_table(seed=2))
    table[table["status"] != "relapse"].to_csv("fewer.csv", index=False)
    n = json.loads(call("evaluate", "words.cqrf", "fewer.csv", "--json").stdout)["rows"]
    assert n == (table["status"] != "relapse").sum()
    table.assign(status="relapsed").to_csv("other.csv", index=False)
    said = refused("evaluate", "words.cqrf", "other.csv")
    assert "column 'status' holds 'relapsed', which is no cause of the model" in said
    said = refused("evaluate", "words.cqrf", "words.csv", "--event-value", "death")
    assert "--event-value death: the model tells causes apart" in said


def test_tune_and_conformal_are_about_any_event(folder):
    options = ["--trials", 2, "--force", "-o", "t.cqrf"]
    call("tune", "codes.csv", *ROLES, *FAST, *options)
    assert CensoredQuantileForest.load("t.cqrf").causes_ == (1, 2)
    done = call("conformal", "codes.csv", *ROLES, *FAST, "--force", "-o", "c.cqrf")
    assert "bounds are those of the time to any event" in done.stderr
    table = make_table()
    table.assign(status=(table["status"] > 0) * 1).to_csv("any.csv", index=False)
    call("conformal", "any.csv", *ROLES, *FAST, "--force", "-o", "any.cqrf")
    bounds, of_any = (predicted(model, "codes.csv") for model in ("c.cqrf", "any.cqrf"))
    pd.testing.assert_frame_equal(bounds, of_any)


FIT = ["fit", "codes.csv", "-o", "no.cqrf", "--time", "days"]
PREDICT = ["predict", "codes.cqrf", "codes.csv"]
WRONG = {
    "codes without 0": (
        ["fit", "shifted.csv", *ROLES, "-o", "no.cqrf"],
        "has the values '1', '2', '3'; say which one means an observed event, as in --event-value "
        "3; or, if several do, which one means censored, as in --censored 1 (--censored 0: no row",
    ),
    "codes and words": (
        ["fit", "mixed.csv", *ROLES, "-o", "no.cqrf"],
        "as in --event-value 'heart failure'; or, if several do, which one means censored, as in "
        "--censored 0.",
    ),
    "no such censored value": (
        [*FIT, "--event", "status", "--censored", "alive"],
        "column 'status' never has the value 'alive'; it has '0', '1', '2'",
    ),
    "a cause of 0": (
        [*FIT, "--event", "status", "--censored", "2"],
        "codes.csv: column 'status' has 0 beside '2', which --censored names",
    ),
    "both": (
        [*FIT, "--event", "status", "--censored", "0", "--event-value", "1"],
        "--event-value and --censored do not go together",
    ),
    "no event column": ([*FIT, "--censored", "0"], "--censored is a value of the column of"),
    "effects": (
        ["effects", "codes.csv", *ROLES, "--treatment", "age"],
        "has the causes '1', '2', and effects are those on one kind of event: choose it, as in "
        "--event-value 1",
    ),
    "no such cause": ([*PREDICT, "--cause", "death"], "has no such cause; it has '1', '2'"),
    "interval": (
        [*PREDICT, "--cause", "1", "--interval", ".8"],
        "--interval is that of the time to any event",
    ),
    "confidence of quantiles": (
        [*PREDICT, "--cause", "1", "-q", ".1", "--confidence", ".9"],
        "no confidence intervals of the quantiles of one cause",
    ),
    "one kind of event": (
        ["predict", "plain.cqrf", "codes.csv", "--cause", "2"],
        "--cause 2: plain.cqrf knows one kind of event",
    ),
    "several codes for one kind": (
        ["evaluate", "plain.cqrf", "codes.csv", "--censored", "0"],
        "codes.csv: column 'status' has several events ('1', '2'), and the model knows one kind of "
        "event: say which one it is, as in --event-value 1.",
    ),
    "several words for one kind": (
        ["report", "plain.cqrf", "words.csv", "--censored", "alive", "-o", "no.html"],
        "column 'status' has several events ('death', 'relapse')",
    ),
    "several codes for one kind, to be served": (
        ["serve", "plain.cqrf", "--data", "codes.csv", "--censored", "0"],
        "column 'status' has several events ('1', '2')",
    ),
    "bounds without intervals": (
        [*PREDICT, "--bounds"],
        "--bounds: codes.cqrf was not fitted to intervals",
    ),
    "incidence of one kind": (
        ["predict", "plain.cqrf", "codes.csv", "--incidence", "2"],
        "whose incidence is 1 - P(T > t): give --survival",
    ),
}


@pytest.fixture(scope="module")
def others(model):
    table = make_table()
    table.assign(status=table["status"] + 1).to_csv(model / "shifted.csv", index=False)
    words = table["status"].map({0: "0", 1: "death", 2: "heart failure"})
    table.assign(status=words).to_csv(model / "mixed.csv", index=False)
    of_one = [*ROLES, "--event-value", "2", *FAST, "-o", model / "plain.cqrf"]
    call("fit", model / "codes.csv", *of_one)


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize("case", WRONG)
def test_what_makes_no_sense_is_refused_on_one_line(folder, case):
    arguments, message = WRONG[case]
    assert message in refused(*arguments)


@pytest.mark.usefixtures("others")
def test_no_row_need_be_censored(folder):
    call("fit", "shifted.csv", *ROLES, "--censored", 0, *FAST, "--force", "-o", "n.cqrf")
    assert CensoredQuantileForest.load("n.cqrf").causes_ == (1, 2, 3)
