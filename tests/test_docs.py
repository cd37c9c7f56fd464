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
DOCS = ROOT / "docs"


@pytest.mark.slow
def test_the_recorded_session_is_what_the_commands_say():
    path = DOCS / "record_session.py"
    spec = importlib.util.spec_from_file_location("record_session", path)
    recorder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recorder)
    recorded = (DOCS / "how_to" / "session.svg").read_text(encoding="utf-8")
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


def list_pages():
    """Pages of the manual that have code; what a build writes is not among them."""
    written = ("_build", "gallery", "generated", "measurements")
    pages = (path.relative_to(DOCS) for path in sorted(DOCS.rglob("*.md")))
    pages = [page for page in pages if not set(written) & set(page.parts)]
    return [page.as_posix() for page in pages if "```python\n" in (DOCS / page).read_text()]


@pytest.mark.parametrize("page", list_pages())
def test_the_code_of_a_page_runs_and_draws_its_pictures(page, tmp_path, monkeypatch):
    text = (DOCS / page).read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, re.S)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for block in code:
        exec(block, names)  # our own text
    drawn = {path.name for path in tmp_path.glob("*.png")}
    assert drawn <= set(re.findall(r"!\[[^]]*\]\((\w+\.png)\)", text)), "drawn, but not shown"
    for picture in drawn:
        assert (tmp_path / picture).stat().st_size > 15_000
        assert (DOCS / page).with_name(picture).exists()
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
