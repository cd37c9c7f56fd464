"""Scores of survival curves: squared distance between prediction and outcome.

The Brier score at t is the mean of (1(T > t) - S(t|x))^2, with IPCW (Graf et al. 1999). Its mean
over a range of times is the integrated Brier score. Its integral over all times up to the horizon
is the continuous ranked probability score (CRPS), in units of time.

Without censoring there is no horizon, and the CRPS is the usual one for a curve that falls to 0.
Any other curve is then scored up to the last time of the training and test rows.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.target import oriented
from cqrf._runtime.arguments import read_floats
from cqrf._survival.step_curves import StepCurves
from cqrf.metrics.ipcw import FLOOR, EvaluationRows, check_curves, read_evaluation_rows
from cqrf.metrics.metric import Metric, Predictions

# Curves are evaluated at blocks of times, so that a block has about this many values.
BLOCK_VALUES = 4_000_000
# Default times of the integrated Brier score: percentiles that bound them, and their number.
DEFAULT_RANGE = (0.1, 0.9)
N_TIMES = 50


def brier_score(
    y_train: Any,
    y_test: Any,
    survival: ArrayLike | StepCurves,
    times: ArrayLike,
    *,
    censoring: str = "right",
    censoring_survival: StepCurves | None = None,
    train_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Brier score at each time; NaN, with a warning, at times beyond the horizon.

    Parameters
    ----------
    y_train, y_test : targets in any form that ``fit`` takes
        Training rows, to estimate G from, and test rows.
    survival : array-like of shape (n, n_times), or StepCurves
        P(T > t | x) of each row at each time.
    times : array-like of shape (n_times,)
        Times to score at.
    censoring : {"right", "left"}
        Side on which times are censored.
    censoring_survival : StepCurves, optional
        G(.|x) of each row of ``y_test``; see :func:`censored_quantile_loss`.
    train_weight, sample_weight : array-like, optional
        Weights of the rows of ``y_train`` and of ``y_test``.

    Returns
    -------
    ndarray of shape (n_times,)
        Score at each time; lower is better.

    Examples
    --------
    >>> from cqrf import censored
    >>> from cqrf.metrics import brier_score
    >>> y = censored([1.0, 2.0, 4.0, 5.0], [True, True, True, True])
    >>> brier_score(y, y, [[0.5], [0.5], [0.5], [0.5]], [3.0]).tolist()
    [0.25]
    """
    rows = read_evaluation_rows(
        y_train,
        y_test,
        censoring=censoring,
        censoring_survival=censoring_survival,
        train_weight=train_weight,
        sample_weight=sample_weight,
    )
    at = read_times(times)
    values = _read_probabilities(survival, at, len(rows.time))
    scores = _score(rows, values, oriented(at, censoring))
    beyond = oriented(at, censoring) >= rows.horizon
    if beyond.any():
        warnings.warn(
            f"{beyond.sum()} of {len(at)} times lie beyond the horizon "
            f"{oriented(rows.horizon, censoring):g}, where fewer than {FLOOR:g} of the "
            "training rows are uncensored: their score is NaN.",
            stacklevel=2,
        )
        scores[beyond] = np.nan
    return scores


def _read_probabilities(
    survival: ArrayLike | StepCurves, times: NDArray[np.float64], n: int
) -> NDArray[np.float64]:
    values = (
        survival(times, "extend")
        if isinstance(survival, StepCurves)
        else np.asarray(survival, np.float64)
    )
    if values.shape != (n, len(times)):
        raise ValueError(
            f"survival has shape {values.shape}; expected ({n}, {len(times)}): a row for "
            "each of y_test, a column for each time."
        )
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("survival must be probabilities, from 0 to 1 and without NaN.")
    return values


def integrated_brier_score(
    y_train: Any,
    y_test: Any,
    survival: ArrayLike | StepCurves,
    times: ArrayLike | None = None,
    **options: Any,
) -> float:
    """Mean Brier score over a range of times, by the trapezoidal rule.

    Takes what :func:`brier_score` takes; ``times`` ascend. Times beyond the horizon are left
    out, with a warning. If fewer than two times remain, the score is NaN.

    Without ``times``, which needs step curves, the range is from the 10th to the 90th percentile
    of the test times. Where this range is a single time (most rows end with the study, say) or
    starts beyond the horizon, the percentiles are those of the distinct test times up to the
    horizon. If all test times are equal, the score is NaN, with a warning.

    Parameters
    ----------
    y_train, y_test, survival
        As in :func:`brier_score`.
    times : array-like of shape (n_times,), optional
        Times to average over.
    **options
        Other arguments of :func:`brier_score`.

    Returns
    -------
    float
        Lower is better.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.metrics import integrated_brier_score
    >>> train, test = make_aft(300, random_state=0), make_aft(300, random_state=1)
    >>> forest = CensoredQuantileForest(random_state=0).fit(train.X, train.y)
    >>> integrated_brier_score(train.y, test.y, forest.predict_survival(test.X)) < 0.2
    True
    """
    if times is None:
        rows = read_evaluation_rows(y_train, y_test, **options)
        check_curves("survival", survival, len(rows.time))
        at = np.sort(oriented(default_times(rows), rows.censoring))
    else:
        at = read_times(times)
        if len(at) < 2 or not (np.diff(at) > 0).all():
            raise ValueError("times must be at least two, in ascending order.")
    scores = brier_score(y_train, y_test, survival, at, **options)
    is_known = ~np.isnan(scores)
    if len(at) == 1 and is_known.all():
        warnings.warn(
            f"the test times are all {at[0]:g}: with no range to integrate over, the integrated "
            "Brier score is NaN.",
            stacklevel=2,
        )
    if is_known.sum() < 2:
        return np.nan
    return float(np.trapezoid(scores[is_known], at[is_known]) / np.ptp(at[is_known]))


