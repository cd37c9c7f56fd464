"""Time-dependent AUC: how well predictions tell who has had the event by a time t.

*Cases* have had their event by t (cumulative), *controls* are still at risk after t (dynamic). The
AUC at t is the share of pairs of a case and a control in which the case is predicted to have its
event earlier; a tied prediction counts 1/2. A case has the IPCW weight 1 / G(Y-), a control
1 / G(t), which is the same for all controls unless G is given for each row (Uno et al. 2007; Hung
and Chiang 2010). The integrated AUC is the mean over times, weighted by the events that the
Kaplan-Meier curve of the test rows has between them (Lambert and Chevret 2016).

Under left censoring cases and controls are those with T <= t and T > t, as at all other places.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.target import Target, oriented, rank_target
from cqrf._survival.curves import RankedTarget, step_curves
from cqrf._survival.step_curves import StepCurves
from cqrf.metrics.ipcw import (
    FLOOR,
    EvaluationRows,
    check_curves,
    marginal_weights,
    read_evaluation_rows,
)
from cqrf.metrics.metric import Metric, Predictions
from cqrf.metrics.score_times import default_times, read_times


def time_dependent_auc(
    y_train: Any,
    y_test: Any,
    predicted: ArrayLike | StepCurves,
    times: ArrayLike,
    *,
    censoring: str = "right",
    censoring_survival: StepCurves | None = None,
    train_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """AUC of cumulative cases and dynamic controls at each time, with IPCW.

    NaN, with a warning, at times beyond the horizon and where there is no case or no control.

    Parameters
    ----------
    y_train, y_test : targets in any form that ``fit`` takes
        Training rows, to estimate G from, and test rows.
    predicted : array-like of shape (n,) or (n, n_times), or StepCurves
        Larger means a later event: predicted times, or P(T > t | x) at each time; may be
        infinite. (scikit-survival takes risks, for which larger means earlier: negate them.)
    times : array-like of shape (n_times,)
        Times to compute the AUC at.
    censoring : {"right", "left"}
        Side on which times are censored.
    censoring_survival : StepCurves, optional
        G(.|x) of each row of ``y_test``; see :func:`censored_quantile_loss`.
    train_weight, sample_weight : array-like, optional
        Weights of the rows of ``y_train`` and of ``y_test``. A pair has the product of its weights.

    Returns
    -------
    ndarray of shape (n_times,)
        AUC at each time: 1 is perfect, .5 is random.

    Examples
    --------
    >>> from cqrf import censored
    >>> from cqrf.metrics import time_dependent_auc
    >>> y = censored([1.0, 2.0, 4.0, 5.0], [True, True, True, True])
    >>> time_dependent_auc(y, y, [2.0, 4.0, 3.0, 5.0], [3.0]).tolist()
    [0.75]
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
    values = oriented(_read_predicted(predicted, at, len(rows.time)), censoring)
    turned = oriented(at, censoring)
    scores = _score(rows, values, turned)
    beyond = turned >= rows.horizon
    scores[beyond] = np.nan
    _warn_if_unknown(scores, beyond, oriented(rows.horizon, censoring))
    return scores


def _warn_if_unknown(
    scores: NDArray[np.float64], beyond: NDArray[np.bool_], horizon: float
) -> None:
    """One warning for each reason why the AUC at some times is NaN."""
    if beyond.any():
        warnings.warn(
            f"{beyond.sum()} of {len(scores)} times lie beyond the horizon {horizon:g}, where "
            f"fewer than {FLOOR:g} of the training rows are uncensored: their AUC is NaN.",
            stacklevel=3,
        )
    alone = np.isnan(scores) & ~beyond
    if alone.any():
        warnings.warn(
            f"at {alone.sum()} of {len(scores)} times no test row has had its event, or none is "
            "at risk after it: their AUC is NaN.",
            stacklevel=3,
        )


def _read_predicted(
    predicted: ArrayLike | StepCurves, times: NDArray[np.float64], n: int
) -> NDArray[np.float64]:
    """Predictions of shape (n, n_times), or (n, 1) if they are the same at all times."""
    if isinstance(predicted, StepCurves):
        check_curves("predicted", predicted, n)
        return predicted(times, "extend")
    values = np.asarray(predicted, np.float64)
    if values.shape not in ((n,), (n, len(times))):
        raise ValueError(
            f"predicted has shape {values.shape}; expected ({n},), or ({n}, {len(times)}): a row "
            "for each of y_test, a column for each time."
        )
    if np.isnan(values).any():
        raise ValueError("predicted values must not be NaN.")
    return values.reshape(n, -1)


