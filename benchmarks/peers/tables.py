"""Binary tables for any language: doubles by column, features first, then time and event."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cqrf.datasets import make_aft

N_QUERIES = 1_000


def write_tables(folder: Path, n: int, p: int, n_queries: int = N_QUERIES) -> Path:
    """Write a training table and a query table, unless they exist."""
    made = folder / f"{n}-{p}-{n_queries}"
    if not made.exists():
        made.mkdir(parents=True)
        _write(made / "train.bin", n, p, seed=0)
        _write(made / "queries.bin", n_queries, p, seed=1)
    return made


def read_table(path: Path, n: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the features (row by row), the times and the events."""
    columns = np.fromfile(path).reshape(p + 2, n)
    return np.ascontiguousarray(columns[:p].T), columns[p].copy(), columns[p + 1] > 0


def _write(path: Path, n: int, p: int, seed: int) -> None:
    table = make_aft(n, p, random_state=seed)
    with path.open("wb") as file:
        for column in (*table.X.T, table.y["time"], table.y["event"]):
            np.ascontiguousarray(column, dtype=np.float64).tofile(file)
