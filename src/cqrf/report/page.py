"""The page: content, style and scripts in one HTML file that loads nothing else.

The content security policy of the page allows only the script and the style whose hashes it
lists, and no request. Content is data, not code: the scripts write it as text only.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from string import Template
from typing import Any, NamedTuple

from cqrf._views.pages import read_asset, read_shared_asset

# Inside a script element an HTML parser looks for these; JSON may write them as escapes.
ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


class PageAssets(NamedTuple):
    """Files of a page: those that it shares with the server's pages, and those of reports."""

    template: str
    shared: tuple[str, ...]
    own: tuple[str, ...]


REPORT = PageAssets(
    "report.html",
    ("base.css", "elements.js", "charts.js", "causes.js", "outcomes.js"),
    ("report.css", "fill.js", "incidence.js", "intervals.js", "rows.js", "report.js"),
)
EFFECTS = PageAssets(
    "effects.html",
    ("base.css", "arms.css", "elements.js", "charts.js", "arms.js"),
    ("report.css", "effects.css", "fill.js", "effects.js"),
)


def render_page(content: dict[str, Any], assets: PageAssets = REPORT) -> bytes:
    """The page in UTF-8."""
    style, script = join_files(assets, ".css"), join_files(assets, ".js")
    policy = (
        f"default-src 'none'; script-src {hash_source(script)}; style-src {hash_source(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    page = Template(read_asset("cqrf.report", assets.template)).substitute(
        policy=policy,
        title=html.escape(content["title"]),
        style=style,
        content=write_json(content),
        script=script,
    )
    return page.encode("utf-8", errors="replace")


def join_files(assets: PageAssets, kind: str) -> str:
    """All files of a kind as one text, the shared ones first."""
    shared = [read_shared_asset(name) for name in assets.shared if name.endswith(kind)]
    own = [read_asset("cqrf.report", name) for name in assets.own if name.endswith(kind)]
    return "\n".join(shared + own)


def write_json(content: Any) -> str:
    """JSON without a character that an HTML parser could take for markup."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.translate(ESCAPES)


def hash_source(text: str) -> str:
    """Hash of a script or style, as a content security policy writes it."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
