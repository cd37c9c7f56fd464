"""The documents: code of the README and of the pages runs, and so do examples in docstrings."""

import doctest
import importlib.util
import inspect
import pkgutil
import re
from pathlib import Path

import matplotlib as mpl
import pytest

mpl.use("Agg")
from matplotlib import pyplot as plt

import cqrf
from cqrf import CensoredQuantileForest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
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


@pytest.mark.parametrize(
    "page",
    [
        "bounds",
        "calibration",
        "effects",
        "how_good",
        "how_sure",
        "interval_censoring",
        "tuning",
        "unknown",
        "working_model",
    ],
)
def test_the_code_of_a_page_runs_and_draws_its_picture(page, tmp_path, monkeypatch):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[.*\]\((.*\.png)\)", text)
    assert pictures
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(code, names)  # our own text
    for picture in pictures:
        assert (tmp_path / picture).stat().st_size > 15_000
        assert (ROOT / "docs" / picture).exists()
    plt.close("all")


def read_source(module: str) -> str:
    return Path(importlib.util.find_spec(module).origin).read_text(encoding="utf-8")


MODULES = [found.name for found in pkgutil.walk_packages(cqrf.__path__, "cqrf.")]
WITH_EXAMPLES = [module for module in MODULES if ">>> " in read_source(module)]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_in_docstrings(module):
    found = doctest.testmod(importlib.import_module(module))
    assert found.attempted == read_source(module).count(">>> ")
    assert found.failed == 0


@pytest.mark.parametrize("package", ["inspection", "metrics", "datasets"])
def test_every_public_function_has_an_example(package):
    public = getattr(cqrf, package)
    functions = {name: getattr(public, name) for name in public.__all__}
    documented = {
        name: function.__doc__
        for name, function in functions.items()
        if inspect.isfunction(function) and "Parameters\n" in function.__doc__
    }
    assert documented
    assert [name for name, text in documented.items() if ">>> " not in text] == []
