"""Names for what the theme leaves without one, for people who hear the pages.

tests/accessibility looks for such faults with axe-core.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

# In the list of pages: a link, and beside it the switch that unfolds the pages below it.
SWITCH = re.compile(
    r'(<a class="[^"]*reference internal[^"]*" href="[^"]*">(?:<[^>]*>)*([^<]*)(?:</[^>]*>)*</a>'
    r"\s*<details[^>]*>\s*)<summary>"
)
# The button of the search is called "Search", and shows a shortcut that is not in its name.
SEARCH = re.compile(r'(<button [^>]*search-button-field[^>]* aria-label=")Search"')


def name_controls(page: str) -> str:
    """The text of a page in which every control has a name."""
    named = SWITCH.sub(r'\1<summary aria-label="Pages below \2">', page)
    return SEARCH.sub(r'\1Search Ctrl+K"', named)


def rewrite_pages(app: Any, error: Exception | None) -> None:
    """Rewrite all pages of a build that succeeded."""
    if error is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        path.write_text(name_controls(page), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Rewrite the pages at the end of a build."""
    app.connect("build-finished", rewrite_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
