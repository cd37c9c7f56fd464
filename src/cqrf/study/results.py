"""Results: the rows of one experiment, one observation per row, in one CSV file.

Writing replaces the whole file atomically, so an interrupted run leaves only complete cases.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cqrf._runtime.files import replacing

Row: TypeAlias = dict[str, Any]


class Results:
    """Rows of an experiment, with the queries that figures and claims need."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, **wanted: Any) -> Results:
        """Rows with these values; a tuple means any of its members."""
        sets = {name: v if isinstance(v, tuple) else (v,) for name, v in wanted.items()}
        return Results(r for r in self.rows if all(r[name] in sets[name] for name in sets))

    def distinct(self, column: str) -> list[Any]:
        """Values of a column, in the order in which they first appear."""
        return list(dict.fromkeys(row[column] for row in self.rows))

    def groups(self, column: str) -> Iterator[tuple[Any, Results]]:
        """Each value of a column with its rows."""
        for value in self.distinct(column):
            yield value, self.where(**{column: value})

    def column(self, name: str) -> NDArray[Any]:
        """One column as an array."""
        return np.array([row[name] for row in self.rows])

    def mean(self, column: str) -> float:
        """Mean of a column; NaN if there is no row."""
        return float(self.column(column).mean()) if self.rows else float("nan")

    def spread(self, column: str) -> float:
        """Standard deviation of a column over repeats; 0 for one repeat."""
        means = [group.mean(column) for _, group in self.groups("repeat")]
        return float(np.std(means, ddof=1)) if len(means) > 1 else 0.0


def read_results(path: Path) -> Results:
    """Rows of a results file; none if there is no file."""
    if not path.exists():
        return Results([])
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows = []
        for row in reader:
            if None in row or None in row.values():
                raise ValueError(
                    f"{path}, line {reader.line_num}: the number of values differs from that of "
                    "the columns. Remove the file to run its experiment again."
                )
            rows.append({name: _read_value(text) for name, text in row.items()})
    return Results(rows)


def write_results(path: Path, results: Results) -> None:
    """Replace the file atomically by one with these rows."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(results.rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in results.rows:
        writer.writerow({name: _write_value(value) for name, value in row.items()})
    with replacing(path) as file:
        file.write(text.getvalue().encode())


def _read_value(text: str) -> int | float | str:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _write_value(value: Any) -> Any:
    return f"{value:.5g}" if isinstance(value, float) else value
