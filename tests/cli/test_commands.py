"""The command line: from files to files, with errors on one line."""

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from cqrf import CensoredQuantileForest, censored
from cqrf._model.skill import compute_oob_skill
from cqrf.cli.app import app
from cqrf.datasets import load_pbc

PROGRAM = [sys.executable, "-c", "from cqrf.cli import main; main()"]
ROLES = ["--time", "days", "--event", "status", "--event-value", "2"]
FAST = ["--trees", "20", "--jobs", "1"]


def make_frame(n=150, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "age": rng.normal(50, 9, n).round(1),
            "height, cm": rng.integers(150, 190, n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "treated": rng.choice([True, False], n),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    risk = np.exp((frame["age"].fillna(50) - 50) / 9 + (frame["colour"] == "red"))
    frame["days"] = rng.exponential(300 / risk).round(1) + 1
    frame["status"] = rng.choice([0, 1, 2], n, p=[0.2, 0.1, 0.7])
    return frame


def make_forest(frame, **settings):
    """What the command line should have fitted, by way of the library."""
    settings = {"n_estimators": 20, "random_state": 0, **settings}
    X = frame.drop(columns=["id", "days", "status"])
    y = censored(frame["days"], frame["status"] == 2)
    return CensoredQuantileForest(**settings).fit(X, y), X


def call(*arguments, code=0, **settings):
    done = CliRunner().invoke(app, [str(a) for a in arguments], **settings)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done


def refused(*arguments, **settings):
    """The one line that says what is wrong."""
    done = call(*arguments, code=2, **settings)
    lines = [line for line in done.stderr.splitlines() if line.startswith("cqrf: ")]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.output
    assert done.stdout == ""
    return lines[0]


@pytest.fixture
def frame(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = make_frame()
    frame.to_csv("data.csv", index=False)
    return frame


@pytest.fixture
def fitted(frame):
    call("fit", "data.csv", *ROLES, "--ignore", "id", *FAST, "-o", "m.cqrf")
    return frame


def write_as(frame, name):
    match name.removesuffix(".gz").rsplit(".", 1)[1]:
        case "csv":
            frame.to_csv(name, index=False)
        case "tsv":
            frame.to_csv(name, index=False, sep="\t")
        case "txt":
            frame.to_csv(name, index=False, sep=";")
        case "parquet":
            frame.to_parquet(name)
        case "feather":
            pyarrow.feather.write_feather(pa.Table.from_pandas(frame, preserve_index=False), name)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.parquet", "a.feather", "a.csv.gz"])
def test_every_format_gives_the_same_forest_and_predictions(frame, name):
    write_as(frame, name)
    done = call("fit", name, *ROLES, "--ignore", "id", *FAST, "-o", "m.cqrf")
    assert f"150 rows, {(frame['status'] == 2).sum()} events" in done.stderr
    assert "colour (3 levels)" in done.stderr
    assert "age 7%, colour 7%" in done.stderr.split("Missing")[1]
    forest, X = make_forest(frame)
    assert f"Skill   {forest.score_oob():.3f}" in done.stderr
    expected = forest.predict(X, [0.1, 0.5], unidentified="clip")
    answers = call("predict", "m.cqrf", name, "-q", ".1,.5", "--unidentified", "clip").stdout
    found = pd.read_csv(io.StringIO(answers))
    assert found.columns.tolist() == ["q0.1", "q0.5"]
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-12)


def test_between_semicolons_a_number_may_have_a_decimal_comma(frame):
    frame["age"] = 10 * (frame["age"] - 50)  # negative ones, too
    frame.loc[3, "age"] = 1.5e-05  # written with an exponent
    forest, X = make_forest(frame)
    frame.to_csv("comma.csv", index=False, sep=";", decimal=",")
    done = call("fit", "comma.csv", *ROLES, "--ignore", "id", *FAST, "-o", "m.cqrf")
    assert f"Skill   {forest.score_oob():.3f}" in done.stderr
    expected = forest.predict(X, [0.1, 0.5], unidentified="clip")
    options = ["-q", ".1,.5", "--unidentified", "clip"]
    found = pd.read_csv(io.StringIO(call("predict", "m.cqrf", "comma.csv", *options).stdout))
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-12)


def test_elsewhere_a_comma_within_a_number_may_stand_for_thousands(frame):
    frame.assign(days=[f"1,{100 + i}" for i in range(150)]).to_csv("t.tsv", index=False, sep="\t")
    said = refused("fit", "t.tsv", *ROLES, "--ignore", "id", *FAST, "-o", "m.cqrf")
    assert said == (
        "cqrf: t.tsv: column 'days' holds '1,100', which is not a number: it must hold numbers."
    )


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (["987,5", "1.25"], "has decimal points in some numbers and commas in others"),
        (["987,5", "soon"], "holds 'soon', which is not a number"),
    ],
)
def test_between_semicolons_what_is_no_number_is_named(frame, days, said):
    frame.assign(days=days * 75).to_csv("t.csv", index=False, sep=";")
    refusal = refused("fit", "t.csv", *ROLES, "--ignore", "id", *FAST, "-o", "m.cqrf")
    assert f"cqrf: t.csv: column 'days' {said}" in refusal
    frame.assign(age=days * 75).to_csv("t.csv", index=False, sep=";")
    call("fit", "data.csv", *ROLES, "--ignore", "id", *FAST, "-o", "m.cqrf")
    for command in ("predict", "evaluate"):
        assert refused(command, "m.cqrf", "t.csv") == f"cqrf: t.csv: column 'age' {said}."


