"""Messages, errors and exit codes of the commands."""

from __future__ import annotations

import errno
import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer

from cqrf._runtime.files import find_target, is_stream
from cqrf._runtime.progress import printable, show_waiting, write_line

ERROR_CODE = 2  # bad arguments, data or files
INTERRUPT_CODE = 130  # Ctrl-C
EXTRAS = {
    "pyarrow": "cli",
    "narwhals": "cli",
    "openpyxl": "excel",
    "matplotlib": "plots",
    "fastapi": "serve",
    "uvicorn": "serve",
}


def print_message(text: str) -> None:
    """Print a line to standard error; results go to standard output."""
    write_line(text)


def fail(message: str) -> NoReturn:
    """Print an error on one line and exit."""
    text = " ".join(str(message).split())
    if text.startswith(("- ", "-: ")):  # the name of a table
        text = f"standard input{text[1:]}"
    print_message(f"cqrf: {text}")
    raise typer.Exit(ERROR_CODE)


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Turn errors of data and files into one line and an exit code."""
    show_waiting(is_terminal())
    warnings.showwarning = lambda message, *_, **__: print_message(f"Note    {message}")
    try:
        yield
    except BrokenPipeError:
        # The reader of our output has closed the pipe, as head does: that is no error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        print_message("cqrf: stopped")
        raise typer.Exit(INTERRUPT_CODE) from None
    except OSError as error:
        where = "standard output" if error.errno == errno.ENOSPC else ""  # a file has a name
        fail(f"{error.filename or where}: {error.strerror or error}".removeprefix(": "))
    except (ValueError, MemoryError) as error:
        fail(str(error) or type(error).__name__)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        fail(f"this needs {error.name}: pip install 'cqrf[{EXTRAS[error.name]}]'")


def print_json(content: Any) -> None:
    """Print JSON; NaN and infinity become null, control characters are escaped."""
    text = json.dumps(_finite(content), indent=2, ensure_ascii=False)
    print("\n".join(_escape_json(line) for line in text.split("\n")))


def check_output(
    path: Path | None, force: bool, *inputs: str | None, suffixes: tuple[str, ...] = ()
) -> None:
    """Exit, before any work is done, if the output would replace an input or another file."""
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        fail(f"{path}: the name must end in {' or '.join(suffixes)}.")
    for source in inputs:
        both = source is not None and os.path.exists(source) and path.exists()
        if both and os.path.samefile(str(source), path):
            fail(f"{path} is an input of this command: give another name to write to.")
    if path.is_dir():
        fail(f"{path} is a folder: give the name of a file.")
    if not path.parent.is_dir():
        fail(f"{path.parent} is not a folder: make it first.")
    try:
        target = find_target(path)
    except OSError as error:
        fail(f"{path}: {error.strerror}.")
    if not target.parent.is_dir():  # of a link
        fail(f"{path} leads to {target}, and {target.parent} is not a folder: make it first.")
    if target.exists() and not is_stream(target) and not force:
        fail(f"{path} exists; --force replaces it.")


def is_terminal() -> bool:
    """Whether standard error is a terminal, which can show a progress bar."""
    return sys.stderr.isatty()


def count(n: int, noun: str, plural: str | None = None) -> str:
    """A number of things, as in ``1 row`` and ``2 rows``."""
    return f"{n} {noun if n == 1 else plural or noun + 's'}"


def format_size(n_bytes: float) -> str:
    """Size of a file."""
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.0f} kB"


def format_plain(value: float, digits: int = 4) -> str:
    """A number with significant digits, without separators, so that it can be copied."""
    return f"{value:.{digits}g}"


def printable_all(content: Any) -> Any:
    """Dictionaries and lists with all of their texts printable."""
    if isinstance(content, dict):
        return {printable_all(name): printable_all(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [printable_all(value) for value in content]
    return printable(content) if isinstance(content, str) else content


def _escape_json(line: str) -> str:
    if printable(line) == line:
        return line
    return "".join(sign if printable(sign) == sign else json.dumps(sign)[1:-1] for sign in line)


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {str(name): _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    if hasattr(content, "item"):
        return _finite(content.item())
    if isinstance(content, float) and not abs(content) < float("inf"):
        return None
    return content
