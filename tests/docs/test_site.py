"""The built manual in a browser, and its links. ``make docs`` builds it; CI does so before."""

import importlib.util

import pytest

from support.site import ROOT, SITE

PAGES = [
    "index.html",
    "tutorial/index.html",
    "api/generated/cqrf.CensoredQuantileForest.html",
    "gallery/index.html",
    "gallery/plot_01_survival_curves.html",
    "background/method.html",
]


@pytest.fixture(scope="module")
def checker():
    path = ROOT / "docs" / "check_links.py"
    spec = importlib.util.spec_from_file_location("check_links", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def list_complaints(browser):
    """What the console says, but for the log of the theme."""
    return [text for text in browser.complaints() if "[PST]: " not in text]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_without_complaint(browser, site, page, width, scheme):
    browser.open(f"{site}/{page}", width=width, scheme=scheme)
    assert list_complaints(browser) == []
    assert browser.run("document.documentElement.dataset.theme") == scheme
    assert browser.run("document.documentElement.scrollWidth") <= width
    title = "document.querySelector('main h1')"
    assert browser.run(f"{title}.scrollWidth - {title}.clientWidth") <= 1, "the title is cut off"
    pictures = "[...document.querySelectorAll('main img')]"
    browser.run(f"{pictures}.forEach(image => image.loading = 'eager')")
    browser.wait(f"{pictures}.every(image => image.complete)")
    assert browser.run(f"{pictures}.filter(image => !image.naturalWidth).map(i => i.src)") == []


def test_the_search_finds_a_page(browser, site):
    browser.open(f"{site}/search.html?q=left+truncation")
    results = "[...document.querySelectorAll('#search-results li a')]"
    browser.wait(f"{results}.length > 0")
    assert any("delayed_entry" in link for link in browser.run(f"{results}.map(a => a.href)"))
    assert list_complaints(browser) == []


def test_formulas_are_drawn(browser, site):
    browser.open(f"{site}/background/method.html")
    heights = "[...document.querySelectorAll('.formula math')].map(f => f.clientHeight)"
    found = browser.run(heights)
    assert len(found) > 5
    assert min(found) > 15


def test_links_lead_somewhere(site, checker):
    assert checker.find_broken(SITE) == []


def test_a_broken_link_is_found(checker, tmp_path):
    (tmp_path / "a.html").write_text(
        "<a href='b.html#here'></a><a href='b.html#gone'></a><a href='c.html'></a>"
        "<a href='http://example.org/x'></a><script src='https://example.org/x.js'></script>"
    )
    (tmp_path / "b.html").write_text("<p id='here'></p>")
    found = [line.split(": ", 1)[1] for line in checker.find_broken(tmp_path)]
    assert found == ["b.html#gone", "c.html", "https://example.org/x.js"]
