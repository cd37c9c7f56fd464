"""Skill over the Kaplan-Meier curve: 1 - loss(forest) / loss(Kaplan-Meier).

The loss is the quantile loss with inverse-probability-of-censoring weights (IPCW), averaged over
levels, by default ``Model.score_levels``. 1 is perfect; 0 is no better than the quantiles of one
marginal curve for all rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from cqrf._input.intervals import refuse_intervals
from cqrf._input.target import Target
from cqrf._model.fitted import Model
from cqrf._survival.interval_curves import REACHED, survival_curves
from cqrf._survival.quantiles import QuantileSolver, curve_quantiles
from cqrf.metrics.ipcw import marginal_weights
from cqrf.metrics.quantile import censored_quantile_loss


def compute_skill(
    model: Model,
    predicted: NDArray[np.float64],
    test: Target,
    levels: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    censored_as: Target | None = None,
) -> float:
    """Skill of predicted quantiles, shape (n, n_levels), at ``levels`` or ``model.score_levels``.

    Test rows are taken to be censored as the training rows are, or as those of ``censored_as``; if
    the training rows are intervals, as the test rows themselves.
    """
    check_consistent_length(predicted, test.time)
    refuse_intervals(test.lower, "the skill is")
    if censored_as is None and model.lower is not None:
        censored_as = test
    levels = np.asarray(model.score_levels if levels is None else levels, dtype=np.float64)
    baseline = np.repeat(marginal_quantiles(model, levels), len(test.time), axis=0)
    forest_loss, marginal_loss = (
        censored_quantile_loss(
            censored_as or model.training_target,
            test,
            values,
            levels,
            censoring=model.censoring,
            train_weight=model.training_weight if censored_as is None else None,
            sample_weight=sample_weight,
        ).mean()
        for values in (predicted, baseline)
    )
    if marginal_loss == 0:  # all times are equal: there is nothing to improve on
        return 0.0 if forest_loss == 0 else -np.inf
    return float(1.0 - forest_loss / marginal_loss)


def compute_oob_skill(
    model: Model, predicted: NDArray[np.float64], levels: ArrayLike | None = None
) -> float:
    """Skill of out-of-bag quantiles of the training rows; rows without one (NaN) are left out."""
    known = np.flatnonzero(~np.isnan(predicted).any(axis=1))
    if len(known) == 0:
        raise ValueError(
            "no row is out of bag: every tree has drawn all of them. Fit with max_samples "
            "below 1, or with bootstrap=True."
        )
    test = model.training_target.take(known)._replace(entry=None)
    return compute_skill(
        model, predicted[known], test, levels, sample_weight=model.training_weight[known]
    )


def marginal_quantiles(model: Model, levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles of the survival curve of all training rows, shape (1, n_levels).

    A level that the curve does not reach has the last time.
    """
    weights = marginal_weights(model.rows.weight, len(model.order))
    if model.interval_ends is not None:
        curves = survival_curves(weights, model.ranked_target, model.interval_ends)
        return curve_quantiles(curves, levels, tolerance=REACHED).fill("clip")
    solver = QuantileSolver(censoring=model.censoring)
    return solver.solve(weights, model.ranked_target, levels).fill("clip")
