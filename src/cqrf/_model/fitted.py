"""The fitted state: everything that predictions need, and nothing that is computed from it.

:mod:`cqrf._model.fit` makes a :class:`Model`; :mod:`cqrf._readers` reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.binning import pad_edges
from cqrf._forest.rows import Rows
from cqrf._forest.sampling import number_trees
from cqrf._forest.spec import Forest, Sampling
from cqrf._input.causes import Cause
from cqrf._input.columns import Columns
from cqrf._input.risk_sets import TOLERANCE
from cqrf._input.target import Target, oriented
from cqrf._model.residual import ResidualTrees, read_residual_trees
from cqrf._survival.curves import RankedTarget
from cqrf._survival.innermost import IntervalEnds, number_ends
from cqrf._survival.interval_curves import survival_curves
from cqrf._working_model.transform import WorkingModel
from cqrf.metrics.ipcw import marginal_weights
from cqrf.metrics.metric import choose_levels

# The follow-up lasts as long as this share of the training weight is at risk.
FOLLOW_UP_SHARE = 0.1


@dataclass(frozen=True)
class Model:
    """A fitted forest with its training rows.

    Attributes
    ----------
    columns : Columns
        Kind of each feature, and its levels if it is a category.
    edges : sequence of ndarray
        Bin edges of each feature.
    forest : Forest
    rows : Rows
        Training rows by rank: codes, time oriented to the right, event, weight. A forest grown on
        a cluster keeps no codes: ``rows.codes`` then has no columns.
    entry : ndarray or None
        Entry times by rank.
    order : ndarray of int32
        Row of the training table at each rank.
    sampling : Sampling
        How trees draw rows: it tells which rows are out of bag.
    seed : int
    censoring : {"right", "left"}
    working : WorkingModel or None
        The working model; with it the trees from ``residual_trees.n_direct`` on are residual.
    causes : tuple
        Names of the causes, whose numbers are ``rows.cause``; empty if there is one kind of event.
    lower : ndarray or None
        With interval censoring: left ends by rank; right ends are ``rows.time``, or infinite in
        rows without event.
    """

    columns: Columns
    edges: Sequence[NDArray[np.float64]]
    forest: Forest
    rows: Rows
    entry: NDArray[np.float64] | None
    order: NDArray[np.int32]
    sampling: Sampling
    seed: int
    censoring: str
    working: WorkingModel | None = None
    causes: tuple[Cause, ...] = ()
    lower: NDArray[np.float64] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The attributes; what is computed from them is not pickled."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def residual_trees(self) -> ResidualTrees | None:
        """Which trees are residual, and their rows on the residual scale."""
        if self.working is None:
            return None
        known = Target(self.rows.time, self.rows.event, self.entry, lower=self.lower)
        return read_residual_trees(self.forest, self.rows, known, self.working)

    @property
    def tree_numbers(self) -> NDArray[np.int64]:
        """Number of each tree: decides which rows it has drawn."""
        return number_trees(len(self.forest.roots), self.working is not None)

    @cached_property
    def used_features(self) -> NDArray[np.intp]:
        """Features that predictions depend on, ascending."""
        if self.working is None:
            return self.forest.split_features
        return np.union1d(self.forest.split_features, self.working.features)

    @cached_property
    def used_edges(self) -> NDArray[np.float64]:
        """Their bin edges, padded: making them takes longer than encoding a row."""
        return pad_edges(self.edges, self.used_features)

    @property
    def ranked_target(self) -> RankedTarget:
        """Training rows by rank, oriented to the right."""
        rows = self.rows
        return RankedTarget(rows.time, rows.event, rows.first_at_risk, rows.weight)

    @cached_property
    def interval_ends(self) -> IntervalEnds | None:
        """With interval censoring: the ends of the training rows, in one order."""
        if self.lower is None:
            return None
        return number_ends(Target(self.rows.time, self.rows.event, lower=self.lower))

    @property
    def training_target(self) -> Target:
        """Times, events and entries in the order of the training table, as the user gave them."""
        rows, time = self.rows, oriented(self.rows.time, self.censoring)
        target = Target(time, rows.event, self.entry, rows.cause, self.causes, self.lower)
        return target.take(self.ranks)

    @property
    def training_weight(self) -> NDArray[np.float64]:
        """Relative sample weights in the order of the training table; 1 if all are equal."""
        if self.rows.weight is None:
            return np.ones(len(self.order))
        return self.rows.weight[self.ranks].astype(np.float64)

    @property
    def ranks(self) -> NDArray[np.intp]:
        """Rank of each row of the training table."""
        return np.argsort(self.order)

    @cached_property
    def follow_up(self) -> float:
        """Last time at which a tenth of the training weight is still at risk.

        With delayed entry, a tenth of the largest weight at risk. Under left censoring times
        count downwards: the first such time. A forest that keeps only the rows in its leaves
        counts these.
        """
        rows, n = self.rows, len(self.order)
        weight = np.ones(n) if rows.weight is None else rows.weight.astype(np.float64)
        at_risk = np.cumsum(weight[::-1])[::-1]
        if rows.first_at_risk is not None:
            entered = np.cumsum(np.bincount(rows.first_at_risk, weight, n))
            at_risk -= weight.sum() - entered
        # Among tied rows the first has all of them at risk; the others only count as less.
        is_followed = (at_risk >= FOLLOW_UP_SHARE * at_risk.max() - TOLERANCE * n) & (weight > 0)
        return float(oriented(rows.time[np.flatnonzero(is_followed)[-1]], self.censoring))

    @cached_property
    def score_levels(self) -> tuple[float, ...]:
        """Levels at which quantiles are scored: (.25, .5, .75), lower where censoring hides them.

        See :func:`cqrf.metrics.metric.choose_levels`. The known share of the distribution is
        1 - S at the end of the follow-up, with S the curve of all training rows.
        """
        weights = marginal_weights(self.rows.weight, len(self.order))
        survival = survival_curves(weights, self.ranked_target, self.interval_ends)[0]
        known_share = 1.0 - float(survival(oriented(self.follow_up, self.censoring), "extend"))
        return choose_levels(known_share, self.censoring)

    @property
    def keeps_features(self) -> bool:
        """Whether the features of the training rows are kept."""
        return self.rows.codes.shape[1] > 0
