"""The subject: the forest, the table, and which of its predictions are judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from cqrf._input.features import feature_names, read_features
from cqrf._input.target import Target, read_target
from cqrf._model.fitted import Model
from cqrf._model.predict import (
    MaxLevel,
    Quantiles,
    Queries,
    RestrictedMean,
    SurvivalCurves,
    encode_all,
    encode_queries,
    read_one,
    training_codes,
    training_queries,
)
from cqrf._model.settings import read_solver
from cqrf._survival.curves import StepCurves
from cqrf.estimator import CensoredQuantileForest

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, eq=False)
class Subject:
    """What a report is about.

    Attributes
    ----------
    X : frame or array
        The table as it was given.
    matrix : ndarray of shape (n, n_features)
        The table as numbers and codes.
    names : tuple of str
        Names of its columns.
    out_of_bag : bool
        Whether it is the training table, so that each row is judged by trees that did not draw it.
    n_seen : int
        Rows that are also in the training table.
    queries : Queries
        The rows as the forest reads them.
    values : ndarray of shape (n, n_levels)
        Quantiles at LEVELS: infinite where censoring hides them, NaN where no tree speaks.
    last : ndarray of shape (n,)
        Last neighbour of each row, which a hidden quantile lies beyond.
    """

    forest: CensoredQuantileForest
    X: Any
    matrix: NDArray[Any]
    names: tuple[str, ...]
    target: Target
    out_of_bag: bool
    n_seen: int
    queries: Queries
    values: NDArray[np.float64]
    last: NDArray[np.float64]

    @property
    def model(self) -> Model:
        """The fitted forest."""
        return self.forest.model_

    @property
    def censoring(self) -> str:
        """Side on which times are censored."""
        return self.model.censoring

    @property
    def known(self) -> NDArray[np.bool_]:
        """Rows that some tree speaks for."""
        return np.asarray(~np.isnan(self.values).any(axis=1))

    @property
    def hidden(self) -> NDArray[np.bool_]:
        """Quantiles that censoring hides."""
        return np.isinf(self.values)

    @property
    def clipped(self) -> NDArray[np.float64]:
        """Quantiles with the last neighbour in place of those that are hidden."""
        return np.where(self.hidden, self.last[:, np.newaxis], self.values)

    @property
    def train(self) -> Target:
        """Target of the training rows, in the order of their table."""
        return self.model.training_target

    @property
    def censored_as(self) -> Target:
        """Rows by whose censoring is judged: the training rows, or those of another table."""
        return self.train if self.out_of_bag else self.target

    @property
    def weight(self) -> NDArray[np.float64]:
        """Weights of these rows, in the order of their table."""
        return self.model.training_weight if self.out_of_bag else np.ones(len(self.target.time))

    def curves(self, rows: NDArray[np.intp]) -> StepCurves:
        """Survival curves of some of the rows."""
        return read_one(self.model, self.queries.take(rows), SurvivalCurves(), self.forest.n_jobs)

    def restricted_mean(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Means of some of the rows, cut off at the end of the training times."""
        return read_one(self.model, self.queries.take(rows), RestrictedMean(), self.forest.n_jobs)

    def max_level(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Largest level that can be estimated at some of the rows (the smallest, from the left)."""
        reader = MaxLevel(read_solver(self.forest, self.censoring))
        return read_one(self.model, self.queries.take(rows), reader, self.forest.n_jobs)


def read_subject(forest: CensoredQuantileForest, X: Any, y: Any) -> Subject:
    """Read the table, and find out whether the forest was grown from it."""
    if not isinstance(forest, CensoredQuantileForest):
        raise ValueError(f"forest must be a CensoredQuantileForest; found {type(forest).__name__}.")
    check_is_fitted(forest)
    model, target = forest.model_, read_target(y)
    if target.entry is not None and model.censoring == "left":
        raise ValueError("entry times go with right censoring; the forest has censoring='left'.")
    matrix, _ = read_features(forest, X, model.columns)
    check_consistent_length(matrix, target.time)
    codes = encode_all(model, matrix, forest.n_jobs)
    out_of_bag = (
        model.keeps_features
        and is_training_table(forest, target)
        and np.array_equal(codes, training_codes(model))
    )
    n_seen = len(target.time) if out_of_bag else count_seen(model, target, codes)
    queries = training_queries(model) if out_of_bag else encode_queries(model, matrix)
    solver = read_solver(forest, model.censoring)
    solution = read_one(model, queries, Quantiles(solver, np.array(LEVELS)), forest.n_jobs)
    return Subject(
        forest=forest,
        X=X,
        matrix=matrix,
        names=tuple(feature_names(forest)),
        target=target,
        out_of_bag=out_of_bag,
        n_seen=n_seen,
        queries=queries,
        values=solution.values,
        last=solution.last_neighbor,
    )


def is_training_table(forest: CensoredQuantileForest, target: Target) -> bool:
    """Whether these are the times, events and entries that the forest was fitted on."""
    train = forest.model_.training_target
    n = len(train.time)
    if len(target.time) != n:
        return False
    late, late_train = (
        np.full(n, -np.inf) if entry is None else entry for entry in (target.entry, train.entry)
    )
    pairs = ((target.time, train.time), (target.event, train.event), (late, late_train))
    return all(np.array_equal(ours, theirs) for ours, theirs in pairs)


def count_seen(model: Model, target: Target, codes: NDArray[np.uint8]) -> int:
    """Rows with the time, the event and, up to bins, the features of a training row.

    Where the forest keeps no features, time and event have to do.
    """

    def keys(rows: Target, codes: NDArray[np.uint8]) -> list[tuple[float, bool, bytes]]:
        bits = [row.tobytes() for row in np.ascontiguousarray(codes)]
        return list(zip(rows.time.tolist(), rows.event.tolist(), bits, strict=True))

    train = model.training_target
    compared, of_training = codes[:, :0], np.empty((len(train.time), 0), np.uint8)
    if model.keeps_features:
        compared, of_training = codes, training_codes(model)
    known = set(keys(train, of_training))
    return sum(key in known for key in keys(target, compared))
