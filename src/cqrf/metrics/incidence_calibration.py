"""Calibration of cumulative incidences at one time, in groups of similar predictions.

Rows are sorted into groups by their predicted F_k(t|x). In each group the mean prediction is
compared with the Aalen-Johansen estimate of its rows, which censoring does not bias:

    F_k(t) = sum over times u <= t of S(u-) d_k(u) / n(u),

with n(u) rows at risk at u, d_k(u) events of cause k and S the Kaplan-Meier curve of all events.
Confidence intervals use the variance by the delta method (Marubini and Valsecchi 1995), on the
scale log(-log F). With one cause these are Kaplan-Meier's estimate and Greenwood's variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from cqrf._input.risk_sets import weigh_risk_sets
from cqrf._input.sample_weight import read_sample_weight
from cqrf._input.target import Target
from cqrf._runtime.arguments import read_count, read_fraction
from cqrf._survival.step_curves import StepCurves
from cqrf.metrics.causes import rows_of_cause
from cqrf.metrics.ipcw import as_target
from cqrf.metrics.score_times import read_probabilities


@dataclass(frozen=True, eq=False, repr=False)
class IncidenceCalibration:
    """Predicted and observed incidence of a cause by one time, in groups of rows.

    Attributes
    ----------
    horizon : float
        The time.
    predicted : ndarray of shape (n_groups,)
        Mean predicted incidence of each group, ascending.
    observed : ndarray of shape (n_groups,)
        Aalen-Johansen estimate of each group; NaN if its last row was censored before the time.
    lower, upper : ndarray of shape (n_groups,)
        Confidence interval of ``observed``; NaN where ``observed`` is 0 or 1.
    n_rows : ndarray of shape (n_groups,)
        Effective number of rows of each group, (sum w)^2 / sum w^2.
    distance : float
        Mean absolute difference of predicted and observed incidence, groups weighted by their
        rows; 0 is perfect, NaN if no group is known.

    Examples
    --------
    >>> from cqrf import censored
    >>> from cqrf.metrics import incidence_calibration
    >>> y = censored([1.0, 2.0, 4.0, 5.0], [1, 2, 1, 2], censored=0)
    >>> calibration = incidence_calibration(y, [0.5, 0.5, 0.5, 0.5], 3.0, cause=1, n_groups=1)
    >>> calibration.observed.tolist()
    [0.25]
    """

    horizon: float
    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    n_rows: NDArray[np.float64]
    distance: float

    def __repr__(self) -> str:
        groups = f"{len(self.predicted)} groups, {self.n_rows.sum():.0f} rows"
        if np.isnan(self.distance):
            return f"IncidenceCalibration(time {self.horizon:g}, {groups}: too many are censored)"
        return f"IncidenceCalibration(distance={self.distance:.3f} at {self.horizon:g}, {groups})"


def incidence_calibration(
    y: Any,
    incidence: ArrayLike | StepCurves,
    horizon: float,
    *,
    cause: Any = None,
    n_groups: int = 10,
    confidence: float = 0.95,
    sample_weight: ArrayLike | None = None,
) -> IncidenceCalibration:
    """Calibration of the predicted incidence of a cause by a time.

    Parameters
    ----------
    y : target in any form that ``fit`` takes
        The test rows, right-censored; entry times are taken into account.
    incidence : array-like of shape (n,), or StepCurves
        F_k(horizon|x) of each row: ``forest.predict_incidence(X, [horizon], cause=k)``.
    horizon : float
        The time up to which events count.
    cause : int or str, optional
        The cause k, as in y. Default: an event of any cause, whose incidence is 1 - S.
    n_groups : int, default=10
        Groups of about equally many rows, by their prediction; fewer if predictions are tied.
    confidence : float, default=0.95
        Level of the confidence intervals.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; rows of weight 0 are left out.

    Returns
    -------
    IncidenceCalibration
        Predicted and observed incidence of each group, and their mean distance.

    Examples
    --------
    >>> from cqrf.datasets import make_competing_risks
    >>> from cqrf.metrics import incidence_calibration
    >>> X, y, *_, incidence, _ = make_competing_risks(2000, random_state=0)
    >>> incidence_calibration(y, incidence(X, [3.0], cause=1), 3.0, cause=1, n_groups=5)
    IncidenceCalibration(distance=0.011 at 3, 5 groups, 2000 rows)
    """
    target = as_target(y)
    n, at = len(target.time), read_fraction("horizon", horizon, -np.inf, np.inf)
    values = _read_incidence(incidence, at, n)
    of_cause = rows_of_cause(target, cause)
    weight = np.ones(n) if sample_weight is None else read_sample_weight(sample_weight, n)
    groups = _group(values, weight, read_count("n_groups", n_groups, 1))
    z = float(ndtri((1 + read_fraction("confidence", confidence, 0.0, 1.0)) / 2))
    columns = np.empty((5, len(groups)))
    for group, rows in enumerate(groups):
        w = weight[rows] * weight[rows].sum() / (weight[rows] ** 2).sum()
        share, variance = aalen_johansen(target.take(rows), of_cause[rows], w, at)
        mean = values[rows] @ w / w.sum()
        columns[:, group] = [mean, share, *_limits(share, variance, z), w.sum()]
    predicted, observed, lower, upper, n_rows = columns
    known = ~np.isnan(observed)
    difference = np.abs(predicted - observed)[known]
    distance = float(np.average(difference, weights=n_rows[known])) if known.any() else np.nan
    return IncidenceCalibration(at, predicted, observed, lower, upper, n_rows, distance)


def aalen_johansen(
    target: Target, of_cause: NDArray[np.bool_], weight: NDArray[np.float64], horizon: float
) -> tuple[float, float]:
    """Incidence of the cause by the horizon, and its variance; NaN if it is not known there."""
    is_early = target.event & (target.time <= horizon)
    times, places = np.unique(target.time[is_early], return_inverse=True)
    events = np.bincount(places, weight[is_early], len(times))
    of_it = np.bincount(places, (weight * of_cause)[is_early], len(times))
    at_risk = weigh_risk_sets(target, weight, times)
    survival = np.cumprod(1.0 - events / at_risk)
    if target.time.max() < horizon and (len(times) == 0 or survival[-1] > 0):
        return np.nan, np.nan
    before = np.concatenate([[1.0], survival[:-1]])[: len(times)]
    incidence = np.cumsum(before * of_it / at_risk)
    if len(times) == 0:
        return 0.0, 0.0
    to_come = incidence[-1] - incidence
    left = at_risk - events
    hazard_variance = np.divide(events, at_risk * left, out=np.zeros_like(left), where=left > 0)
    variance = (
        to_come**2 * hazard_variance
        + before**2 * of_it * (at_risk - of_it) / at_risk**3
        - 2.0 * to_come * before * of_it / at_risk**2
    )
    return float(incidence[-1]), float(max(variance.sum(), 0.0))


def _read_incidence(
    incidence: ArrayLike | StepCurves, horizon: float, n: int
) -> NDArray[np.float64]:
    if not isinstance(incidence, StepCurves):
        incidence = np.asarray(incidence, np.float64)
        if incidence.shape == (n,):
            incidence = incidence[:, np.newaxis]
    return read_probabilities("incidence", incidence, np.array([horizon]), n)[:, 0]


def _group(
    values: NDArray[np.float64], weight: NDArray[np.float64], n_groups: int
) -> list[NDArray[np.intp]]:
    """Rows of positive weight, in groups by their values; equal values share a group."""
    kept = np.flatnonzero(weight > 0)
    inner = np.linspace(0.0, 1.0, n_groups + 1)[1:-1]
    edges = np.unique(np.quantile(values[kept], inner))
    group = np.searchsorted(edges, values[kept], side="left")
    return [kept[group == each] for each in np.unique(group)]


def _limits(share: float, variance: float, z: float) -> tuple[float, float]:
    """Confidence limits of a share, on the scale log(-log)."""
    if not 0.0 < share < 1.0:
        return np.nan, np.nan
    spread = z * np.sqrt(variance) / abs(share * np.log(share))
    return float(share ** np.exp(spread)), float(share ** np.exp(-spread))
