"""Command line: ``cqrf``. Each command is a module here, loaded when it is called."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or name the packages that are missing."""
    try:
        import rich  # noqa: F401

        from cqrf.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit("cqrf: the command line needs Typer and Rich: pip install 'cqrf[cli]'")
    app()