def crps(
    y_train: Any,
    y_test: Any,
    survival: StepCurves,
    *,
    censoring: str = "right",
    censoring_survival: StepCurves | None = None,
    train_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Continuous ranked probability score of survival curves, up to the horizon.

    The integral of the Brier score over time, exact for step curves, in units of time. Takes
    what :func:`brier_score` takes, with curves as ``forest.predict_survival(X_test)`` gives them.
    If there is no horizon, as without censoring, a curve that falls to 0 (or, under left
    censoring, starts from 1) is scored to its end, and any other up to the last time of the
    training and test rows.

    Parameters
    ----------
    y_train, y_test : targets in any form that ``fit`` takes
        Training rows, to estimate G from, and test rows.
    survival : StepCurves
        Survival curve of each test row.
    censoring, censoring_survival, train_weight, sample_weight
        As in :func:`brier_score`.

    Returns
    -------
    float
        In units of time; lower is better.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.metrics import crps
    >>> train, test = make_aft(300, random_state=0), make_aft(300, random_state=1)
    >>> forest = CensoredQuantileForest(random_state=0).fit(train.X, train.y)
    >>> bool(crps(train.y, test.y, forest.predict_survival(test.X)) < 0.75)
    True
    """
    rows = read_evaluation_rows(
        y_train,
        y_test,
        censoring=censoring,
        censoring_survival=censoring_survival,
        train_weight=train_weight,
        sample_weight=sample_weight,
    )
    check_curves("survival", survival, len(rows.time))
    return _integrate_brier(rows, survival)


def _integrate_brier(rows: EvaluationRows, survival: StepCurves) -> float:
    """Integral of the Brier score up to the horizon."""
    censoring = rows.censoring
    end = min(rows.horizon, rows.last_time)
    steps = [oriented(survival.times, censoring), rows.time, rows.marginal_survival.times]
    steps.append(np.array([end]))
    if rows.row_survival is not None:
        steps.append(oriented(rows.row_survival.times, censoring))
    grid = np.unique(np.concatenate(steps))
    grid = grid[grid <= rows.horizon]
    final = 0.0 if censoring == "right" else 1.0  # P(T > t) once every row has had its event
    is_open = survival(oriented(np.inf, censoring), "extend") != final
    # The score is constant between two steps: any time in the interval has its value.
    inside, lengths = (grid[1:] + grid[:-1]) / 2, np.diff(grid)
    total, size = 0.0, max(1, BLOCK_VALUES // len(rows.time))
    for start in range(0, len(inside), size):
        at = inside[start : start + size]
        values = survival(oriented(at, censoring), "extend")
        values[np.ix_(is_open, at > end)] = final
        scores = _score(rows, values, at)
        total += float(scores @ lengths[start : start + size])
    return total


def read_times(times: ArrayLike) -> NDArray[np.float64]:
    """Times to score at, as an array of one dimension without NaN."""
    at = np.atleast_1d(read_floats("times", times))
    if at.ndim > 1 or np.isnan(at).any():
        raise ValueError(f"times must be a list of numbers without NaN; found {times!r}.")
    return at


def default_times(rows: EvaluationRows) -> NDArray[np.float64]:
    """Evenly spaced times over DEFAULT_RANGE, oriented; a single one if all times are equal."""
    time = rows.time[rows.sample_weight > 0]
    first, last = np.quantile(time, DEFAULT_RANGE)
    if first >= min(last, rows.horizon):
        first, last = np.quantile(np.unique(np.minimum(time, rows.horizon)), DEFAULT_RANGE)
    return np.unique(np.linspace(first, last, N_TIMES))


def _score(
    rows: EvaluationRows, survival: NDArray[np.float64], times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Brier score at times oriented to the right; ``survival`` in the user's orientation."""
    own_time = rows.time[:, np.newaxis]
    if rows.censoring == "right":
        at_risk, is_past = survival, own_time <= times
    else:  # P(T > t) excludes t: oriented to the right, an event at t is not past at t
        at_risk, is_past = 1.0 - survival, own_time < times
    had_event = rows.event[:, np.newaxis] & is_past
    event_weight = had_event / rows.censoring_survival_before(rows.time)[:, np.newaxis]
    scores = rows.sample_weight @ (event_weight * at_risk**2)
    g = rows.censoring_survival_at(times)
    return scores + rows.sample_weight @ (~is_past * (1.0 - at_risk) ** 2 / g)


def _compute_integrated_brier_score(
    predictions: Predictions, *, times: ArrayLike | None = None, forest_censoring: bool = False
) -> float:
    return integrated_brier_score(
        predictions.y_train,
        predictions.y_test,
        predictions.survival(times),
        times,
        **predictions.ipcw_options(forest_censoring=forest_censoring),
    )


def _compute_crps(predictions: Predictions, *, forest_censoring: bool = False) -> float:
    curves = predictions.survival()
    assert isinstance(curves, StepCurves)
    return crps(
        predictions.y_train,
        predictions.y_test,
        curves,
        **predictions.ipcw_options(forest_censoring=forest_censoring),
    )


INTEGRATED_BRIER_SCORE = Metric(
    name="brier",
    key="integrated_brier_score",
    label="integrated Brier score",
    description="Squared error of the survival curve, averaged over the middle of the times.",
    higher_is_better=False,
    needs=("survival", "training_rows"),
    compute=_compute_integrated_brier_score,
)

CRPS = Metric(
    name="crps",
    key="crps",
    label="CRPS, in units of time",
    description="Squared error of the survival curve, integrated over all times up to the horizon.",
    higher_is_better=False,
    needs=("survival", "training_rows"),
    compute=_compute_crps,
)
