"""Inverse-probability-of-censoring weights (IPCW).

Write Y = min(T, C) for the observed time and G(t) = P(C > t) for the *censoring survival*. At a
time t the outcome of a test row is known in two cases:

- the row had its event by t. Its weight is 1 / G(Y-), with G just before Y;
- the row is still at risk after t. Its weight is 1 / G(t).

A row censored by t has weight 0. G is the Kaplan-Meier estimate from the training rows, or one
curve per test row. The *horizon* is the first time at which the Kaplan-Meier G is below ``FLOOR``.
Scores are computed up to the horizon, and G is truncated from below at FLOOR, so that no weight
exceeds 1 / FLOOR.

Times are oriented to the right here: under left censoring they are negated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._forest.weights import Weights
from cqrf._input.intervals import refuse_intervals
from cqrf._input.sample_weight import read_sample_weight
from cqrf._input.target import Target, censored, oriented, rank_target, read_target
from cqrf._runtime.arguments import read_choice
from cqrf._survival.curves import RankedTarget, step_curves
from cqrf._survival.step_curve import StepCurve
from cqrf._survival.step_curves import StepCurves

FLOOR = 0.1


def marginal_weights(weight: NDArray[np.floating] | None, n: int) -> Weights:
    """One row of weights over n training rows, equal or as given; its curves are Kaplan-Meier's."""
    values = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    ranks = np.flatnonzero(values > 0)
    values = values[ranks] / values[ranks].sum()
    return Weights(np.array([0, len(ranks)]), ranks.astype(np.int32), values)


def estimate_censoring_survival(
    train: Target,
    *,
    censoring: str = "right",
    train_weight: NDArray[np.floating] | None = None,
) -> StepCurve:
    """Kaplan-Meier estimate of G, on times oriented to the right.

    Rows with delayed entry are at risk from the start. No row is censored before its entry, so
    this is the probability that rows like these are still uncensored.
    """
    ranked, order = rank_target(train, censoring)
    weight = None if train_weight is None else train_weight[order]
    rows = marginal_weights(weight, len(order))
    return step_curves(rows, RankedTarget(ranked.time, ranked.event), of_censoring=True)[0]


def censoring_target(y: Any, censoring: str = "right") -> NDArray[np.void]:
    """The censoring times as a target: its events are the censorings of y.

    A forest fitted to it estimates G(.|x) by ``predict_survival``, also where censoring depends
    on covariates that the event times do not depend on. At a tied time events come before
    censorings, so events are moved to the preceding floating-point number.

    Parameters
    ----------
    y : target in any form that ``fit`` takes
        Times and events.
    censoring : {"right", "left"}
        Side on which times are censored.

    Returns
    -------
    ndarray of shape (n,)
        What :func:`cqrf.censored` returns.

    Examples
    --------
    >>> from cqrf import censored
    >>> from cqrf.metrics import censoring_target
    >>> censoring_target(censored([2.0, 5.0], [False, True]))["event"].tolist()
    [True, False]
    """
    read_choice("censoring", censoring, ("right", "left"))
    target = as_target(y)
    before = np.nextafter(target.time, oriented(-np.inf, censoring))
    return censored(np.where(target.event, before, target.time), ~target.event, target.entry)


@dataclass(frozen=True)
class EvaluationRows:
    """Test rows, oriented to the right, with what their IPCW weights are computed from."""

    time: NDArray[np.float64]
    event: NDArray[np.bool_]
    sample_weight: NDArray[np.float64]
    """Sums to 1."""
    horizon: float
    last_time: float
    """Last time of the training and test rows with positive weight."""
    marginal_survival: StepCurve
    """Kaplan-Meier estimate of G."""
    row_survival: StepCurves | None
    """G of each test row, in the user's orientation; None: the Kaplan-Meier estimate for all."""
    censoring: str

    def censoring_survival_before(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """G(t-) of row i at its own time ``times[i]``; shape (n,), at least FLOOR."""
        if self.row_survival is None:
            values = self.marginal_survival(np.nextafter(times, -np.inf), "extend")
        elif self.censoring == "right":
            values = self.row_survival.each(np.nextafter(times, -np.inf))
        else:
            values = 1.0 - self.row_survival.each(-times)  # P(-C >= -t) = 1 - P(C > t)
        return np.maximum(values, FLOOR)

    def censoring_survival_at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """G(t) at common times; shape (n_times,), or (n, n_times) with one G per row.

        At least FLOOR. Under left censoring an event at t itself still lies ahead at t, so
        this is G(t-).
        """
        if self.censoring == "right":
            known = self.marginal_survival if self.row_survival is None else self.row_survival
            values = known(times, "extend")
        elif self.row_survival is None:
            values = self.marginal_survival(np.nextafter(times, -np.inf), "extend")
        else:
            values = 1.0 - self.row_survival(-times, "extend")  # P(-C >= -t) = 1 - P(C > t)
        return np.maximum(values, FLOOR)


def read_evaluation_rows(
    y_train: Any,
    y_test: Any,
    *,
    censoring: str = "right",
    censoring_survival: StepCurves | None = None,
    train_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> EvaluationRows:
    """Check the arguments of a metric, and estimate G from the training rows."""
    read_choice("censoring", censoring, ("right", "left"))
    train, test = as_target(y_train), as_target(y_test)
    n = len(test.time)
    time, train_time = oriented(test.time, censoring), oriented(train.time, censoring)
    if censoring_survival is not None:
        check_curves("censoring_survival", censoring_survival, n)
    if train_weight is not None:
        train_weight = read_sample_weight(train_weight, len(train.time), "train_weight")
        train_time = train_time[train_weight > 0]
    curve = estimate_censoring_survival(train, censoring=censoring, train_weight=train_weight)
    below_floor = np.flatnonzero(curve.values < FLOOR)
    weight = np.ones(n) if sample_weight is None else read_sample_weight(sample_weight, n)
    return EvaluationRows(
        time=time,
        event=test.event,
        sample_weight=weight / weight.sum(),
        horizon=float(curve.times[below_floor[0]]) if len(below_floor) else np.inf,
        last_time=float(max(train_time.max(), time[weight > 0].max())),
        marginal_survival=curve,
        row_survival=censoring_survival,
        censoring=censoring,
    )


def as_target(y: Any) -> Target:
    """The target y, read unless it is one already; not of intervals."""
    target = y if isinstance(y, Target) else read_target(y)
    refuse_intervals(target.lower, "this metric is")
    return target


def check_curves(name: str, curves: Any, n: int) -> None:
    """Raise unless there is one step curve for each of n rows."""
    if not isinstance(curves, StepCurves):
        raise ValueError(
            f"{name} must be step curves, as predict_survival(X) gives them without times; found "
            f"{type(curves).__name__}."
        )
    if len(curves) != n:
        raise ValueError(f"{name} has {len(curves)} curves for {n} rows of y_test.")
