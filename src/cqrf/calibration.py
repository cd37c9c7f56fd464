"""Calibration: whether a share p of the events falls below the predicted p-quantile.

The probability integral transform U = F(T|x) is uniform on [0, 1] if the predicted distribution
F(.|x) is right. Conventions:

- *Ties.* Where F jumps at T, U is drawn uniformly between F(T-|x) and F(T|x).
- *Censoring.* A censored T gives a censored U. The distribution of U is therefore estimated by
  Kaplan-Meier; its value at p is the share of events below the predicted p-quantile.
- *End of a curve.* An event after the last step of a curve that does not fall to 0 is censored at
  this step, as the forest does not identify the distribution beyond it.
- *Delayed entry.* A row is at risk from U = F(entry|x) on.
- *Left censoring.* 1 - U is right-censored and takes the place of U.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import chi2
from sklearn.utils import check_consistent_length

from cqrf._input.sample_weight import read_sample_weight
from cqrf._input.target import Target, read_target
from cqrf._model.predict import SurvivalCurves, has_tree, read_one, training_queries
from cqrf._runtime.arguments import read_count, read_fraction
from cqrf._survival.curves import StepCurves
from cqrf.inspection import check_forest

LEVELS = np.arange(1, 100) / 100


@dataclass(frozen=True, eq=False)
class Calibration:
    """Predicted levels, and the observed share of events below each.

    Attributes
    ----------
    levels : ndarray
        Predicted levels, .01 to .99.
    observed : ndarray
        Share of events below each level; NaN where it is not identifiable because of censoring.
    lower, upper : ndarray
        Pointwise confidence band of ``observed``.
    distance : float
        Mean absolute difference of both, over the identifiable levels; 0 is perfect.
    bins : ndarray
        Counts of rows in equal bins of the predicted probability (D-calibration); a censored
        row is spread over the bins it may belong to. Equal counts are perfect. The counts sum to
        the effective sample size, (sum w)^2 / sum w^2.
    p_value : float
        p-value of the hypothesis that the bins are equal. Small: not calibrated. The test is
        conservative under censoring, and more so out of bag: a large value says little.
    """

    levels: NDArray[np.float64]
    observed: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    distance: float
    bins: NDArray[np.float64]
    p_value: float


def assess_calibration(
    forest: Any,
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
    n_bins: int = 10,
) -> Calibration:
    """Calibration of a fitted forest on test rows, or out of bag.

    Parameters
    ----------
    forest : CensoredQuantileForest
        A fitted forest.
    X, y : optional
        Test rows. Default: the training rows, out of bag. Each of these rows is among the
        neighbours of the others, so their levels are nearly uniform on the whole: out of bag,
        only miscalibration in parts of the covariate space shows. Prefer held-out rows.
    sample_weight : array-like, optional
        Weights of the test rows; only ratios matter.
    confidence : float, default=0.95
        Level of the pointwise bands (Greenwood's variance, log-log scale).
    n_bins : int, default=10
        Bins of the D-calibration test (Haider, Hoehn, Davis and Greiner 2020).

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.calibration import assess_calibration
    >>> from cqrf.datasets import make_aft
    >>> X, y, _, _ = make_aft(500, random_state=0)
    >>> forest = CensoredQuantileForest(random_state=0).fit(X, y)
    >>> assess_calibration(forest).distance < 0.05
    True
    """
    check_forest(forest)
    if (X is None) != (y is None):
        raise ValueError("give both X and y, or neither for the training rows out of bag.")
    model = forest.model_
    if X is None:
        if sample_weight is not None:
            raise ValueError("sample_weight goes with X and y; out of bag, the fit's count.")
        target, queries = model.training_target, training_queries(model)
        curves: Any = read_one(model, queries, SurvivalCurves(), forest.n_jobs)
        weight = model.training_weight * has_tree(model, queries)
    else:
        target = read_target(y)
        curves = forest.predict_survival(X)
        check_consistent_length(X, target.time)
        n = len(target.time)
        weight = np.ones(n) if sample_weight is None else read_sample_weight(sample_weight, n)
    return calibrate_curves(
        curves, target, weight, censoring=model.censoring, confidence=confidence, n_bins=n_bins
    )


def calibrate_curves(
    curves: Any,
    target: Target,
    weight: NDArray[np.float64],
    *,
    censoring: str = "right",
    confidence: float = 0.95,
    n_bins: int = 10,
) -> Calibration:
    """Calibration of one predicted survival curve per row; rows of weight 0 are left out."""
    transformed = transform(curves, target, censoring)
    is_kept = weight > 0
    if transformed.entry is not None:
        is_kept &= transformed.entry < transformed.time  # otherwise never at risk
    kept = np.flatnonzero(is_kept)
    if len(kept) == 0:
        raise ValueError(
            "no row can be evaluated: none is out of bag. Fit with max_samples below 1, or with "
            "bootstrap=True."
        )
    weight = weight[kept]
    return compare(
        transformed.take(kept),
        weight * weight.sum() / (weight**2).sum(),  # sums to the effective sample size
        from_left=censoring == "left",
        confidence=read_fraction("confidence", confidence, 0.0, 1.0),
        n_bins=read_count("n_bins", n_bins, 2),
    )


def transform(curves: StepCurves, target: Target, censoring: str = "right") -> Target:
    """Probability integral transform F(Y|x) as a right-censored target; 1 - F(Y|x) from the left.

    The draws at ties come from a generator with seed 0.
    """
    survival = curves.each(target.time)
    before = curves.each(np.nextafter(target.time, -np.inf))
    within = survival + np.random.default_rng(0).random(len(survival)) * (before - survival)
    first, last = curves.offsets[:-1], curves.offsets[1:] - 1
    has_steps = last >= first
    event = target.event & has_steps
    if censoring == "right":
        beyond = target.time[has_steps] > curves.times[last[has_steps]]
        event[has_steps] &= ~(beyond & (curves.values[last[has_steps]] > 0))
        entry = None if target.entry is None else 1.0 - curves.each(target.entry)
        return Target(1.0 - np.where(event, within, survival), event, entry)
    beyond = target.time[has_steps] < curves.times[first[has_steps]]
    event[has_steps] &= ~(beyond & (curves.initial[has_steps] < 1))
    return Target(np.where(event, within, before), event)


def compare(
    transformed: Target,
    weight: NDArray[np.float64],
    *,
    from_left: bool,
    confidence: float,
    n_bins: int,
) -> Calibration:
    """Compare U with the uniform distribution: Kaplan-Meier estimate and D-calibration test."""
    below, lower, upper = estimate_share_below(transformed, weight, confidence)
    if from_left:  # the estimate is of P(1 - U <= p)
        below, lower, upper = 1 - below[::-1], 1 - upper[::-1], 1 - lower[::-1]
    is_known = ~np.isnan(below)
    distance = float(np.abs(below - LEVELS)[is_known].mean()) if is_known.any() else float("nan")
    survival = 1.0 - transformed.time
    if transformed.entry is not None:  # given T > entry, U is uniform from F(entry|x) on
        survival /= 1.0 - transformed.entry
    bins = spread_over_bins(survival, transformed.event, weight, n_bins)
    expected = bins.sum() / n_bins
    statistic = float(((bins - expected) ** 2 / expected).sum())
    return Calibration(
        levels=LEVELS,
        observed=below,
        lower=lower,
        upper=upper,
        distance=distance,
        bins=bins,
        p_value=float(chi2.sf(statistic, n_bins - 1)),
    )


def estimate_share_below(
    target: Target, weight: NDArray[np.float64], confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Kaplan-Meier estimate of P(U <= p) on LEVELS, with its band; NaN beyond the last event."""
    times = np.unique(target.time[target.event])
    entry = np.full(len(weight), -np.inf) if target.entry is None else target.entry
    by_time = np.argsort(target.time, kind="stable")
    by_entry = np.argsort(entry, kind="stable")

    def weight_from(order: NDArray[np.intp], values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weight of the rows whose value is at least each of the times."""
        tail = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
        return tail[np.searchsorted(values[order], times, side="left")]

    # At risk at t: rows with Y >= t, except those with entry >= t.
    at_risk = weight_from(by_time, target.time) - weight_from(by_entry, entry)
    had_event = target.event
    places = np.searchsorted(times, target.time[had_event])
    n_events = np.bincount(places, weight[had_event], len(times))
    survival = np.cumprod(1.0 - n_events / at_risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.cumsum(n_events / (at_risk * (at_risk - n_events)))
        spread = ndtri((1 + confidence) / 2) * np.sqrt(variance) / np.abs(np.log(survival))
        ends = survival ** np.exp(np.array([[1.0], [-1.0]]) * spread)
    ends = np.where(survival == 0, 0.0, ends)
    n_before = np.searchsorted(times, LEVELS, side="right")
    # Not identifiable beyond the largest U, unless the curve falls to 0 there.
    largest = target.time.max() if len(target.time) else -np.inf
    closed = len(survival) > 0 and survival[-1] == 0
    unknown = (largest < LEVELS) & (not closed)
    steps = [np.concatenate([[1.0], values]) for values in (survival, *ends)]
    above, lowest, highest = (values[n_before] for values in steps)
    shares = 1 - above, 1 - np.maximum(lowest, highest), 1 - np.minimum(lowest, highest)
    below, lower, upper = (np.where(unknown, np.nan, share) for share in shares)
    return below, lower, upper


def spread_over_bins(
    survival: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64],
    n_bins: int,
) -> NDArray[np.float64]:
    """Weight in equal bins of S(Y|x); a censored row is spread evenly over [0, S(Y|x)]."""
    edges = np.linspace(0, 1, n_bins + 1)
    own = np.clip(np.ceil(survival * n_bins).astype(int) - 1, 0, n_bins - 1)
    bins = np.bincount(own[event], weight[event], n_bins).astype(np.float64)
    for s, w in zip(survival[~event], weight[~event], strict=True):
        if s <= 0:
            bins[0] += w
        else:
            bins += w * np.clip(s - edges[:-1], 0, 1 / n_bins) / s
    return bins
