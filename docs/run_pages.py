"""Run the code of pages of the manual: draw their pictures, and write the output they show.

A ``python`` block runs after those above it. A ``text`` block right below one holds what it
prints. Run: python docs/run_pages.py docs/tutorial/index.md ...
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

BLOCK = re.compile(r"```python\n(?P<code>.*?)```(?:\n\n```text\n(?P<output>.*?)```)?", re.S)


def find_blocks(text: str) -> Iterator[re.Match[str]]:
    """The blocks of code of a page, each with the output that is shown below it."""
    yield from BLOCK.finditer(text)


def run_page(text: str) -> str:
    """The page with the output that its code prints now. Pictures go to the current folder."""
    names = {"__name__": "__main__"}
    parts, end = [], 0
    for block in find_blocks(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(block["code"], names)  # our own text
        parts.append(text[end : block.end()])
        if block["output"] is not None:
            shown = "".join(f"{line.rstrip()}\n" for line in printed.getvalue().splitlines())
            parts[-1] = text[end : block.start("output")] + shown + "```"
        end = block.end()
    return "".join([*parts, text[end:]])


def main() -> None:
    """Run the pages that are named; pictures are put beside them, other files are dropped."""
    for page in [Path(name).resolve() for name in sys.argv[1:]]:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            page.write_text(run_page(page.read_text(encoding="utf-8")), encoding="utf-8")
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, page.parent)


if __name__ == "__main__":
    main()
