"""The report on a treatment forest: its numbers are those of the forest, its page opens quietly."""

import base64
import hashlib
import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cqrf import CensoredQuantileForest, censored
from cqrf.cli.app import app
from cqrf.effects import CensoredTreatmentForest
from cqrf.report import report_effects
from cqrf.report.effect_averages import Interval, split_feature
from cqrf.report.effects import build_effects_content
from support.browser import CONTRAST, READABLE, assert_painted

NAME = "<script>window.harmed = 1</script>"
LABEL = '"><img src=x onerror="window.harmed = 1">'
SECTIONS = ["arms", "averages", "subgroups", "ranking", "variation", "assumptions", "about"]


@pytest.fixture(scope="module")
def content(treatment_forest):
    return build_effects_content(treatment_forest, title="Trial", source="pbc.csv")


@pytest.fixture(scope="module")
def page(treatment_forest, tmp_path_factory):
    path = tmp_path_factory.mktemp("effects") / "effects.html"
    assert report_effects(treatment_forest, path, title="Trial", source="pbc.csv") == path
    return path


def read_numbers(text):
    """Numbers of a text such as "−81 (−297 to +135)"."""
    plain = text.replace("\N{MINUS SIGN}", "-").replace(",", "")
    return [float(each) for each in re.findall(r"[-+]?\d+(?:\.\d+)?", plain)]


def assert_shown(texts, effect, factor=1.0):
    """The text has the effect and its interval to two digits of half the interval's width."""
    expected = factor * np.array([effect.estimate, effect.lower, effect.upper], dtype=np.float64)
    step = 10.0 ** (np.floor(np.log10((expected[2] - expected[1]) / 2)) - 1)
    np.testing.assert_allclose(read_numbers(" ".join(texts)), expected, atol=max(0.5 * step, 1e-9))


def test_averages_are_those_of_the_forest(content, treatment_forest):
    rows = content["averages"]["rows"]
    horizon = treatment_forest.model_.follow_up
    times = [float(re.search(r"at ([\d,]+)", row[0])[1].replace(",", "")) for row in rows[1:-2]]
    assert len(times) >= 2
    assert max(times) <= horizon
    assert_shown(rows[0][1:], treatment_forest.ate())
    for row, time in zip(rows[1:-2], times, strict=True):
        assert row[0].startswith("Without death at ")
        assert_shown(row[1:], treatment_forest.ate("survival", times=time), 100)
    assert rows[-2][0] == "Median time"
    assert_shown(rows[-2][1:], treatment_forest.ate("quantile"))
    assert rows[-1][0].endswith("overlap weights")
    assert_shown(rows[-1][1:], treatment_forest.ate(population="overlap"))


def test_the_average_curves_have_the_average_effects(content, treatment_forest):
    control, treatment = content["averages"]["curves"]
    assert (control["name"], treatment["name"]) == ("placebo", "drug")
    times = treatment_forest.model_.grid.times[[20, 60, 90]]
    differences = []
    for time in times:
        at = [np.searchsorted(curve["times"], time + 1e-9) - 1 for curve in (control, treatment)]
        differences.append(treatment["values"][at[1]] - control["values"][at[0]])
    expected = treatment_forest.ate("survival", times=times).estimate
    np.testing.assert_allclose(differences, expected, atol=0.02)  # curves are made to fall
    for curve in (control, treatment):
        assert np.all(np.diff(curve["values"]) <= 0)
        assert all(
            low <= value <= high
            for low, value, high in zip(
                curve["lower"], curve["values"], curve["upper"], strict=True
            )
        )


def test_subgroups_have_the_average_effects_of_their_rows(content, treatment_forest, trial):
    X = trial[0]
    subgroups = content["subgroups"]
    assert_shown([subgroups["all"]["label"]], treatment_forest.ate())
    assert len(subgroups["groups"]) == 4
    n_checked = 0
    for group in subgroups["groups"]:
        values = X[group["name"]]
        for line in group["lines"]:
            if line["name"] == "missing":
                rows = values.isna().to_numpy()
            elif line["name"].startswith("up to"):
                rows = values.rank(method="min").to_numpy() <= line["rows"]
            else:
                continue
            assert rows.sum() == line["rows"]
            assert_shown([line["label"]], treatment_forest.ate(subset=rows))
            n_checked += 1
    assert n_checked >= 4


