"""Nuisances of the training rows, each from trees that did not draw the row.

Forests of their own estimate m(t | x) = P(T > t | x) of all rows together, S and G (survival of the
time and of the censoring time) in each arm, and the propensity, the probability of each arm given
x. Arms have numbers: 0 is the arm of the first row, so that nothing but the sign of an effect
depends on which of them is called the treatment.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.leaf_means import average
from cqrf._effects.response import (
    LEAST_CENSORING,
    Floats,
    Grid,
    Response,
    make_grid,
    make_response,
)
from cqrf._forest.sampling import in_bag_bits
from cqrf._input.target import NegativeTimeWarning, Target
from cqrf._input.units import NO_UNIT, find_clusters
from cqrf._model.fit import TrainingTable, fit_model
from cqrf._model.fitted import Model
from cqrf._model.queries import Queries, has_tree, training_codes, training_queries
from cqrf._model.settings import Settings
from cqrf._readers.curves import CensoringAt, SurvivalAt
from cqrf._readers.reader import ArrayReader, Chunk, read_one, read_weights

# A propensity is kept this far from 0 and 1.
LEAST_PROPENSITY = 0.02
MOST_ROUNDS = 3
# Most rows, as a share, that all trees of a forest may have drawn.
MOST_LOST = 0.5


class Forests(NamedTuple):
    """Forests that nuisances come from.

    Attributes
    ----------
    pooled : Model
        Of the times of all rows.
    arms : tuple of two Model
        Of the times of the rows of each arm.
    propensity : Model or None
        Of the arm, as a number, of all rows; None if propensities are known.
    """

    pooled: Model
    arms: tuple[Model, Model]
    propensity: Model | None


class Nuisances(NamedTuple):
    """Nuisances of the training rows, by rank of the pooled forest.

    Attributes
    ----------
    arm : (n,) bool
    probability : (n, 2) float64
        Propensity of each arm.
    residual : (n,) float64
        W - e, the arm less its propensity.
    pooled : (n, n_times + 1) float64
        m on the grid.
    survival : (2, n, n_times + 1) float64
        S of each arm on the grid.
    response : Response
        In the row's own arm.
    floored : float
        Share of rows for which G fell below the least value that is divided by.
    arm_target : (n,) float64, or None
        What the propensity forest averages, by its ranks; None if propensities are known.
    """

    arm: NDArray[np.bool_]
    probability: Floats
    residual: Floats
    pooled: Floats
    survival: Floats
    response: Response
    floored: float
    arm_target: Floats | None = None

    @property
    def grid(self) -> Grid:
        """Times of the curves."""
        return self.response.grid


def fit_forests(
    table: TrainingTable,
    arm: NDArray[np.bool_],
    settings: Settings,
    propensity_settings: Settings | None,
    n_jobs: int | None,
) -> Forests:
    """Grow the forests; without ``propensity_settings`` propensities are known."""
    with warnings.catch_warnings():  # the caller has warned of the whole table
        warnings.simplefilter("ignore", NegativeTimeWarning)
        pooled = fit_model(table, settings, n_jobs)
        # All forests share the bins, so that rows are encoded once.
        grow = partial(fit_model, n_jobs=n_jobs, edges=pooled.edges)
        arms = [grow(take_rows(table, arm == number), settings) for number in (0, 1)]
    propensity = None
    if propensity_settings is not None:
        target = Target(arm.astype(np.float64), np.full(len(arm), True), None)
        propensity = grow(table._replace(target=target), propensity_settings)
    return Forests(pooled, (arms[0], arms[1]), propensity)


def take_rows(table: TrainingTable, rows: NDArray[np.bool_]) -> TrainingTable:
    """Some rows of a table."""
    weight, groups = table.sample_weight, table.groups
    return table._replace(
        matrix=table.matrix[rows],
        target=table.target.take(np.flatnonzero(rows)),
        sample_weight=None if weight is None else np.asarray(weight)[rows],
        groups=None if groups is None else np.asarray(groups)[rows],
    )


@dataclass(frozen=True, eq=False)
class CensoringBefore(ArrayReader):
    """P(C >= t | x), each query at a time of its own."""

    times: Floats

    def read(self, chunk: Chunk) -> Floats:
        """Probabilities of shape (n_queries,)."""
        return chunk.censoring_survival.each(np.nextafter(self.times[chunk.rows], -np.inf))


def estimate_nuisances(
    forests: Forests, arm: NDArray[np.bool_], known_propensity: Floats | None, n_jobs: int | None
) -> Nuisances:
    """Nuisances of all rows; ``arm`` and the known propensity of arm 1 are by row of the table."""
    pooled = forests.pooled
    target, order = pooled.training_target, pooled.order
    is_used = pooled.training_weight > 0
    grid = make_grid(target.time[is_used], target.event[is_used])
    codes = training_codes(pooled)
    shape = (len(arm), len(grid.times) + 1)
    survival, compensator = np.empty((2, *shape)), np.empty(shape)
    event_term, floored = np.empty(len(arm)), np.empty(len(arm), bool)
    for number, model in enumerate(forests.arms):
        own, other = np.flatnonzero(arm == number), np.flatnonzero(arm != number)
        response, floored[own] = arm_response(model, grid, target.take(own), n_jobs)
        survival[number, own], compensator[own] = response.survival, response.compensator
        event_term[own] = response.event_term
        queries = Queries(codes[other], clusters_in_bag(pooled, model, own, other))
        survival[number, other] = curves_on_grid(model, queries, grid, n_jobs)
    probability, arm_target = training_propensity(forests.propensity, known_propensity, n_jobs)
    return Nuisances(
        arm=arm[order],
        probability=probability[order],
        residual=np.where(arm, probability[:, 0], -probability[:, 1])[order],
        pooled=curves_on_grid(pooled, unseen_queries(pooled), grid, n_jobs)[order],
        survival=survival[:, order],
        response=Response(
            grid=grid,
            time=target.time[order],
            survival=np.where(arm[:, np.newaxis], survival[1], survival[0])[order],
            compensator=compensator[order],
            event_term=event_term[order],
        ),
        floored=float(floored.mean()),
        arm_target=arm_target,
    )


def unseen_queries(model: Model) -> Queries:
    """The training rows of a forest, each without the trees that drew it.

    A row that all trees drew is predicted by all of them.
    """
    queries = training_queries(model)
    lost = ~has_tree(model, queries)
    if lost.mean() > MOST_LOST:
        raise ValueError(
            f"nuisance_forest: {lost.sum()} of {len(lost)} rows were drawn by all of its "
            f"{len(model.forest.roots)} trees, so that none is left to predict them out of bag: "
            "raise its n_estimators."
        )
    assert queries.in_bag is not None
    return queries._replace(in_bag=np.where(lost[:, np.newaxis], np.uint8(0), queries.in_bag))


def clusters_in_bag(
    pooled: Model, model: Model, own: NDArray[np.intp], other: NDArray[np.intp]
) -> NDArray[np.uint8]:
    """Bits of the trees of an arm's forest that drew rows of the clusters of some other rows."""
    cluster = find_clusters(pooled.sampling.unit_of_row[pooled.ranks])
    unit_of_cluster = np.full(pooled.sampling.n_units + 1, NO_UNIT)  # the last: rows without one
    unit_of_cluster[cluster[own]] = find_clusters(model.sampling.unit_of_row[model.ranks])
    unit = unit_of_cluster[cluster[other]]
    drawn = in_bag_bits(model.sampling, model.tree_numbers, model.seed)
    return np.where(unit[:, np.newaxis] >= 0, drawn[unit], np.uint8(0))


