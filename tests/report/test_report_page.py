"""The page: whole, small, without network, and hostile text stays text."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest
from cqrf.report import write_report
from cqrf.report.page import write_json

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    '"onload="alert(1)',
    "<!--<script>",
    "$style ${title} \u2028\u2029 \x00 \ud800",
    "😀 مرحبا שלום",
)


class Reader(HTMLParser):
    """Tags, attributes and the text of each script."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.scripts, self.inside = [], [], [], None

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.inside = tag
        if tag in ("script", "style"):
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside in ("script", "style"):
            self.scripts[-1] += data


def read(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    style, content, script = reader.scripts
    return reader, style, json.loads(content), script


@pytest.fixture(scope="module")
def page(forest, pbc, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert write_report(forest, pbc.X, pbc.y, path, source="pbc.csv") == path
    return path


def test_the_page_is_small(page):
    assert 50_000 < page.stat().st_size < 1_000_000
    assert [each.name for each in page.parent.iterdir()] == ["report.html"]


def test_nothing_refers_to_the_network(page):
    # The hashes of the policy are in base64, which may have two slashes.
    text = re.sub(r"'sha256-[^']+'", "", page.read_text(encoding="utf-8"))
    assert not re.search(r"https?:|//[a-z]|@import|\burl\((?!#)", text, re.IGNORECASE)
    reader, *_ = read(page)
    links = [value for name, value in reader.attributes if name in ("src", "href")]
    assert all(link.startswith("#") or link == "data:," for link in links)
    assert "fetch(" not in text
    assert "XMLHttpRequest" not in text


def test_the_policy_names_the_script_and_the_style(page):
    reader, style, _, script = read(page)
    policy = dict(reader.attributes)["content"]
    (policy,) = [value for _, value in reader.attributes if value and "default-src" in value]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for kind, text in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy


def test_scripts_write_text_only(page):
    *_, script = read(page)
    for way in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function("):
        assert way not in script


def test_every_id_that_the_script_asks_for_is_there(page):
    reader, *_, script = read(page)
    ids = {value for name, value in reader.attributes if name == "id"}
    asked = re.findall(r'(?:byId|getElementById|fillTable|fillList)\("(\w+)"', script)
    assert len(asked) > 15
    assert set(asked) <= ids


def test_hostile_text_stays_text(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.uniform(size=60) for name in HOSTILE[:4]})
    X[HOSTILE[5]] = rng.choice(HOSTILE[:2], 60)
    y = np.exp(X[HOSTILE[0]].to_numpy() + rng.normal(size=60) / 5)
    forest = CensoredQuantileForest(n_estimators=10, random_state=0).fit(X, y)
    path = tmp_path / "report.html"
    for title in HOSTILE:
        ids = [HOSTILE[i % len(HOSTILE)] for i in range(60)]
        write_report(forest, X, y, path, title=title, ids=ids, source=title)
        reader, _, content, _ = read(path)
        assert reader.tags.count("script") == 2
        assert "img" not in reader.tags
        assert not any(name.startswith("on") for name, _ in reader.attributes)
        assert content["title"] == content["source"] == title
        assert [name for name, *_ in content["data"]["columns"]] == [*HOSTILE[:4], HOSTILE[5]]
        assert [row[0] for row in content["rows"]["rows"]] == ids


def test_json_holds_nothing_that_a_parser_takes_for_markup():
    text = write_json({"a": "".join(HOSTILE)})
    assert not re.search("[<>&\u2028\u2029]", text)
    assert text.isascii()
    assert json.loads(text) == {"a": "".join(HOSTILE)}


def test_importing_the_report_loads_nothing_heavy():
    program = "import sys, cqrf.report; print({'numba', 'sklearn', 'numpy'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "set()"


def test_json_has_no_nan():
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json([float("nan")])


def test_a_report_that_fails_leaves_what_was_there(forest, pbc, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("before")
    with pytest.raises(ValueError, match="ids"):
        write_report(forest, pbc.X, pbc.y, path, ids=[1])
    assert path.read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1
