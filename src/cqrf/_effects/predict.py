"""Effects and curves of the arms, for new rows or the training rows out of bag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.bags import Moves, bag_variances
from cqrf._effects.fitted import EffectModel
from cqrf._effects.leaf_means import average, compute_leaf_means, number_leaves
from cqrf._effects.magnitude import magnitude
from cqrf._effects.nuisances import curves_on_grid, estimate_propensity
from cqrf._effects.response import Floats
from cqrf._effects.targets import LinearTarget, Quantiles, Target
from cqrf._input.risk_sets import TOLERANCE
from cqrf._model.queries import Queries, training_codes, training_queries
from cqrf._readers.reader import ArrayReader, Chunk, read_one
from cqrf._survival.little_bags import standard_errors

# Share of what averaging over neighbours takes from the difference of the arms' curves that counts
# as an error of an effect; less than 1, as these curves have errors of their own. And the factor of
# the errors of effects on quantiles. With them intervals of 95 % covered about 95 % or more on
# average over simulations (benchmarks/effects.py).
BIAS_SHARE, QUANTILE_FACTOR = 0.75, 1.4
# Half of the width of the window, in probability, over which the density at a quantile is taken.
DENSITY_WINDOW = 0.1


@dataclass(frozen=True, eq=False)
class Errors(ArrayReader):
    """Standard errors of sums of such means; ``columns`` and ``factors`` as in Moves."""

    moves: Moves

    def read(self, chunk: Chunk) -> Floats:
        """Errors of shape (n_queries, n_outputs)."""
        model, bag_size = chunk.model, chunk.model.sampling.bag_size
        means, columns, factors = self.moves
        moves = Moves(means, columns[chunk.rows], factors[chunk.rows])
        variances = bag_variances(number_leaves(model.forest, chunk.leaves), moves, bag_size)
        return standard_errors(variances, len(model.forest.roots) // bag_size)


class Effects(NamedTuple):
    """Effects of arm 1 for some queries, and what their errors are made of.

    ``effect`` is (n, n_outputs); ``table`` holds (W - e)^2 and then (W - e) (Y* - m - ...) of the
    training rows; ``means`` are its means with the weights of each query.
    """

    effect: Floats
    table: Floats
    means: Floats


def estimate_effects(
    model: EffectModel,
    responses: Floats,
    queries: Queries,
    n_jobs: int | None,
    of_training: bool = False,
) -> Effects:
    """Effects on residual responses Y* - m, (n_train, n_outputs) by rank.

    ``of_training``: the queries are the training rows in the order of their table.
    """
    residual = model.nuisances.residual[:, np.newaxis]
    linear = model.linear
    coefficients, at_rows = linear.fit(responses)
    if of_training:
        at_queries: Floats = at_rows[model.effect.ranks]
    else:
        at_queries = linear.predict(queries.codes, coefficients)
    table = np.hstack([residual**2, residual * (responses - residual * at_rows)])
    means = average(model.effect, queries, table, n_jobs)
    return Effects(at_queries + means[:, 1:] / means[:, :1], table, means)


def residual_responses(model: EffectModel, target: LinearTarget) -> Floats:
    """Y* - m of the training rows for a target, by rank."""
    nuisances, target = model.nuisances, target.until(model.falls)
    return target.responses(nuisances) - target.of_curves(nuisances, nuisances.pooled)


def effect_errors(
    model: EffectModel,
    effects: Effects,
    target: LinearTarget,
    queries: Queries,
    n_jobs: int | None,
) -> Floats:
    """Standard errors of effects, shape (n, n_outputs).

    Little bags give the sampling error. The neighbours of x are not at x: a share of what averaging
    over them takes from the difference of the arms' curves is added in squares.
    """
    size = magnitude(effects.table[:, 1:])
    factor = np.where(np.arange(effects.table.shape[1]) == 0, 1.0, size)
    table, means = effects.table / factor, effects.means / factor
    n, n_outputs = len(means), means.shape[1] - 1
    columns = np.zeros((n, n_outputs, 2), np.int64)
    columns[:, :, 1] = np.arange(1, n_outputs + 1)
    factors = np.empty((n, n_outputs, 2))
    factors[:, :, 0] = -means[:, 1:] / means[:, :1] ** 2
    factors[:, :, 1] = 1.0 / means[:, :1]
    moves = Moves(compute_leaf_means(model.effect, table, n_jobs), columns, factors)
    errors = read_one(model.effect, queries, Errors(moves), n_jobs)
    loss = model.smoothing
    coefficients = target.until(model.falls).coefficients(loss.grid)
    bias = loss.sizes(model.effect, queries, coefficients / size, n_jobs)
    return size * np.hypot(errors, BIAS_SHARE * bias)


def grid_responses(model: EffectModel) -> Floats:
    """Y* of the training rows on the grid, shape (n, n_times + 1)."""
    response = model.nuisances.response
    values = np.hstack([np.ones((len(response.time), 1)), response.at(response.grid.times)])
    falls = model.falls[model.nuisances.arm.astype(int)]
    return np.where(model.grid.begins < falls[:, np.newaxis], values, 0.0)


def arm_scores(model: EffectModel, curves: Floats) -> Floats:
    """Doubly robust scores of the curve of each arm, (2, n, n_times + 1), by rank.

    ``curves``, of the same shape, are the curves that the scores correct.
    """
    nuisances, responses = model.nuisances, grid_responses(model)
    scores = curves.copy()
    for number in (0, 1):
        own = nuisances.arm == bool(number)
        weight = 1.0 / nuisances.probability[own, number, np.newaxis]
        scores[number, own] += weight * (responses[own] - curves[number, own])
    return scores


def arm_curves(model: EffectModel, queries: Queries, n_jobs: int | None) -> Floats:
    """Survival curves of both arms on the grid, shape (2, n, n_times + 1).

    The mean of three estimates: the pooled curve moved by the effect, the average of doubly robust
    scores over the neighbours, and the forest of the arm.
    """
    responses = grid_responses(model) - model.nuisances.pooled
    effect = estimate_effects(model, responses, queries, n_jobs).effect
    pooled = curves_on_grid(model.forests.pooled, queries, model.grid, n_jobs)
    probability = query_propensity(model, queries, n_jobs)
    scores = arm_scores(model, model.nuisances.survival)
    curves = np.empty((2, *pooled.shape))
    for number, arm in enumerate(model.forests.arms):
        moved = pooled + (number - probability[:, 1:]) * effect
        averaged = average(model.effect, queries, scores[number], n_jobs)
        own = curves_on_grid(arm, queries, model.grid, n_jobs)
        curves[number] = (moved + averaged + own) / 3.0
    return known_curves(model, curves)


def query_propensity(model: EffectModel, queries: Queries, n_jobs: int | None) -> Floats:
    """Probability of each arm for some queries, shape (n, 2); known ones are averaged."""
    forest, target = model.forests.propensity, model.nuisances.arm_target
    if forest is None or target is None:
        return average(model.effect, queries, model.nuisances.probability, n_jobs)
    return estimate_propensity(forest, target, queries, n_jobs)


def known_curves(model: EffectModel, curves: Floats) -> Floats:
    """Curves of both arms, (2, ..., n_columns), within [0, 1] and not rising.

    After the last time at which an arm is known its curve stays as it is, so that no quantile is
    found there; it is 0 if that time is an event.
    """
    known: Floats = np.minimum.accumulate(np.clip(curves, 0.0, 1.0), axis=-1)
    for number, end in enumerate(model.grid.columns(model.ends)):
        known[number, ..., end + 1 :] = known[number, ..., end : end + 1]
        known[number, ..., model.grid.begins >= model.falls[number]] = 0.0
    return known


def quantile_columns(curves: Floats, levels: Floats) -> NDArray[np.intp]:
    """Column at which each curve, (n, n_columns), has fallen to 1 - level; (n, n_levels).

    The number of columns where it does not.
    """
    above = np.greater(curves[:, :, np.newaxis], 1.0 - levels + TOLERANCE)
    columns: NDArray[np.intp] = above.sum(axis=1)
    return columns


def column_times(model: EffectModel, columns: NDArray[np.intp]) -> Floats:
    """Time of each column; infinite for the one after the last."""
    times: Floats = np.append(model.grid.begins, np.inf)[columns]
    return times


def densities(model: EffectModel, curves: Floats, levels: Floats) -> Floats:
    """Density of T at the quantiles of these levels, (n, n_levels), from steps of the curve."""
    low = np.maximum(levels - DENSITY_WINDOW, levels / 2)
    high = np.minimum(levels + DENSITY_WINDOW, (1.0 + levels) / 2)
    last = curves.shape[1] - 1
    first, end = (np.minimum(quantile_columns(curves, each), last) for each in (low, high))
    begins = model.grid.begins
    rows = np.arange(len(curves))[:, np.newaxis]
    fall = curves[rows, first] - curves[rows, end]
    length = begins[end] - begins[first]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((length > 0) & (fall > 0), fall / length, np.nan)


def quantile_effect_errors(
    model: EffectModel, curves: Floats, levels: Floats, queries: Queries, n_jobs: int | None
) -> Floats:
    """Standard errors of differences of quantiles, shape (n, n_levels).

    By the delta method: the error of a quantile is that of its curve there, over the density.
    """
    scores = arm_scores(model, model.nuisances.survival)
    n_columns = curves.shape[2]
    columns = np.empty((curves.shape[1], len(levels), 2), np.int64)
    factors = np.empty(columns.shape)
    for number in (0, 1):
        its_columns = quantile_columns(curves[number], levels)
        columns[:, :, number] = number * n_columns + np.minimum(its_columns, n_columns - 1)
        density = densities(model, curves[number], levels)
        density[its_columns >= n_columns] = np.nan
        factors[:, :, number] = (2 * number - 1) / density
    unknown = np.asarray(np.isnan(factors).any(axis=2))
    table = np.hstack([scores[0], scores[1]])
    used, columns = np.unique(columns, return_inverse=True)
    means = compute_leaf_means(model.effect, table[:, used], n_jobs)
    known_factors = np.where(unknown[:, :, np.newaxis], 0.0, factors)
    size = magnitude(known_factors)
    moves = Moves(means, columns.reshape(factors.shape), known_factors / size)
    errors = size * read_one(model.effect, queries, Errors(moves), n_jobs)
    return np.where(unknown, np.nan, QUANTILE_FACTOR * errors)


def quantile_effects(model: EffectModel, curves: Floats, levels: Floats) -> Floats:
    """Differences of the quantiles of both arms, shape (n, n_levels); of the treatment's sign."""
    of_arm = [column_times(model, quantile_columns(each, levels)) for each in curves]
    with np.errstate(invalid="ignore"):
        return model.sign * (of_arm[1] - of_arm[0])


