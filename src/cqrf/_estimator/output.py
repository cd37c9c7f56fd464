"""The form of predictions: arrays, or frames named after levels and times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._model.output import OUTPUTS, as_frame, index_of
from cqrf._runtime.arguments import exactly, read_choice
from cqrf._survival.quantiles import read_levels
from cqrf._survival.step_curves import StepCurves

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
    read, is_scalar = read_levels(levels)
    names = [f"q{exactly(level)}" for level in read]
    return names[0] if is_scalar else names


def time_names(name: str, times: ArrayLike) -> list[str]:
    return [f"{name}{exactly(time)}" for time in np.atleast_1d(np.asarray(times, np.float64))]


def with_index(curves: StepCurves, X: Any) -> StepCurves:
    object.__setattr__(curves, "index", index_of(X))
    return curves