def test_a_category_is_split_by_its_levels(treatment_forest, trial):
    X = trial[0]
    found = split_feature(treatment_forest, list(X.columns).index("sex"))
    assert [group.name for group in found] == sorted(X["sex"].unique())
    ranks = treatment_forest.model_.effect.ranks
    for group in found:
        np.testing.assert_array_equal(group.rows[ranks], (X["sex"] == group.name).to_numpy())


def test_numbers_are_split_near_the_median(treatment_forest, trial):
    X = trial[0]
    for name in ("age", "chol", "platelet"):
        low, high, *_ = split_feature(treatment_forest, list(X.columns).index(name))
        assert abs(low.rows.sum() - high.rows.sum()) <= 2
        edge = float(low.name.removeprefix("up to ").replace(",", ""))
        near = 1e-3 * edge
        assert abs((X[name] <= edge - near).sum() - low.rows.sum()) <= 2


def test_the_ranking_is_that_of_the_forest(content, treatment_forest):
    ranking, rate = content["ranking"], treatment_forest.rate()
    found = re.search(r"is (\S+) \(95\xa0% interval: ([^)]*)\)", ranking["text"][1])
    assert_shown(found.groups(), rate)
    curve = treatment_forest.toc(shares=ranking["shares"])
    np.testing.assert_allclose(ranking["values"], curve.estimate, rtol=1e-3, atol=1e-6)
    width = np.array(ranking["upper"]) - np.array(ranking["lower"])
    np.testing.assert_allclose(width, 2 * 1.96 * curve.standard_error, rtol=2e-3, atol=1e-6)
    verdict = (
        "lies above 0" if rate.lower > 0 else "lies below 0" if rate.upper < 0 else "includes 0"
    )
    assert verdict in ranking["text"][1]


def test_effects_of_rows_are_out_of_bag_or_of_a_table(content, treatment_forest, trial):
    X = trial[0]
    own = build_effects_content(treatment_forest, X, title="a")["variation"]
    assert own == content["variation"]
    assert "training rows, out of bag" in own["text"][0]
    assert sum(own["histogram"]["counts"]) == len(X)
    assert own["average"] == pytest.approx(treatment_forest.effect_oob().mean(), rel=1e-3)
    other = build_effects_content(treatment_forest, X.head(50), title="a")["variation"]
    assert "50 rows of the table" in other["text"][0]
    assert other["average"] == pytest.approx(treatment_forest.effect(X.head(50)).mean(), rel=1e-3)


def test_the_design_decides_what_is_said(content, fit_treatment):
    assert content["assumed"].startswith("Treatment was not assigned by design")
    assert content["arms"]["histogram"] is not None
    known = build_effects_content(fit_treatment(propensity=0.5), title="a")
    assert known["assumed"].startswith("Treatment was assigned by design")
    assert known["arms"]["histogram"] is None
    assert "is 0.5 for all rows (known by design)" in known["arms"]["text"][0]
    assert not any("overlap weights" in row[0] for row in known["averages"]["rows"])
    text = json.dumps(content)
    assert "would have" not in text
    assert not re.search(r"(?<!split_)causes", text)


def test_overlap_counts_every_row(content, treatment_forest, trial):
    control, treatment = content["arms"]["histogram"]["counts"]
    arm = trial[2]
    assert sum(treatment) == (arm == "drug").sum()
    assert sum(control) == (arm == "placebo").sum()
    overlap = treatment_forest.overlap()
    expected = ((overlap.propensity >= 0.5) & overlap.treated).sum()
    assert sum(treatment[10:]) == expected


def test_intervals_as_text():
    assert Interval(-81.2, -297.3, 134.9).format() == ("−81", "−297 to +135")
    assert Interval(0.049, -0.0201, 0.1181).format(100.0) == ("+4.9", "−2.0 to +11.8")
    assert Interval(0.0, -0.5, 0.5).format() == ("0.00", "−0.50 to +0.50")
    assert Interval(np.inf, np.nan, np.nan).format() == ("not known", "")
    assert Interval(3.0, np.nan, np.nan).format() == ("3", "not known")


