"""The pictures of the README and of the manual are taken as they are shown."""

import importlib.util
import re
from pathlib import Path

import pytest
from matplotlib.image import imread

ROOT = Path(__file__).resolve().parents[2]
SHOWN = ROOT / "docs" / "how_to"


def load_script():
    path = ROOT / "docs" / "take_screenshots.py"
    spec = importlib.util.spec_from_file_location("take_screenshots", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.mark.slow
def test_screenshots_are_taken_as_they_are_shown(browser, tmp_path):
    script = load_script()
    script.take_pictures(browser, tmp_path)
    taken = {path.name for path in tmp_path.glob("*.png")}
    expected = {"report.png", "report_phone.png", "serve.png", "serve_phone.png"}
    assert taken == expected | ({"manual.png"} if script.LANDING.exists() else set())
    for name in taken:
        now, shown = imread(tmp_path / name), imread(SHOWN / name)
        assert now.shape[:2] == shown.shape[:2], name
        # Fonts and antialiasing differ between machines; what is on the page does not.
        assert abs(now[..., :3].mean() - shown[..., :3].mean()) < 0.05, name


def test_the_readme_shows_screenshots_that_the_script_takes():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"!\[[^]]*\]\(docs/how_to/(\w+\.png)\)", text))
    script = (ROOT / "docs" / "take_screenshots.py").read_text(encoding="utf-8")
    assert shown
    assert shown <= set(re.findall(r'pictures / "(\w+\.png)"', script))