def arm_response(
    model: Model, grid: Grid, target: Target, n_jobs: int | None
) -> tuple[Response, NDArray[np.bool_]]:
    """Responses of the rows of an arm, and for which of them G is below its least value."""
    queries = unseen_queries(model)
    readers = [
        SurvivalAt(grid.times),
        CensoringAt(np.nextafter(grid.times, -np.inf)),
        CensoringBefore(target.time),
    ]
    survival, censoring, at_own = read_weights(model, queries, readers, n_jobs)
    response = make_response(grid, target.time, target.event, survival, censoring, at_own)
    return response, at_own < LEAST_CENSORING


def curves_on_grid(model: Model, queries: Queries, grid: Grid, n_jobs: int | None) -> Floats:
    """Survival curves of some queries, shape (n, n_times + 1)."""
    survival = read_one(model, queries, SurvivalAt(grid.times), n_jobs)
    return np.hstack([np.ones((len(survival), 1)), survival])


def training_propensity(
    model: Model | None, known: Floats | None, n_jobs: int | None
) -> tuple[Floats, Floats | None]:
    """Probability of each arm, (n, 2) by row of the table, and what the forest averages for it.

    Averages over neighbours are too flat: what is left of the arm is averaged as well and added,
    as often as this lowers the squared error out of bag, and then once more: flat propensities
    bias averages more than noisy ones. At most MOST_ROUNDS times.
    """
    if known is not None:
        return np.column_stack([1.0 - known, known]), None
    assert model is not None
    queries, arm = unseen_queries(model), model.rows.time
    target, rounds = arm, []
    for _ in range(1 + MOST_ROUNDS):
        probability = estimate_propensity(model, target, queries, n_jobs)
        left = arm - probability[model.order, 1]
        rounds.append((probability, target, float(np.nanmean(left**2))))
        if len(rounds) > 1 and rounds[-1][2] >= rounds[-2][2]:
            break
        target = target + left
    # The last round raised the error, unless it is the last one allowed.
    chosen = rounds[0] if len(rounds) == 2 and rounds[1][2] >= rounds[0][2] else rounds[-1]
    return chosen[0], chosen[1]


def estimate_propensity(
    model: Model, target: Floats, queries: Queries, n_jobs: int | None
) -> Floats:
    """Probability of each arm for some queries, (n, 2): averages of ``target``, by rank."""
    of_one = average(model, queries, target[:, np.newaxis], n_jobs)[:, 0]
    of_one = np.clip(of_one, LEAST_PROPENSITY, 1.0 - LEAST_PROPENSITY)
    return np.column_stack([1.0 - of_one, of_one])
