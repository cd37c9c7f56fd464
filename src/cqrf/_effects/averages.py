"""Averages of effects: doubly robust scores, and what is estimated from them.

With tau the out-of-bag effect, r = Y* - m - (W - e) tau what it leaves of the response,

    score = tau + (W - e) / (e (1 - e)) r,

whose mean is the average effect. Its error is small if either the curves or the propensities are
right. Averages over the treated, the controls, or with weights e (1 - e) have scores of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.fitted import EffectModel
from cqrf._effects.follow_up import Known, average_half_range
from cqrf._effects.magnitude import magnitude
from cqrf._effects.predict import (
    arm_scores,
    column_times,
    densities,
    grid_responses,
    known_curves,
    quantile_columns,
    residual_responses,
    training_effects,
)
from cqrf._effects.response import Floats
from cqrf._effects.targets import LinearTarget, Quantiles
from cqrf._survival.little_bags import confidence_width

POPULATIONS = ("all", "treated", "control", "overlap")


@dataclass(frozen=True)
class AverageEffect:
    """An average effect with its standard error and confidence interval.

    Attributes are floats, or arrays with one entry for each time or level that was asked for.

    Examples
    --------
    >>> from cqrf.datasets import make_treatment
    >>> from cqrf.effects import CensoredTreatmentForest
    >>> data = make_treatment("null", n=200, random_state=0)
    >>> forest = CensoredTreatmentForest(n_estimators=40, random_state=0)
    >>> forest = forest.fit(data.X, data.y, treatment=data.treatment, propensity=0.5)
    >>> found = forest.ate(target="survival", times=1.0)
    >>> bool(found.lower < found.estimate < found.upper)
    True
    """

    estimate: float | Floats
    standard_error: float | Floats
    lower: float | Floats
    upper: float | Floats
    confidence: float
    n_rows: int

    def __repr__(self) -> str:
        each = zip(
            *(np.atleast_1d(v) for v in (self.estimate, self.lower, self.upper)), strict=True
        )
        shown = ", ".join(f"{value:.4g} [{low:.4g}, {high:.4g}]" for value, low, high in each)
        return f"AverageEffect({shown}; {self.confidence:.0%} intervals, {self.n_rows} rows)"


class Parts(NamedTuple):
    """The average effect is the sum of ``numerator`` over that of ``denominator``.

    numerator : (n, n_outputs); denominator : (n,)
    """

    numerator: Floats
    denominator: Floats


def effect_scores(model: EffectModel, target: LinearTarget, n_jobs: int | None) -> Floats:
    """Doubly robust scores of the treatment's effect, (n, n_outputs), by rank."""
    effect, left = effect_and_rest(model, target, n_jobs)
    ratio = model.nuisances.residual / model.nuisances.probability.prod(axis=1)
    return model.sign * (effect + ratio[:, np.newaxis] * left)


def effect_and_rest(
    model: EffectModel, target: LinearTarget, n_jobs: int | None
) -> tuple[Floats, Floats]:
    """Out-of-bag effects of arm 1, and what they leave of the responses; by rank."""
    responses = residual_responses(model, target)
    effect = training_effects(model, responses, n_jobs)
    return effect, responses - model.nuisances.residual[:, np.newaxis] * effect


def population_parts(
    model: EffectModel, target: LinearTarget, population: str, n_jobs: int | None
) -> Parts:
    """Parts of the average effect in a population, by rank."""
    weight, probability = model.weight, model.nuisances.probability
    if population in ("all", "overlap"):
        share = weight if population == "all" else weight * probability.prod(axis=1)
        return Parts(share[:, np.newaxis] * effect_scores(model, target, n_jobs), share)
    number = model.treated if population == "treated" else 1 - model.treated
    inside = model.nuisances.arm == bool(number)
    effect, left = effect_and_rest(model, target, n_jobs)
    # Rows of the other arm stand for those inside, weighted by the odds of being inside.
    odds = probability[:, number] / probability[:, 1 - number]
    factor = (2 * number - 1) * np.where(inside, 1.0, -odds)
    scores = inside[:, np.newaxis] * effect + factor[:, np.newaxis] * left
    return Parts(model.sign * weight[:, np.newaxis] * scores, weight * inside)