def test_labels_are_those_of_the_file_in_every_command(frame):
    written = np.array(["1,2", "01", "1", "2.0", "true"])
    frame["ward"] = written[np.arange(150) % 5]
    frame["days"] *= 1 + (np.arange(150) % 5)
    frame["id"] = [f"{i:03}" for i in range(150)]
    frame.to_csv("wards.csv", index=False, sep=";")
    roles = [*ROLES, "--ignore", "id", "--category", "ward"]
    done = call("fit", "wards.csv", *roles, *FAST, "-o", "m.cqrf")
    assert "ward (5 levels)" in done.stderr
    forest = CensoredQuantileForest.load("m.cqrf")
    X = frame.drop(columns=["id", "days", "status"])
    X["ward"] = X["ward"].replace("2.0", "2")
    expected = forest.predict(X, 0.25, unidentified="clip")
    options = ["-q", ".25", "--unidentified", "clip", "--id", "id"]
    done = call("predict", "m.cqrf", "wards.csv", *options)
    found = pd.read_csv(io.StringIO(done.stdout), dtype={"id": str})
    np.testing.assert_allclose(found["q0.25"], expected, rtol=1e-12)
    assert found["id"].tolist() == frame["id"].tolist()
    told = call("evaluate", "m.cqrf", "wards.csv", "--json")
    assert "levels that were not" not in done.stderr + told.stderr
    call("report", "m.cqrf", "wards.csv", "--id", "id", "-o", "r.html")
    assert '"007"' in Path("r.html").read_text()


def test_standard_input_is_named_in_words(fitted):
    said = refused("predict", "m.cqrf", "-", input="age\n3\n")
    assert said.startswith("cqrf: standard input lacks ")
    said = refused("fit", "-", *ROLES, "-o", "n.cqrf", input="days,status,age\n,1,3\n")
    assert said.startswith("cqrf: standard input: column 'days' is missing in 1 of 1 row")


def test_standard_input_and_output(frame):
    text = frame.to_csv(index=False)
    call("fit", "-", *ROLES, "--ignore", "id", *FAST, "-o", "m.cqrf", input=text)
    assert CensoredQuantileForest.load("m.cqrf").notes_["source"] == "standard input"
    from_file = call("predict", "m.cqrf", "data.csv").stdout
    assert call("predict", "m.cqrf", "-", input=text).stdout == from_file


@pytest.mark.filterwarnings("ignore::cqrf.BeyondFollowUpWarning")
def test_all_that_can_be_asked(fitted):
    asked = ["-q", ".25", "--survival", "100,400", "--interval", ".5", "--mean", "--max-quantile"]
    options = ["--id", "id", "--id", "status", "--unidentified", "clip"]
    answers = call("predict", "m.cqrf", "data.csv", *asked, *options).stdout
    found = pd.read_csv(io.StringIO(answers))
    forest, X = make_forest(fitted)
    assert found["id"].tolist() == fitted["id"].tolist()
    assert found["status"].tolist() == fitted["status"].tolist()
    columns = {
        "q0.25": forest.predict(X, 0.25, unidentified="clip"),
        "lower0.5": forest.predict_interval(X, 0.5, unidentified="clip")[:, 0],
        "upper0.5": forest.predict_interval(X, 0.5, unidentified="clip")[:, 1],
        "survival100": forest.predict_survival(X, [100])[:, 0],
        "survival400": forest.predict_survival(X, [400])[:, 0],
        "mean": forest.predict_mean(X),
        "max_quantile": forest.max_quantile(X),
    }
    assert found.columns.tolist() == ["id", "status", *columns]
    for name, expected in columns.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.parquet", "p.feather"])
def test_predictions_have_the_format_of_their_name(fitted, name):
    done = call("predict", "m.cqrf", "data.csv", "-q", ".1,.3", "--id", "id", "-o", name)
    assert "150 rows" in done.stderr
    assert done.stdout == ""
    read = {
        "csv": pd.read_csv,
        "tsv": lambda path: pd.read_csv(path, sep="\t"),
        "parquet": pd.read_parquet,
        "feather": pd.read_feather,
    }[name.split(".")[1]]
    found = read(name)
    assert found.columns.tolist() == ["id", "q0.1", "q0.3"]
    assert found["id"].tolist() == fitted["id"].tolist()


def test_columns_are_found_by_name_and_others_ignored(fitted):
    shuffled = fitted[fitted.columns[::-1]].assign(extra="x")
    shuffled.to_csv("other.csv", index=False)
    assert (
        call("predict", "m.cqrf", "other.csv").stdout
        == call("predict", "m.cqrf", "data.csv").stdout
    )


