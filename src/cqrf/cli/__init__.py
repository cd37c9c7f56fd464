"""Command line: ``cqrf``. Each command is a module here, loaded when it is called."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def main() -> None:
    """Run the command line, or name the packages that are missing."""
    if find_spec("typer") is None or find_spec("rich") is None:
        sys.exit("cqrf: the command line needs Typer and Rich: pip install 'cqrf[cli]'")
    from cqrf.cli.app import app

    app()
