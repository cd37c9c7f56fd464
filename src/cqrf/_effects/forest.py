"""The effect forest: trees whose leaves differ in the effect of the treatment.

Its weights a_i(x) give the effect at x for any response, by residuals on residuals:

    tau(x) = sum a_i (W_i - e_i) (Y*_i - m_i) / sum a_i (W_i - e_i)^2.

Trees are honest and grown in little bags. They are split at N_LEVELS times, the levels of the
average curve, each response divided by its standard deviation there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.nuisances import Nuisances
from cqrf._effects.response import Floats
from cqrf._forest.criteria.effect import Effect
from cqrf._forest.spec import Growing, Limits
from cqrf._forest.training import grow_forest
from cqrf._model.fitted import Model

N_LEVELS = 9
# Bits of the strata: a child keeps rows of either arm, and events.
IN_ARM_0, IN_ARM_1, IS_EVENT = 1, 2, 4


def level_times(nuisances: Nuisances, weight: Floats) -> Floats:
    """Times at which the average curve falls to evenly spaced levels."""
    average = weighted_mean(nuisances.pooled, weight)
    levels = np.linspace(1.0, average[-1], N_LEVELS + 2)[1:-1]
    reached = np.searchsorted(-average, -levels)
    return np.unique(nuisances.grid.begins[np.clip(reached, 1, len(average) - 1)])


def level_residuals(nuisances: Nuisances, weight: Floats) -> Floats:
    """Y* - m at these times, divided by their standard deviation; shape (n, n_levels)."""
    times = level_times(nuisances, weight)
    mean = nuisances.pooled[:, nuisances.grid.columns(times)]
    average = weighted_mean(mean, weight)
    deviation = np.sqrt(np.maximum(average * (1.0 - average), 1e-12))
    scaled: Floats = (nuisances.response.at(times) - mean) / deviation
    return scaled


def weighted_mean(values: Floats, weight: Floats) -> Floats:
    """Mean of the rows of an array that have weight."""
    is_used = weight > 0
    mean: Floats = np.average(values[is_used], axis=0, weights=weight[is_used])
    return mean


def grow_effect_forest(
    pooled: Model,
    nuisances: Nuisances,
    limits: Limits,
    n_trees: int,
    bag_size: int,
    n_jobs: int | None,
) -> Model:
    """A model with the rows of the pooled one and the trees of the effect forest."""
    residual = nuisances.residual
    weight = np.ones(len(residual)) if pooled.rows.weight is None else pooled.rows.weight
    at_levels = level_residuals(nuisances, weight.astype(np.float64))
    scores = np.column_stack([residual**2, residual[:, np.newaxis] * at_levels])
    stratum: NDArray[np.uint8] = np.where(nuisances.arm, IN_ARM_1, IN_ARM_0).astype(np.uint8)
    stratum |= np.where(pooled.rows.event, IS_EVENT, 0).astype(np.uint8)
    rows = pooled.rows._replace(scores=np.ascontiguousarray(scores), stratum=stratum)
    n_units = pooled.sampling.n_units
    sampling = pooled.sampling._replace(
        size=n_units // 2, bootstrap=False, honest=True, bag_size=bag_size
    )
    growing = Growing(Effect(at_levels.shape[1]), limits)
    forest = grow_forest(rows, sampling, growing, n_trees, pooled.seed, n_jobs)
    return replace(pooled, forest=forest, sampling=sampling, working=None)
