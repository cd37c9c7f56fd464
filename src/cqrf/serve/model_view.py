"""A forest with what the page and the API need of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._input.features import feature_names
from cqrf._model.fitted import Model
from cqrf._model.settings import read_solver
from cqrf._readers.errors import check_errors
from cqrf._survival.quantiles import QuantileSolver
from cqrf._views.curves import time_range
from cqrf.estimator import CensoredQuantileForest
from cqrf.serve.columns import ColumnSummary, summarise_columns
from cqrf.serve.data_rows import DataRows
from cqrf.serve.values import Column

N_TIMES = 161  # of the even grid on which curves are given
PADDING = 0.1  # share of the range of times that is drawn beyond its ends
LARGEST = float(np.finfo(np.float64).max)
NO_REMAINING_ERRORS = (
    "standard errors are not available for the time that remains after a time already survived."
)


@dataclass(frozen=True, eq=False)
class ModelView:
    """A forest, its columns, and the rows of a table if there is one.

    Attributes
    ----------
    times : ndarray
        Grid on which survival curves are given.
    no_errors_reason : str or None
        Why the forest has no standard errors; None if it has.
    unit : float or None
        Times of requests and responses are multiples of it: those of training rows are not given
        away. None: times are exact.
    """

    forest: CensoredQuantileForest
    name: str
    summaries: list[ColumnSummary]
    data: DataRows | None
    solver: QuantileSolver
    times: NDArray[np.float64]
    no_errors_reason: str | None
    unit: float | None = None

    def round(self, times: Any) -> Any:
        """Times as multiples of the unit, if there is one; those near the largest number as is."""
        if self.unit is None:
            return times
        with np.errstate(over="ignore"):
            rounded = np.round(np.divide(times, self.unit)) * self.unit
        return np.where(np.isfinite(rounded), rounded, times)

    @property
    def model(self) -> Model:
        """The fitted forest."""
        return self.forest.model_

    @property
    def columns(self) -> list[Column]:
        """Name, kind and levels of each column."""
        return [summary.column for summary in self.summaries]

    def why_no_errors(self, is_given: bool) -> str | None:
        """Why there are no standard errors, of remaining times if ``is_given``; None if some."""
        reason = self.no_errors_reason
        return NO_REMAINING_ERRORS if reason is None and is_given else reason

    def grid(self, given: float | None) -> NDArray[np.float64]:
        """Even grid of times on which curves are given, from the time already survived on."""
        if given is None:
            return self.round_grid(self.times)
        longest = float(self.model.training_target.time.max()) - given
        if longest <= 0:  # nothing is known: the grid only gives the chart an axis
            longest = float(np.ptp(self.times))
        return self.round_grid(np.linspace(0.0, min((1 + PADDING) * longest, LARGEST), N_TIMES))

    def round_grid(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """A grid of multiples of the unit, if there is one."""
        return times if self.unit is None else np.unique(self.round(times))

    @property
    def fingerprint(self) -> str:
        """Hash of the columns, which tells links of this model from those of others."""
        columns = [list(column) for column in self.columns]
        return hashlib.sha256(json.dumps(columns).encode()).hexdigest()[:8]


def make_view(
    forest: CensoredQuantileForest,
    name: str,
    data: DataRows | None = None,
    unit: float | None = None,
) -> ModelView:
    """Join the forest with its columns and rows."""
    model = forest.model_
    if unit is not None and not (np.isfinite(unit) and unit > 0):
        raise ValueError(f"--round {unit:g}: give a positive number of units of time.")
    if unit is not None and data is not None and data.training is not None:
        raise ValueError("--round hides the times of training rows, and --data shows them.")
    training = data.matrix if data is not None and data.training is not None else None
    low, high = time_range(model.training_target.time)
    padding = PADDING * min(high - low, LARGEST)
    start = low - padding if model.censoring == "left" else low
    names, importance = feature_names(forest), forest.feature_importances_
    return ModelView(
        forest=forest,
        name=name,
        summaries=summarise_columns(model, names, importance, training),
        data=data,
        solver=read_solver(forest, model.censoring),
        times=2 * np.linspace(start / 2, min(high / 2 + padding / 2, LARGEST / 2), N_TIMES),
        no_errors_reason=find_no_errors_reason(model),
        unit=unit,
    )


def find_no_errors_reason(model: Model) -> str | None:
    """Why the forest has no standard errors; None if it has."""
    try:
        check_errors(model)
    except ValueError as error:
        return str(error)
    return None
