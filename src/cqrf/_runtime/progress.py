"""A progress bar on standard error: trees of a fit, trials of a search, kernels that are compiled.

There is one line that is drawn again and again. A message is written with :func:`write_line`, so
that it does not run into the bar.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar
from unicodedata import category

Item = TypeVar("Item")

WIDTH = 30
# Control and format characters, half of a surrogate pair, ends of lines and paragraphs.
CONTROLS = ("Cc", "Cf", "Cs", "Zl", "Zp")
BLOCK = 6  # width of the block in a bar without a known end
REDRAW_SECONDS = 0.1

_open_line = ""  # what the bar shows now; empty if there is none
_shows_waiting = False


def show_progress(
    batches: Iterable[Item], n_batches: int, total: int, noun: str = "trees"
) -> Iterator[Item]:
    """Yield finished batches and redraw the bar after each."""
    began = time.perf_counter()
    _draw(0, total, noun, began)
    for done, batch in enumerate(batches, start=1):
        yield batch
        _draw(total * done // n_batches, total, noun, began)
    end_line()


def show_waiting(shown: bool) -> None:
    """Whether :func:`draw_until` draws; only the command line wants that, in a terminal."""
    global _shows_waiting
    _shows_waiting = shown


def draw_until(is_done: threading.Event, began: float, text: str) -> None:
    """Draw a bar without a known end, a block that moves, until something is done."""
    while _shows_waiting and not is_done.wait(REDRAW_SECONDS):
        seconds = time.perf_counter() - began
        at = int(seconds / REDRAW_SECONDS) % (WIDTH - BLOCK + 1)
        bar = "." * at + "#" * BLOCK + "." * (WIDTH - BLOCK - at)
        draw_line(f"[{bar}] {text}, {seconds:.1f} s")
    if _shows_waiting:
        clear_line()


def draw_line(text: str) -> None:
    """Draw the text over what the bar has shown before."""
    global _open_line
    _write(f"\r{text:<{len(_open_line)}}", end="")
    _open_line = text


def end_line() -> None:
    """Keep what the bar shows, and end its line."""
    global _open_line
    _write("")
    _open_line = ""


def clear_line() -> None:
    """Remove the bar, if there is one."""
    global _open_line
    if _open_line:
        _write(f"\r{'':<{len(_open_line)}}\r", end="")
        _open_line = ""


def write_line(text: str) -> None:
    """Write a line of its own; a bar is removed before."""
    clear_line()
    _write(printable(text))


def printable(text: str) -> str:
    """The text with control characters escaped, as Python writes them: it may be a file's.

    Those that would move the cursor, clear the screen, start a line or turn the direction of
    writing are escaped, and those that no terminal can encode.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        sign.encode("unicode_escape").decode() if category(sign) in CONTROLS else sign
        for sign in text
    )


def _write(text: str, end: str = "\n") -> None:
    """Write to standard error; where that is impossible, nothing is written from then on.

    A full disk that takes no message must not end a fit.
    """
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _draw(done: int, total: int, noun: str, began: float) -> None:
    filled = WIDTH * done // total
    bar = "#" * filled + "." * (WIDTH - filled)
    seconds = time.perf_counter() - began
    draw_line(f"[{bar}] {done}/{total} {noun}, {seconds:.1f} s")
