"""Predictions for a table, and whether they are out of bag."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from cqrf._input.features import feature_names, read_features
from cqrf._input.target import Target, read_target
from cqrf._model.fitted import Model
from cqrf._model.queries import Queries, encode_all, training_queries
from cqrf._model.settings import read_solver
from cqrf._readers.curves import RestrictedMean, SurvivalCurves
from cqrf._readers.quantiles import MaxLevel, Quantiles
from cqrf._readers.reader import read_one, read_weights
from cqrf._survival.step_curves import StepCurves
from cqrf._views.curves import SHOWN_LEVELS, take_curves
from cqrf._views.training_table import count_training_rows, is_training_table
from cqrf.estimator import CensoredQuantileForest
from cqrf.report.words import Words

MAX_EVALUATED = 2000  # rows whose whole curves are scored
MAX_LISTED = 20_000  # rows whose quantiles the page has


@dataclass(frozen=True, eq=False)
class TablePredictions:
    """A table and the forest's predictions for its rows.

    Attributes
    ----------
    X : frame or array
        The table as it was given.
    matrix : ndarray of shape (n, n_features)
        The table as numbers and category codes.
    names : list of str
        Names of the columns.
    out_of_bag : bool
        Whether it is the training table; each row is then predicted by the trees that did not
        draw it.
    n_training_rows : int
        Rows that are also in the training table.
    queries : Queries
        The rows as the forest reads them.
    quantiles : ndarray of shape (n, n_levels)
        Quantiles at SHOWN_LEVELS: infinite where they are not identifiable because of censoring,
        NaN where every tree has drawn the row.
    score_quantiles : ndarray of shape (n, n_score_levels)
        Quantiles at the levels of the scores, clipped; NaN where every tree has drawn the row.
    last_neighbor : ndarray of shape (n,)
        Time of the last neighbour of each row; a quantile that is not identifiable is later
        (under left censoring: of the first neighbour, and earlier).
    means : ndarray of shape (n,)
        Restricted means, up to the last training time.
    max_levels : ndarray of shape (n,)
        Largest identifiable level (under left censoring, the smallest).
    max_drawn : int
        Most rows whose curves the page has.
    """

    forest: CensoredQuantileForest
    X: Any
    matrix: NDArray[Any]
    names: list[str]
    target: Target
    out_of_bag: bool
    n_training_rows: int
    queries: Queries
    quantiles: NDArray[np.float64]
    score_quantiles: NDArray[np.float64]
    last_neighbor: NDArray[np.float64]
    means: NDArray[np.float64]
    max_levels: NDArray[np.float64]
    max_drawn: int

    @property
    def model(self) -> Model:
        """The fitted forest."""
        return self.forest.model_

    @property
    def words(self) -> Words:
        """Words for times and for the event."""
        return Words.of(self.forest)

    @property
    def censoring(self) -> str:
        """Side on which times are censored."""
        return self.model.censoring

    @property
    def has_prediction(self) -> NDArray[np.bool_]:
        """Rows for which there is at least one tree."""
        return np.asarray(~np.isnan(self.quantiles).any(axis=1))

    @property
    def unidentified(self) -> NDArray[np.bool_]:
        """Quantiles that are not identifiable because of censoring."""
        return np.isinf(self.quantiles)

    @property
    def clipped(self) -> NDArray[np.float64]:
        """Quantiles, with the last neighbour's time where they are not identifiable."""
        return np.where(self.unidentified, self.last_neighbor[:, np.newaxis], self.quantiles)

    @cached_property
    def train(self) -> Target:
        """Target of the training rows, in the order of their table."""
        return self.model.training_target

    @property
    def censoring_sample(self) -> Target:
        """Rows from which scores estimate the censoring survival G."""
        return self.train if self.out_of_bag else self.target

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        """Sample weights of the rows, in the order of the table."""
        return self.model.training_weight if self.out_of_bag else np.ones(len(self.target.time))

    def score_weight(self, rows: NDArray[np.intp]) -> NDArray[np.float64] | None:
        """Sample weights of some rows for scores; None if all are 1."""
        return self.weight[rows] if self.out_of_bag else None

    @cached_property
    def evaluated_rows(self) -> NDArray[np.intp]:
        """Rows whose whole curves are scored."""
        rows = np.flatnonzero(self.has_prediction)
        return rows[space_rows(len(rows), MAX_EVALUATED)]

    @cached_property
    def drawn_rows(self) -> NDArray[np.intp]:
        """Rows whose curves the page has."""
        return space_rows(len(self.target.time), self.max_drawn)

    @cached_property
    def listed_rows(self) -> NDArray[np.intp]:
        """Rows that the page lists one by one, those with a curve among them."""
        return np.union1d(space_rows(len(self.target.time), MAX_LISTED), self.drawn_rows)

    def curves(self, rows: NDArray[np.intp]) -> StepCurves:
        """Survival curves of some of the rows, which must be evaluated or drawn."""
        return take_curves(self._curves, np.searchsorted(self._curve_rows, rows))

    @property
    def scores_all_rows(self) -> bool:
        """Whether the curves of all rows that have a prediction are scored."""
        return len(self.evaluated_rows) == int(self.has_prediction.sum())

    @cached_property
    def _curve_rows(self) -> NDArray[np.intp]:
        """Rows whose curves are needed, sorted."""
        if self.scores_all_rows:
            return np.arange(len(self.target.time))
        return np.union1d(self.evaluated_rows, self.drawn_rows)

    @cached_property
    def _curves(self) -> StepCurves:
        queries = self.queries.take(self._curve_rows)
        return read_one(self.model, queries, SurvivalCurves(), self.forest.n_jobs)


