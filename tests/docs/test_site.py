"""The built manual in a browser, and its links. ``make docs`` builds it; CI does so before."""

import importlib.util

import pytest

from support.browser import CONTRAST, READABLE
from support.site import ROOT, SITE

PAGES = [
    "index.html",
    "tutorial/index.html",
    "api/generated/cqrf.CensoredQuantileForest.html",
    "gallery/index.html",
    "gallery/plot_01_survival_curves.html",
    "background/method.html",
]

# Pages of each kind, on a phone: classes, functions, lists of names, tables, pictures, the index.
NARROW = [
    *PAGES,
    "api/index.html",
    "api/forest.html",
    "api/datasets.html",
    "api/metrics.html",
    "api/generated/cqrf.StepCurves.html",
    "api/generated/cqrf.calibration.Calibration.html",
    "api/generated/cqrf.effects.CensoredTreatmentForest.html",
    "api/generated/cqrf.dask.DaskCensoredQuantileForest.html",
    "api/generated/cqrf.tune.html",
    "api/generated/cqrf.metrics.censored_quantile_loss.html",
    "api/generated/cqrf.plots.plot_incidence.html",
    "coming_from/lifelines.html",
    "how_to/accuracy.html",
    "how_to/serving.html",
    "genindex.html",
]


def load_script(path):
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def checker():
    return load_script(ROOT / "docs" / "check_links.py")


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


@pytest.mark.parametrize("page", NARROW)
def test_a_phone_shows_all_of_a_page(browser, site, page):
    """The container hides what is too wide, so that the window itself never scrolls sideways."""
    browser.open(f"{site}/{page}", width=360)
    container = "document.querySelector('.bd-article-container')"
    assert browser.run(f"{container}.scrollWidth - {container}.clientWidth") <= 1
    # Tables of numbers may scroll in a box of their own. Those of two columns fit.
    wide = (
        "[...document.querySelectorAll('.pst-scrollable-table-container')].filter(table =>"
        " table.querySelector('tr').children.length === 2"
        " && table.scrollWidth > table.clientWidth + 1).length"
    )
    assert browser.run(wide) == 0
    links = "[...document.querySelectorAll('.prev-next-area a')]"
    assert browser.run(f"{links}.filter(a => a.scrollWidth > a.clientWidth + 1).length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_button_of_an_example_has_the_colours_of_the_theme(browser, site, scheme):
    browser.open(f"{site}/gallery/plot_01_survival_curves.html", width=1200, scheme=scheme)
    buttons = "[...document.querySelectorAll('.sphx-glr-download a')]"
    assert browser.run(f"{buttons}.map(a => a.href.split('.').pop())") == ["py"]
    style = f"getComputedStyle({buttons}[0])"
    surface = "getComputedStyle(document.documentElement).getPropertyValue('--pst-color-surface')"
    probe = (
        "(() => { const box = document.body.appendChild(document.createElement('div'));"
        f" box.style.backgroundColor = {surface};"
        " return getComputedStyle(box).backgroundColor; })()"
    )
    assert browser.run(f"{style}.backgroundImage") == "none"
    assert browser.run(f"{style}.backgroundColor") == browser.run(probe)
    assert browser.run(CONTRAST % ".sphx-glr-download a") >= READABLE


def test_a_picture_of_the_gallery_fills_its_card(browser, site):
    browser.open(f"{site}/gallery/index.html", width=360)
    image = "document.querySelector('.sphx-glr-thumbcontainer img').clientWidth"
    card = "document.querySelector('.sphx-glr-thumbcontainer').clientWidth"
    assert browser.run(f"{image} / {card}") > 0.85
    title = "getComputedStyle(document.querySelector('.sphx-glr-thumbnail-title')).textAlign"
    assert browser.run(title) == "left"


def test_the_search_finds_a_page(browser, site):
    browser.open(f"{site}/search.html?q=left+truncation")
    results = "[...document.querySelectorAll('#search-results li a')]"
    browser.wait(f"{results}.length > 0")
    assert any("delayed_entry" in link for link in browser.run(f"{results}.map(a => a.href)"))
    assert list_complaints(browser) == []


def test_the_search_of_a_page_that_is_a_file_lists_titles(browser, site):
    """Chromium does not let such a page read others, so there are no excerpts."""
    browser.open(SITE / "search.html")
    browser.wait("typeof Search === 'object' && Search._index !== null")
    browser.run("Search.performSearch('left truncation')")
    results = "[...document.querySelectorAll('#search-results li a')]"
    browser.wait(f"{results}.length > 0")
    browser.wait("document.querySelector('.search-summary').innerText.includes('finished')")
    assert any("delayed_entry" in link for link in browser.run(f"{results}.map(a => a.href)"))
    assert list_complaints(browser) == []


def test_long_names_break_where_a_word_ends():
    breaks = load_script(ROOT / "docs" / "_extensions" / "word_breaks.py")
    page = (
        '<h1>PermutationImportance</h1><a href="predict_survival_oob.html">'
        '<span class="pre">predict_survival_oob(X_new)</span></a><p>predict_survival_oob</p>'
        '<span class="pre">score_oob</span>'
    )
    assert breaks.allow_breaks(page) == (
        '<h1>Permutation<wbr>Importance</h1><a href="predict_survival_oob.html">'
        '<span class="pre">predict_<wbr>survival_<wbr>oob(X_new)</span></a>'
        '<p>predict_survival_oob</p><span class="pre">score_oob</span>'
    )


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
        "<a href='b.html#here'></a><a href='b.html#gone'></a><a href='d.html'></a>"
        "<a href='http://example.org/x'></a><script src='https://example.org/x.js'></script>"
    )
    (tmp_path / "b.html").write_text("<p id='here'></p>")
    readme = tmp_path / "_downloads" / "0123"
    readme.mkdir(parents=True)
    (readme / "README.txt").write_text("Gallery")
    (readme / "plot.py").write_text("")
    (tmp_path / "c.html").write_text(
        "<a href='_downloads/0123/README.txt'></a><a href='_downloads/0123/plot.py'></a>"
    )
    found = [line.split(": ", 1)[1] for line in checker.find_broken(tmp_path)]
    broken = ["b.html#gone", "d.html", "https://example.org/x.js", "_downloads/0123/README.txt"]
    assert found == broken
