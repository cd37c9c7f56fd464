"""Check every internal link of the built manual: pages, pictures, scripts and anchors.

What a page loads must be part of the manual, as it is read without a network.

Run: python docs/check_links.py docs/_build/html
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# A link to the text of the gallery's folder, which is a page of the manual, not a file to keep.
NO_DOWNLOAD = re.compile(r"_downloads/[^/]+/README\.\w+$")
REFERENCES = {"a": "href", "img": "src", "link": "href", "script": "src", "object": "data"}


class Page(HTMLParser):
    """The anchors of a page, and what it refers to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.references: list[tuple[str, str]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collect anchors and references."""
        named = dict(attributes)
        self.anchors |= {text for key in ("id", "name") if (text := named.get(key))}
        if (reference := named.get(REFERENCES.get(tag, ""))) is not None:
            self.references.append((tag, reference))


def find_broken(site: Path) -> list[str]:
    """A line for each reference that leads nowhere, and for what a page loads from a network."""
    written = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path) for path in written}
    return [
        f"{path.relative_to(site)}: {reference}"
        for path, page in pages.items()
        for tag, reference in page.references
        if not is_found(pages, path, tag, reference)
    ]


def is_found(pages: dict[Path, Page], path: Path, tag: str, reference: str) -> bool:
    """Whether a reference of a page leads to a file, and to an anchor of it."""
    parts = urlsplit(reference)
    if parts.scheme or parts.netloc:
        return tag == "a" or parts.scheme == "data"
    if NO_DOWNLOAD.search(unquote(parts.path)):
        return False
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if parts.fragment and target in pages:
        return unquote(parts.fragment) in pages[target].anchors | {"top"}
    return target.exists()


def main() -> None:
    """Print what is broken, and fail if anything is."""
    site = Path(sys.argv[1]).resolve()
    broken = find_broken(site)
    print(*broken, sep="\n" if broken else "")
    if broken:
        sys.exit(f"{len(broken)} links of the manual lead nowhere.")


if __name__ == "__main__":
    main()
