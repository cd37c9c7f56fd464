"""The doors to the outside: the demo, the pictures, the README's words and code."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
from matplotlib import pyplot as plt

from cqrf import CensoredQuantileForest, censored
from cqrf.calibration import assess_calibration
from cqrf.datasets import make_aft
from cqrf.plots import plot_calibration, plot_quantile_fan, plot_survival

ROOT = Path(__file__).resolve().parents[1]


def test_the_demo_prints_a_table_and_leaves_a_picture(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "cqrf.demo"], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert "418 patients, 161 deaths, 61% censored" in run.stdout
    assert len(re.findall(r"(died|alive) at", run.stdout)) == 8
    skill = re.search(r"quantile loss (\d+)% below", run.stdout)
    assert skill is not None
    assert int(skill.group(1)) > 10
    (picture,) = tmp_path.glob("*.png")
    assert str(picture) in run.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000


def test_the_code_of_the_readme_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    names: dict = {}
    for block in blocks:
        exec(block, names)  # our own text
    assert isinstance(names["forest"], CensoredQuantileForest)


@pytest.mark.parametrize("page", ["bounds", "calibration", "how_good", "how_sure", "tuning"])
def test_the_code_of_a_page_runs_and_draws_its_picture(page, tmp_path, monkeypatch):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    (picture,) = re.findall(r"!\[.*\]\((.*\.png)\)", text)
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    monkeypatch.chdir(tmp_path)
    exec(code, {})  # our own text
    assert (tmp_path / picture).stat().st_size > 15_000
    assert (ROOT / "docs" / picture).exists()
    plt.close("all")


DOCUMENTED = ["tuning", "calibration", "conformal", "curves", "estimator", "quantiles", "target"]
DOCUMENTED += ["datasets.generators", "datasets.tables"]
DOCUMENTED += [f"metrics.{name}" for name in ("concordance", "quantile", "scorers", "survival")]


@pytest.mark.parametrize("module", DOCUMENTED)
def test_examples_in_docstrings(module):
    found = doctest.testmod(importlib.import_module(f"cqrf.{module}"))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.fixture(scope="module")
def fitted():
    data = make_aft(200, 3, censoring_rate=0.3, random_state=0)
    return CensoredQuantileForest(n_estimators=30, random_state=0).fit(data.X, data.y), data.X


def test_survival_plot_marks_quantiles_and_where_sight_ends(fitted):
    forest, X = fitted
    ax = plot_survival(forest, X[:3], quantiles=[0.25, 0.5], labels=["a", "b", "c"])
    marks = [line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata()) == 2]
    np.testing.assert_array_equal(
        [line.get_xdata() for line in marks],
        forest.predict(X[:3], [0.25, 0.5], unidentified="nan"),
    )
    open_ends = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    hidden = sum(curve.values[-1] > 0 for curve in forest.predict_survival(X[:3]))
    assert len(open_ends) == hidden > 0
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c"]
    plt.close("all")


def test_survival_plot_of_left_censored_and_of_flat_curves():
    data = make_aft(200, 3, censoring_rate=0.5, random_state=0)
    mirrored = censored(-data.y["time"], data.y["event"])
    left = CensoredQuantileForest(n_estimators=30, random_state=0, censoring="left")
    ax = plot_survival(left.fit(data.X, mirrored), data.X[:3])
    assert [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    once = censored(np.arange(1.0, 201.0), np.arange(200) == 0)
    plot_survival(CensoredQuantileForest(n_estimators=1).fit(data.X, once), data.X[:2])
    plt.close("all")


def test_calibration_plot_shows_the_curve_its_band_and_the_diagonal(fitted):
    forest, _ = fitted
    calibration = assess_calibration(forest)
    ax = plot_calibration(calibration)
    diagonal, curve = ax.lines
    assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
    np.testing.assert_array_equal(curve.get_ydata(), calibration.observed)
    assert f"{calibration.distance:.3f}" in curve.get_label()
    assert len(ax.collections) == 1
    plt.close("all")


def test_quantile_fan_draws_one_line_a_level_on_the_axes_given(fitted):
    forest, X = fitted
    _, own = plt.subplots()
    ax = plot_quantile_fan(forest, X, 0, quantiles=[0.1, 0.5], ax=own)
    assert ax is own
    assert len(ax.lines) == 2
    order = np.argsort(X[:, 0])
    np.testing.assert_array_equal(
        ax.lines[1].get_ydata(), forest.predict(X[order], 0.5, unidentified="nan")
    )
    plt.close("all")
