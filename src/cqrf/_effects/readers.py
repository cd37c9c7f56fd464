"""Readers of forest weights that effects need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from cqrf._effects.response import Floats
from cqrf._model.predict import ArrayReader, Chunk


@dataclass(frozen=True, eq=False)
class Averages(ArrayReader):
    """Means of the columns of a table, (n_train, n_columns) by rank, with the forest's weights."""

    table: Floats

    def read(self, chunk: Chunk) -> Floats:
        """Means of shape (n_queries, n_columns); NaN for a query without weights."""
        weights = chunk.weights
        rows = sparse.csr_array(
            (weights.values, weights.ranks, weights.offsets),
            shape=(chunk.n_queries, len(self.table)),
        )
        means: Floats = rows @ self.table
        means[np.diff(weights.offsets) == 0] = np.nan
        return means


@dataclass(frozen=True, eq=False)
class CensoringBefore(ArrayReader):
    """P(C >= t | x), each query at a time of its own."""

    times: Floats

    def read(self, chunk: Chunk) -> Floats:
        """Probabilities of shape (n_queries,)."""
        return chunk.censoring_survival.each(np.nextafter(self.times[chunk.rows], -np.inf))
