"""Readers of weights for forests of intervals: curves and quantiles with both of their ends.

A forest of exact and right-censored rows has the same answer twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cqrf._readers.curves import SurvivalCurves
from cqrf._readers.quantiles import Quantiles
from cqrf._readers.reader import Chunk, Reader
from cqrf._survival.curves import as_curves
from cqrf._survival.interval_curves import REACHED
from cqrf._survival.quantiles import QuantileSolver, Solution, curve_quantiles
from cqrf._survival.step_curves import StepCurves


def lower_survival(chunk: Chunk) -> StepCurves:
    """Survival curves with every step at the left end of its interval."""
    if chunk.model.lower is None:
        return chunk.survival
    if chunk.by_kind is not None:
        steps = chunk.by_kind.mix_left()
    else:
        assert chunk.interval_steps is not None
        steps = chunk.interval_steps.at_left()
    curves = as_curves(steps, chunk.model.censoring)
    return curves if chunk.given is None else curves.given(chunk.given)


class LowerCurves(SurvivalCurves):
    """Survival curves with every step at the left end of its interval."""

    def read(self, chunk: Chunk) -> StepCurves:
        """One curve per query."""
        return lower_survival(chunk)


@dataclass(frozen=True, eq=False)
class QuantileBounds(Reader[tuple[Solution, Solution], tuple[Solution, Solution]]):
    """Quantiles at some levels, at the left and at the right end of their intervals."""

    solver: QuantileSolver
    levels: NDArray[np.float64]

    def read(self, chunk: Chunk) -> tuple[Solution, Solution]:
        """Both solutions for the queries of a chunk."""
        right = Quantiles(self.solver, self.levels).read(chunk)
        if chunk.model.lower is None:
            return right, right
        left = curve_quantiles(lower_survival(chunk), self.levels, tolerance=REACHED)
        # The left end of a quantile that is not identifiable is not, either.
        values = np.where(np.isposinf(right.values), np.inf, left.values)
        return Solution(values, right.last_neighbor), right

    def join(self, parts: list[tuple[Solution, Solution]]) -> tuple[Solution, Solution]:
        """The solutions of all chunks."""
        joined = Quantiles(self.solver, self.levels).join
        left, right = zip(*parts, strict=True)
        return joined(list(left)), joined(list(right))


def fill_bounds(ends: tuple[Solution, Solution], unidentified: str) -> NDArray[np.float64]:
    """Both ends of quantiles, of shape (n, n_levels, 2), where they are not identifiable, too."""
    left, right = ends
    upper = right.fill(unidentified, stacklevel=4)
    # Minus infinity is a left end: T may have come any time before.
    lower = np.where(np.isposinf(left.values), upper, left.values)
    return np.stack([lower, upper], axis=-1)
