"""The documents: code of the README and of the pages runs, and shows what it prints."""

import importlib.util
import re
from pathlib import Path

import matplotlib as mpl
import pytest

mpl.use("Agg")
from matplotlib import pyplot as plt

from cqrf import CensoredQuantileForest
from support.pages import says_the_same

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def load_script(name):
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.mark.slow
def test_the_recorded_session_is_what_the_commands_say():
    recorder = load_script("record_session")
    recorded = (DOCS / "how_to" / "session.svg").read_text(encoding="utf-8")
    again = recorder.draw(recorder.run_session())
    seconds, size = r"in \d+\.\d s", r"html \(\d+ kB\)"
    for changing in (seconds, size):
        again, recorded = (re.sub(changing, "", text) for text in (again, recorded))
    assert says_the_same(again, recorded)


def test_the_code_of_the_readme_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    names: dict = {}
    for block in blocks:
        exec(block, names)  # our own text
    assert isinstance(names["forest"], CensoredQuantileForest)


def list_sources():
    """Pages of the manual; what a build writes is not among them."""
    written = {"_build", "gallery", "generated", "measurements"}
    pages = (path.relative_to(DOCS) for path in sorted(DOCS.rglob("*.md")))
    return [page.as_posix() for page in pages if not written & set(page.parts)]


def list_pages():
    """Pages of the manual that have code."""
    return [page for page in list_sources() if "```python\n" in (DOCS / page).read_text()]


@pytest.mark.filterwarnings("ignore::cqrf.UnidentifiedQuantileWarning")
@pytest.mark.parametrize("page", list_pages())
def test_the_code_of_a_page_runs_and_shows_what_it_says(page, tmp_path, monkeypatch):
    text = (DOCS / page).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    again = load_script("run_pages").run_page(text)
    assert says_the_same(again, text), f"run docs/run_pages.py on this page:\n{again}"
    drawn = {path.name for path in tmp_path.glob("*.png")}
    assert drawn <= set(re.findall(r"!\[[^]]*\]\((\w+\.png)\)", text)), "drawn, but not shown"
    for picture in drawn:
        assert (tmp_path / picture).stat().st_size > 15_000
        assert (DOCS / page).with_name(picture).exists()
    plt.close("all")


def test_a_page_that_shows_something_else_is_noticed():
    page = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"
    again = load_script("run_pages").run_page(page)
    assert again == page.replace("3", "2")
    assert not says_the_same(again, page)


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("418 rows, p=0.221", "418 rows, p=0.222", True),
        ("418 rows, p=0.221", "417 rows, p=0.221", False),
        ("p=0.221", "p=0.231", False),
        ("[12.50, -3.1]", "[12.41,  -3.1]", True),
        ("[12.5, -3.1]", "[12.5, 3.1]", False),
        ("0.12 days", "0.12 years", False),
        ("0.1 0.2", "0.1", False),
        ("12", "12.1", False),
    ],
)
def test_what_rounding_may_change_on_a_page(text, other, same):
    assert says_the_same(text, other) is same


def test_whole_numbers_may_be_rounded_where_that_is_said():
    assert says_the_same("-54 (-352 to 297)", "-55  (-352 to 298)", most=1)
    assert not says_the_same("-54", "-56", most=1)
    assert not says_the_same("54 days", "54 years", most=1)


LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_of_a_document_lead_to_files(name):
    links = LINK.findall((ROOT / name).read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_links_of_the_manual_lead_to_files_in_the_checkout():
    written = DOCS / "gallery" / "index.rst"  # by the build
    broken = []
    for page in list_sources():
        for link in LINK.findall((DOCS / page).read_text(encoding="utf-8")):
            target = (DOCS / page).parent / link
            if not target.exists() and target.resolve() != written:
                broken.append(f"{page}: {link}")
    assert broken == []


def test_every_how_to_page_is_in_the_table_of_the_index():
    index = (DOCS / "how_to" / "index.md").read_text(encoding="utf-8")
    pages = {path.name for path in (DOCS / "how_to").glob("*.md")} - {"index.md"}
    assert {link for link in LINK.findall(index) if "/" not in link} == pages


def test_every_example_asks_a_question():
    examples = sorted((DOCS / "examples").glob("plot_*.py"))
    assert len(examples) >= 12
    titles = [path.read_text(encoding="utf-8").split("\n")[1] for path in examples]
    assert [title for title in titles if not title.endswith("?")] == []


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
