"""predict: confidence intervals, time already survived, and where the data do not reach."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest
from support.commands import ROLES, call, make_table, refused

FIT = [*ROLES, "--trees", "60", "--bag-size", "2", "--jobs", "1", "-o", "m.cqrf"]
# Nobody is followed longer than this: later survival is not known.
END = 40.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("predict")


@pytest.fixture(scope="module")
def table(folder):
    table = make_table(n=120)
    table["status"] &= table["days"] < END
    table["days"] = table["days"].clip(upper=END)
    table["since"] = np.arange(120) % 30
    table.to_csv(folder / "data.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        call("fit", "data.csv", *FIT, "--ignore", "since")
    return table


@pytest.fixture
def forest(table, folder, monkeypatch):
    monkeypatch.chdir(folder)
    return CensoredQuantileForest.load("m.cqrf")


def features(table):
    return table[["age", "group"]]


def predict(*options):
    """Predictions as a frame, and what was said."""
    done = call("predict", "m.cqrf", "data.csv", *options)
    return pd.read_csv(io.StringIO(done.stdout)), done.stderr


def test_confidence_intervals_are_those_of_the_library(forest, table):
    found, _ = predict("-q", ".1,.3", "--survival", "5,20", "--confidence", ".9")
    quantiles = forest.quantile_confidence_interval(features(table), [0.1, 0.3], 0.9)
    survival = forest.survival_confidence_interval(features(table), [5, 20], 0.9)
    names = [
        f"{name}{end}"
        for name in ("q0.1", "q0.3", "survival5", "survival20")
        for end in ("", "_lower0.9", "_upper0.9")
    ]
    assert found.columns.tolist() == names
    for k, end in enumerate(("lower", "upper")):
        for j, name in enumerate(("q0.1", "q0.3")):
            np.testing.assert_allclose(found[f"{name}_{end}0.9"], quantiles[:, j, k])
        for j, name in enumerate(("survival5", "survival20")):
            np.testing.assert_allclose(found[f"{name}_{end}0.9"], survival[:, j, k])
    assert (found["survival5_lower0.9"] < found["survival5"]).any()


def test_confidence_needs_bags_and_something_to_be_sure_of(forest):
    call("fit", "data.csv", *ROLES, "--ignore", "since", "--trees", "9", "-o", "one.cqrf")
    said = refused("predict", "one.cqrf", "data.csv", "--confidence", ".9")
    assert said == (
        "--confidence needs trees in bags, which one.cqrf does not have: fit it with --bag-size 2."
    )
    asked = ["predict", "m.cqrf", "data.csv"]
    assert "strictly between 0 and 1" in refused(*asked, "--confidence", "1")
    said = refused(*asked, "-q", "", "--mean", "--confidence", ".9")
    assert "that of --quantiles, --survival or --incidence" in said
    assert "do not go together" in refused(*asked, "--confidence", ".9", "--given", "3")


ASKED = ["-q", ".2", "--interval", ".4", "--survival", "3,12", "--mean", "--max-quantile"]


@pytest.mark.filterwarnings("ignore::cqrf.BeyondFollowUpWarning")
@pytest.mark.parametrize("given", ["7.5", "since"])
def test_time_already_survived_is_given_as_a_number_or_a_column(forest, table, given):
    X, survived = features(table), 7.5 if given == "7.5" else table["since"].to_numpy()
    found, _ = predict(*ASKED, "--given", given, "--unidentified", "clip")
    ends = forest.predict_interval(X, 0.4, given=survived, unidentified="clip")
    survival = forest.predict_survival(X, [3, 12], given=survived)
    columns = {
        "q0.2": forest.predict(X, 0.2, given=survived, unidentified="clip"),
        "lower0.4": ends[:, 0],
        "upper0.4": ends[:, 1],
        "survival3": survival[:, 0],
        "survival12": survival[:, 1],
        "mean": forest.predict_mean(X, given=survived),
        "max_quantile": forest.max_quantile(X, given=survived),
    }
    assert found.columns.tolist() == list(columns)
    for name, expected in columns.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-12)


def test_a_row_that_has_survived_all_is_said(forest, table):
    found, said = predict("-q", ".2", "--survival", "3", "--given", "1000")
    assert found.isna().all(axis=None)
    assert "120 rows have survived longer than the training rows tell" in said
    assert "beyond the end" not in said


def test_nothing_is_made_up_beyond_the_follow_up(forest, table):
    found, said = predict("-q", "", "--survival", "10,500", "--mean", "--horizon", "500")
    with pytest.warns(UserWarning, match="not known"):
        survival = forest.predict_survival(features(table), [10, 500])
    with pytest.warns(UserWarning, match="not known"):
        means = forest.predict_mean(features(table), 500)
    np.testing.assert_allclose(found[["survival10", "survival500"]], survival)
    np.testing.assert_allclose(found["mean"], means)
    n_unknown = int(np.isnan(survival).sum() + np.isnan(means).sum())
    assert np.isnan(survival[:, 1]).sum() > 60
    end = forest.predict_survival(features(table)).end
    reached = end[np.isnan(means)]
    assert reached.max() == END
    assert said.count("beyond the end") == 1
    known = f"{reached.min():g} to 40" if reached.min() < END else "40"
    assert (
        f"{n_unknown} predictions of survival and the mean lie beyond the end of the survival "
        f"curves, which for these rows are known up to {known}: left empty; --beyond extend"
    ) in said


def test_a_missing_field_is_empty_but_a_line_is_not(forest, table):
    """Readers skip a line without anything, and with it the row."""
    alone, _ = predict("-q", "", "--survival", "500")
    assert len(alone) == len(table)
    beside = call("predict", "m.cqrf", "data.csv", "-q", ".1", "--survival", "500").stdout
    assert '""' not in beside
    np.testing.assert_array_equal(
        pd.read_csv(io.StringIO(beside))["survival500"].isna(), alone["survival500"].isna()
    )
    assert alone["survival500"].isna().any()


def test_beyond_extend_draws_flat_lines(forest, table):
    options = ["--survival", "500", "--mean", "--horizon", "500", "--beyond", "extend"]
    found, said = predict("-q", "", *options)
    X = features(table)
    flat = forest.predict_survival(X, [500], beyond="extend")[:, 0]
    np.testing.assert_allclose(found["survival500"], flat)
    np.testing.assert_allclose(found["mean"], forest.predict_mean(X, 500, beyond="extend"))
    assert said == ""


def test_means_are_restricted_to_what_is_known_on_request(forest, table):
    options = ["--survival", "500", "--mean", "--horizon", "500", "--beyond", "restrict"]
    found, said = predict("-q", "", *options)
    X = features(table)
    np.testing.assert_allclose(found["mean"], forest.predict_mean(X, 500, beyond="restrict"))
    n_unknown = int(found["survival500"].isna().sum())
    assert n_unknown > 60
    assert f"{n_unknown} predictions of survival" in said


def test_the_default_end_of_the_mean_is_said(forest, table):
    assert "Note    the mean counts up to 40 (the last time" in predict("--mean")[1]
    assert "the mean counts" not in predict("--mean", "--horizon", "9")[1]
    make_table(n=120).to_csv("all.csv", index=False)  # a tenth of these is at risk long before
    call("fit", "all.csv", *ROLES, "--trees", "9", "-o", "all.cqrf")
    end = CensoredQuantileForest.load("all.cqrf").model_.follow_up
    table.assign(since=np.where(np.arange(120) < 7, end, 1.0)).to_csv("late.csv", index=False)
    done = call("predict", "all.cqrf", "late.csv", "--mean", "--max-quantile", "--given", "since")
    found = pd.read_csv(io.StringIO(done.stdout))
    assert found["mean"][:7].isna().all()
    n_without = int((found["max_quantile"][:7] > 0).sum())
    assert n_without > 1
    assert (
        f"counts up to {end:g}, less the time survived and is left empty for {n_without} rows that "
        "have survived longer (the last time"
    ) in done.stderr
    # These rows are not counted once more among those whose curves end before the horizon.
    n_beyond = int(found["mean"][7:].isna().sum())
    assert ("beyond the end" in done.stderr) == (n_beyond > 0)
    assert n_beyond == 0 or f"Note    {n_beyond} prediction" in done.stderr


def test_one_prediction_is_written_in_the_singular(forest, table):
    ends = forest.predict_survival(features(table)).end
    table.iloc[[int(np.flatnonzero(np.isfinite(ends))[0])]].to_csv("one.csv", index=False)
    done = call("predict", "m.cqrf", "one.csv", "-q", ".99", "--survival", "500", "-o", "one.tsv")
    assert "1 prediction is not identifiable" in done.stderr
    assert "1 prediction of survival lies beyond the end" in done.stderr
    assert "one.tsv: 1 row\n" in done.stderr
    done = call("predict", "m.cqrf", "one.csv", "--given", "1000")
    assert "1 row has survived longer" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beyond", "flat"], "--beyond='flat' is unknown; choose one of nan, extend, restrict"),
        (["--horizon", "5"], "--horizon is that of --mean: give both"),
        (["--mean", "--horizon", "inf"], "horizon=inf must be a finite time"),
        (["--given", "nobody"], "no column 'nobody'; it has 'age'"),
        (["--given", "group"], "column 'group' holds 'é', which is not a number"),
        (["--given", "inf"], "given must be one finite time"),
        (["--lower-bound", ".9"], "--lower-bound needs a conformal model, which m.cqrf is not"),
    ],
)
def test_what_cannot_be_asked_is_said_on_one_line(forest, options, message):
    assert message in refused("predict", "m.cqrf", "data.csv", *options)


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("since", "", "column 'since' is missing in 1 row"),
        ("since", "soon", "column 'since' holds 'soon', which is not a number, in 1 row"),
        ("since", "inf", "column 'since' is infinite in 1 row"),
        ("age", "inf", "column 'age' is infinite in 1 row"),
    ],
)
@pytest.mark.parametrize("piece_bytes", [300, 1 << 20])
def test_the_line_of_a_value_counts_all_pieces(
    forest, table, monkeypatch, column, value, problem, piece_bytes
):
    from cqrf.cli import text_files

    monkeypatch.setattr(text_files, "PIECE_BYTES", piece_bytes)
    bad = table.astype({column: object})
    bad.loc[100, column] = value
    bad.to_csv("bad.csv", index=False)
    said = refused("predict", "m.cqrf", "bad.csv", "--given", "since", "-o", "never.csv")
    assert not Path("never.csv").exists()
    assert said == f"bad.csv: {problem} (the first is line 102): leave these rows out."
