"""Predictions as frames, with the index of X."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

OUTPUTS = ("default", "pandas", "polars")


def as_frame(values: NDArray[np.float64], X: Any, names: str | list[str], output: str) -> Any:
    """Values as they are, or as a series (one name) or frame (a list of names)."""
    if output == "default":
        return values
    if output == "pandas":
        import pandas as pd

        if isinstance(names, str):
            return pd.Series(values, index=index_of(X), name=names)
        return pd.DataFrame(values, index=index_of(X), columns=names)
    import polars as pl

    if isinstance(names, str):
        return pl.Series(names, values)
    return pl.DataFrame(values, schema=names)


def index_of(X: Any) -> Any:
    """The index of a pandas frame; None if X is something else."""
    index = getattr(X, "index", None)
    return index if hasattr(index, "get_indexer") else None
