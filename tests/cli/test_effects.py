"""effects: what the command prints and writes is what the library says."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import cqrf.datasets
import cqrf.effects
from cqrf import censored
from cqrf.cli.app import app
from cqrf.cli.effect_words import describe_overlap, describe_rate, name_gain, write_effect
from cqrf.cli.info import TREATMENT_DEFAULTS
from cqrf.effects import CensoredTreatmentForest
from support.commands import call, refused

N = 160
FEATURES = ["age", "group", "marker"]
FAST = ["--trees", "16", "--jobs", "1"]
RUN = ["effects", "data.csv", "--time", "days", "--event", "status", "--treatment", "arm", *FAST]
HEAVY = ("numba", "sklearn", "scipy", "rich", "pyarrow", "pandas", "joblib")


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = make_table()
    table.to_csv("data.csv", index=False)
    return table


def make_table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(20, 90, N), "group": rng.choice(["a", "é", "c"], N)})
    table["marker"] = rng.normal(size=N).round(2)
    table["arm"] = rng.choice(["drug", "placebo"], N)
    gain = np.where(table["arm"] == "drug", 1.5, 1.0)
    table["days"] = (gain * rng.exponential(6000 / table["age"]) + 1).round(1)
    table["status"] = rng.choice([0, 1], N, p=[0.3, 0.7])
    return table


def fit_library(table, control="placebo", arm="arm", **fitted):
    forest = CensoredTreatmentForest(n_estimators=16, random_state=0, n_jobs=1)
    y = censored(table["days"], table["status"])
    return forest.fit(table[FEATURES], y, table[arm], control=control, **fitted)


def run(*options):
    return json.loads(call(*RUN, "--json", *options).stdout)


def same_average(found, average):
    for name in ("estimate", "standard_error", "lower", "upper"):
        assert found[name] == pytest.approx(getattr(average, name), rel=1e-9), name


def test_the_averages_are_those_of_the_library(table):
    found = run("--control", "placebo", "--horizon", "90", "--times", "30,60", "-q", ".25,.5")
    forest = fit_library(table)
    asked = [
        ("rmst", 90, forest.ate(horizon=90)),
        ("survival", 30, forest.ate("survival", times=30)),
        ("survival", 60, forest.ate("survival", times=60)),
        ("quantile", 0.25, forest.ate("quantile", quantiles=0.25)),
        ("quantile", 0.5, forest.ate("quantile", quantiles=0.5)),
    ]
    for average, (target, at, expected) in zip(found["average_effects"], asked, strict=True):
        assert (average["target"], average["at"], average["population"]) == (target, at, "all")
        same_average(average, expected)
    same_average(found["rate"], forest.rate(horizon=90))
    assert found["rate"]["metric"] == "autoc"
    assert (found["control"], found["treated"]) == ("placebo", "drug")
    assert (found["rows"], found["events"]) == (N, int(table["status"].sum()))
    for arm in found["arms"]:
        inside = table[table["arm"] == arm["name"]]
        assert (arm["rows"], arm["events"]) == (len(inside), inside["status"].sum())
    propensity = forest.overlap().propensity
    assert found["propensity"]["least"] == pytest.approx(propensity.min())
    assert found["propensity"]["largest"] == pytest.approx(propensity.max())
    assert not found["propensity"]["known"]
    assert (found["model"], found["output"]) == (None, None)


def test_without_targets_it_is_the_time_gained_up_to_the_default_horizon(table):
    (average,) = run("--control", "placebo")["average_effects"]
    forest = fit_library(table)
    assert average["at"] == forest.model_.follow_up
    same_average(average, forest.ate())


def test_subgroups_are_levels_and_sides_of_the_median(table):
    table.loc[::9, "marker"] = np.nan
    table["age"] = np.where(table["age"] > 40, 50, table["age"])  # most are the largest
    table.to_csv("data.csv", index=False)
    found = run("--subgroups", "group,marker, age", "--horizon", "80", "--control", "placebo")
    middle = table["marker"].median()
    expected = {
        ("group", "a"): table["group"] == "a",
        ("group", "c"): table["group"] == "c",
        ("group", "é"): table["group"] == "é",
        ("marker", "at most"): table["marker"] <= middle,
        ("marker", "above"): table["marker"] > middle,
        ("marker", "missing"): table["marker"].isna(),
        ("age", "below 50"): table["age"] < 50,
        ("age", "at least 50"): table["age"] == 50,
    }
    forest = fit_library(table)
    for group, ((column, level), mask) in zip(found["subgroups"], expected.items(), strict=True):
        assert group["column"] == column
        assert group["level"].startswith(level)
        assert group["rows"] == mask.sum()
        assert group["treated"] == (mask & (table["arm"] == "drug")).sum()
        same_average(group, forest.ate(horizon=80, subset=mask.to_numpy()))


def test_numbers_of_two_values_and_dates_are_subgroups_too(table):
    table["smokes"] = np.arange(N) % 2
    table["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N), "D")
    table.to_csv("data.csv", index=False)
    groups = run("--subgroups", "smokes,since")["subgroups"]
    levels = [(group["column"], group["level"], group["rows"]) for group in groups]
    assert levels[:2] == [("smokes", "0", N // 2), ("smokes", "1", N // 2)]
    day = pd.Timestamp("2020-01-01") + pd.Timedelta(days=N // 2 - 1)
    assert [
        level[1].startswith(f"{word} {day:%Y-%m-%d}")
        for level, word in zip(levels[2:], ("at most", "above"), strict=True)
    ] == [True, True]
    assert [level[2] for level in levels[2:]] == [N // 2, N // 2]


def test_a_subgroup_of_one_arm_has_no_effect(table):
    table.loc[table["group"] == "c", "arm"] = "drug"
    table.to_csv("data.csv", index=False)
    groups = {group["level"]: group for group in run("--subgroups", "group")["subgroups"]}
    assert groups["c"]["estimate"] is None
    assert groups["c"]["treated"] in (0, groups["c"]["rows"])
    assert groups["a"]["estimate"] is not None
    assert "group: c" in call(*RUN, "--subgroups", "group").stdout
    assert "not known" in call(*RUN, "--subgroups", "group").stdout


def test_the_three_most_important_columns_are_the_default_subgroups(table):
    table["noise"] = np.random.default_rng(1).normal(size=N)
    table.to_csv("data.csv", index=False)
    found = run()
    columns = list(dict.fromkeys(group["column"] for group in found["subgroups"]))
    importance = found["importance"]
    assert columns == sorted(importance, key=lambda name: -importance[name])[:3]
    assert sum(importance.values()) == pytest.approx(1.0)
    shown = call(*RUN).stdout
    assert "--subgroups names" in shown
    assert "corrected for that" in shown
    assert "chosen" not in call(*RUN, "--subgroups", "age").stdout


def test_the_rows_are_written_as_the_library_has_them(table):
    call(
        *RUN,
        "--horizon",
        "90",
        "--times",
        "30",
        "-q",
        ".5",
        "-o",
        "out.csv",
        "--control",
        "placebo",
    )
    forest, X = fit_library(table), table[FEATURES]
    found = pd.read_csv("out.csv")
    expected = {
        "propensity": forest.overlap().propensity,
        "rmst90": forest.effect_oob(horizon=90),
        "rmst90_lower0.95": forest.effect_interval(X, horizon=90)[:, 0],
        "rmst90_upper0.95": forest.effect_interval(X, horizon=90)[:, 1],
        "survival30": forest.effect_oob("survival", times=30),
        "survival30_lower0.95": forest.effect_interval(X, "survival", times=30)[:, 0],
        "survival30_upper0.95": forest.effect_interval(X, "survival", times=30)[:, 1],
        "q0.5": forest.effect(X, "quantile"),
        "q0.5_lower0.95": forest.effect_interval(X, "quantile")[:, 0],
        "q0.5_upper0.95": forest.effect_interval(X, "quantile")[:, 1],
    }
    assert found.columns.tolist() == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-9, err_msg=name)


def test_rows_that_are_left_out_have_empty_fields(table):
    table["arm"] = table["arm"].where(~table.index.isin([3, N - 1]))
    table.to_csv("data.csv", index=False)
    message = refused(*RUN)
    assert message == (
        f"data.csv: column 'arm' is missing in 2 of {N} rows (the first is line 5): leave these "
        "rows out, or give --drop-invalid."
    )
    done = call(*RUN, "--drop-invalid", "-o", "out.csv")
    assert f"Note    2 of {N} rows are left out: column 'arm' is missing (2)" in done.stderr
    found = pd.read_csv("out.csv")
    assert len(found) == N
    assert np.flatnonzero(found.isna().all(axis=1)).tolist() == [3, N - 1]
    kept = table.dropna(subset="arm")
    forest = fit_library(kept, control="drug")
    np.testing.assert_allclose(found.iloc[kept.index, 1], forest.effect_oob(), rtol=1e-9)


def test_the_model_file_holds_the_forest(table):
    said = call(*RUN, "--control", "placebo", "--model", "m.cqrf", "--unit", "days").stderr
    assert "Saved   m.cqrf (" in said
    loaded = CensoredTreatmentForest.load("m.cqrf")
    np.testing.assert_array_equal(
        loaded.effect(table[FEATURES]), fit_library(table).effect(table[FEATURES])
    )
    assert loaded.arms_ == ("placebo", "drug")
    assert loaded.time_unit == "days"
    assert loaded.notes_ == {
        "time": "days",
        "event": "status",
        "treatment": "arm",
        "source": "data.csv",
    }


def test_the_forest_is_fitted_once(table, monkeypatch):
    fitted, fit = [], cqrf.effects.fit_effect_model
    monkeypatch.setattr(
        cqrf.effects, "fit_effect_model", lambda *args: fitted.append(1) or fit(*args)
    )
    call(*RUN, "--times", "30", "-q", ".5", "-o", "out.csv", "--model", "m.cqrf")
    assert fitted == [1]


@pytest.mark.parametrize(
    "values",
    [("0", "1"), ("1", "2"), ("1.0", "2.0"), ("9", "10"), ("-0.5", "0.5"), ("false", "true")],
)
def test_treatments_in_any_notation_give_the_same(table, values):
    control, treated = values
    expected = run("--control", "placebo")
    written = table.assign(arm=table["arm"].map({"placebo": control, "drug": treated}))
    written.to_csv("data.csv", index=False)
    for options in ((), ("--control", control), ("--control", treated)):
        found = run(*options)
        turned = options[1:] == (treated,)
        sign = -1 if turned else 1
        assert found["rate"]["standard_error"] == expected["rate"]["standard_error"] or turned
        assert found["average_effects"][0]["estimate"] == pytest.approx(
            sign * expected["average_effects"][0]["estimate"], rel=1e-12
        )
    numbers = [float(arm["name"]) for arm in run()["arms"] if values[0] != "false"]
    assert numbers == [float(value) for value in values if values[0] != "false"]


@pytest.mark.parametrize(
    "values", [("1", "drug"), ("0", "inf"), ("2020-01-01", "2021-01-01"), ("1,5", "2")]
)
def test_treatments_that_are_not_two_numbers_keep_their_texts(table, values):
    written = table.assign(arm=table["arm"].map(dict(zip(("placebo", "drug"), values))))
    written.to_csv("data.csv", index=False)
    found = run("--model", "m.cqrf")
    assert (found["control"], found["treated"]) == values
    assert CensoredTreatmentForest.load("m.cqrf").arms_ == values
    assert run("--control", values[0])["control"] == values[0]


def test_a_typed_file_gives_the_same(table):
    table["arm"] = table["arm"] == "drug"
    table.to_csv("data.csv", index=False)
    table.to_parquet("data.parquet")
    typed = [each if each != "data.csv" else "data.parquet" for each in RUN]
    found = json.loads(call(*typed, "--json").stdout)
    assert (found["control"], found["treated"]) == ("False", "True")
    assert found["average_effects"] == run()["average_effects"]


def test_options_reach_the_library(table):
    rng = np.random.default_rng(2)
    table["known"], table["weight"] = rng.uniform(0.3, 0.7, N), rng.integers(1, 4, N)
    table["ward"] = np.arange(N) // 2
    table.to_csv("data.csv", index=False)
    roles = ["--weight", "weight", "--groups", "ward", "--control", "placebo"]
    found = run(*roles, "--propensity", "known")
    forest = fit_library(
        table,
        propensity=table["known"],
        sample_weight=table["weight"],
        groups=table["ward"],
    )
    assert found["columns"] == FEATURES
    same_average(found["average_effects"][0], forest.ate())
    assert found["propensity"]["known"]
    assert found["propensity"]["least"] == pytest.approx(table["known"].min())
    found = run(
        "--propensity",
        ".4",
        "--control",
        "placebo",
        *("--ignore", "known", "--ignore", "weight", "--ignore", "ward"),
    )
    same_average(found["average_effects"][0], fit_library(table, propensity=0.4).ate())
    found = run("--set", "max_depth=1", "--set", "bag_size=2", "--seed", "5", "--model", "m.cqrf")
    loaded = CensoredTreatmentForest.load("m.cqrf")
    assert (loaded.max_depth, loaded.bag_size, loaded.random_state) == (1, 2, 5)


# What is printed.


def test_the_summary_fits_into_80_columns_and_shows_the_numbers(table):
    options = ["--horizon", "90", "--times", "30", "-q", ".5,.25", "--unit", "days"]
    done = CliRunner().invoke(app, [*RUN, *options], env={"COLUMNS": "80"})
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "Effects of arm: placebo against drug"
    found = run(*options)
    for name, average in zip(
        (
            "time gained up to 90 days",
            "survival beyond 30 days",
            "median time",
            "quantile 0.25 of the time",
        ),
        found["average_effects"],
        strict=True,
    ):
        (line,) = [line for line in lines if line.startswith(name)]
        effect, interval = write_effect(average)
        assert re.split(r"\s{2,}", line.strip())[1:] == [effect, interval]
    for group in found["subgroups"]:
        (line,) = [
            line for line in lines if line.startswith(f"{group['column']}: {group['level']} ")
        ]
        cells = re.split(r"\s{2,}", line.strip())
        assert cells[1:3] == [str(group["rows"]), str(group["treated"])]
    assert "95% interval" in done.stdout
    assert "RATE (AUTOC)" in done.stdout


@pytest.mark.parametrize("propensity", [None, ".5"])
def test_the_words_are_those_that_the_design_allows(table, propensity):
    options = [] if propensity is None else ["--propensity", propensity]
    shown = " ".join(call(*RUN, *options).stdout.split())
    for word in ("causes", "caused", "would have"):
        assert word not in shown
    assert ("no unmeasured confounding" in shown) == (propensity is None)
    assert ("assigned by design" in shown and "not assigned" not in shown) == (
        propensity is not None
    )


def test_an_effect_is_written_with_two_digits_of_its_error():
    numbers = {"estimate": 123.456, "standard_error": 4.2, "lower": 115.2, "upper": 131.7}
    assert write_effect(numbers) == ("123.5", "115.2 to 131.7")
    numbers = {"estimate": -12345.6, "standard_error": 420, "lower": -13168, "upper": -11522}
    assert write_effect(numbers) == ("-12346", "-13168 to -11522")
    numbers = {"estimate": 0.01234, "standard_error": 0.0042, "lower": 0.0041, "upper": 0.0206}
    assert write_effect(numbers) == ("0.0123", "0.0041 to 0.0206")
    for unknown in (None, np.nan, np.inf):
        assert write_effect(numbers | {"estimate": unknown}) == ("not known", "")


def test_what_the_ranking_says():
    def say(lower, upper):
        estimate, error = (lower + upper) / 2, (upper - lower) / 3.92
        return describe_rate(
            {"estimate": estimate, "standard_error": error, "lower": lower, "upper": upper}
        )

    assert say(1, 3).endswith("The interval lies above 0: effects differ with the columns.")
    assert "no evidence that effects differ between rows. That is not" in say(-1, 3)
    assert "ranking does not find those who gain most" in say(-3, -1)
    assert "RATE (AUTOC) 2.00 (1.00 to 3.00)" in say(1, 3)
    assert "cannot be told" in say(np.nan, np.nan)


def test_a_horizon_of_many_digits_is_rounded_in_print():
    assert name_gain(31.17569989219837, None) == "time gained up to 31.1757"
    assert name_gain(1234.5678, "days") == "time gained up to 1234.57 days"
    assert name_gain(10957.25, "days") == "time gained up to 10957.25 days"


def test_what_overlap_says():
    facts = {"known": False, "least": 0.2, "largest": 0.7, "rows_outside": 0, "importance": {}}
    assert describe_overlap(facts, 90) == (
        "propensity from 0.20 to 0.70; no row is below .05 or above .95"
    )
    outside = facts | {"rows_outside": 3, "importance": {"a": 0.4, "b": 0.3, "c": 0.3}}
    assert describe_overlap(outside, 90).endswith("over many of them, cannot be trusted")
    outside["importance"] = {"a": 0.3, "b": 0.7}
    assert "3 of 90 rows are below .05 or above .95. These have" in describe_overlap(outside, 90)
    assert "depends most on b (importance 70%)" in describe_overlap(outside, 90)
    assert "; 1 of 90 rows is below .05" in describe_overlap(outside | {"rows_outside": 1}, 90)
    by_design = facts | {"known": True, "largest": 0.2}
    assert describe_overlap(by_design, 90).startswith("propensity 0.2 by design; ")


def test_a_column_that_tells_the_treatment_is_named(table):
    table["given"] = (table["arm"] == "drug").astype(float)
    table.to_csv("data.csv", index=False)
    done = call(*RUN)
    shown = " ".join(done.stdout.split())
    assert f"{N} of {N} rows are below .05 or above .95" in shown
    assert "The propensity depends most on given (importance 100%)" in shown
    assert "overlap weights" in shown
    averages = run()["average_effects"]
    assert [average["population"] for average in averages] == ["all", "overlap"]
    assert "Warning" not in done.stderr


@pytest.mark.filterwarnings("ignore::cqrf.effects.OverlapWarning")
def test_rows_without_a_counterpart_add_the_average_with_overlap_weights(table):
    table["marker"] = np.where(table["group"] == "a", table["arm"] == "drug", 0.5)
    table.to_csv("data.csv", index=False)
    found = run("--control", "placebo")
    forest = fit_library(table)
    assert found["propensity"]["rows_outside"] == forest.overlap().n_outside
    assert 0 < forest.overlap().n_outside < N
    everyone, weighted = found["average_effects"]
    same_average(everyone, forest.ate())
    same_average(weighted, forest.ate(population="overlap"))


def test_a_time_beyond_the_data_is_not_known(table):
    late = table["days"].max() + 1
    table.loc[table["days"].idxmax(), "status"] = 0
    table.to_csv("data.csv", index=False)
    done = call(*RUN, "--times", f"30,{late}", "-o", "out.csv")
    assert done.stderr.count("Ask for an earlier time") == 1
    (line,) = [line for line in done.stdout.splitlines() if f"survival beyond {late}" in line]
    assert line.split()[-2:] == ["not", "known"]
    assert run("--times", str(late))["average_effects"][1]["estimate"] is None
    assert pd.read_csv("out.csv")[f"survival{late}"].isna().all()


# What is refused.


REFUSED = {
    "three values": (
        ["--treatment", "group"],
        "'group' has 3 values, 'a', 'c', 'é'; a treatment "
        "has two: keep the rows of one treatment and of the control",
    ),
    "one value": (
        ["--treatment", "same"],
        "has 1 value, 'x'; a treatment has two: there is nothing to compare",
    ),
    "many values": (["--treatment", "age"], r"'age' has \d+ values, "),
    "no such treatment": (["--treatment", "trt"], "data.csv has no column 'trt'; it has 'age'"),
    "no such control": (
        ["--control", "sugar"],
        "--control sugar: column 'arm' has the values 'drug', 'placebo'",
    ),
    "no such subgroup": (["--subgroups", "age,sex"], "--subgroups sex: there is no such feature"),
    "subgroups of the treatment": (["--subgroups", "arm"], "--subgroups arm: there is no such"),
    "no such propensity": (["--propensity", "p"], "data.csv has no column 'p'"),
    "propensity of text": (
        ["--propensity", "group"],
        "'group' holds 'a', which is not a number|column 'group'.*must hold numbers",
    ),
    "propensity of 1": (["--propensity", "1"], "propensity is 1; it must lie strictly between"),
    "level above 1": (["-q", "1.5"], "quantiles must lie strictly between 0 and 1"),
    "times of text": (["--times", "soon"], "--times 'soon': write numbers"),
    "infinite time": (["--times", "inf"], "--times: a time must be a finite number"),
    "infinite horizon": (["--horizon", "inf"], "--horizon: a time must be a finite number"),
    "negative horizon": (["--horizon", "-1"], "--horizon -1: both arms are known from 0 to "),
    "late horizon": (["--horizon", "1e6"], "--horizon 1000000: both arms are known from 0 to "),
    "unknown setting": (["--set", "depth=3"], "--set depth: there is no such setting; there are "),
    "a forest as a setting": (["--set", "nuisance_forest=1"], "there is no such setting"),
    "bags that are not full": (["--trees", "17"], "n_estimators=17 must be a multiple of bag_size"),
    "an arm without events": (["--event", "only"], "no event was observed in the .* of the arm"),
    "few rows": (["--treatment", "rare"], "the arm 1 has 5 rows; each arm needs at least 20"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said_on_one_line_and_nothing_is_written(case, table, tmp_path):
    table.loc[table["days"].idxmax(), "status"] = 0
    table["same"], table["rare"] = "x", (np.arange(N) < 5).astype(int)
    table["only"] = table["status"] * (table["arm"] == "drug")
    for arm in ("drug", "placebo"):  # both arms end with a censored row
        table.loc[table[table["arm"] == arm]["days"].idxmax(), ["status", "only"]] = 0
    table.to_csv("data.csv", index=False)
    options, message = REFUSED[case]
    said = refused(*RUN, *options, "-o", "out.csv", "--model", "m.cqrf")
    assert re.search(message, said), said
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


def test_files_are_not_replaced_unless_told_to(table):
    call(*RUN, "-o", "out.csv", "--model", "m.cqrf")
    assert refused(*RUN, "-o", "out.csv") == "out.csv exists; --force replaces it."
    assert refused(*RUN, "--model", "m.cqrf") == "m.cqrf exists; --force replaces it."
    assert "is an input" in refused(*RUN, "-o", "data.csv", "--force")
    assert "must end in .cqrf" in refused(*RUN, "--model", "m.txt")
    assert "must end in one of .csv" in refused(*RUN, "-o", "out.doc")
    call(*RUN, "-o", "out.csv", "--model", "m.cqrf", "--force")


# info


def test_info_describes_a_treatment_forest(table):
    call(*RUN, "--control", "placebo", "--model", "m.cqrf")
    info = json.loads(call("info", "m.cqrf", "--json").stdout)
    forest = CensoredTreatmentForest.load("m.cqrf")
    settings = {name: x for name, x in forest.get_params().items() if name != "nuisance_forest"}
    assert info["settings"] == settings
    assert (info["rows"], info["events"]) == (N, int(table["status"].sum()))
    assert (info["trees"], info["nuisance_trees"]) == (16, 500)
    assert [arm["name"] for arm in info["arms"]] == ["placebo", "drug"]
    for arm in info["arms"]:
        inside = table[table["arm"] == arm["name"]]
        assert (arm["rows"], arm["events"]) == (len(inside), inside["status"].sum())
    assert not info["propensity_known"]
    importance = forest.model_.effect.forest.importance
    np.testing.assert_allclose(
        [column["importance"] for column in info["columns"]], importance / importance.sum()
    )
    shown = call("info", "m.cqrf").stdout
    drug = info["arms"][1]
    assert f"of drug ({drug['rows']} rows, {drug['events']} events) against placebo" in shown
    assert "propensity estimated" in shown
    assert "curves from forests of 500 trees each; ridge Cox as working model" in shown
    assert "Settings n_estimators=16, n_jobs=1, random_state=0\n" in shown
    call(*RUN, "--propensity", ".5", "--model", "known.cqrf")
    assert "propensity known" in call("info", "known.cqrf").stdout


def test_info_knows_the_defaults_of_a_treatment_forest():
    params = CensoredTreatmentForest().get_params()
    assert params == TREATMENT_DEFAULTS | {"nuisance_forest": None}


def test_info_of_a_treatment_forest_imports_nothing_heavy(table):
    call(*RUN, "--model", "m.cqrf")
    program = (
        "import sys; sys.argv = ['cqrf', 'info', 'm.cqrf']\n"
        "from cqrf.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print(*(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "importance" in done.stdout
    assert done.stderr.split() == []


def test_info_refuses_a_damaged_treatment_forest(table):
    call(*RUN, "--model", "m.cqrf")
    with open("m.cqrf", "rb") as file:
        content = bytearray(file.read())
    content[len(content) // 2] ^= 1
    with open("bad.cqrf", "wb") as file:
        file.write(content)
    assert refused("info", "bad.cqrf") == "bad.cqrf: is damaged: its checksum is another."


def test_other_commands_say_what_a_treatment_forest_is(table):
    call(*RUN, "--model", "m.cqrf")
    for command in (["predict", "m.cqrf", "data.csv"], ["evaluate", "m.cqrf"]):
        assert "m.cqrf: holds a treatment forest, not a forest" in refused(*command)
