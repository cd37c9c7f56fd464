"""What is served: a forest, its columns, and the rows of a table if one was given."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._input.features import read_features
from cqrf._input.target import Target, read_target
from cqrf._model.fitted import Model
from cqrf._model.predict import check_errors, encode_all
from cqrf._model.settings import read_solver
from cqrf._survival.quantiles import QuantileSolver
from cqrf.estimator import CensoredQuantileForest
from cqrf.report.data import time_range
from cqrf.report.subject import is_training_table
from cqrf.serve.columns import Column, describe_columns
from cqrf.serve.values import Kind

N_TIMES = 161  # of the even grid on which curves are shown
PAD = 0.1  # of the range of times, drawn beyond its ends


@dataclass(frozen=True, eq=False)
class DataRows:
    """Rows of a table: to start from, and if it is the training table, those that speak.

    Attributes
    ----------
    matrix : ndarray of shape (n, n_features)
        The rows as the forest reads them.
    labels : list of str
        A name for each row.
    source : str
        Where they came from.
    training : Target or None
        Times and outcomes, if these are the rows that the forest was fitted to.
    """

    matrix: NDArray[Any]
    labels: list[str]
    source: str
    training: Target | None


@dataclass(frozen=True, eq=False)
class Served:
    """A forest with what its page and API need."""

    forest: CensoredQuantileForest
    name: str
    columns: list[Column]
    data: DataRows | None
    solver: QuantileSolver
    times: NDArray[np.float64]
    no_errors: str | None

    @property
    def model(self) -> Model:
        """The fitted forest."""
        return self.forest.model_

    @property
    def kinds(self) -> list[Kind]:
        """Name and kind of each column."""
        return [column.kind for column in self.columns]

    @property
    def shows_training(self) -> bool:
        """Whether training rows may be shown."""
        return self.data is not None and self.data.training is not None

    @property
    def fingerprint(self) -> str:
        """What tells columns of this model from those of another, in a link."""
        columns = [list(kind) for kind in self.kinds]
        return hashlib.sha256(json.dumps(columns).encode()).hexdigest()[:8]


def name_columns(forest: CensoredQuantileForest) -> list[str]:
    """Names of the columns, made up if the forest was fitted to an array."""
    names = getattr(forest, "feature_names_in_", None)
    if names is None:
        return [f"feature {j}" for j in range(forest.n_features_in_)]
    return [str(name) for name in names]


def read_data(
    forest: CensoredQuantileForest, X: Any, y: Any, labels: Sequence[str], source: str
) -> DataRows:
    """Rows of a table; y is None where times and outcomes are not known."""
    model = forest.model_
    matrix, _ = read_features(forest, X, model.columns)
    training = None
    if y is not None:
        target = read_target(y)
        if model.keeps_features and is_training_table(forest, target):
            codes = encode_all(model, matrix)[model.order]
            training = target if np.array_equal(codes.T, model.rows.codes) else None
    return DataRows(matrix, list(labels), source, training)


def prepare(forest: CensoredQuantileForest, name: str, data: DataRows | None = None) -> Served:
    """Join the forest with its columns and rows."""
    model = forest.model_
    names = name_columns(forest)
    training = data.matrix if data is not None and data.training is not None else None
    low, high = time_range(model.training_target.time)
    pad = PAD * (high - low)
    start = low - pad if model.censoring == "left" else low
    return Served(
        forest=forest,
        name=name,
        columns=describe_columns(model, names, forest.feature_importances_, training),
        data=data,
        solver=read_solver(forest, model.censoring),
        times=np.linspace(start, high + pad, N_TIMES),
        no_errors=find_why_no_errors(model),
    )


def find_why_no_errors(model: Model) -> str | None:
    """Why the forest cannot say how sure its curves are; None if it can."""
    try:
        check_errors(model)
    except ValueError as error:
        return str(error)
    return None
