"""Ridge models of a table and of its folds, with a penalty chosen by cross-validation.

Every model is fitted to all rows and, once for each fold, to the rows of the other folds. The
penalty is one of PENALTIES, multiples of the weight of the rows: the last before the
cross-validated partial likelihood (Verweij and van Houwelingen 1993) falls.

Columns may have scales. Multiplying a column by a scale is the same as dividing its penalty by the
square of the scale; a column of scale 0 is left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.target import Target
from cqrf._working_model.cox import MOST_STEPS, CoxRows, evaluate, make_rows, maximise

FOLDS = 5
PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)

Floats = NDArray[np.float64]


class Part(NamedTuple):
    """The rows that a model is fitted to."""

    kept: NDArray[np.intp]
    """Their positions in time order."""
    rows: CoxRows


class Ridge(NamedTuple):
    """Ridge models of the same columns, one for each part of a table.

    Attributes
    ----------
    multiple : float
        The penalty, as a multiple of the weight of the rows.
    log_likelihood : float
        Cross-validated partial log likelihood.
    coefficients : (FOLDS + 1, n_columns) float64
        The last are those of all rows. A part without events has coefficients 0.
    """

    multiple: float
    log_likelihood: float
    coefficients: Floats


def make_parts(target: Target, weight: Floats, fold: NDArray[np.integer[Any]]) -> list[Part]:
    """The rows outside of each fold, and last all rows; in time order, with the fold of each."""

    def make_part(kept: NDArray[np.intp]) -> Part:
        part = target.take(kept)
        return Part(kept, make_rows(part.time, part.event, weight[kept], part.entry))

    outside = [make_part(np.flatnonzero(fold != number)) for number in range(FOLDS)]
    return [*outside, make_part(np.arange(len(fold)))]


def fit_ridge(
    parts: list[Part], matrix: Floats, scales: Floats, largest: float = PENALTIES[0]
) -> Ridge:
    """Models with the best penalty, given the scales of the columns in each of them.

    Penalties are tried from the largest on, until the likelihood of the rows left out falls.

    matrix : (n, n_columns), rows in time order
    scales : (FOLDS + 1, n_columns)
    """
    best = Ridge(largest, -np.inf, np.zeros_like(scales))
    current = best.coefficients[:FOLDS].copy()
    for multiple in PENALTIES:
        if multiple > largest:
            continue
        score = 0.0
        for k, part in enumerate(parts[:FOLDS]):
            current[k] = fit_part(part, matrix, scales[k], multiple, current[k])
            score += left_out_likelihood(parts[FOLDS], part, matrix @ current[k])
        if score <= best.log_likelihood:
            break
        best = Ridge(multiple, score, np.concatenate([current, np.zeros((1, current.shape[1]))]))
    start = np.where(scales[FOLDS] > 0, best.coefficients[:FOLDS].mean(axis=0), 0.0)
    best.coefficients[FOLDS] = fit_part(parts[FOLDS], matrix, scales[FOLDS], best.multiple, start)
    return best


def fit_part(
    part: Part,
    matrix: Floats,
    scale: Floats,
    multiple: float,
    start: Floats,
    most_steps: int = MOST_STEPS,
) -> Floats:
    """Coefficients of the columns of a matrix of all rows, each column with a scale.

    The rows of the part are copied at every call: the copies of all folds together would take much
    memory.
    """
    coefficients = np.zeros(len(scale))
    used = np.flatnonzero(scale)
    if len(part.rows.events) and len(used):
        columns = np.take(matrix, part.kept, axis=0)
        if len(used) < len(scale):
            columns = np.take(columns, used, axis=1)
        columns *= scale[used]
        penalty = multiple * part.rows.weight.sum()
        found = maximise(part.rows, columns, penalty, start[used] / scale[used], most_steps)
        coefficients[used] = scale[used] * found
    return coefficients


def left_out_likelihood(whole: Part, part: Part, predicted: Floats) -> float:
    """What the rows outside of a part add to the partial log likelihood."""
    of_part = evaluate(part.rows, predicted[part.kept]).log_likelihood
    return evaluate(whole.rows, predicted).log_likelihood - of_part
