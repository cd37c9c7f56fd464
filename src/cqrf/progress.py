"""Progress: a bar over the trees, on standard error, for ``verbose`` fits."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

WIDTH = 30


def show_progress(batches: Iterable[Item], n_batches: int, n_trees: int) -> Iterator[Item]:
    """Pass finished batches through and redraw the bar after each."""
    began = time.perf_counter()
    _draw(0, n_trees, began)
    for done, batch in enumerate(batches, start=1):
        yield batch
        _draw(n_trees * done // n_batches, n_trees, began)
    print(file=sys.stderr)


def _draw(done: int, n_trees: int, began: float) -> None:
    filled = WIDTH * done // n_trees
    bar = "#" * filled + "." * (WIDTH - filled)
    seconds = time.perf_counter() - began
    print(f"\r[{bar}] {done}/{n_trees} trees, {seconds:.1f} s", end="", file=sys.stderr, flush=True)
