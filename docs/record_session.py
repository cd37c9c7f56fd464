"""Record docs/how_to/session.svg: the commands below, run in a terminal, as a picture.

Run: python docs/record_session.py
"""

from __future__ import annotations

import html
import subprocess
import sys
import tempfile
import textwrap
from importlib.resources import files
from pathlib import Path

COMMANDS = (
    "cqrf fit pbc.csv --time time --event status --event-value 2 --ignore id -o pbc.cqrf",
    "cqrf predict pbc.cqrf pbc.csv -q .05,.1 --survival 365,1825 --id id | head -4",
    "cqrf report pbc.cqrf pbc.csv --id id -o report.html",
)
COLUMNS, LINE_HEIGHT, CHARACTER_WIDTH, MARGIN = 98, 19, 7.83, 16
STYLE = """
    .screen { fill: #14191f; }
    text { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #dfe5ea;
           white-space: pre; }
    .command { fill: #7cc4ff; }
"""


def run_session() -> list[str]:
    """Lines of the terminal, after a run that compiled everything."""
    run_commands()
    return run_commands()


def run_commands() -> list[str]:
    """Run the commands in a new folder; return what the terminal shows."""
    program = f'"{sys.executable}" -c "from cqrf.cli import main; main()"'
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pbc.csv").write_bytes(files("cqrf.datasets").joinpath("pbc.csv").read_bytes())
        for command in COMMANDS:
            done = subprocess.run(
                command.replace("cqrf ", f"{program} ", 1),
                shell=True,
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=True,
            )
            lines += [f"$ {command}", *done.stdout.splitlines(), ""]
    return lines[:-1]


def draw(lines: list[str]) -> str:
    """The lines as an SVG picture of a terminal."""
    shown: list[tuple[str, str]] = []
    for line in lines:
        kind = "command" if line.startswith("$ ") else "output"
        indent = " " * 8 if kind == "output" else "    "
        parts = textwrap.wrap(line, COLUMNS, subsequent_indent=indent, drop_whitespace=False)
        shown += [(kind, part) for part in parts or [""]]
    width = round(2 * MARGIN + COLUMNS * CHARACTER_WIDTH)
    height = 2 * MARGIN + LINE_HEIGHT * len(shown)
    texts = [
        f'  <text class="{kind}" x="{MARGIN}" y="{MARGIN + LINE_HEIGHT * i + 14}">'
        f"{html.escape(part)}</text>"
        for i, (kind, part) in enumerate(shown)
        if part
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" '
            'aria-label="A terminal with cqrf fit, predict and report on the PBC data">',
            f"  <style>{STYLE}  </style>",
            f'  <rect class="screen" width="{width}" height="{height}" rx="8"/>',
            *texts,
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    picture = Path(__file__).with_name("how_to") / "session.svg"
    picture.write_text(draw(run_session()), encoding="utf-8")
