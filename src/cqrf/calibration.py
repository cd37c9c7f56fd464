"""Calibration: whether events come below the predicted levels as often as they should.

Where the predicted distribution F(.|x) is right, U = F(T|x) is uniform. Where F jumps at T, as it
does at times that many rows share, a random point between F(T-|x) and F(T|x) is uniform and stands
for it. A censored time gives a censored U, so the distribution of U is estimated by Kaplan-Meier:
its value at p is the share of events below the predicted p-quantile, to be compared with p. An
event after the last step of a curve that does not come down to 0 is censored there: the forest says
no more of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import chi2
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from cqrf._input.sample_weight import read_sample_weight
from cqrf._input.target import Target, read_target
from cqrf._model.predict import SurvivalCurves, has_tree, read_one, training_queries
from cqrf._runtime.arguments import read_count, read_fraction
from cqrf._survival.curves import StepCurves
from cqrf.estimator import CensoredQuantileForest

LEVELS = np.arange(1, 100) / 100


@dataclass(frozen=True, eq=False)
class Calibration:
    """Predicted levels and what was observed of them.

    Attributes
    ----------
    levels : ndarray
        Predicted levels, .01 to .99.
    observed : ndarray
        Share of events below each of them; NaN where censoring hides it.
    lower, upper : ndarray
        Pointwise confidence band of ``observed``.
    distance : float
        Mean absolute difference of the two over the levels that are seen; 0 is perfect.
    bins : ndarray
        Rows in equal bins of the predicted probability, censored ones spread over the bins
        they may belong to (D-calibration). Equal counts are perfect. Rows of unequal weight count
        as their effective number, (sum w)^2 / sum w^2.
    p_value : float
        Of the hypothesis that the bins are equal. Small: not calibrated. Large says less: under
        censoring, and still more out of bag, it is larger than it should be.
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
    """Calibration of a fitted forest on rows it has not seen.

    Parameters
    ----------
    forest : CensoredQuantileForest
        A fitted forest.
    X, y : optional
        Test rows. Without them: the training rows, each out of bag. These rank one another, so
        that their levels come out nearly even by themselves: what is out of bag shows whether
        levels are wrong somewhere in the middle of the table, rows held out are a test.
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
    if not isinstance(forest, CensoredQuantileForest):
        raise ValueError(f"forest must be a CensoredQuantileForest; found {type(forest).__name__}.")
    check_is_fitted(forest)
    if (X is None) != (y is None):
        raise ValueError("give both X and y, or neither for the training rows out of bag.")
    model = forest.model_
    if X is None:
        if sample_weight is not None:
            raise ValueError("sample_weight goes with X and y; out of bag, the fit's count.")
        target, weight = model.training_target, model.training_weight
        queries = training_queries(model)
        curves: Any = read_one(model, queries, SurvivalCurves(), forest.n_jobs)
        known = has_tree(model, queries)
    else:
        target = read_target(y)
        curves = forest.predict_survival(X)
        assert isinstance(curves, StepCurves)
        n = len(target.time)
        check_consistent_length(X, target.time)
        weight = np.ones(n) if sample_weight is None else read_sample_weight(sample_weight, n)
        known = np.full(n, True)
    transformed = transform(curves, target, model.censoring)
    if transformed.entry is not None:
        known &= transformed.entry < transformed.time  # at risk at all, as the curve has it
    kept = np.flatnonzero(known & (weight > 0))
    if len(kept) == 0:
        raise ValueError(
            "no row can be judged: none is out of bag. Fit with max_samples below 1, or with "
            "bootstrap=True."
        )
    weight = weight[kept]
    return compare(
        transformed.take(kept),
        weight * weight.sum() / (weight**2).sum(),  # adds up to the effective number of rows
        from_left=model.censoring == "left",
        confidence=read_fraction("confidence", confidence, 0.0, 1.0),
        n_bins=read_count("n_bins", n_bins, 2),
    )


def transform(curves: StepCurves, target: Target, censoring: str = "right") -> Target:
    """U = F(Y|x) of each row as a right-censored time; under left censoring 1 - U."""
    survival = curves.each(target.time)
    before = curves.each(np.nextafter(target.time, -np.inf))
    within = survival + np.random.default_rng(0).random(len(survival)) * (before - survival)
    first, last = curves.offsets[:-1], curves.offsets[1:] - 1
    some = last >= first
    event = target.event & some
    if censoring == "right":
        beyond = target.time[some] > curves.times[last[some]]
        event[some] &= ~(beyond & (curves.values[last[some]] > 0))
        entry = None if target.entry is None else 1.0 - curves.each(target.entry)
        return Target(1.0 - np.where(event, within, survival), event, entry)
    beyond = target.time[some] < curves.times[first[some]]
    event[some] &= ~(beyond & (curves.initial[some] < 1))
    return Target(np.where(event, within, before), event)


def compare(
    transformed: Target,
    weight: NDArray[np.float64],
    *,
    from_left: bool,
    confidence: float,
    n_bins: int,
) -> Calibration:
    """Kaplan-Meier curve of U beside the diagonal, and the D-calibration test."""
    below, lower, upper = estimate_share_below(transformed, weight, confidence)
    if from_left:  # what was estimated is P(1 - U <= p)
        below, lower, upper = 1 - below[::-1], 1 - upper[::-1], 1 - lower[::-1]
    seen = ~np.isnan(below)
    distance = float(np.abs(below - LEVELS)[seen].mean()) if seen.any() else float("nan")
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

    # At risk: Y >= t, less those with entry >= t.
    at_risk = weight_from(by_time, target.time) - weight_from(by_entry, entry)
    had_event = target.event
    places = np.searchsorted(times, target.time[had_event])
    died = np.bincount(places, weight[had_event], len(times))
    survival = np.cumprod(1.0 - died / at_risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.cumsum(died / (at_risk * (at_risk - died)))
        spread = ndtri((1 + confidence) / 2) * np.sqrt(variance) / np.abs(np.log(survival))
        ends = survival ** np.exp(np.array([[1.0], [-1.0]]) * spread)
    ends = np.where(survival == 0, 0.0, ends)
    n_before = np.searchsorted(times, LEVELS, side="right")
    # Beyond the largest U nothing is known, unless it was an event and closes the curve.
    largest = target.time.max() if len(target.time) else -np.inf
    closed = len(survival) > 0 and survival[-1] == 0
    unknown = (largest < LEVELS) & (not closed)
    steps = [np.concatenate([[1.0], values]) for values in (survival, *ends)]
    still, lowest, highest = (values[n_before] for values in steps)
    shares = 1 - still, 1 - np.maximum(lowest, highest), 1 - np.minimum(lowest, highest)
    below, lower, upper = (np.where(unknown, np.nan, share) for share in shares)
    return below, lower, upper


def spread_over_bins(
    survival: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64],
    n_bins: int,
) -> NDArray[np.float64]:
    """Rows in equal bins of S(Y|x); a censored row is spread evenly over [0, S(Y|x)]."""
    edges = np.linspace(0, 1, n_bins + 1)
    own = np.clip(np.ceil(survival * n_bins).astype(int) - 1, 0, n_bins - 1)
    bins = np.bincount(own[event], weight[event], n_bins).astype(np.float64)
    for s, w in zip(survival[~event], weight[~event], strict=True):
        if s <= 0:
            bins[0] += w
        else:
            bins += w * np.clip(s - edges[:-1], 0, 1 / n_bins) / s
    return bins
