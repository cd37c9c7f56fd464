"""How much of an effect is lost by averaging it over neighbours.

The effect forest averages over neighbours of x, whose effects differ from that at x. How much this
takes away can be seen on a function that is estimated without the effect forest: the difference
g(t | x) = S_1(t | x) - S_0(t | x) of the curves from the forests of the arms. With K g its average
over the neighbours of x, by the weights a_i (W_i - e_i)^2 of the effect, the loss is g - K g. Its
root mean square over the training rows, out of bag, is the size of the bias that intervals allow
for. Targets are linear in the curve, so that the mean products of the loss at pairs of times give
it for every target.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cqrf._effects.leaf_means import average
from cqrf._effects.nuisances import Nuisances
from cqrf._effects.response import Floats, Grid
from cqrf._model.fitted import Model
from cqrf._model.queries import Queries, training_queries

# Most times and rows that the loss is averaged over.
MOST_TIMES, MOST_ROWS = 40, 2000


class SmoothingLoss(NamedTuple):
    """Mean products of g - K g at pairs of times.

    Attributes
    ----------
    grid : Grid
        Some of the times of the curves.
    products : (n_times + 1, n_times + 1) float64
    """

    grid: Grid
    products: Floats

    def size(self, coefficients: Floats) -> Floats:
        """Root mean square of the loss of targets, (n_outputs,).

        coefficients : (n_times + 1, n_outputs), of each time of the grid in the target
        """
        squares = np.einsum("tk,ts,sk->k", coefficients, self.products, coefficients)
        return np.sqrt(np.maximum(squares, 0.0))


def measure_smoothing(
    effect: Model, nuisances: Nuisances, weight: Floats, n_jobs: int | None = 1
) -> SmoothingLoss:
    """The loss by the weights of the effect forest; ``weight`` are sample weights, by rank."""
    n, n_times = len(weight), len(nuisances.grid.times)
    columns = np.unique(np.linspace(0, n_times, 1 + min(n_times, MOST_TIMES)).astype(np.intp))
    grid = Grid(nuisances.grid.start, nuisances.grid.begins[columns[1:]])
    difference = nuisances.survival[1][:, columns] - nuisances.survival[0][:, columns]
    squared = nuisances.residual[:, np.newaxis] ** 2
    ranks = np.unique(np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(np.intp))
    unseen, rows = training_queries(effect), effect.order[ranks]
    assert unseen.in_bag is not None
    queries = Queries(unseen.codes[rows], unseen.in_bag[rows])
    means = average(effect, queries, np.hstack([squared, squared * difference]), n_jobs)
    loss = difference[ranks] - means[:, 1:] / means[:, :1]
    known = ~np.isnan(loss[:, 0])  # others were drawn by all trees
    loss, share = loss[known], weight[ranks][known]
    products: Floats = (loss * share[:, np.newaxis]).T @ loss / max(share.sum(), 1e-300)
    return SmoothingLoss(grid, products)
