"""Scores of survival curves: squared distance between prediction and outcome.

The Brier score at t is the mean of (1(T > t) - S(t|x))^2, with IPCW (Graf et al. 1999). Its mean
over a range of times is the integrated Brier score. Its integral over all times up to the horizon
is the continuous ranked probability score (CRPS), in units of time.

Without censoring there is no horizon, and the CRPS is the usual one for a curve that falls to 0.
Any other curve is then scored up to the last time of the training and test rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.target import oriented
from cqrf._survival.step_curves import StepCurves
from cqrf.metrics.incidence import integrated_brier_score_incidence
from cqrf.metrics.ipcw import EvaluationRows, check_curves, read_evaluation_rows
from cqrf.metrics.metric import Metric, Predictions
from cqrf.metrics.score_times import (
    average,
    default_times,
    hide_beyond_horizon,
    read_probabilities,
    read_range,
    read_times,
)

# Curves are evaluated at blocks of times, so that a block has about this many values.
BLOCK_VALUES = 4_000_000


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
    values = read_probabilities("survival", survival, at, len(rows.time))
    return hide_beyond_horizon(_score(rows, values, oriented(at, censoring)), rows, at)


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
        at = read_range(times)
    return average(brier_score(y_train, y_test, survival, at, **options), at)


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
    predictions: Predictions,
    *,
    times: ArrayLike | None = None,
    forest_censoring: bool = False,
    cause: Any = None,
) -> float:
    options = predictions.ipcw_options(forest_censoring=forest_censoring)
    train, test = predictions.y_train, predictions.y_test
    if cause is None:
        return integrated_brier_score(train, test, predictions.survival(times), times, **options)
    del options["censoring"]  # several causes are right-censored
    incidence = predictions.incidence(cause, times)
    return integrated_brier_score_incidence(train, test, incidence, times, cause=cause, **options)


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
    label_of_cause="integrated Brier score",
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