def test_pieces_do_not_matter(fitted, monkeypatch):
    from cqrf.cli import text_files

    pd.concat([fitted] * 40).to_csv("long.csv", index=False)
    expected = call("predict", "m.cqrf", "long.csv", "-q", ".1,.5").stdout
    monkeypatch.setattr(text_files, "PIECE_BYTES", 4000)
    assert call("predict", "m.cqrf", "long.csv", "-q", ".1,.5").stdout == expected


def test_a_later_piece_may_look_like_another_type(frame, monkeypatch):
    """Whole numbers first, fractions and words for missing later."""
    from cqrf.cli import text_files

    monkeypatch.setattr(text_files, "PIECE_BYTES", 500)
    frame["age"] = [str(i) if i < 100 else f"{i}.5" if i < 140 else "NA" for i in range(150)]
    frame.to_csv("late.csv", index=False)
    done = call("fit", "late.csv", *ROLES, "--ignore", "id", *FAST, "-o", "m.cqrf")
    assert "age 7%" in done.stderr.split("Missing")[1]
    assert len(call("predict", "m.cqrf", "late.csv").stdout.splitlines()) == 151


def test_gaps_may_be_quoted_or_padded(frame):
    gaps = frame["age"].isna() | frame["colour"].isna()
    assert gaps.any()
    frame.to_csv("data.csv", index=False)
    expected = call("fit", "data.csv", *ROLES, "--ignore", "id", *FAST, "-o", "m.cqrf").stderr
    frame.to_csv("quoted.csv", index=False, quoting=csv.QUOTE_ALL)
    padded = frame.assign(age=[" NA " if np.isnan(x) else f" {x} " for x in frame["age"]])
    padded.to_csv("padded.csv", index=False)
    answers = call("predict", "m.cqrf", "data.csv").stdout
    for name in ("quoted.csv", "padded.csv"):
        again = call("fit", name, *ROLES, "--ignore", "id", *FAST, "-o", "n.cqrf", "--force").stderr
        assert again.splitlines()[1:3] == expected.splitlines()[1:3]
        for model in ("m.cqrf", "n.cqrf"):
            assert call("predict", model, name).stdout == answers


def test_a_number_that_is_none_is_missing_in_every_kind_of_file(frame):
    status = np.where(np.arange(150) < 3, np.nan, frame["status"])
    table = pa.table({"days": frame["days"].to_numpy(), "age": frame["age"].to_numpy()})
    table = table.append_column("status", pa.array(status))  # NaN, as polars writes it
    pyarrow.parquet.write_table(table, "nan.parquet")
    said = refused("fit", "nan.parquet", *ROLES, *FAST, "-o", "m.cqrf")
    assert "column 'status' is missing in 3 of 150 rows" in said


def test_answers_have_names_of_their_own(fitted):
    options = ["--survival", "1000000,1000001", "-q", ".9999999,.99999999", "--mean"]
    done = call("predict", "m.cqrf", "data.csv", *options, "--unidentified", "nan")
    heading, *rows = done.stdout.splitlines()
    assert heading == "q0.9999999,q0.99999999,survival1000000,survival1000001,mean"
    assert any(row.startswith(",,") for row in rows)
    fitted.assign(mean=1).to_csv("mean.csv", index=False)
    said = refused("predict", "m.cqrf", "mean.csv", "--id", "mean", "--mean")
    assert "--id mean: a prediction has that name" in said


def test_rows_may_be_longer_than_a_piece(fitted):
    wide = pd.DataFrame(np.full((3, 30_000), "x" * 40), columns=[f"c{i}" for i in range(30_000)])
    pd.concat([fitted.head(3), wide], axis=1).to_csv("wide.csv", index=False)
    fitted.head(3).to_csv("narrow.csv", index=False)
    expected = call("predict", "m.cqrf", "narrow.csv").stdout
    assert call("predict", "m.cqrf", "wide.csv").stdout == expected


def test_what_is_hidden_or_new_is_said_once(fitted):
    fitted.assign(colour="violet").to_csv("new.csv", index=False)
    done = call("predict", "m.cqrf", "new.csv", "-q", ".999", "-o", "p.csv")
    assert done.stderr.count("'violet'") == 1
    assert done.stderr.count("not identifiable because of censoring") == 1
    assert "inf" in Path("p.csv").read_text()


def fit_with_roles(frame, *options):
    frame.to_csv("roles.csv", index=False)
    call("fit", "roles.csv", *ROLES, *options, "--ignore", "id", *FAST, "-o", "m.cqrf", "--force")
    return CensoredQuantileForest.load("m.cqrf")