def _score(
    rows: EvaluationRows, predicted: NDArray[np.float64], times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """AUC at times oriented to the right, of predictions oriented to the right."""
    own_time, weight = rows.time[:, np.newaxis], rows.sample_weight[:, np.newaxis]
    # As in the Brier score: oriented to the right, P(T > t) excludes t from the left as well.
    is_past = own_time <= times if rows.censoring == "right" else own_time < times
    at_own_time = rows.censoring_survival_before(rows.time)[:, np.newaxis]
    cases = weight * (rows.event[:, np.newaxis] & is_past) / at_own_time
    controls = weight * ~is_past / rows.censoring_survival_at(times)
    places = [np.unique(column, return_inverse=True)[1] for column in predicted.T]
    if len(places) == 1:
        places *= len(times)
    pairs = zip(places, cases.T, controls.T, strict=True)
    return np.array([_share_in_order(*each) for each in pairs], dtype=np.float64)


def _share_in_order(
    places: NDArray[np.intp], case: NDArray[np.float64], control: NDArray[np.float64]
) -> float:
    """Weighted share of pairs with the case placed before the control; NaN without a pair."""
    cases, controls = np.bincount(places, case), np.bincount(places, control)
    total = case.sum() * control.sum()
    if total == 0:
        return np.nan
    after = controls[::-1].cumsum()[::-1] - controls
    return float(cases @ (after + 0.5 * controls) / total)


def integrated_auc(
    y_train: Any,
    y_test: Any,
    predicted: ArrayLike | StepCurves,
    times: ArrayLike | None = None,
    **options: Any,
) -> float:
    """Mean of the time-dependent AUC over times, weighted by the events between them.

    Takes what :func:`time_dependent_auc` takes; ``times`` ascend. The weight of a time is the
    fall of the Kaplan-Meier curve of the test rows since the time before it. Times at which the
    AUC is NaN are left out, with a warning. If none remains, the result is NaN.

    Without ``times`` there are 50, evenly spaced over the range of the integrated Brier score, from
    the 10th to the 90th percentile of the test times; those before the first event or beyond the
    horizon are left out.

    Parameters
    ----------
    y_train, y_test, predicted
        As in :func:`time_dependent_auc`.
    times : array-like of shape (n_times,), optional
        Times to average over.
    **options
        Other arguments of :func:`time_dependent_auc`.

    Returns
    -------
    float
        1 is perfect, .5 is random.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.metrics import integrated_auc
    >>> train, test = make_aft(300, random_state=0), make_aft(300, random_state=1)
    >>> forest = CensoredQuantileForest(random_state=0).fit(train.X, train.y)
    >>> bool(integrated_auc(train.y, test.y, forest.predict_survival(test.X)) > 0.8)
    True
    """
    rows = read_evaluation_rows(y_train, y_test, **options)
    if times is None:
        at = np.sort(oriented(_default_times(rows), rows.censoring))
    else:
        at = read_times(times)
        if not (np.diff(at) > 0).all():
            raise ValueError("times must be in ascending order.")
    scores = time_dependent_auc(y_train, y_test, predicted, at, **options)
    known = np.flatnonzero(~np.isnan(scores))
    if rows.censoring == "left":
        known = known[::-1]
    events = -np.diff(_survival_of_rows(rows, oriented(at[known], rows.censoring)), prepend=1.0)
    return float(scores[known] @ events / events.sum()) if events.sum() > 0 else np.nan


def _default_times(rows: EvaluationRows) -> NDArray[np.float64]:
    """Default times of the Brier score that have cases and controls, oriented; all, if none has."""
    times, weighted = default_times(rows), rows.sample_weight > 0
    first = rows.time[weighted & rows.event].min(initial=np.inf)
    last = min(rows.time[weighted].max(), rows.horizon)
    inside = times[(times > first) & (times < last)]
    return inside if len(inside) else times


def _survival_of_rows(rows: EvaluationRows, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kaplan-Meier curve of the test rows, at times oriented to the right."""
    ranked, order = rank_target(Target(rows.time, rows.event), "right")
    weights = marginal_weights(rows.sample_weight[order], len(order))
    curve = step_curves(weights, RankedTarget.of(ranked))[0]
    # An event at t itself lies ahead at t under left censoring.
    at = times if rows.censoring == "right" else np.nextafter(times, -np.inf)
    return curve(at, "extend")


def _compute(
    predictions: Predictions, *, times: ArrayLike | None = None, forest_censoring: bool = False
) -> float:
    return integrated_auc(
        predictions.y_train,
        predictions.y_test,
        predictions.survival(times),
        times,
        **predictions.ipcw_options(forest_censoring=forest_censoring),
    )


TIME_DEPENDENT_AUC = Metric(
    name="auc",
    key="auc",
    label="time-dependent AUC",
    description="Share of pairs, one with and one without the event by a time, in which the first "
    "has the lower survival probability; mean over times.",
    higher_is_better=True,
    needs=("survival", "training_rows"),
    compute=_compute,
)
