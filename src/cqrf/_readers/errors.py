"""Standard errors and confidence intervals, for forests that were grown in bags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.target import oriented
from cqrf._model.fitted import Model
from cqrf._readers.quantiles import Quantiles
from cqrf._readers.reader import ArrayReader, Chunk, Part, Reader, Result
from cqrf._runtime.arguments import read_times
from cqrf._survival.little_bags import bag_variances, standard_errors, survival_interval
from cqrf._survival.quantiles import QuantileSolver, Solution

FEWEST_UNITS = 20  # rows or groups; half-samples of fewer say little about the variance


class BagReader(Reader[Part, Result]):
    """A reader for forests that were grown in bags."""

    def check(self, model: Model) -> None:
        """Raise unless the forest was grown in bags."""
        check_errors(model)


def check_errors(model: Model) -> None:
    """Raise a ValueError with the reason if this forest has no standard errors."""
    sampling = model.sampling
    if model.lower is not None:
        raise ValueError("standard errors are not available for a forest of intervals.")
    if sampling.bag_size == 1:
        raise ValueError(
            "standard errors need trees in bags: fit with bag_size=2 or more (and some hundred "
            "bags, n_estimators / bag_size)."
        )
    if not sampling.honest:
        raise ValueError("standard errors need honest trees: fit with honest=True.")
    if sampling.bootstrap:  # with repeated rows they come out a third too large
        raise ValueError("standard errors need each row drawn once: fit with bootstrap=False.")
    if len(model.forest.roots) < 2 * sampling.bag_size:
        raise ValueError(
            "standard errors need at least two bags: fit with "
            f"n_estimators={2 * sampling.bag_size} or more (and some hundred bags)."
        )
    if sampling.n_units < FEWEST_UNITS:
        raise ValueError(
            f"standard errors need at least {FEWEST_UNITS} rows or groups; found "
            f"{sampling.n_units}."
        )
    if model.rows.first_at_risk is not None:
        raise ValueError(
            "standard errors are not available for rows that enter late. The manual, under "
            "'Confidence intervals', shows how forests of random halves of the rows give them."
        )


class SurvivalErrors(BagReader, ArrayReader):
    """Standard errors of P(T > t | x) at times, by the bootstrap of little bags."""

    def __init__(self, times: ArrayLike) -> None:
        self.times = read_times(times)

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Errors of shape (n_queries, n_times)."""
        return survival_errors(chunk, np.tile(self.times, (chunk.n_queries, 1)))


class Confident(NamedTuple):
    """Quantiles, ends of intervals (n, n_intervals, 2), standard errors of curves (n, n_times)."""

    solution: Solution
    ends: NDArray[np.float64]
    errors: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Confidence(BagReader[Confident, Confident]):
    """Quantiles, intervals of the first of them, errors of curves: one pass over the bags."""

    solver: QuantileSolver
    levels: NDArray[np.float64]
    n_intervals: int
    times: NDArray[np.float64]
    width: float

    def read(self, chunk: Chunk) -> Confident:
        """Estimates for the queries of a chunk."""
        censoring, n = chunk.model.censoring, self.n_intervals
        solution = Quantiles(self.solver, self.levels).read(chunk)
        values = solution.fill("clip")[:, :n]
        # S may cross the level in one large step: its error before the step counts as well.
        before = np.nextafter(values, oriented(-np.inf, censoring))
        times = np.tile(self.times, (chunk.n_queries, 1))
        errors = survival_errors(chunk, np.hstack([values, before, times]))
        of_level = np.maximum(errors[:, :n], errors[:, n : 2 * n])
        lower, upper = survival_interval(1.0 - self.levels[:n], self.width * of_level, censoring)
        crossed = chunk.survival.first_at_most(np.hstack([upper, lower]))
        first = np.minimum(crossed[:, :n], values)
        last = np.maximum(crossed[:, n:], values)
        return Confident(solution, np.stack([first, last], axis=-1), errors[:, 2 * n :])

    def join(self, parts: list[Confident]) -> Confident:
        """The estimates of all chunks."""
        solutions, ends, errors = zip(*parts, strict=True)
        joined = Quantiles(self.solver, self.levels).join(list(solutions))
        return Confident(joined, np.concatenate(ends), np.concatenate(errors))


@dataclass(frozen=True, eq=False)
class QuantileIntervals(BagReader, ArrayReader):
    """Confidence intervals of quantiles, ``width`` standard errors on each side."""

    solver: QuantileSolver
    levels: NDArray[np.float64]
    width: float

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Ends of shape (n_queries, n_levels, 2)."""
        n_levels, no_times = len(self.levels), np.empty(0)
        return Confidence(self.solver, self.levels, n_levels, no_times, self.width).read(chunk).ends


def survival_errors(chunk: Chunk, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard errors of the survival curves at times of shape (n_queries, n_times)."""
    model = chunk.model
    at = np.ascontiguousarray(oriented(times, model.censoring))
    bag_size = model.sampling.bag_size
    n_bags = len(model.forest.roots) // bag_size
    if chunk.by_kind is not None:
        return standard_errors(chunk.by_kind.bag_variances(at, bag_size // 2), n_bags)
    variances = bag_variances(
        chunk.leaves, model.forest.leaf_rows, chunk.weights, model.ranked_target, at, bag_size
    )
    return standard_errors(variances, n_bags)
