"""Check every internal link of the built manual: pages, pictures, scripts and anchors.

Run: python docs/check_links.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

REFERENCES = {"a": "href", "img": "src", "link": "href", "script": "src", "object": "data"}


class Page(HTMLParser):
    """The anchors of a page, and what it refers to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.references: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collect anchors and references."""
        named = dict(attributes)
        self.anchors |= {text for key in ("id", "name") if (text := named.get(key))}
        if (reference := named.get(REFERENCES.get(tag, ""))) is not None:
            self.references.append(reference)


def find_broken(site: Path) -> list[str]:
    """A line for each reference that leads nowhere, or out to a network for what a page loads."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    broken = []
    for path, page in pages.items():
        for reference in page.references:
            parts = urlsplit(reference)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            found = target.exists()
            if found and parts.fragment and target in pages and parts.fragment != "top":
                found = unquote(parts.fragment) in pages[target].anchors
            if not found:
                broken.append(f"{path.relative_to(site)}: {reference}")
    return broken


def main() -> None:
    """Print what is broken, and fail if anything is."""
    site = Path(sys.argv[1]).resolve()
    broken = find_broken(site)
    print(*broken, sep="\n" if broken else "")
    if broken:
        sys.exit(f"{len(broken)} links of the manual lead nowhere.")


if __name__ == "__main__":
    main()
