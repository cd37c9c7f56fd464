"""Calibration: whether a share p of subjects has the event before its predicted p-quantile.

The probability integral transform U = F(T|x) is uniform on [0, 1] if the predicted distribution
F(.|x) is right. Conventions:

- *Ties.* Where F jumps at T, U is drawn uniformly between F(T-|x) and F(T|x).
- *Censoring.* A censored T gives a censored U. The distribution of U is therefore estimated by
  Kaplan-Meier; its value at p is the share with T below the predicted p-quantile.
- *End of a curve.* An event after the last step of a curve that ends above 0 is censored there.
- *Delayed entry.* A row is at risk from U = F(entry|x) on.
- *Left censoring.* 1 - U is right-censored and takes the place of U.

*What the data can judge.* At level p the Kaplan-Meier estimate S rests on about r(p) / S(p-) rows,
with r(p) the number of rows at risk. (Without censoring that is all rows.) It is judged up to the
last level at which these are at least ``FEWEST_ROWS`` rows and the share ``SMALLEST_SHARE`` of all.

*Test.* U has the hazard 1 / (1 - u) if F is right. In a bin (a, b] row i is then expected to have
log(1 - a) - log(1 - b) events while it is at risk. Observed minus expected events of the bins are
uncorrelated, and the sum of their squares over their variances is about chi-squared with one degree
of freedom per bin (Akritas 1988).
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2
from sklearn.utils import check_consistent_length

from cqrf._calibration.uniformity import (
    FEWEST_ROWS,
    LEVELS,
    SMALLEST_SHARE,
    count_events,
    estimate_share_below,
    find_last_known,
    transform,
)
from cqrf._input.intervals import refuse_intervals
from cqrf._input.sample_weight import read_sample_weight
from cqrf._input.target import Target, read_target
from cqrf._model.queries import has_tree, training_queries
from cqrf._readers.curves import SurvivalCurves
from cqrf._readers.reader import read_one
from cqrf._runtime.arguments import read_count, read_fraction
from cqrf.inspection.forests import check_forest

__all__ = ["FEWEST_ROWS", "SMALLEST_SHARE", "Calibration", "assess_calibration"]


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Predicted levels, and the observed share of subjects with the event before each quantile.

    Attributes
    ----------
    levels : ndarray
        Predicted levels, .01 to .99.
    observed : ndarray
        Share of subjects with the event before their quantile at each level: a tenth before the .1
        quantile, if the forest is calibrated. NaN where not identifiable because of censoring.
    lower, upper : ndarray
        Pointwise confidence band of ``observed``.
    known_from, known_to : float
        Levels between which enough rows are left to judge; NaN if there is no such level.
        ``known_from`` is 0 under right censoring, ``known_to`` is 1 under left censoring.
    distance : float
        Mean absolute difference of ``levels`` and ``observed``, over the levels from ``known_from``
        to ``known_to``; 0 is perfect, NaN if no level can be judged.
    edges : ndarray of shape (n_bins + 1,)
        Edges of bins of levels, from ``known_from`` to ``known_to``.
    events, expected : ndarray of shape (n_bins,)
        Number of events in each bin, and the number expected of a calibrated forest.
    p_value : float
        p-value of the hypothesis that events are as expected. Small: not calibrated. Out of bag
        the test is conservative: a large value says little. NaN if no level can be judged.
    n_rows : float
        Effective number of rows, (sum w)^2 / sum w^2; events are scaled to it.
    """

    levels: NDArray[np.float64]
    observed: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    known_from: float
    known_to: float
    distance: float
    edges: NDArray[np.float64]
    events: NDArray[np.float64]
    expected: NDArray[np.float64]
    p_value: float
    n_rows: float

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Levels that the data can judge."""
        return (self.levels >= self.known_from) & (self.levels <= self.known_to)

    def __repr__(self) -> str:
        rows = f"{self.n_rows:.0f} rows"
        if np.isnan(self.distance):
            return f"Calibration({rows}: too many are censored to judge any level)"
        levels = self.levels[self.is_known]
        return (
            f"Calibration(distance={self.distance:.3f} at levels {levels[0]:g} to {levels[-1]:g}, "
            f"p={self.p_value:.3f}, {rows})"
        )

    def _repr_html_(self) -> str:
        return f"<figure>{draw_svg(self)}<figcaption>{escape(repr(self))}</figcaption></figure>"


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
        Equal bins of the levels 0 to 1, in which the test compares observed with expected events;
        they end where the data can judge no more, and bins with few expected events are joined.

    Returns
    -------
    Calibration
        Levels, observed shares with bands, their distance and the p-value of a test.

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
    refuse_intervals(target.lower, "calibration is")
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


def compare(
    transformed: Target,
    weight: NDArray[np.float64],
    *,
    from_left: bool,
    confidence: float,
    n_bins: int,
) -> Calibration:
    """Compare U with the uniform distribution: Kaplan-Meier estimate, and test.

    ``weight`` sums to the effective number of rows.
    """
    estimate = estimate_share_below(transformed, weight, confidence)
    observed, lower, upper = estimate.below, estimate.lower, estimate.upper
    last = find_last_known(estimate, float(weight.sum()))
    edges, events, expected = count_events(transformed, weight, last, n_bins)
    known_from, known_to = (0.0, last) if last > 0 else (np.nan, np.nan)
    if from_left:  # all of this is about 1 - U
        observed, lower, upper = 1 - observed[::-1], 1 - upper[::-1], 1 - lower[::-1]
        # Rounded, it is one of LEVELS: 1 - 0.18 is more than 0.82.
        known_from, known_to = round(1.0 - known_to, 2), 1.0 - known_from
        edges, events, expected = 1.0 - edges[::-1], events[::-1], expected[::-1]
        edges[0] = known_from if last > 0 else edges[0]
    # Both events and expected events estimate the variance. Twice the second and once the first
    # gives the test its nominal level in small bins.
    variance = (2.0 * expected + events) / 3.0
    statistic = float(((events - expected) ** 2 / variance).sum())
    is_judged = (known_from <= LEVELS) & (known_to >= LEVELS) & ~np.isnan(observed)
    differences = np.abs(observed - LEVELS)[is_judged]
    return Calibration(
        levels=LEVELS,
        observed=observed,
        lower=lower,
        upper=upper,
        known_from=known_from,
        known_to=known_to,
        distance=float(differences.mean()) if len(differences) else np.nan,
        edges=edges,
        events=events,
        expected=expected,
        p_value=float(chi2.sf(statistic, len(events))) if len(events) else np.nan,
        n_rows=float(weight.sum()),
    )


def draw_svg(calibration: Calibration, size: int = 180) -> str:
    """The curve, its band and the diagonal as an SVG; levels that are not judged are pale."""

    def path(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
        return " ".join(f"{a * size:.1f},{(1 - b) * size:.1f}" for a, b in zip(x, y, strict=True))

    has_value = ~np.isnan(calibration.observed)
    levels, observed = calibration.levels, calibration.observed
    is_known = calibration.is_known & has_value
    there = np.flatnonzero(has_value)
    outline = np.concatenate([there, there[::-1]])
    ends = np.concatenate([calibration.upper[there], calibration.lower[there][::-1]])
    line = 'fill="none" stroke="#0072B2" stroke-width="2"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size + 2}" height="{size + 2}" '
        f'viewBox="-1 -1 {size + 2} {size + 2}" role="img" aria-label="calibration curve">'
        f'<rect width="{size}" height="{size}" fill="none" stroke="#999"/>'
        f'<line x1="0" y1="{size}" x2="{size}" y2="0" stroke="#999" stroke-dasharray="4 3"/>'
        f'<polygon points="{path(levels[outline], ends)}" fill="#0072B2" opacity="0.15"/>'
        f'<polyline points="{path(levels[there], observed[there])}" {line} opacity="0.3"/>'
        f'<polyline points="{path(levels[is_known], observed[is_known])}" {line}/></svg>'
    )
