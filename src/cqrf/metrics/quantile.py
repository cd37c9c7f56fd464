"""Quantile (pinball) loss: u (tau - 1(u < 0)) with u = T - q.

Its mean is smallest where q is the tau-quantile of T. Under censoring we compute the loss of
min(q, h) for min(T, h), with h the horizon. It is known for each row that had its event before h
or is still at risk at h. Such a row has the IPCW weight 1 / G(min(Y, h)-), and the weights are
scaled to sum to 1. Without censoring this is the plain mean of the quantile loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.sample_weight import read_sample_weight
from cqrf._input.target import oriented
from cqrf._survival.quantiles import read_levels
from cqrf._survival.step_curves import StepCurves
from cqrf.metrics.ipcw import EvaluationRows, read_evaluation_rows
from cqrf.metrics.metric import Metric, Predictions


def quantile_loss(
    time: ArrayLike,
    predicted: ArrayLike,
    quantiles: float | Sequence[float] | NDArray[np.float64],
    *,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Quantile loss of each prediction.

    Parameters
    ----------
    time : array-like of shape (n,) or (n, 1), or a number
        Times of the events, none censored.
    predicted : array-like of shape (n, n_quantiles), or (n,) or a number for a single level
        Predicted quantiles.
    quantiles : float or sequence of float
        Their levels.
    sample_weight : array-like of shape (n,), optional
        Each row's loss is multiplied by its weight over the mean weight, so that the mean over
        rows is the weighted mean.

    Returns
    -------
    ndarray of shape (n, n_quantiles), or (n,) for a single level
        Loss of each prediction; lower is better.

    Examples
    --------
    >>> from cqrf.metrics import quantile_loss
    >>> quantile_loss([3.0, 1.0], [2.0, 2.0], 0.9).round(2).tolist()
    [0.9, 0.1]
    >>> quantile_loss([3.0, 1.0], [[2.0, 3.0], [1.0, 2.0]], [0.1, 0.9]).round(2).tolist()
    [[0.1, 0.0], [0.0, 0.1]]
    """
    levels, is_scalar = read_levels(quantiles)
    t, q = np.asarray(time, np.float64), np.asarray(predicted, np.float64)
    # Times and predictions of one dimension each are ambiguous for a list of levels.
    fits = is_scalar or (q.shape[-1:] == levels.shape and not t.ndim == q.ndim == 1)
    if not fits or t.ndim > q.ndim > 0:
        raise ValueError(
            f"predicted has shape {q.shape} and time {t.shape}; expected a row for each time and, "
            f"for a list of levels, a column for each of the {levels.size} levels."
        )
    distance = (t[..., np.newaxis] if t.ndim < q.ndim else t) - q
    loss = distance * ((levels[0] if is_scalar else levels) - (distance < 0))
    if sample_weight is None:
        return loss
    weight = read_sample_weight(sample_weight, len(loss))
    weight = weight.reshape(-1, *[1] * (loss.ndim - 1))
    return loss * (weight / weight.mean())


def censored_quantile_loss(
    y_train: Any,
    y_test: Any,
    predicted: ArrayLike,
    quantiles: float | Sequence[float] | NDArray[np.float64],
    *,
    censoring: str = "right",
    censoring_survival: StepCurves | None = None,
    train_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Mean quantile loss at each level, up to the horizon, with IPCW.

    Parameters
    ----------
    y_train, y_test : targets in any form that ``fit`` takes
        Training rows, to estimate G from, and test rows.
    predicted : ndarray of shape (n, n_quantiles), or (n,) for a single level
        Predicted quantiles; an infinite one lies beyond the horizon.
    quantiles : float or sequence of float
        Their levels; the loss of a single one is a number.
    censoring : {"right", "left"}
        Side on which times are censored.
    censoring_survival : StepCurves, optional
        G(.|x) of each row of ``y_test``, for censoring that depends on the covariates:
        ``forest.predict_censoring(X_test)``; or, where it depends on covariates that T does not
        depend on, ``predict_survival`` of a forest fitted to ``censoring_target(y_train)``.
        Default: the Kaplan-Meier estimate from ``y_train``.
    train_weight, sample_weight : array-like, optional
        Weights of the rows of ``y_train`` and of ``y_test``.

    Returns
    -------
    ndarray of shape (n_quantiles,), or float for a single level
        Mean loss at each level; lower is better.

    Examples
    --------
    >>> from cqrf import censored
    >>> from cqrf.metrics import censored_quantile_loss
    >>> y = censored([1.0, 2.0, 4.0], [True, True, True])
    >>> censored_quantile_loss(y, y, [[2.0], [2.0], [2.0]], [0.5]).tolist()
    [0.5]
    """
    rows = read_evaluation_rows(
        y_train,
        y_test,
        censoring=censoring,
        censoring_survival=censoring_survival,
        train_weight=train_weight,
        sample_weight=sample_weight,
    )
    levels, is_scalar = read_levels(quantiles)
    q = np.asarray(predicted, np.float64)
    if is_scalar and q.ndim == 1:
        q = q[:, np.newaxis]
    weight, loss = compute_row_losses(rows, q, levels)
    mean = weight @ loss
    return mean[0] if is_scalar else mean


class RowLosses(NamedTuple):
    """IPCW weight of each row, which sum to 1, and its loss at each level."""

    weight: NDArray[np.float64]
    """Shape (n,)."""
    loss: NDArray[np.float64]
    """Shape (n, n_levels)."""


def compute_row_losses(
    rows: EvaluationRows, predicted: NDArray[np.float64], levels: NDArray[np.float64]
) -> RowLosses:
    """Loss of min(q, h) for min(T, h) of each row; a row without a known loss has weight 0."""
    time = np.minimum(rows.time, rows.horizon)
    is_known = rows.event | (time >= rows.horizon)
    weight = rows.sample_weight * is_known / rows.censoring_survival_before(time)
    if not weight.any():
        raise ValueError("no row of y has an event or reaches the horizon: nothing to compare.")
    q = np.minimum(oriented(predicted, rows.censoring), rows.horizon)
    if q.shape != (len(time), len(levels)):
        raise ValueError(
            f"predicted has shape {q.shape}; expected a row for each of the {len(time)} rows of "
            f"y_test and a column for each of the {levels.size} levels."
        )
    if np.isnan(q).any() or np.isinf(q).any():
        raise ValueError("predicted quantiles must not be NaN, nor infinite before the horizon.")
    loss = quantile_loss(time, q, 1.0 - levels if rows.censoring == "left" else levels)
    return RowLosses(weight / weight.sum(), loss)


def _compute(
    predictions: Predictions,
    *,
    quantiles: ArrayLike | None = None,
    forest_censoring: bool = False,
) -> NDArray[np.float64]:
    chosen = predictions.score_levels if quantiles is None else quantiles
    levels = np.atleast_1d(np.asarray(chosen, np.float64))
    return censored_quantile_loss(
        predictions.y_train,
        predictions.y_test,
        predictions.quantiles(levels),
        levels,
        **predictions.ipcw_options(forest_censoring=forest_censoring),
    )


QUANTILE_LOSS = Metric(
    name="quantile_loss",
    key="loss_{level}",
    label="quantile loss at {level}",
    description="Mean quantile (pinball) loss with IPCW, in units of time.",
    higher_is_better=False,
    needs=("quantiles", "training_rows"),
    compute=_compute,
)
