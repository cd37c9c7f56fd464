"""Queries: rows that predictions are asked for, new ones or the training rows out of bag."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.binning import encode, encode_columns
from cqrf._forest.sampling import in_bag_bits
from cqrf._input.units import find_clusters
from cqrf._model.fitted import Model
from cqrf._runtime.arguments import read_floats


class Queries(NamedTuple):
    """Rows that predictions are asked for."""

    codes: NDArray[np.uint8]
    """Shape (n, n_features); 0 for features that predictions do not depend on."""
    in_bag: NDArray[np.uint8] | None = None
    """Bits of shape (n, n_trees / 8): trees to leave out for each row."""
    given: NDArray[np.float64] | None = None
    """Times that the rows have already survived, shape (n,): all is about the time that remains."""
    linear_predictor: NDArray[np.float64] | None = None
    """Of the working model, shape (n,). None: as the codes give it, or there is no such model."""

    def take(self, rows: Any) -> Queries:
        """Some of the queries, by a slice or an array of row numbers."""
        codes, *others = self
        return Queries(codes[rows], *(None if each is None else each[rows] for each in others))

    def replace_codes(self, model: Model, feature: int, codes: NDArray[np.uint8]) -> Queries:
        """The same queries with other codes of a feature."""
        changed = self.codes.copy()
        changed[:, feature] = codes
        linear_predictor = self.linear_predictor
        if linear_predictor is not None and model.working is not None:
            scores = model.working.scores[feature]
            linear_predictor = linear_predictor + scores[codes] - scores[self.codes[:, feature]]
        return self._replace(codes=changed, linear_predictor=linear_predictor)


def encode_queries(
    model: Model, matrix: NDArray[Any], n_jobs: int | None = None, given: Any = None
) -> Queries:
    """Queries from the rows of a matrix; only features that predictions depend on are encoded."""
    codes = encode_columns(matrix, model.used_features, model.used_edges, n_jobs)
    survived = None if given is None else read_given(model, given, len(matrix))
    return Queries(np.ascontiguousarray(codes.T), given=survived)


def read_given(model: Model, given: Any, n: int) -> NDArray[np.float64]:
    """Times already survived, one for each of n rows."""
    if model.censoring == "left":
        raise ValueError("given is for right-censored times: remaining time after a time survived.")
    times = read_floats("given", given)
    if times.shape not in ((), (n,)) or not np.isfinite(times).all():
        raise ValueError(
            f"given must be one finite time, or one for each of the {n} rows of X; found "
            f"{'times that are not finite' if times.shape in ((), (n,)) else times.shape}."
        )
    return np.broadcast_to(times, n)


def encode_all(model: Model, matrix: NDArray[Any], n_jobs: int | None = None) -> NDArray[np.uint8]:
    """Codes of all features, shape (n, n_features), to compare with :func:`training_codes`."""
    return np.ascontiguousarray(encode(matrix, model.edges, n_jobs).T)


def training_codes(model: Model) -> NDArray[np.uint8]:
    """Codes of the training rows in the order of their table, shape (n, n_features)."""
    return np.ascontiguousarray(model.rows.codes[:, model.ranks].T)


def training_queries(
    model: Model, rows: NDArray[np.intp] | None = None, n_jobs: int | None = None
) -> Queries:
    """Training rows, each without the trees that drew it: all in the order of their table, or some.

    ``rows`` are numbers of rows of the table.
    """
    if not model.keeps_features:
        raise ValueError(
            "a forest grown on Dask keeps no features of its training rows, so there are no "
            "out-of-bag predictions: use rows held out, with predict and score."
        )
    ranks = model.ranks if rows is None else model.ranks[rows]
    unit = find_clusters(model.sampling.unit_of_row[ranks])
    drawn = in_bag_bits(model.sampling, model.tree_numbers, model.seed, unit, n_jobs)
    drawn[unit < 0] = 0
    codes = np.ascontiguousarray(model.rows.codes[:, ranks].T)
    working = model.working
    linear_predictor = None if working is None else working.linear_predictor[ranks]
    return Queries(codes, drawn, linear_predictor=linear_predictor)


def has_tree(model: Model, queries: Queries) -> NDArray[np.bool_]:
    """Whether some tree is left for each query."""
    if queries.in_bag is None:
        return np.full(len(queries.codes), True)
    n_drawn = np.bitwise_count(queries.in_bag).sum(axis=1, dtype=np.int64)
    return np.asarray(n_drawn < len(model.forest.roots))