def average(
    model: EffectModel,
    known: Known,
    population: str,
    rows: NDArray[np.bool_] | None,
    confidence: float,
    n_jobs: int | None,
) -> AverageEffect:
    """Average effect over the training rows, or some of them (by rank)."""
    chosen = model.has_score if rows is None else rows & model.has_score
    parts = population_parts(model, known.target, population, n_jobs)
    estimate, error = ratio_of_sums(parts, model.unit, chosen)
    n_rows = int((parts.denominator[chosen] > 0).sum())
    half = np.zeros(len(estimate))
    if known.has_rest:
        half = average_half_range(model, known, parts.denominator * chosen)
    found = known.blank(estimate), known.blank(error)
    return with_interval(found, half, known.target.is_single, confidence, n_rows)


def average_quantiles(
    model: EffectModel,
    target: Quantiles,
    rows: NDArray[np.bool_] | None,
    confidence: float,
    n_jobs: int | None,
) -> AverageEffect:
    """Differences of the quantiles of the average curves, over all or some rows (by rank)."""
    chosen = model.has_score if rows is None else rows & model.has_score
    found = average_quantile_effect(model, target.levels, chosen, n_jobs)
    half = np.zeros(len(target.levels))
    return with_interval(found, half, target.is_single, confidence, int(chosen.sum()))


def with_interval(
    found: tuple[Floats, Floats], half: Floats, is_single: bool, confidence: float, n_rows: int
) -> AverageEffect:
    """Estimates with their standard errors, and intervals that are extended by ``half``."""
    estimate, error = found
    reach = confidence_width(confidence) * error + half

    def shaped(values: Floats) -> float | Floats:
        return float(values[0]) if is_single else values

    return AverageEffect(
        estimate=shaped(estimate),
        standard_error=shaped(error),
        lower=shaped(estimate - reach),
        upper=shaped(estimate + reach),
        confidence=confidence,
        n_rows=n_rows,
    )


def ratio_of_sums(
    parts: Parts, unit: NDArray[np.int32], chosen: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """The average over chosen rows, and its standard error by units."""
    numerator, denominator = parts.numerator[chosen], parts.denominator[chosen]
    mass = denominator.sum()
    estimate = numerator.sum(axis=0) / mass
    influence = (numerator - denominator[:, np.newaxis] * estimate) / mass
    return estimate, clustered_error(influence, unit[chosen])


def clustered_error(influence: Floats, unit: NDArray[np.int32]) -> Floats:
    """Standard error of a sum of influences, (n, n_outputs), that depend within a unit."""
    _, number = np.unique(unit, return_inverse=True)
    n_units = int(number.max()) + 1
    sums = np.zeros((n_units, influence.shape[1]))
    np.add.at(sums, number, influence)
    size = magnitude(sums)
    error: Floats = np.sqrt(((sums / size) ** 2).sum(axis=0) * n_units / max(1, n_units - 1))
    return size * error


def curve_scores(model: EffectModel, n_jobs: int | None) -> Floats:
    """Doubly robust scores of the curve of each arm, (2, n, n_times + 1), by rank.

    Their means are the average curves of the arms.
    """
    nuisances = model.nuisances
    effect = training_effects(model, grid_responses(model) - nuisances.pooled, n_jobs)
    curves = np.stack(
        [nuisances.pooled + (a - nuisances.probability[:, 1:]) * effect for a in (0, 1)]
    )
    return arm_scores(model, curves)


def average_quantile_effect(
    model: EffectModel, levels: Floats, chosen: NDArray[np.bool_], n_jobs: int | None
) -> tuple[Floats, Floats]:
    """Difference of the quantiles of the average curves of both arms, and its standard error."""
    weight = model.weight[chosen]
    scores = curve_scores(model, n_jobs)[:, chosen]
    means = np.tensordot(scores, weight, axes=(1, 0)) / weight.sum()
    average_curves = known_curves(model, means)
    times = np.empty((2, len(levels)))
    influence = np.zeros((int(chosen.sum()), len(levels)))
    for number in (0, 1):
        curve = average_curves[number : number + 1]
        column = quantile_columns(curve, levels)[0]
        times[number] = column_times(model, column)
        at = np.minimum(column, curve.shape[1] - 1)
        moved = scores[number][:, at] - means[number, at]
        influence += (2 * number - 1) * moved / densities(model, curve, levels)[0]
    with np.errstate(invalid="ignore"):
        estimate = model.sign * (times[1] - times[0])
    error = clustered_error(weight[:, np.newaxis] * influence / weight.sum(), model.unit[chosen])
    return estimate, np.where(np.isfinite(estimate), error, np.nan)
