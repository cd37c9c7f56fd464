"""axe-core in the browser: no page has a fault that keeps people from using it.

axe-core looks for what WCAG 2.2 asks at levels A and AA: names of controls and charts, contrast,
headings, landmarks, tables, keyboard. The pages of reports and server have no finding at all. Of
the manual, whose theme is not ours, findings that axe-core calls serious or critical count.
"""

import json

import numpy as np
import pytest

from cqrf import CensoredQuantileForest, interval
from cqrf.datasets import load_mgus2, load_pbc
from cqrf.effects import CensoredTreatmentForest
from cqrf.report import report_effects, write_report
from cqrf.serve.app import make_app
from cqrf.serve.data_rows import read_data_rows
from cqrf.serve.effect_view import make_effect_view
from cqrf.serve.model_view import make_view
from support.server import running

WIDTHS = (1280, 360)
SCHEMES = ("light", "dark")
KINDS = ("times", "causes", "intervals", "effects")
MANUAL_PAGES = (
    "index.html",
    "api/generated/cqrf.CensoredQuantileForest.html",
    "gallery/plot_01_survival_curves.html",
)
GRAVE = {"serious", "critical"}
READY = "Number(document.body.dataset.ready || 0)"


def name_rows(n_rows):
    return [f"p{i}" for i in range(n_rows)]


def make_times():
    table = load_pbc(as_frame=True)
    forest = CensoredQuantileForest(n_estimators=40, bag_size=2, random_state=0)
    return forest.fit(table.X, table.y), table.X, table.y


def make_causes():
    table = load_mgus2(as_frame=True)
    X, y = table.X.head(400), table.y[:400]
    return CensoredQuantileForest(n_estimators=40, random_state=0).fit(X, y), X, y


def make_intervals():
    """Times that are known up to the year."""
    table = load_pbc(as_frame=True)
    X, years = table.X.head(300), table.y["time"][:300] // 365
    y = interval(years, np.where(table.y["event"][:300], years + 1, np.inf))
    return CensoredQuantileForest(n_estimators=40, random_state=0).fit(X, y), X, y


def make_effects():
    table = load_pbc(as_frame=True)
    randomised = table.X["trt"].notna().to_numpy()
    X, y = table.X[randomised].drop(columns="trt"), table.y[randomised]
    arm = np.where(table.X["trt"][randomised] == 1, "drug", "placebo")
    nuisance = CensoredQuantileForest(n_estimators=80)
    forest = CensoredTreatmentForest(n_estimators=40, nuisance_forest=nuisance, random_state=0)
    return forest.fit(X, y, arm, control="placebo"), X, y


@pytest.fixture(scope="module")
def fitted():
    """A forest of each kind, with its table."""
    return {
        "times": make_times(),
        "causes": make_causes(),
        "intervals": make_intervals(),
        "effects": make_effects(),
    }


@pytest.fixture(scope="module")
def reports(fitted, tmp_path_factory):
    """Path of a report on each kind of forest."""
    folder = tmp_path_factory.mktemp("accessibility")
    paths = {kind: folder / f"{kind}.html" for kind in KINDS}
    for kind in ("times", "causes", "intervals"):
        forest, X, y = fitted[kind]
        write_report(forest, X, y, paths[kind], title=kind, source="table.csv")
    report_effects(fitted["effects"][0], paths["effects"], title="effects", source="table.csv")
    return paths


@pytest.fixture(scope="module", params=KINDS)
def address(request, fitted):
    """Address of a server of each kind of forest."""
    forest, X, y = fitted[request.param]
    make = make_effect_view if request.param == "effects" else make_view
    data = read_data_rows(forest, X, y, name_rows(len(X)), "table.csv")
    with running(make_app(make(forest, "m.cqrf", data))) as found:
        yield found


def find_faults(browser, axe):
    """What axe-core finds in the page that is open: impact, rule, and the first element."""
    browser.run(axe + "; 0")
    found = json.loads(
        browser.run("axe.run({resultTypes: ['violations']}).then(r => JSON.stringify(r))")
    )
    assert len(found["passes"]) > 10
    return [
        (each["impact"], each["id"], node["html"][:200], node["failureSummary"])
        for each in found["violations"]
        for node in each["nodes"]
    ]


def open_details(browser):
    """Unfold everything that can be unfolded."""
    browser.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    browser.settle()


def test_faults_are_found(browser, axe, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><html><head><title>t</title></head><body><main><h1>t</h1>"
        '<p style="color: #aaa">pale</p><input></main></body></html>'
    )
    browser.open(page)
    found = {(impact, rule) for impact, rule, *_ in find_faults(browser, axe)}
    assert {("serious", "html-has-lang"), ("serious", "color-contrast")} <= found
    assert ("critical", "label") in found


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_reports(browser, axe, reports, kind, width, scheme):
    browser.open(reports[kind], width=width, scheme=scheme)
    open_details(browser)
    assert find_faults(browser, axe) == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_the_server(browser, axe, address, width, scheme):
    browser.open(address, width=width, scheme=scheme)
    browser.wait(f"{READY} > 0")
    open_details(browser)
    assert find_faults(browser, axe) == []
    if browser.run("document.getElementById('compare') === null"):
        return
    browser.run("document.getElementById('compare').click()")
    browser.wait(f"{READY} > 1")
    browser.settle()
    assert find_faults(browser, axe) == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_api_of_the_server(browser, axe, address, width, scheme):
    browser.open(f"{address}/docs", width=width, scheme=scheme)
    browser.wait("document.querySelectorAll('section').length > 5")
    assert find_faults(browser, axe) == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", MANUAL_PAGES)
def test_the_manual(browser, axe, site, page, width, scheme):
    browser.open(f"{site}/{page}", width=width, scheme=scheme)
    assert [fault for fault in find_faults(browser, axe) if fault[0] in GRAVE] == []
