"""Take the pictures of the report, the server's page and the manual: docs/how_to/*.png.

They are report.png, report_phone.png, serve.png, serve_phone.png and, if the manual is built,
manual.png. The commands below run on the PBC table; Chromium opens what they make. Run:
PYTHONPATH=tests python docs/take_screenshots.py
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from support.browser import Browser

DOCS = Path(__file__).resolve().parent
PICTURES = DOCS / "how_to"
LANDING = DOCS / "_build" / "html" / "index.html"
CQRF = [sys.executable, "-c", "from cqrf.cli import main; main()"]
FIT = (
    "fit pbc.csv --time time --event status --event-value 2 --ignore id --bag-size 2 "
    "--unit days --event-name death"
)
REPORT = "report pbc.cqrf pbc.csv --id id -o report.html"
SERVE = "serve pbc.cqrf --data pbc.csv --id id --port 0"
TITLE = "Survival with primary biliary cirrhosis"
PHONE = {"width": 360, "height": 740}
DRAWN = "Number(document.body.dataset.ready || 0)"
MOVE = (
    "(s => { s.value = 8; s.dispatchEvent(new Event('input', {bubbles: true})); })"
    "(document.querySelector('input[type=range][aria-label=\"bili, subject B\"]'))"
)


def photograph_report(browser: Browser, page: Path, pictures: Path) -> None:
    browser.open(page, width=1400, height=1180)
    browser.photograph(pictures / "report.png", full=False)
    browser.open(page, **PHONE)
    browser.click("#table tbody tr:nth-child(6)")
    browser.photograph(pictures / "report_phone.png", full=False)


def photograph_server(browser: Browser, address: str, pictures: Path) -> None:
    browser.open(address, width=1280, height=1000)
    browser.wait(f"{DRAWN} > 0")
    for act in (lambda: browser.click("#compare"), lambda: browser.run(MOVE)):
        before = browser.run(DRAWN)
        act()
        browser.wait(f"{DRAWN} > {before}")
    browser.run("document.activeElement.blur()")
    browser.point("mouseMoved", 5, 5)
    browser.settle()
    browser.photograph(pictures / "serve.png", full=False)
    browser.open(browser.run("location.href"), **PHONE)
    browser.wait(f"{DRAWN} > 0")
    browser.run("window.scrollTo(0, 420)")
    browser.settle()
    browser.photograph(pictures / "serve_phone.png", full=False)


def photograph_manual(browser: Browser, pictures: Path) -> None:
    browser.open(LANDING, width=1280, height=1000)
    browser.photograph(pictures / "manual.png", full=False)


def take_pictures(browser: Browser, pictures: Path) -> None:
    """Fit, report, serve and photograph."""
    if LANDING.exists():
        photograph_manual(browser, pictures)
    with tempfile.TemporaryDirectory() as folder:
        table = files("cqrf.datasets").joinpath("pbc.csv").read_bytes()
        Path(folder, "pbc.csv").write_bytes(table)
        subprocess.run([*CQRF, *FIT.split(), "-o", "pbc.cqrf"], cwd=folder, check=True)
        subprocess.run([*CQRF, *REPORT.split(), "--title", TITLE], cwd=folder, check=True)
        photograph_report(browser, Path(folder, "report.html"), pictures)
        command = [*CQRF, *SERVE.split()]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
            line = server.stdout.readline() if server.stdout else ""
            photograph_server(browser, re.findall(r"http://\S+", line)[0], pictures)
            server.send_signal(signal.SIGINT)


def main() -> None:
    """Take the pictures that the manual and the README show."""
    browser = Browser(shutil.which("chromium"))
    take_pictures(browser, PICTURES)
    browser.close()


if __name__ == "__main__":
    main()