def test_roles_of_weights_groups_and_categories(frame):
    frame["w"], frame["ward"], frame["stage"] = np.arange(150) % 3, np.arange(150) // 5, 1
    frame["stage"] = np.arange(150) % 4
    options = ["--weight", "w", "--groups", "ward", "--category", "stage"]
    found = fit_with_roles(frame, *options)
    X = frame.drop(columns=["id", "days", "status", "w", "ward"])
    expected = CensoredQuantileForest(n_estimators=20, random_state=0).fit(
        X.assign(stage=X["stage"].astype(str)),
        censored(frame["days"], frame["status"] == 2),
        sample_weight=frame["w"],
        groups=frame["ward"],
    )
    assert found.score_oob() == expected.score_oob()
    assert found.model_.columns.levels[-1] == ("0", "1", "2", "3")
    # Numbers of another kind of file are the same labels.
    frame.assign(stage=frame["stage"].astype(float)).to_parquet("roles.parquet")
    answers = [call("predict", "m.cqrf", f"roles.{kind}").stdout for kind in ("parquet", "csv")]
    assert answers[0] == answers[1]


@pytest.mark.filterwarnings("ignore::cqrf.BeyondFollowUpWarning")
@pytest.mark.parametrize("kind", ["feather", "parquet"])
@pytest.mark.parametrize("labels", [[1.0, 2.0, 3.5], ["1.0", "2.0", "x"], [True, False]])
def test_categories_are_the_same_labels_in_every_kind_of_file(kind, labels, frame):
    stage = pd.Series(labels)[np.arange(150) % len(labels)].to_numpy()
    frame["stage"] = pd.Categorical(np.where(np.arange(150) % 7, stage, None), labels)
    write_as(frame, f"a.{kind}")
    fit = ["fit", f"a.{kind}", *ROLES, "--ignore", "id", *FAST, "-o", "m.cqrf"]
    call(*fit)
    answers = []
    for name in (f"a.{kind}", "a.csv"):
        write_as(frame, name)
        done = call("predict", "m.cqrf", name)
        assert "not in the training table" not in done.stderr
        answers.append(done.stdout)
    assert answers[0] == answers[1]
    # A model that was not fitted here may have kept the labels as they were written.
    forest, X = make_forest(frame)
    forest.save("library.cqrf")
    done = call("predict", "library.cqrf", f"a.{kind}", "--mean", "-q", "")
    assert "not in the training table" not in done.stderr
    means = pd.read_csv(io.StringIO(done.stdout))["mean"]
    np.testing.assert_allclose(means, forest.predict_mean(X))


def test_another_event_column_has_its_own_value(frame):
    frame["alive"] = 1 - (frame["status"] == 2)
    frame["dead"] = (frame["status"] == 2).astype(int)
    frame.to_csv("both.csv", index=False)
    roles = ["--time", "days", "--event", "alive", "--event-value", "0"]
    extra = ["--ignore", "id", "--ignore", "dead", "--ignore", "status"]
    call("fit", "both.csv", *roles, *extra, *FAST, "-o", "m.cqrf")
    one, two = (
        call("evaluate", "m.cqrf", "both.csv", "--json", *options).stdout
        for options in ([], ["--event", "dead"])
    )
    assert one == two


def test_a_table_in_which_nothing_has_happened_yet_can_be_looked_at(fitted):
    fitted.assign(status=0).to_csv("new.csv", index=False)
    call("report", "m.cqrf", "new.csv", "-o", "r.html")
    assert Path("r.html").exists()
    assert "never has the value" in refused(
        "report", "m.cqrf", "new.csv", "--event-value", "2", "-o", "s.html"
    )


