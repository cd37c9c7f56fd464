"""Direct and residual trees side by side: their weights, the mixture of their curves, its error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.traversal import Leaves
from cqrf._forest.weights import Weights, forest_weights
from cqrf._model.fitted import Model
from cqrf._model.queries import Queries
from cqrf._model.residual import ResidualTrees
from cqrf._runtime.threads import computed_once
from cqrf._survival.curves import Steps, as_curves, compute_steps
from cqrf._survival.interval_curves import IntervalSteps, interval_steps
from cqrf._survival.little_bags import BagVariances, bag_moves
from cqrf._survival.mixture import Scale, make_scale, map_steps, mix_steps, repeat_steps
from cqrf._survival.mixture_quantiles import make_mixture, mixture_quantiles
from cqrf._survival.quantiles import Solution, curve_quantiles
from cqrf._working_model.transform import WorkingModel


@dataclass(frozen=True, eq=False)
class TreeKinds:
    """Leaves of queries in trees of either kind, and what is read from them."""

    model: Model
    working: WorkingModel
    residual: ResidualTrees
    linear_predictor: NDArray[np.float64]
    direct_leaves: Leaves
    residual_leaves: Leaves

    @computed_once
    def direct_weights(self) -> Weights:
        """Weights from direct trees, by rank."""
        rows, n_train = self.model.rows, len(self.model.order)
        return forest_weights(self.direct_leaves, self.model.forest.leaf_rows, n_train, rows.weight)

    @computed_once
    def residual_weights(self) -> Weights:
        """Weights from residual trees, by residual rank."""
        residual, n_train = self.residual, len(self.model.order)
        return forest_weights(
            self.residual_leaves, residual.leaf_rows, n_train, residual.target.weight
        )

    @property
    def shares(self) -> tuple[float, float, float]:
        """Shares of direct trees, residual trees and the root."""
        of_kind = (1.0 - self.working.root_share) / 2.0
        return of_kind, of_kind, self.working.root_share

    @property
    def scale(self) -> Scale:
        """The residual scale of each query."""
        last_time = float(self.model.rows.time[-1])
        return make_scale(self.working, last_time, self.linear_predictor)

    @computed_once
    def interval_steps(self) -> tuple[IntervalSteps, IntervalSteps] | None:
        """Of direct and of residual trees; None without interval censoring."""
        direct, residual = self.model.interval_ends, self.residual.interval_ends
        if direct is None or residual is None:
            return None
        return (
            interval_steps(self.direct_weights, direct),
            interval_steps(self.residual_weights, residual),
        )

    def mix(self) -> Steps:
        """Steps of the mixture; with interval censoring, at the right ends of intervals."""
        if self.interval_steps is None:
            direct = compute_steps(self.direct_weights, self.model.ranked_target)
            on_residuals = compute_steps(self.residual_weights, self.residual.target)
        else:
            direct, on_residuals = (each.at_right() for each in self.interval_steps)
        return self._mix(direct, map_steps(on_residuals, self.scale))

    def mix_left(self) -> Steps:
        """Steps of the mixture at the left ends of intervals."""
        assert self.interval_steps is not None
        direct, on_residuals = (each.at_left() for each in self.interval_steps)
        mapped = map_steps(on_residuals, self.scale)
        assert self.model.lower is not None
        # Before the first event time, and after the smallest left end of all rows.
        mapped.times[np.isneginf(on_residuals.times)] = self.model.lower.min()
        return self._mix(direct, mapped)

    def _mix(self, direct: Steps, residual: Steps) -> Steps:
        root = None
        if self.working.root_share > 0:
            n_queries = len(self.linear_predictor)
            root = map_steps(repeat_steps(self.residual.root, n_queries), self.scale)
        return mix_steps(direct, residual, root, self.shares)

    def quantiles(self, levels: NDArray[np.float64]) -> Solution:
        """Quantiles of the mixture."""
        model, residual = self.model, self.residual
        if residual.target.first_at_risk is not None or residual.interval_ends is not None:
            return self.read_quantiles(levels)
        mixture = make_mixture(
            (model.ranked_target, residual.target),
            residual.direct_hazard,
            residual.root,
            self.shares,
        )
        weights = self.direct_weights, self.residual_weights
        solution, rows = mixture_quantiles(weights, mixture, self.scale, levels, model.censoring)
        if len(rows):
            found = self.take(rows).read_quantiles(levels)
            solution.values[rows], solution.last_neighbor[rows] = found
        return solution

    def read_quantiles(self, levels: NDArray[np.float64]) -> Solution:
        """Quantiles from the whole curves."""
        return curve_quantiles(as_curves(self.mix(), "right"), levels, self.model.censoring)

    def take(self, rows: NDArray[np.intp]) -> TreeKinds:
        """The same for some of the queries."""
        direct, residual = (
            Leaves(leaves.starts[rows], leaves.sizes[rows])
            for leaves in (self.direct_leaves, self.residual_leaves)
        )
        linear_predictor = self.linear_predictor[rows]
        return TreeKinds(
            self.model, self.working, self.residual, linear_predictor, direct, residual
        )

    def bag_variances(self, at: NDArray[np.float64], bag_size: int) -> BagVariances:
        """Variances of the mixture at times of (n_queries, n_times), oriented to the right.

        A bag holds ``bag_size`` trees of either kind, all drawn from the same half of the rows.
        Trees behind the last whole bag do not count.
        """
        n_bags = self.residual_leaves.sizes.shape[1] // bag_size
        direct = bag_moves(
            _take_trees(self.direct_leaves, n_bags * bag_size),
            self.model.forest.leaf_rows,
            self.direct_weights,
            self.model.ranked_target,
            at,
            bag_size,
        )
        residual = bag_moves(
            _take_trees(self.residual_leaves, n_bags * bag_size),
            self.residual.leaf_rows,
            self.residual_weights,
            self.residual.target,
            self.working.residuals(at, self.linear_predictor[:, np.newaxis]),
            bag_size,
        )
        of_direct, of_residual, _ = self.shares
        means = of_direct * direct.means + of_residual * residual.means
        within = of_direct**2 * direct.within + of_residual**2 * residual.within
        return BagVariances((means**2).mean(axis=2), within)


def split_kinds(model: Model, queries: Queries, leaves: Leaves) -> TreeKinds | None:
    """The two kinds of trees for some queries; None if the model has only one."""
    working, residual = model.working, model.residual_trees
    if working is None or residual is None:
        return None
    linear_predictor = queries.linear_predictor
    if linear_predictor is None:
        linear_predictor = working.predict(queries.codes)
    direct_leaves, residual_leaves = residual.split(leaves)
    return TreeKinds(model, working, residual, linear_predictor, direct_leaves, residual_leaves)


def _take_trees(leaves: Leaves, n_trees: int) -> Leaves:
    """Leaves in the first trees."""
    return Leaves(
        np.ascontiguousarray(leaves.starts[:, :n_trees]),
        np.ascontiguousarray(leaves.sizes[:, :n_trees]),
    )
