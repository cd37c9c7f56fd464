"""Censoring: what is known of the test rows, and how likely censoring made that.

Times are oriented to the right here. A row that had its event by t is known to have had it, and
counts 1 / G(Y-), one over the probability of not having been censored before; a row at risk
after t is known to be so, and counts 1 / G(t). All others are not known at t and count nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._forest.weights import Weights
from cqrf._input.sample_weight import read_sample_weight
from cqrf._input.target import Target, censored, oriented, rank_target, read_target
from cqrf._runtime.arguments import read_choice
from cqrf._survival.curves import RankedTarget, StepCurve, StepCurves, step_curves

FLOOR = 0.1


def marginal_weights(weight: NDArray[np.floating] | None, n: int) -> Weights:
    """One row of weights, the same for all or as given: its curves are Kaplan-Meier curves."""
    values = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    ranks = np.flatnonzero(values > 0)
    values = values[ranks] / values[ranks].sum()
    return Weights(np.array([0, len(ranks)]), ranks.astype(np.int32), values)


def uncensored_until(
    train: Target,
    *,
    censoring: str = "right",
    train_weight: NDArray[np.floating] | None = None,
) -> StepCurve:
    """Kaplan-Meier curve of the censoring times, on times oriented to the right.

    Rows count from the start, also those that entered late: nobody is censored before the entry,
    so that this is the chance of rows such as these to be seen.
    """
    ranked, order = rank_target(train, censoring)
    weight = None if train_weight is None else train_weight[order]
    rows = marginal_weights(weight, len(order))
    return step_curves(rows, RankedTarget(ranked.time, ranked.event), of_censoring=True)[0]


def censoring_target(y: Any, censoring: str = "right") -> NDArray[np.void]:
    """The censoring times as a target, whose own censoring are the events.

    A forest fitted to it gives G(.|x) by ``predict_survival``, also where censoring depends on
    covariates that the times ignore. At a tied time events come before censorings, so they are
    moved before it by the least that a number can be.

    Examples
    --------
    >>> from cqrf import censored
    >>> from cqrf.metrics import censoring_target
    >>> censoring_target(censored([2.0, 5.0], [False, True]))["event"].tolist()
    [True, False]
    """
    read_choice("censoring", censoring, ("right", "left"))
    target = y if isinstance(y, Target) else read_target(y)
    before = np.nextafter(target.time, oriented(-np.inf, censoring))
    return censored(np.where(target.event, before, target.time), ~target.event, target.entry)


@dataclass(frozen=True)
class Seen:
    """Test rows, oriented to the right, with what is needed to weigh them."""

    time: NDArray[np.float64]
    event: NDArray[np.bool_]
    sample_weight: NDArray[np.float64]
    """Sums to 1."""
    horizon: float
    last: float
    """Last time of the training and test rows that count."""
    marginal: StepCurve
    own: StepCurves | None
    censoring: str

    def uncensored_before(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """G of every row just before a time of its own; at least FLOOR."""
        if self.own is None:
            values = self.marginal(np.nextafter(times, -np.inf))
        elif self.censoring == "right":
            values = self.own.each(np.nextafter(times, -np.inf))
        else:
            values = 1.0 - self.own.each(-times)  # P(-C >= -t) = 1 - P(C > t)
        return np.maximum(values, FLOOR)

    def uncensored_at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """G of rows still waiting at each of the times, all alike or as (n, n_times).

        At least FLOOR. Under left censoring, where an event at t itself is one to wait for at t,
        that is G just before t.
        """
        if self.censoring == "right":
            values = self.marginal(times) if self.own is None else self.own(times)
        elif self.own is None:
            values = self.marginal(np.nextafter(times, -np.inf))
        else:
            values = 1.0 - self.own(-times)  # P(-C >= -t) = 1 - P(C > t)
        return np.maximum(values, FLOOR)


def check_curves(name: str, curves: Any, n: int) -> None:
    """Raise unless there is one step curve for each of n rows."""
    if not isinstance(curves, StepCurves):
        raise ValueError(
            f"{name} must be step curves, as predict_survival(X) gives them without times; found "
            f"{type(curves).__name__}."
        )
    if len(curves) != n:
        raise ValueError(f"{name} has {len(curves)} curves for {n} rows of y_test.")


def see(
    y_train: Any,
    y_test: Any,
    *,
    censoring: str = "right",
    censoring_survival: StepCurves | None = None,
    train_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Seen:
    """What is known of the test rows, with G from the training rows or given for each row."""
    read_choice("censoring", censoring, ("right", "left"))
    train, test = (y if isinstance(y, Target) else read_target(y) for y in (y_train, y_test))
    n = len(test.time)
    time, train_time = oriented(test.time, censoring), oriented(train.time, censoring)
    if censoring_survival is not None:
        check_curves("censoring_survival", censoring_survival, n)
    if train_weight is not None:
        train_weight = read_sample_weight(train_weight, len(train.time), "train_weight")
        train_time = train_time[train_weight > 0]
    curve = uncensored_until(train, censoring=censoring, train_weight=train_weight)
    too_rare = np.flatnonzero(curve.values < FLOOR)
    weight = np.ones(n) if sample_weight is None else read_sample_weight(sample_weight, n)
    return Seen(
        time=time,
        event=test.event,
        sample_weight=weight / weight.sum(),
        horizon=float(curve.times[too_rare[0]]) if len(too_rare) else np.inf,
        last=float(max(train_time.max(), time[weight > 0].max())),
        marginal=curve,
        own=censoring_survival,
        censoring=censoring,
    )
