"""Scores of cumulative incidences, where there are competing risks.

The cumulative incidence of cause k is F_k(t|x) = P(T <= t, cause k | x). Its Brier score at t is
the mean of (1(T <= t, cause k) - F_k(t|x))^2, with IPCW: a row with an event by t, of whatever
cause, has the weight 1 / G(Y-), a row at risk after t the weight 1 / G(t) (Schoop et al. 2011). G
is the censoring survival: an event of any cause ends a row without censoring it.

With one cause F = 1 - S, and the score is that of the survival curve.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._survival.step_curves import StepCurves
from cqrf.metrics.causes import rows_of_cause
from cqrf.metrics.ipcw import EvaluationRows, as_target, check_curves, read_evaluation_rows
from cqrf.metrics.score_times import (
    average,
    default_times,
    hide_beyond_horizon,
    read_probabilities,
    read_range,
    read_times,
)


def brier_score_incidence(
    y_train: Any,
    y_test: Any,
    incidence: ArrayLike | StepCurves,
    times: ArrayLike,
    *,
    cause: Any = None,
    censoring_survival: StepCurves | None = None,
    train_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Brier score of the cumulative incidence of a cause, at each time.

    NaN, with a warning, at times beyond the horizon. Times are right-censored.

    Parameters
    ----------
    y_train, y_test : targets in any form that ``fit`` takes
        Training rows, to estimate G from, and test rows.
    incidence : array-like of shape (n, n_times), or StepCurves
        F_k(t|x) = P(T <= t, cause k | x) of each row at each time, as
        ``forest.predict_incidence(X, times, cause=k)`` gives it.
    times : array-like of shape (n_times,)
        Times to score at.
    cause : int or str, optional
        The cause k, as in y. Default: an event of any cause, whose incidence is 1 - S.
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
    >>> from cqrf.metrics import brier_score_incidence
    >>> y = censored([1.0, 2.0, 4.0, 5.0], [1, 2, 1, 2], censored=0)
    >>> brier_score_incidence(y, y, [[1.0], [0.5], [0.0], [0.5]], [3.0], cause=1).tolist()
    [0.125]
    """
    rows = read_evaluation_rows(
        y_train,
        y_test,
        censoring_survival=censoring_survival,
        train_weight=train_weight,
        sample_weight=sample_weight,
    )
    at = read_times(times)
    values = read_probabilities("incidence", incidence, at, len(rows.time))
    of_cause = rows_of_cause(as_target(y_test), cause, as_target(y_train))
    return hide_beyond_horizon(_score(rows, of_cause, values, at), rows, at)


def integrated_brier_score_incidence(
    y_train: Any,
    y_test: Any,
    incidence: ArrayLike | StepCurves,
    times: ArrayLike | None = None,
    *,
    cause: Any = None,
    **options: Any,
) -> float:
    """Mean Brier score of the cumulative incidence of a cause, by the trapezoidal rule.

    Takes what :func:`brier_score_incidence` takes; ``times`` ascend. Times, and what becomes of
    those beyond the horizon, are as in :func:`integrated_brier_score`: without ``times``, which
    needs step curves, the range is from the 10th to the 90th percentile of the test times.

    Parameters
    ----------
    y_train, y_test, incidence, times, cause
        As in :func:`brier_score_incidence`.
    **options
        ``censoring_survival``, ``train_weight`` and ``sample_weight``, as there.

    Returns
    -------
    float
        Lower is better.

    Examples
    --------
    >>> import numpy as np
    >>> from cqrf.datasets import make_competing_risks
    >>> from cqrf.metrics import integrated_brier_score_incidence
    >>> train = make_competing_risks(500, random_state=0)
    >>> test = make_competing_risks(500, random_state=1)
    >>> times = np.linspace(1, 6, 20)
    >>> true = test.incidence(test.X, times, cause=1)
    >>> blind = np.tile(true.mean(axis=0), (500, 1))
    >>> scores = [
    ...     integrated_brier_score_incidence(train.y, test.y, predicted, times, cause=1)
    ...     for predicted in (true, blind)
    ... ]
    >>> scores[0] < scores[1]
    True
    """
    if times is None:
        rows = read_evaluation_rows(y_train, y_test, **options)
        check_curves("incidence", incidence, len(rows.time))
        at = default_times(rows)
    else:
        at = read_range(times)
    scores = brier_score_incidence(y_train, y_test, incidence, at, cause=cause, **options)
    return average(scores, at)


def _score(
    rows: EvaluationRows,
    of_cause: NDArray[np.bool_],
    incidence: NDArray[np.float64],
    times: NDArray[np.float64],
) -> NDArray[np.float64]:
    is_past = rows.time[:, np.newaxis] <= times
    had_event = rows.event[:, np.newaxis] & is_past
    weight = had_event / rows.censoring_survival_before(rows.time)[:, np.newaxis]
    weight += ~is_past / rows.censoring_survival_at(times)
    outcome = of_cause[:, np.newaxis] & is_past
    return rows.sample_weight @ (weight * (outcome - incidence) ** 2)
