"""A linear model of the effect, which the effect forest is corrected by.

Neighbours of x are not centred at x: at the border of the data, or where an effect rises steadily,
their mean effect is not the effect at x. A ridge regression of the effect on the features,

    minimise  sum ((Y* - m) - (W - e) (a + b' z(x)))^2 + penalty |b|^2,

estimates that slope. SHARE of its effect is subtracted from the responses, and the forest estimates
the rest. The penalty, and a factor in [0, 1] that shrinks a model without signal, are chosen by
cross-validation at the times that the trees are split at. Training rows are predicted by a model
that was fitted without their fold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.response import Floats
from cqrf._forest.spec import MISSING
from cqrf._model.fit import count_levels
from cqrf._model.fitted import Model
from cqrf._runtime.threads import one_blas_thread
from cqrf._working_model.design import Design, make_design, principal_components
from cqrf._working_model.fit import fold_of_unit
from cqrf._working_model.ridge import FOLDS

SHARE = 0.5
PENALTIES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01)  # multiples of the total weight


class LinearEffects:
    """Ridge models of effects; a new response costs one product of matrices.

    Parameters
    ----------
    model : Model
        Of all training rows; what follows is by its ranks.
    unit : (n,) int32
        Sampling unit of each row.
    treatment : (n,) float64
        W - e.
    at_levels : (n, n_levels) float64
        Y* - m at the times by which the penalty is chosen.
    """

    def __init__(
        self, model: Model, unit: NDArray[np.int32], treatment: Floats, at_levels: Floats
    ) -> None:
        n = len(treatment)
        weight = np.ones(n) if model.rows.weight is None else model.rows.weight.astype(float)
        self.design = design_of_bins(model, weight)
        self.basis, self.directions = principal_components(self.design.matrix(model.rows.codes))
        self.fold = fold_of_unit(unit, model.seed)
        self.weight, self.treatment = weight, treatment
        # The first column is the average effect, which is left to the forest.
        self.columns = np.hstack([np.ones((n, 1)), self.basis]) * treatment[:, np.newaxis]
        with one_blas_thread():
            self.penalty, self.factor = self._choose(at_levels)

    def fit(self, response: Floats) -> tuple[Floats, Floats]:
        """Coefficients for Y* - m of (n, n_outputs), and the effects of the training rows.

        Coefficients are (n_columns, n_outputs); effects (n, n_outputs) are cross-fitted.
        """
        if self.factor == 0.0:
            return np.zeros((self.basis.shape[1], response.shape[1])), np.zeros_like(response)
        share = SHARE * self.factor
        with one_blas_thread():
            whole = self._solve(np.full(len(self.fold), True), response, self.penalty)
            return share * whole, share * self._cross_fit(response, self.penalty)

    def predict(self, codes: NDArray[np.uint8], coefficients: Floats) -> Floats:
        """Effects (n, n_outputs) of rows given by their bins, codes of (n, n_features)."""
        if self.directions is not None:
            coefficients = self.directions.T @ coefficients
        effects = np.zeros((len(codes), coefficients.shape[1]))
        # Not a product of matrices, whose last digits depend on the rows beside a row.
        for column, slopes in zip(self.design.matrix(codes.T).T, coefficients, strict=True):
            effects += column[:, np.newaxis] * slopes
        return effects

    def _choose(self, at_levels: Floats) -> tuple[float, float]:
        """Penalty and factor with the least squared error of rows left out."""
        weight, treatment = self.weight[:, np.newaxis], self.treatment[:, np.newaxis]
        mass = (weight * treatment**2).sum()
        average = (weight * treatment * at_levels).sum(axis=0) / mass
        left = at_levels - treatment * average
        best, best_loss = (PENALTIES[0] * self.weight.sum(), 0.0), (weight * left**2).sum()
        for multiple in PENALTIES:
            penalty = multiple * self.weight.sum()
            effects = self._cross_fit(at_levels, penalty)
            centre = (weight * treatment**2 * effects).sum(axis=0) / mass
            predicted = treatment * (effects - centre)
            size = (weight * predicted**2).sum()
            if size <= 0.0:
                continue
            factor = float(np.clip((weight * predicted * left).sum() / size, 0.0, 1.0))
            loss = (weight * (left - factor * predicted) ** 2).sum()
            if loss < best_loss:
                best, best_loss = (penalty, factor), loss
        return best

    def _cross_fit(self, response: Floats, penalty: float) -> Floats:
        effects = np.empty_like(response)
        for number in range(FOLDS):
            here = self.fold == number
            effects[here] = self.basis[here] @ self._solve(~here, response, penalty)
        return effects

    def _solve(self, rows: NDArray[np.bool_], response: Floats, penalty: float) -> Floats:
        """Coefficients from some rows, without that of the average effect."""
        columns = self.columns[rows]
        weighted = columns * self.weight[rows, np.newaxis]
        matrix = weighted.T @ columns
        ridge = np.full(len(matrix), penalty)
        ridge[0] = 1e-9 * penalty
        matrix[np.diag_indices_from(matrix)] += ridge
        return np.asarray(np.linalg.solve(matrix, weighted.T @ response[rows])[1:], np.float64)


def design_of_bins(model: Model, weight: Floats) -> Design:
    """Design of the training rows, each feature by the middle of its bin."""
    codes = model.rows.codes
    values = np.empty(codes.shape)
    for feature, (its_codes, edges) in enumerate(zip(codes, model.edges, strict=True)):
        values[feature] = _middles(edges)[np.minimum(its_codes, len(edges))]
    values[codes == MISSING] = np.nan
    return make_design(values.T, codes, count_levels(model.columns), weight)


def _middles(edges: Any) -> Floats:
    """A value within each bin; an outer bin is taken to be as wide as its neighbour."""
    if len(edges) < 2:
        return np.arange(len(edges) + 1.0)
    half = np.diff(edges) / 2
    return np.concatenate([edges[:1] - half[:1], edges[:-1] + half, edges[-1:] + half[-1:]])
