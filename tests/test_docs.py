"""The doors to the outside: the demo, the README's words and code."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

mpl.use("Agg")
from matplotlib import pyplot as plt

from cqrf import CensoredQuantileForest

ROOT = Path(__file__).resolve().parents[1]


def test_the_demo_prints_a_table_and_leaves_a_report(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "cqrf.demo"], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert "418 patients, 161 deaths, 61% censored" in run.stdout
    assert len(re.findall(r"(died|alive) at", run.stdout)) == 8
    skill = re.search(r"quantile loss (\d+)% below", run.stdout)
    assert skill is not None
    assert int(skill.group(1)) > 10
    left = {path.name: path for path in (tmp_path / "demo").iterdir()}
    assert set(left) == {"pbc_survival.png", "pbc.csv", "pbc.cqrf", "pbc_report.html"}
    assert str(left["pbc_survival.png"]) in run.stdout
    assert left["pbc_survival.png"].read_bytes().startswith(b"\x89PNG")
    assert f"The report, for a browser: {left['pbc_report.html']}" in run.stdout
    assert left["pbc_report.html"].stat().st_size > 100_000
    assert CensoredQuantileForest.load(left["pbc.cqrf"]).n_features_in_ == 17
    predict, serve = run.stdout.rstrip().splitlines()[-2:]
    assert "cqrf predict demo/pbc.cqrf" in predict
    assert serve.startswith("Try next: ")
    assert serve.endswith("cqrf serve demo/pbc.cqrf --data demo/pbc.csv --id id")


def test_the_recorded_session_is_what_the_commands_say():
    path = ROOT / "docs" / "record_session.py"
    spec = importlib.util.spec_from_file_location("record_session", path)
    recorder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recorder)
    recorded = (ROOT / "docs" / "session.svg").read_text(encoding="utf-8")
    again = recorder.draw(recorder.run_session())
    seconds, size = r"in \d+\.\d s", r"html \(\d+ kB\)"
    for changing in (seconds, size):
        again, recorded = (re.sub(changing, "", text) for text in (again, recorded))
    assert again == recorded


def test_the_code_of_the_readme_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    names: dict = {}
    for block in blocks:
        exec(block, names)  # our own text
    assert isinstance(names["forest"], CensoredQuantileForest)


def test_the_code_of_the_page_on_scale_runs(tmp_path, monkeypatch):
    text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    exec(code, names)  # our own text
    assert names["lazy"].npartitions == 4
    assert CensoredQuantileForest.load("pbc.cqrf").n_features_in_ == 17


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


DOCUMENTED = [
    "inspection",
    "report",
    "tuning",
    "calibration",
    "conformal",
    "_survival.curves",
    "estimator",
    "_survival.quantiles",
    "_input.target",
]
DOCUMENTED += ["dask.estimator", "datasets.generators", "datasets.tables"]
DOCUMENTED += [f"metrics.{name}" for name in ("concordance", "quantile", "scorers", "survival")]


@pytest.mark.parametrize("module", DOCUMENTED)
def test_examples_in_docstrings(module):
    found = doctest.testmod(importlib.import_module(f"cqrf.{module}"))
    assert found.attempted > 0
    assert found.failed == 0