def effects_and_errors(
    model: EffectModel, target: Target, queries: Queries, n_jobs: int | None
) -> tuple[Floats, Floats]:
    """Effects of the treatment and their standard errors, each of shape (n, n_outputs)."""
    if isinstance(target, Quantiles):
        curves = arm_curves(model, queries, n_jobs)
        errors = quantile_effect_errors(model, curves, target.levels, queries, n_jobs)
        return quantile_effects(model, curves, target.levels), errors
    responses = residual_responses(model, target)
    estimated = estimate_effects(model, responses, queries, n_jobs)
    errors = effect_errors(model, estimated, target, queries, n_jobs)
    return model.sign * estimated.effect, errors


def training_effects(model: EffectModel, responses: Floats, n_jobs: int | None) -> Floats:
    """Effects of the training rows by rank, each from trees that did not draw it."""
    queries = training_queries(model.effect)
    effect = estimate_effects(model, responses, queries, n_jobs, of_training=True).effect
    return effect[model.effect.order]


def insample_effects(model: EffectModel, responses: Floats, n_jobs: int | None) -> Floats:
    """Effects of the training rows by rank, from all trees."""
    queries = Queries(training_codes(model.effect))
    return estimate_effects(model, responses, queries, n_jobs).effect[model.effect.order]