def check_span(time: NDArray[np.float64]) -> None:
    """Raise if times are so far apart that their difference is no number: no axis holds them."""
    low, high = float(time.min()), float(time.max())
    if not math.isfinite(high - low):
        raise ValueError(
            f"time: a report cannot show times from {low:g} to {high:g}, which are more than "
            f"{sys.float_info.max:.2g} apart. Fit the forest with times in a larger unit."
        )


def predict_table(
    forest: CensoredQuantileForest, X: Any, y: Any, *, max_drawn: int = 500
) -> TablePredictions:
    """Read a table and predict for its rows, out of bag if it is the training table."""
    if not isinstance(forest, CensoredQuantileForest):
        raise ValueError(f"forest must be a CensoredQuantileForest; found {type(forest).__name__}.")
    check_is_fitted(forest)
    model, target = forest.model_, read_target(y)
    if target.entry is not None and model.censoring == "left":
        raise ValueError("entry times go with right censoring; the forest has censoring='left'.")
    check_span(np.append(target.time, model.training_target.time))
    matrix, _ = read_features(forest, X, model.columns)
    check_consistent_length(matrix, target.time)
    codes = encode_all(model, matrix, forest.n_jobs)
    out_of_bag = is_training_table(model, target, codes)
    if out_of_bag:
        n_training_rows, queries = len(target.time), training_queries(model)
    else:
        n_training_rows, queries = count_training_rows(model, target, codes), Queries(codes)
    solver = read_solver(forest, model.censoring)
    readers: list[Any] = [
        Quantiles(solver, np.array(SHOWN_LEVELS)),
        Quantiles(solver, np.array(model.score_levels)),
        RestrictedMean(),
        MaxLevel(solver),
    ]
    solution, scored, means, max_levels = read_weights(model, queries, readers, forest.n_jobs)
    return TablePredictions(
        forest=forest,
        X=X,
        matrix=matrix,
        names=feature_names(forest),
        target=target,
        out_of_bag=out_of_bag,
        n_training_rows=n_training_rows,
        queries=queries,
        quantiles=solution.values,
        score_quantiles=scored.fill("clip"),
        last_neighbor=solution.last_neighbor,
        means=means,
        max_levels=max_levels,
        max_drawn=max_drawn,
    )


def space_rows(n: int, max_rows: int) -> NDArray[np.intp]:
    """Numbers of at most ``max_rows`` of n rows, evenly spaced."""
    if n <= max_rows:
        return np.arange(n)
    return np.linspace(0, n - 1, max_rows).round().astype(np.intp)
