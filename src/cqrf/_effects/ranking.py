"""How well a ranking finds those who benefit most: TOC curve and rank-weighted averages (RATE).

With rows in the order of their priority, highest first, the targeting operator characteristic is

    TOC(q) = average effect of the first share q of rows  -  average effect of all.

AUTOC is its mean over q, QINI the mean of q TOC(q). Tied rows share their scores. Errors come from
half-samples of the rows, or of their clusters: they vary as an estimate from all rows does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.magnitude import magnitude
from cqrf._effects.response import Floats

METRICS = ("autoc", "qini")
# An estimate from scores, priorities and weights of rows.
Statistic = Callable[[Floats, Floats, Floats], Floats]
REPEATS = 200


@dataclass(frozen=True)
class RankAverage:
    """A rank-weighted average effect: estimate, standard error and confidence interval.

    Examples
    --------
    >>> from cqrf.datasets import make_treatment
    >>> from cqrf.effects import CensoredTreatmentForest
    >>> data = make_treatment("null", n=200, random_state=0)
    >>> forest = CensoredTreatmentForest(n_estimators=40, random_state=0)
    >>> forest = forest.fit(data.X, data.y, treatment=data.treatment, propensity=0.5)
    >>> forest.rate(data.X[:, 0], target="survival", times=1.0).metric
    'autoc'
    """

    estimate: float
    standard_error: float
    lower: float
    upper: float
    metric: str
    confidence: float


@dataclass(frozen=True)
class TargetingCurve:
    """The TOC at some shares of rows, with standard errors.

    Examples
    --------
    >>> from cqrf.datasets import make_treatment
    >>> from cqrf.effects import CensoredTreatmentForest
    >>> data = make_treatment("null", n=200, random_state=0)
    >>> forest = CensoredTreatmentForest(n_estimators=40, random_state=0)
    >>> forest = forest.fit(data.X, data.y, treatment=data.treatment, propensity=0.5)
    >>> forest.toc(data.X[:, 0], target="survival", times=1.0).share.shape
    (10,)
    """

    share: Floats
    estimate: Floats
    standard_error: Floats


def smooth_ties(scores: Floats, priorities: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Scores and weights by falling priority; tied rows receive their mean score."""
    _, tie = np.unique(-priorities, return_inverse=True)
    mass = np.bincount(tie, weight)
    mean = np.bincount(tie, weight * scores) / mass
    order = np.argsort(tie, kind="stable")
    return mean[tie[order]], weight[order]


def targeting_curve(scores: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Share of the weight, and TOC, after each row; rows in the order of their priority."""
    mass = np.cumsum(weight)
    toc = np.cumsum(weight * scores) / mass - weight @ scores / mass[-1]
    return mass / mass[-1], toc


def toc_at(scores: Floats, priorities: Floats, weight: Floats, shares: Floats) -> Floats:
    """TOC of the first rows that make up each share, rounded down to whole rows."""
    share, toc = targeting_curve(*smooth_ties(scores, priorities, weight))
    places = np.searchsorted(share, shares * (1.0 + 1e-12), side="right") - 1
    return toc[np.clip(places, 0, len(toc) - 1)]


def rank_average(scores: Floats, priorities: Floats, weight: Floats, metric: str) -> float:
    """AUTOC or QINI."""
    ordered, weights = smooth_ties(scores, priorities, weight)
    share, toc = targeting_curve(ordered, weights)
    height = toc if metric == "autoc" else share * toc
    return float(weights @ height / weights.sum())


def half_samples(unit: NDArray[np.int32], seed: int) -> list[NDArray[np.bool_]]:
    """Rows of REPEATS random halves of the units."""
    _, number = np.unique(unit, return_inverse=True)
    n_units = int(number.max()) + 1
    rng = np.random.default_rng(seed)
    samples = []
    for _ in range(REPEATS):
        inside = np.zeros(n_units, dtype=bool)
        inside[rng.permutation(n_units)[: n_units // 2]] = True
        samples.append(inside[number])
    return samples


def with_error(
    statistic: Statistic,
    scores: Floats,
    priorities: Floats,
    weight: Floats,
    unit: NDArray[np.int32],
    seed: int,
) -> tuple[Floats, Floats]:
    """An estimate from some rows, and its standard error from half-samples of their units."""
    size = magnitude(scores)
    scores = scores / size
    repeats = [
        statistic(scores[half], priorities[half], weight[half]) for half in half_samples(unit, seed)
    ]
    of_all = statistic(scores, priorities, weight)
    return size * of_all, size * np.std(repeats, axis=0, ddof=1)
