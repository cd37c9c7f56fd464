"""Places where long names may break: after an underscore, and before a capital of CamelCase.

Without them a narrow column breaks names wherever it ends: predict_survival_fun-ction. Shorter
names go to the next line as a whole.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

NAMED = re.compile(
    r'(?P<start><h1>|<span class="pre">|<p class="prev-next-title">)(?P<text>[^<]*)(?=<)'
)
LONG = re.compile(r"\w{16,}")
PLACE = re.compile(r"(?<=[A-Za-z0-9]_)(?=[A-Za-z])|(?<=[a-z])(?=[A-Z])")


def allow_breaks(page: str) -> str:
    """The text of a page in which long names have ``<wbr>``."""

    def divide(found: re.Match[str]) -> str:
        return found["start"] + LONG.sub(lambda name: PLACE.sub("<wbr>", name[0]), found["text"])

    return NAMED.sub(divide, page)


def rewrite_pages(app: Any, error: Exception | None) -> None:
    """Rewrite all pages of a build that succeeded."""
    if error is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        path.write_text(allow_breaks(page), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Rewrite the pages at the end of a build."""
    app.connect("build-finished", rewrite_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
