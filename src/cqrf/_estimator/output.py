"""The form of predictions: arrays, or frames named after levels and times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._runtime.arguments import exactly, read_choice
from cqrf._survival.quantiles import read_levels
from cqrf._survival.step_curves import StepCurves

OUTPUTS = ("default", "pandas", "polars")
Values = Any  # an array; a frame or a series after set_output


class OutputMethods:
    """What predictions are returned as."""

    def set_output(self, *, transform: str | None = None) -> Any:
        """Choose what predictions are returned as.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            ``"pandas"`` or ``"polars"``: frames and series, with the index of X and columns named
            after levels or times. ``"default"``: arrays. None changes nothing.

        Returns
        -------
        self

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.set_output(transform="pandas").predict(X[:2], [0.1, 0.5]).columns.tolist()
        ['q0.1', 'q0.5']
        """
        if transform is not None:
            read_choice("transform", transform, OUTPUTS)
            self._sklearn_output_config = {"transform": transform}
        return self

    @property
    def _makes_frames(self) -> bool:
        """Whether set_output asks for frames."""
        config = getattr(self, "_sklearn_output_config", {})
        return config.get("transform", "default") != "default"

    def _output(self, values: NDArray[np.float64], X: Any, names: str | list[str]) -> Values:
        """The values as an array, or as the frame that set_output asks for."""
        config = getattr(self, "_sklearn_output_config", {})
        return as_frame(values, X, names, config.get("transform", "default"))


def level_names(levels: float | Sequence[float]) -> str | list[str]:
    """Names of the columns of quantiles; a single text for a single level."""
    read, is_scalar = read_levels(levels)
    names = [f"q{exactly(level)}" for level in read]
    return names[0] if is_scalar else names


def time_names(name: str, times: ArrayLike) -> list[str]:
    """Names of columns that hold values at times."""
    return [f"{name}{exactly(time)}" for time in np.atleast_1d(np.asarray(times, np.float64))]


def with_index(curves: StepCurves, X: Any) -> StepCurves:
    """The curves, with the index of X."""
    object.__setattr__(curves, "index", index_of(X))
    return curves


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
