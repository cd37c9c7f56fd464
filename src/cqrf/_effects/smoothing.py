"""How much of an effect is lost by averaging it over neighbours.

The effect forest averages over neighbours of x, whose effects differ from that at x. How much this
takes away can be seen on a function that is estimated without the effect forest: the difference
g(t | x) = S_1(t | x) - S_0(t | x) of the curves from the forests of the arms. With K g its average
over the neighbours of x, by the weights a_i (W_i - e_i)^2 of the effect, the loss is g - K g. It is
computed at training rows, out of bag. The size of the bias at x is the root mean square of the loss
over the neighbours of x, the root of K (g - K g)^2: large where the effect bends within the
neighbourhoods of the forest, small where it does not. Restricted means and survival probabilities
are linear in the curve, and so are their losses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.leaf_means import average
from cqrf._effects.nuisances import Nuisances
from cqrf._effects.response import Floats, Grid
from cqrf._model.fitted import Model
from cqrf._model.queries import Queries, training_queries

# Most times and rows that the loss is computed at.
MOST_TIMES, MOST_ROWS = 40, 2000


class SmoothingLoss(NamedTuple):
    """g - K g at some training rows.

    Attributes
    ----------
    grid : Grid
        Some of the times of the curves.
    ranks : (n_rows,) intp
        Ranks of these rows; a row that all trees drew is not among them.
    loss : (n_rows, n_times + 1) float64
    mass : (n_rows,) float64
        (W - e)^2.
    """

    grid: Grid
    ranks: NDArray[np.intp]
    loss: Floats
    mass: Floats

    def sizes(
        self, effect: Model, queries: Queries, coefficients: Floats, n_jobs: int | None
    ) -> Floats:
        """Root mean square of the loss of targets over the neighbours of queries.

        coefficients : (n_times + 1, n_outputs), of each time of the grid in the target

        Returns (n_queries, n_outputs). A query none of whose neighbours has a loss gets the root
        mean square over all rows.
        """
        squares = self.mass[:, np.newaxis] * np.einsum("nt,tk->nk", self.loss, coefficients) ** 2
        table = np.zeros((len(effect.order), 1 + squares.shape[1]))
        table[self.ranks] = np.column_stack([self.mass, squares])
        means = average(effect, queries, table, n_jobs)
        means[means[:, 0] <= 0] = np.average(table, axis=0, weights=effect.rows.weight)
        sizes: Floats = np.sqrt(means[:, 1:] / means[:, :1])
        return sizes


def measure_smoothing(
    effect: Model, nuisances: Nuisances, weight: Floats, n_jobs: int | None = 1
) -> SmoothingLoss:
    """The loss by the weights of the effect forest; ``weight`` are sample weights, by rank."""
    n_times, weighted = len(nuisances.grid.times), np.flatnonzero(weight > 0)
    columns = np.unique(np.linspace(0, n_times, 1 + min(n_times, MOST_TIMES)).astype(np.intp))
    grid = Grid(nuisances.grid.start, nuisances.grid.begins[columns[1:]])
    difference = nuisances.survival[1][:, columns] - nuisances.survival[0][:, columns]
    squared = nuisances.residual[:, np.newaxis] ** 2
    n_rows = min(len(weighted), MOST_ROWS)
    ranks = weighted[np.linspace(0, len(weighted) - 1, n_rows).astype(np.intp)]
    unseen, rows = training_queries(effect), effect.order[ranks]
    assert unseen.in_bag is not None
    queries = Queries(unseen.codes[rows], unseen.in_bag[rows])
    means = average(effect, queries, np.hstack([squared, squared * difference]), n_jobs)
    loss = difference[ranks] - means[:, 1:] / means[:, :1]
    known = ~np.isnan(loss[:, 0])  # others were drawn by all trees
    return SmoothingLoss(grid, ranks[known], loss[known], squared[ranks[known], 0])
