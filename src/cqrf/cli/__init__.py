"""Command line: ``cqrf``. Each command is a module here, loaded when it is called."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec


def main() -> None:
    """Run the command line, or name the packages that are missing."""
    open_closed_streams()
    if find_spec("typer") is None or find_spec("rich") is None:
        sys.exit("cqrf: the command line needs Typer and Rich: pip install 'cqrf[cli]'")
    from cqrf.cli.app import app

    app()


def open_closed_streams() -> None:
    """Put the null device in place of closed standard streams; exit if it is standard output.

    Otherwise the next file that is opened would get the number of the closed stream, and messages
    for it would end up in that file.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    opened = os.open(os.devnull, os.O_RDWR)
    while opened <= 2:
        opened = os.open(os.devnull, os.O_RDWR)
    os.close(opened)
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        print(f"cqrf: standard output is closed: send it to {os.devnull}.", file=sys.stderr)
        sys.exit(2)
