"""info: what it prints is true of the loaded forest, and it imports little."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf.cli.info import DEFAULTS
from cqrf.conformal import ConformalForest
from support.commands import call, make_table, refused

HEAVY = ("numba", "llvmlite", "sklearn", "scipy", "rich", "pyarrow", "pandas", "joblib")


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return make_table()


def fit(table, **settings):
    forest = CensoredQuantileForest(**{"n_estimators": 9, "random_state": 0, **settings})
    y = censored(table["days"], table["status"])
    return forest.fit(table[["age", "group"]], y)


def read_info(path):
    return json.loads(call("info", path, "--json").stdout)


def test_the_defaults_are_those_of_the_estimator():
    assert CensoredQuantileForest().get_params() == DEFAULTS


@pytest.mark.parametrize("censoring", ["right", "left"])
def test_everything_is_as_in_the_loaded_forest(table, censoring):
    fit(table, censoring=censoring, max_depth=2, time_unit="days").save("m.cqrf", {"a": "b"})
    forest, info = CensoredQuantileForest.load("m.cqrf"), read_info("m.cqrf")
    model = forest.model_
    assert info["settings"] == forest.get_params()
    assert (info["rows"], info["events"]) == (60, int(table["status"].sum()))
    assert (info["first_time"], info["last_time"]) == (table["days"].min(), table["days"].max())
    assert (info["trees"], info["leaves"]) == (9, len(model.forest.leaf_offsets) - 1)
    assert (info["seed"], info["notes"]) == (model.seed, {"a": "b"})
    assert [column["name"] for column in info["columns"]] == ["age", "group"]
    assert [column["kind"] for column in info["columns"]] == list(model.columns.kinds)
    assert info["columns"][1]["levels"] == ["a", "c", "é"]
    shares = [column["importance"] for column in info["columns"]]
    np.testing.assert_array_equal(shares, forest.feature_importances_)
    shown = call("info", "m.cqrf").stdout
    assert "max_depth=2, time_unit='days'" in shown.replace("censoring='left', ", "")


def test_the_working_model_is_named_with_its_share(table):
    fit(table, working_model=None).save("plain.cqrf")
    assert read_info("plain.cqrf")["working_model"] is None
    assert "no working model: all trees are grown on times" in call("info", "plain.cqrf").stdout
    forest = fit(table, working_model="cox")
    model = forest.model_
    forest.model_ = replace(model, working=model.working._replace(root_share=0.125))
    forest.save("m.cqrf")
    info = read_info("m.cqrf")
    assert info["settings"]["working_model"] == "cox"
    assert info["working_model"] == {"residual_trees": 4, "root_share": 0.125}
    assert 9 - model.residual_trees.n_direct == 4
    shown = call("info", "m.cqrf").stdout
    assert "ridge Cox as working model: 4 of the trees are grown on its residuals" in shown
    assert "its own curve has a share of 12%" in shown


def test_a_file_of_an_older_format_has_no_working_model():
    path = Path(__file__).parents[1] / "data" / "models" / "format_1.cqrf"
    info = read_info(str(path))
    assert info["working_model"] is None
    assert info["settings"]["working_model"] is None


def test_features_without_names_and_trees_without_splits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    forest = CensoredQuantileForest(n_estimators=2).fit(np.zeros((9, 2)), np.arange(9.0))
    forest.save("m.cqrf")
    info = read_info("m.cqrf")
    assert [column["name"] for column in info["columns"]] == ["feature 0", "feature 1"]
    assert [column["importance"] for column in info["columns"]] == [0.0, 0.0]
    assert (info["trees"], info["leaves"]) == (2, 2)


def test_one_of_each_is_written_in_the_singular(table):
    table["group"], table["status"] = "a", np.arange(60) == 7
    fit(table).save("m.cqrf")
    shown = call("info", "m.cqrf").stdout
    assert "60 rows, 1 event, " in shown
    assert "category, 1 level " in shown


def test_columns_are_aligned_also_with_wide_letters(table):
    wide = table.rename(columns={"group": "年齢"})
    y = censored(wide["days"], wide["status"])
    CensoredQuantileForest(n_estimators=2).fit(wide[["age", "年齢"]], y).save("m.cqrf")
    lines = call("info", "m.cqrf").stdout.splitlines()[-3:]
    kinds = {line.split()[0]: line.index(line.split()[1]) for line in lines}
    assert kinds == {"column": 8, "age": 8, "年齢": 6}


def test_a_damaged_file_is_refused(table):
    fit(table).save("m.cqrf")
    with open("m.cqrf", "rb") as file:
        content = bytearray(file.read())
    content[len(content) // 2] ^= 1
    with open("bad.cqrf", "wb") as file:
        file.write(content)
    assert refused("info", "bad.cqrf") == "bad.cqrf: is damaged: its checksum is another."
    with open("text.cqrf", "w") as file:
        file.write("age,days")
    assert refused("info", "text.cqrf") == "text.cqrf: is not a model file of cqrf."


@pytest.mark.parametrize("is_conformal", [False, True])
def test_nothing_heavy_is_imported(table, is_conformal):
    forest = fit(table)
    if is_conformal:
        y = censored(table["days"], table["status"])
        forest = ConformalForest(forest).fit(table[["age", "group"]], y)
    forest.save("m.cqrf")
    program = (
        "import sys; sys.argv = ['cqrf', 'info', 'm.cqrf']\n"
        "from cqrf.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print(*(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "importance" in run.stdout
    assert run.stderr.split() == []


# Sets the title, clears the screen, fakes a line, turns writing around, and is not Unicode.
HOSTILE = "\x1b]0;owned\x07\x1b[2J\nTrees    9\u202e\x9b31m\ud800"


def test_texts_of_a_file_cannot_control_the_terminal(table, tmp_path):
    names = pd.Index([HOSTILE, "group"], dtype=object)  # pandas 3 would refuse the surrogate
    X = table[["age", "group"]].set_axis(names, axis=1)
    forest = CensoredQuantileForest(n_estimators=9, random_state=0)
    forest.fit(X, censored(table["days"], table["status"]))
    forest.save("m.cqrf", notes={"source": HOSTILE})
    for options in ((), ("--json",)):
        printed = call("info", "m.cqrf", *options).stdout
        assert not set(printed) & set("\x1b\x07\u202e\x9b\ud800")
    assert json.loads(printed)["notes"]["source"] == HOSTILE
    lines = call("info", "m.cqrf").stdout.splitlines()
    assert sum(line.startswith("Trees ") for line in lines) == 1
    assert any("\\x1b]0;owned" in line for line in lines)


def test_messages_of_a_file_cannot_control_the_terminal(table, tmp_path):
    table.to_csv("rows.csv", index=False)
    message = refused(
        "fit", "rows.csv", "--time", HOSTILE[:-1], "--event", "status", "-o", "x.cqrf"
    )
    assert "\x1b" not in message
    assert "\\x1b" in message
