"""The fitted state: everything that predictions need, and nothing that is computed from it.

:mod:`cqrf._model.fit` makes a :class:`Model`; :mod:`cqrf._model.predict` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.rows import Rows
from cqrf._forest.spec import Forest, Sampling
from cqrf._input.features import Columns
from cqrf._input.target import Target, oriented
from cqrf._survival.curves import RankedTarget


@dataclass(frozen=True)
class Model:
    """A fitted forest with its training rows.

    Attributes
    ----------
    columns : Columns
        Kind of each feature, and its levels if it is a category.
    edges : list of ndarray
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
    """

    columns: Columns
    edges: list[NDArray[np.float64]]
    forest: Forest
    rows: Rows
    entry: NDArray[np.float64] | None
    order: NDArray[np.int32]
    sampling: Sampling
    seed: int
    censoring: str

    @property
    def ranked_target(self) -> RankedTarget:
        """Training rows by rank, oriented to the right."""
        rows = self.rows
        return RankedTarget(rows.time, rows.event, rows.first_at_risk, rows.weight)

    @property
    def training_target(self) -> Target:
        """Times, events and entries in the order of the training table, as the user gave them."""
        time = oriented(self.rows.time, self.censoring)
        return Target(time, self.rows.event, self.entry).take(self.ranks)

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

    @property
    def last_time(self) -> float:
        """Last time of the training rows with positive weight (the first, if left-censored)."""
        weight = self.rows.weight
        last = len(self.order) - 1 if weight is None else np.flatnonzero(weight)[-1]
        return float(oriented(self.rows.time[last], self.censoring))

    @property
    def keeps_features(self) -> bool:
        """Whether the features of the training rows are kept."""
        return self.rows.codes.shape[1] > 0