def test_role_of_entry_is_remembered(frame):
    frame["from"] = np.where(np.arange(150) % 2, frame["days"] / 2, np.nan)
    found = fit_with_roles(frame, "--entry", "from")
    X = frame.drop(columns=["id", "days", "status", "from"])
    y = censored(frame["days"], frame["status"] == 2, frame["from"])
    expected = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
    assert found.score_oob() == expected.score_oob()
    call("evaluate", "m.cqrf", "roles.csv")
    frame.rename(columns={"from": "since"}).to_csv("renamed.csv", index=False)
    assert "no column 'from'" in refused("evaluate", "m.cqrf", "renamed.csv")
    call("evaluate", "m.cqrf", "renamed.csv", "--entry", "since")


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ([], CensoredQuantileForest().working_model),
        (["--working-model", "cox"], "cox"),
        (["--working-model", "none"], None),
        (["--working-model", "auto"], "auto"),
        (["--working-model", "none", "--set", "working_model=cox"], "cox"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_the_working_model_is_an_option(frame, options, setting):
    roles = [*ROLES, "--ignore", "id", *FAST]
    call("fit", "data.csv", *roles, *options, "-o", "w.cqrf")
    forest = CensoredQuantileForest.load("w.cqrf")
    expected, X = make_forest(frame, working_model=setting)
    assert forest.working_model == setting
    assert (forest.model_.working is None) == (setting is None)
    assert np.array_equal(
        forest.predict(X, [0.3], unidentified="clip"),
        expected.predict(X, [0.3], unidentified="clip"),
    )


def test_another_working_model_is_refused(frame):
    said = refused("tune", "data.csv", *ROLES, "--working-model", "aft", "-o", "w.cqrf")
    assert said == "cqrf: --working-model aft: write one of auto, cox, none."


def test_settings(frame):
    options = ["--set", "min_samples_leaf=9", "--set", "criterion=logrank", "--seed", "4"]
    call("fit", "data.csv", *ROLES, *options, *FAST, "-o", "m.cqrf")
    forest = CensoredQuantileForest.load("m.cqrf")
    assert (forest.min_samples_leaf, forest.criterion, forest.random_state) == (9, "logrank", 4)
    lists = ["--set", "split_quantiles=[.2,.8]", "--set", "max_samples=null"]
    call("fit", "data.csv", *ROLES, *lists, *FAST, "-o", "m2.cqrf")
    forest = CensoredQuantileForest.load("m2.cqrf")
    assert (forest.split_quantiles, forest.max_samples) == ([0.2, 0.8], None)


@pytest.mark.parametrize(
    ("values", "options", "n_events"),
    [
        (["true", "False"], [], 75),
        ([1, 0], [], 75),
        ([1.0, 0.0], [], 75),
        (["dead", "alive"], ["--event-value", "dead"], 75),
        ([2, 1], ["--event-value", "2.0"], 75),
        (None, [], 150),
    ],
)
def test_ways_to_say_that_the_event_was_seen(frame, values, options, n_events):
    if values is None:
        frame.drop(columns="status").to_csv("e.csv", index=False)
    else:
        frame.assign(status=values * 75).to_csv("e.csv", index=False)
        options = ["--event", "status", *options]
    done = call("fit", "e.csv", "--time", "days", *options, "--json", *FAST, "-o", "m.cqrf")
    assert json.loads(done.stdout)["events"] == n_events


def test_evaluate_out_of_bag_and_on_new_rows(fitted):
    from cqrf.evaluation import evaluate

    forest, X = make_forest(fitted)
    found = json.loads(call("evaluate", "m.cqrf", "--json").stdout)
    assert found == pytest.approx(evaluate(forest, confidence=0.95))
    new = make_frame(seed=1)
    new.to_csv("new.csv", index=False)
    found = json.loads(call("evaluate", "m.cqrf", "new.csv", "--json").stdout)
    y = censored(new["days"], new["status"] == 2)
    expected = evaluate(forest, new[X.columns], y, confidence=0.95)
    assert found == pytest.approx(expected)
    shown = call("evaluate", "m.cqrf", "new.csv").stdout
    lower, upper = expected["concordance_lower"], expected["concordance_upper"]
    assert f"{expected['concordance']:.4g} ({lower:.3g} to {upper:.3g})" in shown
    assert "95% confidence intervals, by the bootstrap over rows or groups" in shown
    # Other names for the target can be given.
    new.rename(columns={"days": "T"}).to_csv("renamed.csv", index=False)
    renamed = call("evaluate", "m.cqrf", "renamed.csv", "--time", "T", "--json").stdout
    assert json.loads(renamed) == found


def test_evaluate_says_which_levels_it_scores(fitted):
    assert "instead of" not in call("evaluate", "m.cqrf").stderr
    frame = make_frame()
    end = frame["days"].quantile(0.2)
    early = frame.assign(status=2 * (frame["days"] < end), days=frame["days"].clip(upper=end))
    early.to_csv("early.csv", index=False)
    roles = ("--time", "days", "--event", "status", "--event-value", "2")
    call("fit", "early.csv", *roles, *FAST, "-o", "early.cqrf")
    done = call("evaluate", "early.cqrf")
    assert "at the levels 0.05, 0.1, 0.15 instead of 0.25, 0.5, 0.75" in done.stderr
    assert "quantile loss at 0.15" in done.stdout


def test_evaluate_says_that_rows_are_known(fitted):
    assert "training table" in call("evaluate", "m.cqrf", "data.csv").stderr
    assert "training table" not in call("evaluate", "m.cqrf").stderr


def test_spaces_around_names_do_not_matter(fitted):
    text = Path("data.csv").read_text()
    heading, _, rows = text.partition("\n")
    spaced = heading.replace(",days", " , days ").replace("age", " age")
    Path("spaced.csv").write_text(f"{spaced}\n{rows}")
    answers = [call("predict", "m.cqrf", name).stdout for name in ("spaced.csv", "data.csv")]
    assert answers[0] == answers[1]


def test_info(fitted):
    shown = call("info", "m.cqrf").stdout
    assert "150 rows" in shown
    assert "category, 3 levels" in shown
    facts = json.loads(call("info", "m.cqrf", "--json").stdout)
    assert facts["notes"] == {
        "time": "days",
        "event": "status",
        "event_value": "2",
        "source": "data.csv",
    }
    assert sum(column["importance"] for column in facts["columns"]) == pytest.approx(1)
    assert facts["settings"]["n_estimators"] == facts["trees"] == 20


def test_tune(frame):
    command = ["tune", "data.csv", *ROLES, "--ignore", "id", "--trials", "3", *FAST]
    done = call(*command, "-o", "t.cqrf")
    assert "Tried   3 settings" in done.stderr
    facts = json.loads(call(*command, "--json", "--force", "-o", "t.cqrf").stdout)
    forest, _ = make_forest(frame)
    assert facts["skill_oob"] >= forest.score_oob()
    assert len(facts["trials"]) >= 3
    assert CensoredQuantileForest.load("t.cqrf").score_oob() == pytest.approx(facts["skill_oob"])
    facts = json.loads(call(*command, "-q", ".1", "--json", "--force", "-o", "t.cqrf").stdout)
    tenth = forest.predict_oob([0.1], unidentified="clip")
    expected = compute_oob_skill(forest.model_, tenth, [0.1])
    assert [row for row in facts["trials"] if row["trial"] == 0][-1]["skill"] == expected
    assert "--quantiles" in refused(*command, "-q", "half", "--force", "-o", "t.cqrf")


def test_nothing_is_overwritten_without_force(fitted):
    before = Path("m.cqrf").read_bytes()
    command = ["fit", "data.csv", *ROLES, *FAST, "--seed", "9", "-o", "m.cqrf"]
    assert "m.cqrf exists; --force" in refused(*command)
    assert Path("m.cqrf").read_bytes() == before
    call(*command, "--force")
    assert Path("m.cqrf").read_bytes() != before
    call("predict", "m.cqrf", "data.csv", "-o", "p.csv")
    assert "p.csv exists" in refused("predict", "m.cqrf", "data.csv", "-o", "p.csv")
    assert "is a folder" in refused("predict", "m.cqrf", "data.csv", "-o", ".")
    assert "nowhere is not a folder" in refused(
        "predict", "m.cqrf", "data.csv", "-o", "nowhere/p.csv"
    )


def test_an_input_is_never_written_to(fitted):
    before = Path("data.csv").read_bytes()
    for command in (
        ["fit", "data.csv", *ROLES, "-o", "data.csv"],
        ["report", "m.cqrf", "data.csv", "-o", "data.csv"],
        ["report", "m.cqrf", "data.csv", "-o", "m.cqrf"],
    ):
        assert "the name must end in" in refused(*command, "--force")
    os.symlink("data.csv", "link.csv")
    for out in ("data.csv", "./data.csv", "link.csv"):
        assert "is an input of this command" in refused(
            "predict", "m.cqrf", "data.csv", "-o", out, "--force"
        )
    assert Path("data.csv").read_bytes() == before


def test_a_failed_run_leaves_no_file(fitted, tmp_path):
    bad = fitted.copy()
    bad["age"] = bad["age"].astype(object)
    bad.loc[149, "age"] = "old"
    bad.to_csv("bad.csv", index=False)
    kept = sorted(os.listdir(tmp_path))
    assert "column 'age' holds 'old', which is not a number" in refused(
        "predict", "m.cqrf", "bad.csv", "-o", "p.csv"
    )
    assert sorted(os.listdir(tmp_path)) == kept


WRONG = {
    "no such file": (["fit", "none.csv", *ROLES], "none.csv: No such file"),
    "no such column": (
        ["fit", "data.csv", "--time", "dayz"],
        "no column 'dayz'; it has 'id', 'age'",
    ),
    "no such event": (["fit", "data.csv", "--time", "days", "--event", "e"], "no column 'e'"),
    "words": (
        ["fit", "data.csv", "--time", "days", "--event", "colour", "--drop-invalid"],
        "has the values 'blue', 'green', 'red'; say which one means an observed event, as in "
        "--event-value red; or, if several do, which one means censored, as in --censored blue",
    ),
    "no such value": (
        ["fit", "data.csv", *ROLES[:4], "--event-value", "dead"],
        "never has the value 'dead'; it has '0', '1', '2'",
    ),
    "time that is text": (
        ["fit", "data.csv", "--time", "colour"],
        "'colour' holds 'red', which is not a number: it must",
    ),
    "no such ignored": (["fit", "data.csv", *ROLES, "--ignore", "x"], "no column 'x'"),
    "no such setting": (
        ["fit", "data.csv", *ROLES, "--set", "leaves=3"],
        "--set leaves: there is no such setting",
    ),
    "setting without value": (["fit", "data.csv", *ROLES, "--set", "leaves"], "NAME=VALUE"),
    "bad setting": (["fit", "data.csv", *ROLES, "--set", "criterion=gini"], "criterion='gini'"),
    "no status": (["fit", "data.csv", "--time", "days", "--event", "age"], "is missing in"),
    "many statuses": (
        ["fit", "data.csv", "--time", "days", "--event", "height, cm"],
        "different values, such as",
    ),
    "a word among times": (["fit", "word.csv", *ROLES], "column 'days' holds '3 weeks', which is"),
    "model of another name": (["fit", "data.csv", *ROLES, "-o", "m.csv"], "must end in .cqrf"),
    "kind of file": (["fit", "data.xls", *ROLES], "Save an .xls file as .xlsx"),
    "ids as categories": (
        ["fit", "many.csv", *ROLES],
        "cannot be a category: 'id' (300). Leave it out with --ignore id",
    ),
    "empty": (["fit", "empty.csv", *ROLES], "empty.csv is empty"),
    "header only": (["fit", "header.csv", *ROLES], "header.csv has no rows"),
    "ragged": (["fit", "ragged.csv", *ROLES], "ragged.csv cannot be read: CSV parse error"),
    "latin": (["fit", "latin.csv", *ROLES], "latin.csv"),
    "twice": (["fit", "twice.csv", *ROLES], "more than one column of the name 'age'"),
    "nameless": (["fit", "nameless.csv", *ROLES], "has 2 columns without a name"),
    "old line ends": (["fit", "cr.csv", *ROLES], "cr.csv ends its lines with CR alone"),
    "damaged": (["fit", "damaged.csv.gz", *ROLES], "damaged.csv.gz cannot be read"),
    "not parquet": (["fit", "fake.parquet", *ROLES], "fake.parquet cannot be read"),
    "not feather": (["fit", "fake.feather", *ROLES], "fake.feather cannot be read"),
    "not gzip": (["fit", "fake.csv.gz", *ROLES], "fake.csv.gz"),
    "gaps in time": (["fit", "gaps.csv", *ROLES], "column 'days' is missing in 2 of 150 rows"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_fit_is_said_on_one_line(case, frame):
    frame.iloc[:0].to_csv("header.csv", index=False)
    Path("empty.csv").touch()
    Path("ragged.csv").write_text("days,status,age\n1,2,3\n4,2\n")
    Path("latin.csv").write_bytes("days,status,name\n1,2,gr\xfcn\n".encode("latin-1"))
    Path("twice.csv").write_text("days,status,age,age\n1,2,3,4\n")
    Path("nameless.csv").write_text(",days,,status\n1,2,3,4\n")
    Path("cr.csv").write_text(frame.to_csv(index=False, lineterminator="\r"), newline="")
    packed = bytearray(gzip.compress(frame.to_csv(index=False).encode()))
    packed[len(packed) // 2 :][:40] = bytes(40)
    packed[100:140] = bytes(40)
    Path("damaged.csv.gz").write_bytes(packed)
    for name in ("fake.parquet", "fake.feather", "fake.csv.gz"):
        Path(name).write_text("no such thing")
    pd.DataFrame({"id": [f"i{i}" for i in range(300)], "days": 1.5, "status": 2}).to_csv(
        "many.csv", index=False
    )
    frame.assign(days=["3 weeks", *frame["days"][1:]]).to_csv("word.csv", index=False)
    gaps = frame.copy()
    gaps.loc[[3, 5], "days"] = np.nan
    gaps.to_csv("gaps.csv", index=False)
    command, expected = WRONG[case]
    out = [] if "-o" in command else ["-o", "m.cqrf"]
    assert expected in refused(*command, *FAST, *out)
    assert not os.path.exists("m.cqrf")


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_row_labels_without_a_name_are_no_feature(name, frame):
    shuffled = frame.sample(frac=1, random_state=0)
    write = shuffled.to_csv if name.endswith("csv") else shuffled.to_parquet
    write(name)
    said = call("fit", name, *ROLES, "--ignore", "id", *FAST, "-o", "m.cqrf").stderr
    assert "a column without a name is left out" in said
    assert "counts the rows" not in said
    learnt = CensoredQuantileForest.load("m.cqrf").feature_names_in_
    assert list(learnt) == ["age", "height, cm", "colour", "treated", "seen"]


def test_a_feature_that_counts_the_rows_is_pointed_at(frame):
    frame.assign(**{"row number": range(7, 7 + len(frame))}).to_csv("data.csv", index=False)
    said = call("fit", "data.csv", *ROLES, "--ignore", "id", *FAST, "-o", "m.cqrf").stderr
    assert "row number counts the rows: leave it out with --ignore 'row number'" in said
    assert said.count("counts the rows") == 1


WRONG_QUESTIONS = {
    "level": (["-q", "1.5"], "strictly between 0 and 1"),
    "words": (["-q", "half"], "--quantiles 'half': write numbers"),
    "coverage": (["--interval", "2"], "coverage=2.0"),
    "time": (["--survival", "a,b"], "--survival 'a,b'"),
    "unidentified": (["--unidentified", "zero"], "unidentified='zero'"),
    "id": (["--id", "name"], "no column 'name' to keep"),
    "nothing": (["-q", ""], "give --quantiles, --survival, --incidence, --interval or --mean."),
    "confidence of nothing": (
        ["-q", "", "--mean", "--confidence", ".9"],
        "--confidence is that of --quantiles, --survival or --incidence",
    ),
    "format": (["-o", "p.xlsx"], "must end in one of"),
}


@pytest.mark.parametrize("case", WRONG_QUESTIONS)
def test_what_is_wrong_with_a_question_is_said_on_one_line(case, fitted):
    options, expected = WRONG_QUESTIONS[case]
    assert expected in refused("predict", "m.cqrf", "data.csv", *options)


def test_what_is_wrong_with_a_model_is_said_on_one_line(fitted):
    fitted.drop(columns=["age", "seen"]).to_csv("less.csv", index=False)
    assert "lacks 2 columns of the model: 'age', 'seen'" in refused("predict", "m.cqrf", "less.csv")
    assert "not a model file" in refused("predict", "data.csv", "data.csv")
    assert "no.cqrf: No such file" in refused("info", "no.cqrf")
    forest = CensoredQuantileForest(n_estimators=2).fit(np.zeros((9, 2)), np.arange(9.0))
    forest.save("array.cqrf")
    assert "without column names" in refused("predict", "array.cqrf", "data.csv")
    fitted.drop(columns="days").to_csv("timeless.csv", index=False)
    assert "no column 'days'" in refused("evaluate", "m.cqrf", "timeless.csv")
    X, y = fitted[["age"]], censored(fitted["days"], fitted["status"] == 2)
    CensoredQuantileForest(n_estimators=2).fit(X, y).save("plain.cqrf")
    assert "give --time" in refused("evaluate", "plain.cqrf", "data.csv")


def test_a_command_without_its_options_fails_with_code_2(frame):
    call("fit", "data.csv", code=2)
    call("predict", code=2)
    call("nonsense", code=2)
    assert (
        "number of threads" in call("predict", "m.cqrf", "data.csv", "--jobs", "0", code=2).stderr
    )
    fit = ["fit", "data.csv", *ROLES, "-o", "m.cqrf"]
    assert "'--trees'" in call(*fit, "--trees", "0", code=2).stderr
    assert "Usage" in call("predict", "-h").stdout


def test_help_loads_nothing_heavy():
    program = (
        "import sys;"
        "from cqrf.cli.app import app;"
        "from typer.testing import CliRunner;"
        "print(CliRunner().invoke(app, ['--help']).exit_code);"
        "print([m for m in ('numba', 'numpy', 'sklearn', 'pyarrow', 'matplotlib')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split("\n")[:2] == ["0", "[]"]


def test_ctrl_c_ends_with_130_and_leaves_nothing(frame, tmp_path):
    command = [*PROGRAM, "fit", "data.csv", *ROLES, "--ignore", "id", "--trees", "9999999"]
    kept = sorted(os.listdir(tmp_path))
    with subprocess.Popen([*command, "-o", "m.cqrf"], stderr=subprocess.PIPE, text=True) as run:
        assert any("Missing" in line for line in run.stderr)
        time.sleep(2)
        run.send_signal(signal.SIGINT)
        assert run.stderr.read().strip().endswith("cqrf: stopped")
        assert run.wait(timeout=240) == 130
    assert sorted(os.listdir(tmp_path)) == kept


def test_a_reader_that_leaves_is_no_error(fitted):
    pd.concat([fitted] * 400).to_csv("long.csv", index=False)
    command = [*PROGRAM, "predict", "m.cqrf", "long.csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        run.stdout.readline()
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait(timeout=240) == 0


MEASURE = """
import sys
from cqrf.cli.app import app
sys.argv = ["cqrf", *sys.argv[1:]]
try:
    app()
finally:
    with open("/proc/self/status") as file:
        print(*(line.split()[1] for line in file if line.startswith("VmHWM")), file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is told by /proc")
def test_a_file_of_two_million_rows_is_predicted_within_500_mb(tmp_path):
    frame = load_pbc(as_frame=True).X.iloc[:, :6]
    y = load_pbc().y
    forest = CensoredQuantileForest(n_estimators=3, random_state=0).fit(frame, y)
    forest.save(tmp_path / "m.cqrf")
    text = frame.to_csv(index=False)
    heading, _, rows = text.partition("\n")
    path = tmp_path / "long.csv"
    with path.open("w") as file:
        file.write(heading + "\n")
        for _ in range(-(-2_000_000 // len(frame))):
            file.write(rows)
    n_rows = len(frame) * -(-2_000_000 // len(frame))
    assert path.stat().st_size > 40e6
    out = tmp_path / "p.csv"

    def run(data, out):
        command = ["predict", tmp_path / "m.cqrf", data, "-q", ".1,.2", "-o", out]
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, *map(str, command)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done

    frame.to_csv(tmp_path / "short.csv", index=False)
    run(tmp_path / "short.csv", tmp_path / "short_out.csv")  # compiling takes memory, once
    done = run(path, out)
    assert f"{n_rows} rows" in done.stderr
    assert int(done.stderr.split()[-1]) * 1024 < 500e6
    with out.open() as file:
        assert sum(1 for _ in file) == n_rows + 1


def test_gzip_is_read(fitted):
    with gzip.open("z.csv.gz", "wt") as file:
        file.write(fitted.to_csv(index=False))
    assert (
        call("predict", "m.cqrf", "z.csv.gz").stdout == call("predict", "m.cqrf", "data.csv").stdout
    )
