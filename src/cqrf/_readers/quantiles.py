"""Quantiles, and the largest level at which they are identifiable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cqrf._input.target import oriented
from cqrf._readers.reader import ArrayReader, Chunk, Reader
from cqrf._survival.interval_curves import REACHED
from cqrf._survival.quantiles import QuantileSolver, Solution, curve_quantiles


@dataclass(frozen=True, eq=False)
class Quantiles(Reader[Solution, Solution]):
    """Quantiles at some levels."""

    solver: QuantileSolver
    levels: NDArray[np.float64]

    def read(self, chunk: Chunk) -> Solution:
        """Quantiles of shape (n_queries, n_levels), and the last neighbours."""
        if chunk.model.lower is not None:
            self.solver.check_reads_curves("a forest of intervals")
            return curve_quantiles(chunk.survival, self.levels, tolerance=REACHED)
        if chunk.given is not None:
            return curve_quantiles(chunk.survival, self.levels)
        if chunk.by_kind is not None:
            self.solver.check_reads_curves()
            return chunk.by_kind.quantiles(self.levels)
        return self.solver.solve(chunk.weights, chunk.model.ranked_target, self.levels)

    def join(self, parts: list[Solution]) -> Solution:
        """The solutions of all chunks."""
        return Solution(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.last_neighbor for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class MaxLevel(ArrayReader):
    """Largest identifiable level of each query (the smallest, under left censoring)."""

    solver: QuantileSolver

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Levels of shape (n_queries,)."""
        has_curves = chunk.by_kind is not None or chunk.model.lower is not None
        if chunk.given is not None or has_curves:
            curves, censoring = chunk.survival, chunk.model.censoring
            return 1.0 - curves.each(np.full(chunk.n_queries, oriented(np.inf, censoring)))
        return self.solver.max_level(chunk.weights, chunk.model.ranked_target)
