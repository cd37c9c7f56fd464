"""Times at which the page's curves are given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cqrf._model.queries import encode_queries
from cqrf._readers.curves import SurvivalCurves
from cqrf._readers.reader import read_one
from cqrf._views.curves import thin_curve
from cqrf.serve.model_view import ModelView

MAX_STEPS = 200  # of one curve


def choose_curve_times(
    view: ModelView, matrix: NDArray[np.float64], given: float | None
) -> NDArray[np.float64]:
    """The even grid, and with interval censoring the times at which the rows' curves step.

    Such curves have few steps, and high ones: drawn at the next time of the grid, a step would be
    beside the quantiles that it has.
    """
    grid = view.grid(given)
    if view.model.lower is None:
        return grid
    queries = encode_queries(view.model, matrix, 1, given)
    curves = read_one(view.model, queries, SurvivalCurves(), 1)
    steps = view.round(np.concatenate([thin_curve(curve, MAX_STEPS).times for curve in curves]))
    inside = steps[(grid[0] <= steps) & (steps <= grid[-1])]
    return np.unique(np.concatenate([grid, inside]))