def test_another_forest_is_refused(forest, tmp_path):
    with pytest.raises(ValueError, match=r"found CensoredQuantileForest: .* write_report"):
        report_effects(forest, tmp_path / "effects.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 400, 1200, 1500])
def test_the_page_opens_without_complaint(browser, page, width, scheme, tmp_path):
    browser.open(page, width=width, scheme=scheme)
    assert browser.complaints() == []
    ids = browser.run("[...document.querySelectorAll('section')].map(s => s.id)")
    assert ids == SECTIONS
    assert browser.run("document.querySelectorAll('.chart svg').length") == 4
    assert browser.run("document.documentElement.scrollWidth") <= width
    room = browser.run(
        "[...document.querySelectorAll('table')].map(table => [table.closest('section'), table]"
        ".map(e => e.getBoundingClientRect().right)).map(([end, mine]) => end - mine)"
    )
    assert min(room) > 10
    for selector in (".arm-label.treatment", ".arm-label.control", "#forest .value", "#assumed"):
        assert browser.run(CONTRAST % selector) >= READABLE
    text = browser.run("document.body.innerText + ' ' + document.querySelector('main').innerHTML")
    for word in ("NaN", "undefined", "Infinity", "null", "None", "[object"):
        assert word not in text
    picture = tmp_path / "page.png"
    browser.photograph(picture)
    assert_painted(browser, picture, ".chart svg", 4)


def test_marks_of_subgroups_stand_on_one_scale(browser, page, content):
    subgroups = content["subgroups"]
    lines = [line for group in subgroups["groups"] for line in group["lines"]]
    lines.append(subgroups["all"])
    values = [line["effect"][0] for line in lines]
    for width in (360, 1200, 1500):
        browser.open(page, width=width)
        places = browser.run(
            "[...document.querySelectorAll('#forest .mark')].map(m => m.getBoundingClientRect())"
            ".map(b => (b.left + b.right) / 2)"
        )
        slope, start = np.polyfit(values, places, 1)
        assert slope > 0
        np.testing.assert_allclose(places, start + slope * np.array(values), atol=1.0)


def test_the_page_loads_nothing(page):
    text = page.read_text(encoding="utf-8")
    assert page.stat().st_size < 300_000
    assert not re.search(r"https?:|//[a-z]|@import|\burl\((?!#)", text, re.IGNORECASE)
    script = re.findall(r"<script>(.*?)</script>", text, re.S)[-1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    asked = set(re.findall(r'(?:byId|fillTable|fillList)\("(\w+)"', script))
    assert asked <= set(re.findall(r' id="(\w+)"', text))


def test_hostile_names_stay_text(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({NAME: rng.uniform(size=120), "a" * 300: rng.uniform(size=120)})
    X["مرحبا"] = rng.choice([LABEL, "😀"], 120)
    arm = np.where(rng.uniform(size=120) < 0.5, LABEL + "b" * 200, NAME)
    time = np.exp(2 * X[NAME].to_numpy() + rng.normal(size=120) / 5)
    nuisance = CensoredQuantileForest(n_estimators=80)
    forest = CensoredTreatmentForest(
        n_estimators=40, nuisance_forest=nuisance, time_unit=NAME, random_state=0
    )
    forest.fit(X, censored(time, rng.uniform(size=120) < 0.7), arm)
    path = report_effects(forest, tmp_path / "page.html", title=LABEL + "c" * 300, source=NAME)
    for width in (360, 1200):
        browser.open(path, width=width)
        assert browser.complaints() == []
        assert browser.run("window.harmed === undefined")
        assert browser.run("document.documentElement.scrollWidth") <= width


def test_the_command_writes_it(treatment_forest, forest, trial, tmp_path):
    notes = {"source": "trial.csv"}
    treatment_forest.save(tmp_path / "e.cqrf", notes=notes)
    treatment_forest.save(tmp_path / "named.cqrf", notes={**notes, "treatment": "therapy"})
    forest.save(tmp_path / "m.cqrf")
    trial[0].head(40).to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "page.html"
    run = CliRunner().invoke(app, ["report", str(tmp_path / "e.cqrf"), "-o", str(out)])
    assert run.exit_code == 0, run.output
    page = out.read_text(encoding="utf-8")
    assert "Effects of drug against placebo" in page
    assert "trial.csv" in page
    again = ["report", str(tmp_path / "named.cqrf"), "-o", str(out), "--force"]
    assert CliRunner().invoke(app, again).exit_code == 0
    assert "Effects of therapy: drug against placebo" in out.read_text(encoding="utf-8")
    command = ["report", str(tmp_path / "e.cqrf"), str(tmp_path / "new.csv"), "-o", str(out)]
    run = CliRunner().invoke(app, [*command, "--force", "--title", "Forty"])
    assert run.exit_code == 0, run.output
    page = out.read_text(encoding="utf-8")
    assert "<title>Forty</title>" in page
    assert "40 rows of the table" in page
    other = tmp_path / "other.html"
    run = CliRunner().invoke(app, ["report", str(tmp_path / "m.cqrf"), "-o", str(other)])
    assert run.exit_code == 2
    assert "DATA is missing" in run.output
    assert not other.exists()
