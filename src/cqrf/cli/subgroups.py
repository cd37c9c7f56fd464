"""Subgroups of a table: the levels of a category, or the two sides of a median."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cqrf.cli.tables import as_text, is_string
from cqrf.cli.text_files import list_names


class Subgroup(NamedTuple):
    """Rows of a table: which column tells them, what it says, and a mask."""

    column: str
    level: str
    rows: NDArray[np.bool_]


def parse_columns(text: str, X: pa.Table) -> list[str]:
    """Names of features, separated by commas."""
    named = [text] if text in X.column_names else [name.strip() for name in text.split(",")]
    names = list(dict.fromkeys(name for name in named if name))
    for name in names:
        if name not in X.column_names:
            raise ValueError(
                f"--subgroups {name}: there is no such feature; there are "
                f"{list_names(X.column_names)}."
            )
    return names


def split_column(X: pa.Table, name: str) -> list[Subgroup]:
    """Subgroups that a column tells; rows without a value are one of their own.

    A category, and a number of at most two values, has a subgroup for each value. Any other column
    is split at its median, the lower one of two; below it if there is nothing above.
    """
    column = X.column(name).combine_chunks()
    values = pc.unique(column.drop_null()).sort()
    if is_string(column) or len(values) <= 2:
        labels = as_text(values).to_pylist()
        masks = {
            label: pc.equal(column, value) for label, value in zip(labels, values, strict=True)
        }
    else:
        masks = _split_at_median(column, values)
    missing = {"missing": pc.is_null(column)} if column.null_count else {}
    return [
        Subgroup(name, label, pc.fill_null(mask, False).to_numpy(zero_copy_only=False))
        for label, mask in (masks | missing).items()
    ]


def _split_at_median(column: pa.Array, values: pa.Array) -> dict[str, Any]:
    known = column.drop_null().sort()
    median = known[(len(known) - 1) // 2]
    shown = as_text(pa.array([median.as_py()], column.type))[0].as_py()
    if pa.types.is_floating(column.type):
        shown = f"{median.as_py():.6g}"
    if median == values[-1]:
        return {
            f"below {shown}": pc.less(column, median),
            f"at least {shown}": pc.greater_equal(column, median),
        }
    return {
        f"at most {shown}": pc.less_equal(column, median),
        f"above {shown}": pc.greater(column, median),
    }
