"""Skill: how much smaller the quantile loss is than that of one Kaplan-Meier curve for all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.sample_weight import read_sample_weight
from cqrf._input.target import Target, rank_target
from cqrf._survival.curves import RankedTarget
from cqrf._survival.quantiles import QuantileSolver, read_levels
from cqrf.metrics.ipcw import as_target, marginal_weights, read_evaluation_rows
from cqrf.metrics.quantile import compute_row_losses


def quantile_skill(
    y_train: Any,
    y_test: Any,
    predicted: ArrayLike,
    quantiles: float | Sequence[float] | NDArray[np.float64],
    *,
    baseline: ArrayLike | None = None,
    censoring: str = "right",
    train_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """1 - loss(predicted) / loss(Kaplan-Meier), with the IPCW quantile loss averaged over levels.

    1 is perfect; 0 is no better than the quantiles of the Kaplan-Meier curve of ``y_train``.

    Parameters
    ----------
    y_train, y_test : targets in any form that ``fit`` takes
        Training rows, to estimate G and the Kaplan-Meier curve from, and test rows.
    predicted : array-like of shape (n, n_quantiles), or (n,) for a single level
        Predicted quantiles; an infinite one lies beyond the horizon.
    quantiles : float or sequence of float
        Their levels.
    baseline : array-like of shape (n_quantiles,), optional
        Quantiles to compare with, the same for all rows. Default: those of the Kaplan-Meier
        curve of ``y_train``, or its last time where it does not fall that far.
    censoring : {"right", "left"}
        Side on which times are censored.
    train_weight, sample_weight : array-like, optional
        Weights of the rows of ``y_train`` and of ``y_test``.

    Returns
    -------
    float
        1 is perfect, 0 is no better than Kaplan-Meier.

    Examples
    --------
    >>> from cqrf import censored
    >>> from cqrf.metrics import quantile_skill
    >>> y = censored([1.0, 2.0, 4.0], [True, True, True])
    >>> quantile_skill(y, y, [1.0, 2.0, 3.0], 0.5).__round__(3)
    0.667
    """
    train = as_target(y_train)
    rows = read_evaluation_rows(
        train, y_test, censoring=censoring, train_weight=train_weight, sample_weight=sample_weight
    )
    levels, is_scalar = read_levels(quantiles)
    values = np.asarray(predicted, np.float64)
    if is_scalar and values.ndim == 1:
        values = values[:, np.newaxis]
    if baseline is None:
        baseline = _kaplan_meier_quantiles(train, levels, censoring, train_weight)
    same = np.atleast_1d(np.asarray(baseline, np.float64))
    if same.shape != levels.shape:
        raise ValueError(
            f"baseline has shape {same.shape}; expected one time for each of {levels.size} levels."
        )
    weight, loss = compute_row_losses(rows, values, levels)
    of_baseline = compute_row_losses(rows, np.tile(same, (len(rows.time), 1)), levels).loss
    return compare_losses((weight @ loss).mean(), (weight @ of_baseline).mean())


def compare_losses(loss: float, baseline: float) -> float:
    """1 - loss / baseline; where the baseline is perfect, 0 if the other is, too, or -inf."""
    if baseline == 0:
        return 0.0 if loss == 0 else -np.inf
    return float(1.0 - loss / baseline)


def _kaplan_meier_quantiles(
    train: Target,
    levels: NDArray[np.float64],
    censoring: str,
    train_weight: ArrayLike | None,
) -> NDArray[np.float64]:
    """Quantiles of the marginal curve, clipped to its last time; shape (n_levels,)."""
    ranked, order = rank_target(train, censoring)
    n = len(order)
    weight = None if train_weight is None else read_sample_weight(train_weight, n)[order]
    target = RankedTarget.of(ranked, weight)
    solver = QuantileSolver(censoring=censoring)
    return solver.solve(marginal_weights(weight, n), target, levels).fill("clip")[0]
