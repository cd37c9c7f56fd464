"""The page: facts, styles and scripts put into one HTML file that loads nothing else.

The browser runs only the script and the style whose hashes stand in the page's policy, and it
may fetch nothing. Facts are data, not code; the script writes them as text only.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from string import Template
from typing import Any

SCRIPTS = ("charts.js", "rows.js", "page.js")
# Inside a script element the parser looks for these; as escapes they mean the same in JSON.
ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def fill_page(facts: dict[str, Any]) -> bytes:
    """The page as bytes of UTF-8."""
    style = read_part("page.css")
    script = "\n".join(read_part(name) for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src {hash_source(script)}; style-src {hash_source(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    page = Template(read_part("page.html")).substitute(
        policy=policy,
        title=html.escape(facts["title"]),
        style=style,
        facts=write_json(facts),
        script=script,
    )
    return page.encode("utf-8", errors="replace")


def write_json(facts: Any) -> str:
    """JSON that no HTML parser takes for markup."""
    text = json.dumps(facts, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.translate(ESCAPES)


def hash_source(text: str) -> str:
    """What a content security policy calls a script or style by."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def read_part(name: str) -> str:
    """One of the files beside this one, its line ends as the browser will read them."""
    text = (files("cqrf.report") / name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")
