"""The fitted working model: what it predicts, and the scale of its residuals.

The model gives every row a linear predictor l(x), the sum of one score per feature. Together with
the cumulative baseline hazard H0 it maps times to the residual scale,

    phi_x(t) = H0(t) exp(l(x)),

an increasing function of t. If the model is right, phi_x(T) has the same distribution at every x.
Quantiles are equivariant: the tau-quantile of T given x is phi_x^{-1} of that of phi_x(T).

H0 is piecewise linear between event times. Nothing is known of it beyond the last event: it is
flat from there to the end of the follow-up, and values above its maximum have no time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._runtime.compiling import called

Floats = NDArray[np.float64]

LARGEST = 50.0  # linear predictor or score: far beyond all that is met, and exp of it is finite


class WorkingModel(NamedTuple):
    """A fitted working model, and the scale of its residuals.

    Attributes
    ----------
    scores : (n_features, N_BINS) float64
        Contribution of each bin of each feature to the linear predictor.
    knots : (n_knots,) float64
        Times, ascending, oriented to the right.
    hazards : (n_knots,) float64
        Cumulative baseline hazard at the knots, ascending.
    linear_predictor : (n,) float64
        Of the training rows by rank. Cross-fitted: a row has had no part in its own.
    root_share : float
        Share of the curve that all residuals together give; see ``_model/share.py``.
    """

    scores: Floats
    knots: Floats
    hazards: Floats
    linear_predictor: Floats
    root_share: float = 0.0

    def predict(self, codes: NDArray[np.uint8]) -> Floats:
        """Linear predictor of rows given by their bins, codes of shape (n, n_features)."""
        total = np.zeros(len(codes))
        for feature in self.features:
            total += self.scores[feature][codes[:, feature]]
        return np.clip(total, -LARGEST, LARGEST)

    def take(self, rows: NDArray[np.integer[Any]]) -> WorkingModel:
        """The same, with the linear predictors of some training rows."""
        return self._replace(linear_predictor=self.linear_predictor[rows])

    @property
    def features(self) -> NDArray[np.intp]:
        """Features that the linear predictor depends on."""
        return np.flatnonzero((self.scores != 0).any(axis=1))

    def residuals(self, time: Floats, linear_predictor: Floats) -> Floats:
        """Times on the residual scale; times are oriented to the right."""
        return np.interp(time, self.knots, self.hazards) * np.exp(linear_predictor)

    def hazard_places(self, time: Floats) -> Floats:
        """Baseline hazard at times, such that residuals compare with it as their times would.

        The hazard is flat outside of the knots: a time before the first of them is less than any
        residual, one beyond the last is more than any residual that has a time.
        """
        most = np.nextafter(self.hazards[-1], np.inf)
        return np.interp(time, self.knots, self.hazards, left=-np.inf, right=most)


@called
def find_time(hazard, knots, hazards, first):
    """Time at which the cumulative baseline hazard reaches a value, and the knot at or after it.

    Infinity if it never does. ``first`` is a knot that does not come after the one looked for.
    """
    low, high = first, hazards.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if hazards[middle] < hazard:
            low = middle + 1
        else:
            high = middle
    if low == hazards.shape[0]:
        return np.inf, low
    if low == 0 or hazards[low] == hazard:
        return knots[low], low
    share = (hazard - hazards[low - 1]) / (hazards[low] - hazards[low - 1])
    return knots[low - 1] + share * (knots[low] - knots[low - 1]), low
