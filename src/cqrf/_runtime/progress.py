"""A progress bar on standard error, over the trees of a fit or the trials of a search."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

WIDTH = 30


def show_progress(
    batches: Iterable[Item], n_batches: int, total: int, noun: str = "trees"
) -> Iterator[Item]:
    """Yield finished batches and redraw the bar after each."""
    began = time.perf_counter()
    _draw(0, total, noun, began)
    for done, batch in enumerate(batches, start=1):
        yield batch
        _draw(total * done // n_batches, total, noun, began)
    print(file=sys.stderr)


def _draw(done: int, total: int, noun: str, began: float) -> None:
    filled = WIDTH * done // total
    bar = "#" * filled + "." * (WIDTH - filled)
    seconds = time.perf_counter() - began
    print(f"\r[{bar}] {done}/{total} {noun}, {seconds:.1f} s", end="", file=sys.stderr, flush=True)
