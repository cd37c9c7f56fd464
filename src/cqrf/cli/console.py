"""What commands say, and how they end."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer

WRONG = 2  # bad arguments, data or files
STOPPED = 130  # Ctrl-C
EXTRAS = {
    "pyarrow": "cli",
    "narwhals": "cli",
    "matplotlib": "plots",
    "fastapi": "serve",
    "uvicorn": "serve",
}


def say(text: str) -> None:
    """A line for whoever watches; results go to standard output."""
    print(text, file=sys.stderr, flush=True)


def fail(message: str) -> NoReturn:
    """Say what is wrong, on one line, and end."""
    say(f"cqrf: {' '.join(str(message).split())}")
    raise typer.Exit(WRONG)


@contextmanager
def plainly() -> Iterator[None]:
    """Turn what can go wrong with data and files into one line and an exit code."""
    warnings.showwarning = lambda message, *_, **__: say(f"Note    {message}")
    try:
        yield
    except BrokenPipeError:
        # Whoever read our output has gone: nothing is wrong, and nobody is there to be told.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        say("cqrf: stopped")
        raise typer.Exit(STOPPED) from None
    except OSError as error:
        fail(f"{error.filename or ''}: {error.strerror or error}".removeprefix(": "))
    except (ValueError, MemoryError) as error:
        fail(str(error) or type(error).__name__)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        fail(f"this needs {error.name}: pip install 'cqrf[{EXTRAS[error.name]}]'")


def print_json(facts: Any) -> None:
    """Print facts for a program; what is not finite becomes null."""
    print(json.dumps(_finite(facts), indent=2, ensure_ascii=False))


def check_output(
    path: Path | None, force: bool, *inputs: str | None, suffixes: tuple[str, ...] = ()
) -> None:
    """Refuse, before any work is done, to replace a file, and ever to replace an input."""
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        fail(f"{path}: the name must end in {' or '.join(suffixes)}.")
    for source in inputs:
        both = source is not None and os.path.exists(source) and path.exists()
        if both and os.path.samefile(str(source), path):
            fail(f"{path} is read by this command: give another name to write to.")
    if path.is_dir():
        fail(f"{path} is a folder: give the name of a file.")
    if not path.parent.is_dir():
        fail(f"{path.parent} is not a folder: make it first.")
    if path.exists() and not force:
        fail(f"{path} exists; --force replaces it.")


def is_watched() -> bool:
    """Whether somebody sees a progress bar."""
    return sys.stderr.isatty()


def size_in_words(n_bytes: float) -> str:
    """Size of a file."""
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.0f} kB"


def number(value: float, digits: int = 4) -> str:
    """A number with so many digits that count."""
    return f"{value:.{digits}g}"


def _finite(facts: Any) -> Any:
    if isinstance(facts, dict):
        return {str(name): _finite(value) for name, value in facts.items()}
    if isinstance(facts, list | tuple):
        return [_finite(value) for value in facts]
    if hasattr(facts, "item"):
        return _finite(facts.item())
    if isinstance(facts, float) and not abs(facts) < float("inf"):
        return None
    return facts
