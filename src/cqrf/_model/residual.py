"""Residual trees: half of the trees of a forest with a working model.

Direct trees are grown on times, residual trees on times mapped to the residual scale by the working
model (``_working_model/transform.py``). On that scale rows have another order. The leaves of all
trees hold ranks by time, so that the forest, its file and its weights know nothing of residuals;
this module maps them to *residual ranks* where a curve of residuals is read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.rows import Rows
from cqrf._forest.spec import LEAF, Forest, Growing
from cqrf._forest.traversal import Leaves
from cqrf._input.risk_sets import first_at_risk
from cqrf._input.target import Target, rank_target
from cqrf._survival.curves import RankedTarget, Steps, compute_steps
from cqrf._survival.innermost import IntervalEnds, number_ends
from cqrf._survival.interval_curves import interval_steps
from cqrf._survival.mixture import thin_root
from cqrf._working_model.transform import WorkingModel
from cqrf.metrics.ipcw import marginal_weights

NODE_FACTORS, NODE_SHARE = (1.5, 3.0), 1 / 60


class ResidualTrees(NamedTuple):
    """What curves of residuals are read from."""

    n_direct: int
    """Number of direct trees; the trees behind them are residual."""
    target: RankedTarget
    """Training rows by residual rank."""
    leaf_rows: NDArray[np.int32]
    """Residual ranks in the leaves of residual trees."""
    first_leaf_row: int
    """Where these begin among the leaf rows of the forest."""
    direct_hazard: NDArray[np.float64]
    """Cumulative baseline hazard at the times of the training rows, by rank; see
    :meth:`WorkingModel.hazard_places`."""
    root: Steps
    """Survival curve of all residuals together."""
    interval_ends: IntervalEnds | None = None
    """With interval censoring: the ends of the training rows on the residual scale."""

    def split(self, leaves: Leaves) -> tuple[Leaves, Leaves]:
        """Leaves of queries in direct and in residual trees; the latter index ``leaf_rows``."""
        starts, sizes = leaves
        n = self.n_direct
        shifted = starts[:, n:] - self.first_leaf_row
        np.maximum(shifted, 0, out=shifted)  # 0 for trees left out
        # Contiguous, so that kernels are compiled for one layout of arrays.
        return (
            Leaves(np.ascontiguousarray(starts[:, :n]), np.ascontiguousarray(sizes[:, :n])),
            Leaves(shifted, np.ascontiguousarray(sizes[:, n:])),
        )


def count_direct(n_trees: int) -> int:
    """Number of direct trees of a forest with residual trees."""
    return (n_trees + 1) // 2


def residual_growing(growing: Growing, n_units: int) -> Growing:
    """How residual trees of a table of so many units are grown: with larger nodes than direct ones.

    Residuals hold less signal than times. The smallest node that is split has NODE_SHARE of all
    units, within NODE_FACTORS times that of direct trees.
    """
    limits = growing.limits
    least, most = (int(factor * limits.min_samples_split) for factor in NODE_FACTORS)
    smallest = min(max(least, int(NODE_SHARE * n_units)), most)
    return growing._replace(limits=limits._replace(min_samples_split=smallest))


def rank_residuals(target: Target, working: WorkingModel) -> tuple[Target, NDArray[np.int32]]:
    """Residuals of a target in time order, ranked, and the time rank of each residual rank.

    A row stays at risk for some time: where the baseline hazard is flat, its entry is moved to
    just before its end. So does the left end of an interval.
    """
    linear_predictor = working.linear_predictor
    residual = working.residuals(target.time, linear_predictor)
    entry = target.entry
    if entry is not None:
        mapped = working.residuals(np.maximum(entry, working.knots[0]), linear_predictor)
        mapped = np.minimum(mapped, np.nextafter(residual, -np.inf))
        entry = np.where(entry < working.knots[0], -np.inf, mapped)
    lower = target.lower
    if lower is not None:
        mapped = working.residuals(np.maximum(lower, working.knots[0]), linear_predictor)
        mapped = np.minimum(mapped, np.nextafter(residual, -np.inf))
        mapped = np.where(lower < working.knots[0], -np.inf, mapped)
        lower = np.where(lower == target.time, residual, mapped)
    return rank_target(Target(residual, target.event, entry, lower=lower), "right")


def read_residual_trees(
    forest: Forest, rows: Rows, known: Target, working: WorkingModel
) -> ResidualTrees:
    """The residual trees of a forest, with the training rows by rank and their target."""
    ranked, order = rank_residuals(known, working)
    residual_rank = np.empty(len(order), np.int32)
    residual_rank[order] = np.arange(len(order), dtype=np.int32)
    weight = None if rows.weight is None else rows.weight[order]
    target = RankedTarget(ranked.time, ranked.event, first_at_risk(ranked), weight)
    n_direct = count_direct(len(forest.roots))
    first = _first_leaf_row(forest, n_direct)
    ends = None if ranked.lower is None else number_ends(ranked)
    marginal = marginal_weights(weight, len(order))
    if ends is None:
        root = compute_steps(marginal, target)
    else:
        root = interval_steps(marginal, ends).at_right()
    return ResidualTrees(
        n_direct=n_direct,
        target=target,
        leaf_rows=residual_rank[forest.leaf_rows[first:]],
        first_leaf_row=first,
        direct_hazard=working.hazard_places(rows.time),
        root=thin_root(root),
        interval_ends=ends,
    )


def _first_leaf_row(forest: Forest, tree: int) -> int:
    """Where the rows of the first leaf of a tree begin."""
    n_leaves = np.count_nonzero(forest.feature[: forest.roots[tree]] == LEAF)
    return int(forest.leaf_offsets[n_leaves])
